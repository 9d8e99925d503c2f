import { counter, defineSchema, entity, LIMITS, schemaData, setOf, text } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(
  defineSchema({
    issue: entity({ title: text(), body: text({ optional: true }), labels: setOf(text()), votes: counter() }),
  }),
);
const label = { label: 'Edit' };
let ledger: TinyLedger;
let ana: Device;

beforeEach(() => {
  ledger = new TinyLedger(nodeDigest);
  ana = new Device({ schema });
  ana.bootstrap(ledger);
  ana.create('issue', { title: 'A', labels: ['x'] }, 'i');
  ana.settle(ledger);
});
afterEach(() => ana.remove());

const undo = (skipChanged = false) => ana.state.undo('main', { skipChanged });
const row = () => ana.row('issue', 'i');

/** Ben, who has never heard of what Ana has not sent. */
function benRenames(): void {
  const ben = new Device({ schema, seed: 2, account: 'ben' });
  ben.bootstrap(ledger);
  ben.update('issue', 'i', { title: 'Ben' });
  ben.settle(ledger);
  ben.remove();
}

describe('undo', () => {
  test('[CM7] undo commits the inverse, counters and sets by what moved, and redo does it again', () => {
    ana.commit(
      [{ do: 'update', entity: 'issue', id: 'i', set: { title: 'B' }, inc: { votes: 2 }, add: { labels: ['y'] } }],
      label,
    );
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 5 }, add: { labels: ['z'] } }]);
    expect(undo()).toEqual({ ok: true, value: { label: 'Edit' } });
    expect(row()).toMatchObject({ title: 'A', votes: 5, labels: '["x","z"]' });
    expect(ana.state.undoState('main')).toMatchObject({ can: false, canRedo: true, redoLabel: 'Edit' });
    ana.state.redo('main');
    expect(row()).toMatchObject({ title: 'B', votes: 7, labels: '["x","y","z"]' });
    expect(ana.state.undoState('main')).toMatchObject({ can: true, canRedo: false });
  });

  test('[CM7] creates and deletes are taken back', () => {
    ana.commit([{ do: 'delete', entity: 'issue', id: 'i' }], label);
    ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J' } }], label);
    undo();
    expect(ana.row('issue', 'j')).toBeUndefined();
    undo();
    expect(row()).toMatchObject({ title: 'A', labels: '["x"]' });
    ana.settle(ledger);
    expect(ledger.entity('issue', 'i')?.fields).toEqual({ labels: ['x'], title: 'A' });
  });

  test('[CM7] what somebody changed since refuses the undo with what is there, or is left as it is', () => {
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: 'B', body: 'b' } }], label);
    ana.settle(ledger);
    benRenames();
    ana.pullAll(ledger);
    expect(undo()).toMatchObject({
      ok: false,
      fault: { code: 'changed-meanwhile', facts: { fields: [{ field: 'title', seen: 'B', now: 'Ben', mine: 'A' }] } },
    });
    expect(row()).toMatchObject({ title: 'Ben', body: 'b' });
    undo(true);
    expect(row()).toMatchObject({ title: 'Ben', body: null });
  });

  test('[CM7 LQ6] an undo that leaves everything as others made it is told, since another one can be taken back now', () => {
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: 'B' } }], label);
    ana.settle(ledger);
    benRenames();
    ana.pullAll(ledger);
    const told: boolean[] = [];
    ana.state.onChange(({ outbox }) => told.push(outbox));
    undo(true);
    expect([ana.state.undoState('main').can, row()?.['title'], told]).toEqual([false, 'Ben', [true]]);
  });

  test('[CM7] a creation to which others have added is not taken away from them', () => {
    ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J' } }], label);
    ana.settle(ledger);
    const ben = new Device({ schema, seed: 2, account: 'ben' });
    ben.bootstrap(ledger);
    ben.update('issue', 'j', { body: 'Ben' });
    ben.settle(ledger);
    ben.remove();
    ana.settle(ledger);
    const fields = [{ entity: 'issue', id: 'j', field: 'body', seen: null, now: 'Ben', mine: null }];
    expect(undo()).toMatchObject({ ok: false, fault: { code: 'changed-meanwhile', facts: { fields } } });
    expect([undo(true).ok, ana.row('issue', 'j')?.['body']]).toEqual([true, 'Ben']);
  });

  test('[CM7] a creation is undone after what was counted and listed on it since was taken back', () => {
    ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J' } }], label);
    ana.commit([{ do: 'update', entity: 'issue', id: 'j', inc: { votes: 1 }, add: { labels: ['y'] } }], label);
    expect([undo().ok, undo().ok, ana.row('issue', 'j')]).toEqual([true, true, undefined]);
  });

  test('[CM7 MG5] what the engine decided against is not undone: the action before it is', () => {
    const ben = new Device({ schema, seed: 2, account: 'ben' });
    ben.bootstrap(ledger);
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }], { label: 'Vote' });
    ana.settle(ledger);
    ana.commit([{ do: 'delete', entity: 'issue', id: 'i' }], { label: 'Delete' });
    ben.update('issue', 'i', { body: 'Ben' });
    ben.settle(ledger);
    ben.remove();
    ana.settle(ledger);
    expect([ana.state.desk()[0]?.kind, undo(), row()?.['votes']]).toEqual([
      'not-deleted',
      { ok: true, value: { label: 'Vote' } },
      0,
    ]);
  });

  test('[CM7 OB6] what a person decided for is undone as anything is: refused where somebody changed it since', () => {
    const ben = new Device({ schema, seed: 2, account: 'ben' });
    ben.bootstrap(ledger);
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: 'Ana' } }], label);
    for (const title of ['Ben', 'Ben, later']) {
      ben.update('issue', 'i', { title });
      ben.settle(ledger);
      ana.settle(ledger);
      for (const { id } of ana.state.desk()) ana.state.resolve({ ids: [id], choice: 'mine' });
      ana.settle(ledger);
      ben.settle(ledger);
    }
    ben.remove();
    expect([undo(), row()?.['title']]).toMatchObject([
      { ok: false, fault: { facts: { fields: [{ seen: 'Ana', now: 'Ben, later', mine: 'Ben' }] } } },
      'Ben, later',
    ]);
  });

  test('[CM7] undoing parked work is discarding it', () => {
    const ben = new Device({ schema, seed: 2, account: 'ben' });
    ben.bootstrap(ledger);
    const action = ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: 'Ana' } }], label);
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(ledger);
    ben.remove();
    ana.settle(ledger);
    expect(ana.state.desk()).toHaveLength(1);
    undo();
    expect([ana.state.outcome(action)?.state, ana.state.desk(), row()?.['title']]).toEqual(['discarded', [], 'Ben']);
  });

  test('[CM6] batches of one group are one undo and one redo', () => {
    for (const id of ['j', 'k', 'l'])
      ana.commit([{ do: 'create', entity: 'issue', id, fields: { title: id } }], { label: 'Import', undoGroup: 'g' });
    expect(undo()).toEqual({ ok: true, value: { label: 'Import' } });
    expect(ana.rows('issue').map(({ id }) => id)).toEqual(['i']);
    ana.state.redo('main');
    expect(ana.rows('issue').map(({ id }) => id)).toEqual(['i', 'j', 'k', 'l']);
  });

  test('[CM7] a new action ends what could be redone, and scopes do not meet', () => {
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: 'B' } }], label);
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { body: 'b' } }], { label: 'Other', undo: 'form' });
    undo();
    expect(ana.state.undoState('form')).toMatchObject({ can: true, label: 'Other' });
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: 'C' } }], label);
    expect(ana.state.undoState('main').canRedo).toBe(false);
    ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: 'D' } }], { label: 'Quiet', undo: false });
    expect(ana.state.undoState('main').label).toBe('Edit');
  });

  test('[CM7] the last 200 labelled actions of a scope can be undone', () => {
    for (let at = 0; at < LIMITS.undoKept + 120; at += 1)
      ana.commit([{ do: 'update', entity: 'issue', id: 'i', set: { title: `t${at}` } }], label);
    const kept = ana.database.prepare("SELECT count(*) AS n FROM main.hf_undo WHERE state = 'done'").get()?.['n'];
    expect(kept).toBeGreaterThanOrEqual(LIMITS.undoKept);
    expect(kept).toBeLessThan(LIMITS.undoKept + 60);
  });
});
