import { counter, defineSchema, entity, RUN_TIME_TYPE, schemaData, setOf, text } from '@holdfast/core';
import { afterEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(
  defineSchema({
    issue: entity({ title: text(), labels: setOf(text()), votes: counter() }, { search: ['title'] }),
    plan: entity({ name: text() }),
  }),
);

const devices: Device[] = [];
const device = (seed: number, account = 'ana') => {
  const made = new Device({ schema, seed, account });
  devices.push(made);
  return made;
};
afterEach(() => {
  for (const one of devices.splice(0)) {
    expect(examine(one.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
    one.remove();
  }
});

function written() {
  const ledger = new TinyLedger(nodeDigest);
  const ben = device(7, 'ben');
  ben.bootstrap(ledger);
  for (let at = 0; at < 9; at += 1) ben.create('issue', { title: `T${at}`, labels: ['x'] }, `i${at}`);
  ben.create('plan', { name: 'P' }, 'p');
  ben.delete('issue', 'i3');
  ben.settle(ledger);
  return { ledger, ben };
}

describe('bootstrap', () => {
  test('[F105 BS1] a fuzzy snapshot with writers in between is the state at the head, proved by its signature', () => {
    const { ledger, ben } = written();
    const ana = device(1);
    ana.handshake(ledger);
    let round = 0;
    ana.fetch(ledger, 'bootstrap', 2, () => {
      round += 1;
      ben.commit([{ do: 'update', entity: 'issue', id: 'i0', inc: { votes: 1 } }]);
      ben.commit([{ do: 'update', entity: 'issue', id: 'i8', add: { labels: [`y${round}`] } }]);
      if (round === 2) ben.delete('issue', 'i7');
      if (round === 3) ben.create('issue', { title: 'late' }, 'i1a');
      ben.settle(ledger);
    });
    expect(round).toBeGreaterThan(3);
    expect([ana.head, ana.state.log('main')?.signature]).toEqual([ledger.head, ledger.signature]);
    expect(ana.rows('issue').map(({ id, sync }) => [id, sync])).toEqual(
      ledger.entities.filter(({ type }) => type === 'issue').map(({ id }) => [id, 'synced']),
    );
  });

  test('[BS1] it resumes at any page after a restart, and shows nothing until it is whole', () => {
    const { ledger } = written();
    const ana = device(1);
    ana.handshake(ledger);
    ana.state.beginBootstrap('main', ledger.through, ledger.epoch, 'bootstrap');
    for (let page = 0; page < 3; page += 1) {
      ana.reopen();
      const cursor = ana.state.bootstrapCursor('main')?.cursor ?? null;
      expect(ana.state.bootstrapPage('main', ledger.statePage(cursor, 4)).ok).toBe(true);
      expect(ana.rows('issue')).toEqual([]);
    }
    ana.reopen();
    expect(ana.state.bootstrapSignature('main')).toBe(ledger.signature);
    ana.state.finishBootstrap('main');
    expect(ana.rows('issue')).toHaveLength(8);
  });

  test('[BS1] a page read before H, and one that was not asked for, are refused', () => {
    const { ledger } = written();
    const ana = device(1);
    ana.handshake(ledger);
    ana.state.beginBootstrap('main', ledger.through, ledger.epoch, 'bootstrap');
    const page = ledger.statePage(null, 4);
    const old = { ...page, asOf: ledger.at(ledger.head - 1) };
    expect(ana.state.bootstrapPage('main', old)).toMatchObject({ ok: false, fault: { code: 'page-gap' } });
    expect(ana.state.bootstrapPage('main', { ...page, after: 'elsewhere' })).toMatchObject({ ok: false });
  });

  test('[BS5] until the first state is visible it takes creates, and changes of what it created', () => {
    const { ledger } = written();
    const ana = device(1);
    ana.create('issue', { title: 'mine' }, 'mine');
    ana.update('issue', 'mine', { title: 'mine, edited' });
    const other = ana.state.commit(ana.request([{ do: 'update', entity: 'issue', id: 'i0', set: { title: 'x' } }]));
    expect(other).toMatchObject({ ok: false, fault: { code: 'not-ready' } });
    ana.bootstrap(ledger, 3);
    expect(ana.row('issue', 'mine')).toMatchObject({ title: 'mine, edited', sync: 'pending' });
    ana.settle(ledger);
    expect(ledger.entity('issue', 'mine')?.fields['title']).toBe('mine, edited');
  });

  test('[BS2 I02] a fetch that is not whole is never swapped in: what it has not read yet is not deleted', () => {
    const { ledger, ben } = written();
    ben.state.beginBootstrap('main', ledger.through, ledger.epoch, 'repair');
    expect(ben.state.bootstrapPage('main', ledger.statePage(null, 4)).ok).toBe(true);
    expect(() => ben.state.finishBootstrap('main')).toThrow(
      expect.objectContaining({ fault: expect.objectContaining({ code: 'not-ready' }) }),
    );
    expect(ben.rows('issue')).toHaveLength(8);
    for (let cursor = ben.state.bootstrapCursor('main'); cursor?.scanned === false; ) {
      expect(ben.state.bootstrapPage('main', ledger.statePage(cursor.cursor, 4)).ok).toBe(true);
      cursor = ben.state.bootstrapCursor('main');
    }
    ben.state.finishBootstrap('main');
    expect([ben.rows('issue').length, ben.state.log('main')?.signature]).toEqual([8, ledger.signature]);
  });

  test('[SC4] types that came with the state are tables, and their entities are in them', () => {
    const ledger = new TinyLedger(nodeDigest);
    const ben = device(7, 'ben');
    ben.bootstrap(ledger);
    const { replicaId } = ben.state.identity;
    const draft = (id: string, entityType: string, fields: Record<string, never>) => ({
      at: '2026-01-01T00:00:00.000Z',
      base: 0,
      change: { op: 'create' as const, fields },
      entityId: id,
      entityType,
      id: ben.newId(),
      salt: '00'.repeat(16),
      type: `${entityType}.created`,
    });
    const task = { fields: { name: { kind: 'text' } } } as never;
    for (const one of [
      draft('task', RUN_TIME_TYPE, { schema: task } as never),
      draft('t', 'task', { name: 'T' } as never),
    ])
      ledger.push([{ requestId: one.id, actionId: one.id, events: [one], merge: 'fields' }], {
        actor: 'ben',
        replicaId,
      });
    const ana = device(1);
    ana.bootstrap(ledger);
    ben.settle(ledger);
    for (const each of [ana, ben]) {
      each.reopen();
      expect(each.row('task', 't')).toMatchObject({ name: 'T', sync: 'synced' });
    }
  });
});

describe('repair', () => {
  test('[IN2] a repair swaps damaged tables for the ledger state and puts pending and parked work on it again', () => {
    const { ledger, ben } = written();
    const ana = device(1);
    ana.bootstrap(ledger);
    ana.update('plan', 'p', { name: 'Ana' });
    ben.update('plan', 'p', { name: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    ana.update('issue', 'i0', { title: 'pending' });
    ana.database.exec(
      "UPDATE main.issue SET title = 'damaged' WHERE _id = 'i1'; DELETE FROM main.issue WHERE _id = 'i2'",
    );
    expect(examine(ana.state.store).findings.map(({ check }) => check)).toContain('signature');
    ana.fetch(ledger, 'repair', 2);
    expect(ana.state.log('main')?.signature).toBe(ledger.signature);
    expect([ana.row('issue', 'i1')?.['title'], ana.row('issue', 'i2')?.['title']]).toEqual(['T1', 'T2']);
    expect([ana.row('issue', 'i0'), ana.row('plan', 'p')]).toMatchObject([
      { title: 'pending', sync: 'pending' },
      { name: 'Ben', sync: 'attention' },
    ]);
    expect(ana.state.desk()).toHaveLength(1);
    ana.settle(ledger);
    expect(ledger.entity('issue', 'i0')?.fields['title']).toBe('pending');
  });

  test('[IN1] a repair that lies behind the visible head catches up from the events kept here', () => {
    const { ledger, ben } = written();
    const ana = device(1);
    ana.bootstrap(ledger);
    ana.state.beginBootstrap('main', ledger.through, ledger.epoch, 'repair');
    ana.state.bootstrapPage('main', ledger.statePage(null, 100));
    ben.update('issue', 'i0', { title: 'later' });
    ben.settle(ledger);
    ana.pullAll(ledger);
    ana.state.finishBootstrap('main');
    expect([ana.head, ana.row('issue', 'i0')?.['title'], ana.state.log('main')?.signature]).toEqual([
      ledger.head,
      'later',
      ledger.signature,
    ]);
  });

  test('[OB3] work on what a repair found deleted is judged with the version that the ledger told', () => {
    const { ledger, ben } = written();
    const ana = device(1);
    ana.bootstrap(ledger);
    const action = ana.update('plan', 'p', { name: 'Ana' });
    ben.update('plan', 'p', { name: 'Ben' });
    ben.delete('plan', 'p');
    ben.settle(ledger);
    ana.fetch(ledger, 'repair', 5);
    ana.settle(ledger);
    expect([ana.state.outcome(action)?.state, ana.state.desk()[0]?.kind]).toEqual(['needs-attention', 'clash']);
    ana.state.resolve({ ids: [ana.state.desk()[0]?.id ?? ''], choice: 'mine' });
    ana.settle(ledger);
    expect(ana.state.counts().unsent).toBe(0);
  });
});
