import { defineSchema, entity, ref, schemaData, text } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** A deletion that takes others along (SC9), said once more: each of them is named, and goes with it, too. */

const schema = schemaData(
  defineSchema({
    issue: entity({ title: text() }, { editedWhileDeleted: 'ask' }),
    note: entity({ body: text(), issue: ref('issue', { onDelete: 'delete-too' }) }),
    hint: entity({ body: text(), issue: ref('issue', { optional: true, onDelete: 'clear' }) }),
  }),
);

let ledger: TinyLedger;
let ana: Device;
let ben: Device;

beforeEach(() => {
  ledger = new TinyLedger(nodeDigest);
  ana = new Device({ schema, seed: 1 });
  ben = new Device({ schema, seed: 2, account: 'ben' });
  for (const device of [ana, ben]) device.bootstrap(ledger);
  ana.create('issue', { title: 'A' }, 'i');
  ana.create('note', { body: 'N', issue: 'i' }, 'n');
  ana.create('hint', { body: 'H', issue: 'i' }, 'h');
  for (const device of [ana, ben]) device.settle(ledger);
});
afterEach(() => {
  for (const device of [ana, ben]) {
    expect(examine(device.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
    device.remove();
  }
});

const deleted = () => ana.commit([{ do: 'delete', entity: 'issue', id: 'i' }], { label: 'Delete' });
const there = () => {
  ana.settle(ledger);
  return [ledger.entity('issue', 'i'), ledger.entity('note', 'n'), ledger.entity('hint', 'h')].map(
    (one) => one?.fields,
  );
};
const GONE = [undefined, undefined, { body: 'H' }];

describe('a deletion with those that go with it', () => {
  test('[CM7 SC9] is undone and done again', () => {
    deleted();
    expect(ana.state.undo('main', { skipChanged: false }).ok).toBe(true);
    expect(there()[1]).toEqual({ body: 'N', issue: 'i' });
    expect(ana.state.redo('main')).toMatchObject({ ok: true });
    expect(there()).toEqual(GONE);
  });

  test('[OB6 SC9] is what a person decides for', () => {
    const action = deleted();
    ben.update('issue', 'i', { title: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    const [entry] = ana.state.desk();
    expect(entry?.actionId).toBe(action);
    expect(ana.state.resolve({ ids: [entry?.id ?? ''], choice: 'mine' })).toMatchObject({ ok: true });
    expect([there(), ana.state.counts().unsent]).toEqual([GONE, 0]);
  });

  test('[SC9 CM3] may name them itself, each once', () => {
    const both = ['i', 'n'].map((id) => ({ do: 'delete', entity: id === 'i' ? 'issue' : 'note', id }) as const);
    ana.commit(both);
    expect(there()).toEqual(GONE);
    const twice = ana.state.commit(ana.request([...both, ...both].map((one) => ({ ...one, entity: 'hint', id: 'h' }))));
    expect(twice).toMatchObject({ ok: false, fault: { code: 'not-found' } });
  });
});
