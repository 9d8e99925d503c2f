import { counter, defineSchema, entity, schemaData, text } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** What a person gives up while nobody knows whether the ledger has it (OB3). */

const schema = schemaData(
  defineSchema({ issue: entity({ title: text(), body: text({ optional: true }), votes: counter() }) }),
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
  for (const device of [ana, ben]) device.settle(ledger);
});
afterEach(() => {
  for (const device of [ana, ben]) {
    expect(examine(device.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
    device.remove();
  }
});

/** The ledger has it, and Ana does not know: she gives it up. */
function givenUp(action: string): void {
  ana.push(ledger, { isAnswered: false });
  ana.owe(action);
  ana.state.discard([action]);
}
const there = (id = 'i') => ledger.entity('issue', id)?.fields;

describe('a wish that is carried out once the work turned out to be accepted', () => {
  test('[OB3 CM7] leaves what its author wrote since', () => {
    givenUp(ana.update('issue', 'i', { title: 'B', body: 'b' }));
    ana.update('issue', 'i', { title: 'C' });
    ana.settle(ledger);
    expect(there()).toEqual({ title: 'C' });
  });

  test('[OB3 CM7] leaves what others wrote since, and an entity that they work on', () => {
    givenUp(ana.update('issue', 'i', { title: 'B', body: 'b' }));
    givenUp(ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J' } }]));
    ben.settle(ledger);
    ben.update('issue', 'i', { title: 'Ben' });
    ben.update('issue', 'j', { title: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    expect([there(), there('j')?.['title']]).toEqual([{ title: 'Ben' }, 'Ben']);
  });

  test('[OB3] takes a creation back with what was built on it by then, also where it was said twice', () => {
    const made = ana.commit([{ do: 'create', entity: 'issue', id: 'j', fields: { title: 'J' } }]);
    ana.push(ledger, { isAnswered: false });
    ana.owe(made);
    ana.update('issue', 'j', { title: 'J, edited' });
    ana.state.discard([made]);
    ana.state.discard([made]);
    ana.settle(ledger);
    expect([there('j'), ana.row('issue', 'j')]).toEqual([undefined, undefined]);
  });

  test('[OB3 CM7] takes it back once: undo has nothing of it any more', () => {
    givenUp(ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }], { label: 'Vote' }));
    expect(ana.state.undoState('main').can).toBe(false);
    ana.settle(ledger);
    expect([ana.state.undo('main', { skipChanged: false }), there()?.['votes']]).toEqual([
      { ok: true, value: null },
      0,
    ]);
  });
});
