import { counter, defineSchema, entity, schemaData, text } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** What a person gives up while nobody knows whether the ledger has it (OB3). */

const schema = schemaData(
  defineSchema({
    issue: entity(
      { title: text(), body: text({ optional: true }), votes: counter() },
      { rules: (r) => ({ 'what is final says why': r.when(r.is('title', 'final'), r.present('body')) }) },
    ),
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

  test('[OB3 MG4 IN1] stays undone where a rule forbids it by now, and holds up nothing that the log brings', () => {
    givenUp(ana.update('issue', 'i', { body: 'why' }));
    ben.settle(ledger);
    ben.update('issue', 'i', { title: 'final' });
    ben.settle(ledger);
    ana.settle(ledger);
    expect([ana.head, ana.state.counts().unsent, there()]).toEqual([ledger.head, 0, { title: 'final', body: 'why' }]);
  });
});

describe('work that is asked about again', () => {
  /** Its answer names a version that is not here yet; then the ledger's epoch is another. */
  function accepted(): string {
    ben.update('issue', 'i', { body: 'Ben' });
    ben.settle(ledger);
    const action = ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
    ana.push(ledger, { withEvents: false });
    ledger = ledger.restoredTo(ledger.head);
    ana.handshake(ledger);
    return action;
  }

  test('[OB3 HL1] is not closed by who gives it up before the ledger has said whether it still has it', () => {
    const action = accepted();
    expect(ana.state.discard([action])).toMatchObject({ ok: true });
    expect(ana.state.outcome(action)?.state).toBe('pending');
    ana.settle(ledger);
    expect([ana.state.outcome(action)?.state, ana.state.counts().unsent, there()?.['votes']]).toEqual([
      'ordered',
      0,
      0,
    ]);
  });

  test('[OB3] is closed without a trace where the ledger says that it has it no more, and refuses it', () => {
    const action = accepted();
    ana.state.discard([action]);
    const [sent] = ana.take();
    expect(sent?.actionId).toBe(action);
    const refused = { requestId: sent?.requestId ?? '', status: 'refused', code: 'not-allowed' } as const;
    ana.state.recordResults('main', [refused], 0);
    expect([ana.state.outcome(action)?.state, ana.state.counts().unsent]).toEqual(['discarded', 0]);
  });

  test('[OB3 HL1] is asked about once more where the history that had it is found again', () => {
    ben.update('issue', 'i', { body: 'Ben' });
    ben.settle(ledger);
    ana.pullAll(ledger);
    ben.update('issue', 'i', { body: 'Ben, later' });
    ben.settle(ledger);
    const action = ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
    ana.push(ledger, { withEvents: false });
    ana.handshake(ledger.restoredTo(1));
    expect(ana.state.counts().lost).toBe(1);
    ana.handshake(ledger);
    ana.state.discard([action]);
    ana.settle(ledger);
    expect([ana.state.outcome(action)?.state, there()?.['votes']]).toEqual(['ordered', 0]);
  });
});
