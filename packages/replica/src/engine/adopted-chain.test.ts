import { defineSchema, type EventDraft, entity, schemaData, text } from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** Own work on one entity that an adopted history is offered, where others had done a part of it in the lost one (HL4). */
const schema = schemaData(
  defineSchema({
    issue: entity({ title: text() }),
    mark: entity({ name: text(), up: text({ optional: true }), body: text({ optional: true }) }, { key: ['name'] }),
  }),
);

const devices: Device[] = [];
const device = (seed: number, account: string): Device => {
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

/**
 * Ana's `first` is in the log. Ben deletes the mark, so that of her `second`, which does so, too, only an edit of an issue is
 * left. Her `third` puts the mark there again; it named `second`, and names `first` instead.
 */
function sharedPrior() {
  const before = new TinyLedger(nodeDigest);
  const [ana, ben] = [device(1, 'ana'), device(2, 'ben')];
  for (const one of [ana, ben]) one.bootstrap(before);
  ana.create('issue', { title: 'A' }, 'k');
  ana.commit([{ do: 'put', entity: 'mark', id: 'i', fields: { name: 'm' } }]);
  ana.settle(before);
  const first = ana.update('mark', 'i', { up: 'first' });
  const second = ana.commit([
    { do: 'delete', entity: 'mark', id: 'i' },
    { do: 'update', entity: 'issue', id: 'k', set: { title: 'second' } },
  ]);
  const third = ana.commit([{ do: 'put', entity: 'mark', id: 'i', fields: { name: 'm', up: 'third' } }]);
  ana.push(before, { only: [first] });
  ben.pullAll(before);
  ben.update('mark', 'i', { body: 'Ben' });
  ben.settle(before);
  ben.delete('mark', 'i');
  ben.settle(before);
  ana.push(before);
  ana.pullAll(before);
  const drafts = (action: string): readonly EventDraft[] =>
    JSON.parse(
      String(ana.database.prepare('SELECT drafts FROM main.hf_outbox WHERE action_id = ?').get(action)?.['drafts']),
    );
  return { ana, ben, before, first, second, third, drafts };
}

test('[HL4 OB7] what is put back, and what was made on the same own event since, are one chain again', () => {
  const { ana, ben, before, first, second, third, drafts } = sharedPrior();
  expect(drafts(second).map(({ entityId }) => entityId)).toEqual(['k']);
  expect(drafts(third)[0]?.prior).toBe(before.events.find(({ actionId }) => actionId === first)?.id);
  ana.settle(before);
  // Devices name the versions 1, 2, 4, 8 below their head: then version 2 is one of them.
  for (let more = before.head; more < 10; more += 1) ben.create('issue', { title: 'more' });
  ben.settle(before);
  ana.pullAll(before);
  const ledger = before.restoredTo(2);
  expect(ana.handshake(ledger)).toMatchObject({ commonVersion: 2 });
  ana.adopt(ledger);
  ana.settle(ledger);
  expect(ana.state.desk()).toEqual([]);
  expect([first, second, third].map((action) => ana.state.outcome(action)?.state)).toEqual(Array(3).fill('ordered'));
  const own = ledger.events.filter(({ entityType }) => entityType === 'mark');
  expect(own.slice(1).map(({ change, prior }) => [change?.op, prior])).toEqual([
    ['update', undefined],
    ['delete', own[1]?.id],
    ['restore', own[2]?.id],
  ]);
  expect(ledger.entity('mark', 'i')?.fields).toMatchObject({ name: 'm', up: 'third' });
});
