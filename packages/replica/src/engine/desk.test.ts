import { counter, defineSchema, entity, oneOf, schemaData, setOf, text } from '@holdfast/core';
import { afterEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

const schema = schemaData(
  defineSchema({
    issue: entity({
      headline: text({ wire: 'title' }),
      body: text({ optional: true }),
      labels: setOf(text()),
      votes: counter(),
      status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
    }),
    plan: entity({ name: text() }, { editedWhileDeleted: 'ask' }),
  }),
);

const devices: Device[] = [];
function world() {
  const ledger = new TinyLedger(nodeDigest);
  const ana = new Device({ schema, seed: 1 });
  const ben = new Device({ schema, seed: 2, account: 'ben' });
  devices.push(ana, ben);
  for (const device of [ana, ben]) device.bootstrap(ledger);
  ana.create('issue', { headline: 'A' }, 'i');
  ana.create('plan', { name: 'A' }, 'p');
  ana.settle(ledger);
  ben.settle(ledger);
  /** Ben is first, then Ana hears of it. */
  const meet = () => {
    ben.settle(ledger);
    ana.settle(ledger);
  };
  const finish = () => {
    ana.settle(ledger);
    ben.settle(ledger);
  };
  return { ledger, ana, ben, meet, finish };
}
afterEach(() => {
  for (const device of devices.splice(0)) {
    expect(examine(device.state.store).findings.filter(({ check }) => check !== 'permits')).toEqual([]);
    device.remove();
  }
});

const entryOf = (device: Device) => device.state.desk()[0]?.id ?? '';

describe('resolving', () => {
  function clash() {
    const parts = world();
    const action = parts.ana.commit(
      [{ do: 'update', entity: 'issue', id: 'i', set: { headline: 'Ana', body: 'mine' } }],
      { label: 'Rename' },
    );
    parts.ben.update('issue', 'i', { headline: 'Ben' });
    parts.meet();
    return { ...parts, action };
  }

  test('[OB6] mine becomes a new batch on what is there now, which names the one it replaces', () => {
    const { ledger, ana, ben, finish, action } = clash();
    expect(ana.state.resolve({ ids: [entryOf(ana)], choice: 'mine' })).toMatchObject({ ok: true });
    const outcome = ana.state.outcome(action);
    expect(outcome).toMatchObject({ state: 'replaced' });
    const by = outcome?.state === 'replaced' ? outcome.by : '';
    expect(
      ana.database.prepare('SELECT replaces FROM main.hf_outbox WHERE action_id = ?').get(by ?? '')?.['replaces'],
    ).toBe(action);
    finish();
    expect([ledger.head, ana.state.desk(), ben.row('issue', 'i')]).toMatchObject([
      4,
      [],
      { headline: 'Ana', body: 'mine', sync: 'synced' },
    ]);
  });

  test('[ST3] a resolution that equals theirs writes no batch', () => {
    const { ledger, ana, ben } = world();
    const action = ana.update('issue', 'i', { headline: 'Ana' });
    ben.update('issue', 'i', { headline: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    ana.state.resolve({ ids: [entryOf(ana)], choice: { headline: 'Ben' } });
    expect([ana.state.outcome(action)?.state, ana.state.counts().unsent, ana.row('issue', 'i')?.['sync']]).toEqual([
      'discarded',
      0,
      'synced',
    ]);
  });

  test('[OB6] values chosen by a person win over what the batch wrote, and the rest of it stays', () => {
    const { ana, ben, finish } = clash();
    ana.state.resolve({ ids: [entryOf(ana)], choice: { headline: 'both' } });
    finish();
    expect(ben.row('issue', 'i')).toMatchObject({ headline: 'both', body: 'mine' });
  });

  test('[ST3] theirs judges what was made on the batch again: what holds is sent, what does not is parked', () => {
    const { ledger, ana, ben } = world();
    ana.update('issue', 'i', { headline: 'Ana' });
    const holds = ana.commit([{ do: 'update', entity: 'issue', id: 'i', add: { labels: ['x'] } }]);
    const clashes = ana.update('issue', 'i', { headline: 'Ana, edited' });
    ben.update('issue', 'i', { headline: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    expect(ana.state.desk()).toMatchObject([{ held: 2 }]);
    ana.state.resolve({ ids: [entryOf(ana)], choice: 'theirs' });
    ana.settle(ledger);
    expect([ana.state.outcome(holds)?.state, ana.state.outcome(clashes)?.state]).toEqual([
      'ordered',
      'needs-attention',
    ]);
    expect(ledger.entity('issue', 'i')?.fields).toMatchObject({ title: 'Ben', labels: ['x'] });
  });

  test('[ST2 ST3] what was made on work that waits for an answer of its own is held, whatever else is decided', () => {
    const { ana, ben, meet, ledger } = world();
    const title = ana.update('issue', 'i', { headline: 'Ana' });
    const name = ana.update('plan', 'p', { name: 'Ana' });
    const both = ana.commit([
      { do: 'update', entity: 'issue', id: 'i', set: { headline: 'Ana 2' } },
      { do: 'update', entity: 'plan', id: 'p', set: { name: 'Ana 2' } },
    ]);
    const last = ana.update('issue', 'i', { body: 'made on both' });
    ben.update('issue', 'i', { headline: 'Ben' });
    ben.update('plan', 'p', { name: 'Ben' });
    meet();
    const waiting = () => ana.state.desk().map(({ actionId, held }) => [actionId, held]);
    ana.state.discard([title]);
    ana.state.discard([name]);
    expect([waiting(), ana.state.flowing('main')]).toEqual([[[both, 1]], 0]);
    ana.state.resolve({ ids: [entryOf(ana)], choice: 'mine' });
    ana.settle(ledger);
    expect([ana.state.outcome(last)?.state, ledger.entity('issue', 'i')?.fields]).toMatchObject([
      'ordered',
      { title: 'Ana 2', body: 'made on both' },
    ]);
  });

  test('[ST3] mine lets what was made on the batch follow it', () => {
    const { ledger, ana, ben } = world();
    ana.update('issue', 'i', { headline: 'Ana' });
    const follows = ana.update('issue', 'i', { headline: 'Ana, edited' });
    ben.update('issue', 'i', { headline: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    ana.state.resolve({ ids: [entryOf(ana)], choice: 'mine' });
    ana.settle(ledger);
    expect([ana.state.outcome(follows)?.state, ledger.entity('issue', 'i')?.fields['title']]).toEqual([
      'ordered',
      'Ana, edited',
    ]);
  });

  test('[ST3] who discards is told what was made on it', () => {
    const { ledger, ana, ben } = world();
    const first = ana.update('issue', 'i', { headline: 'Ana' });
    const second = ana.update('issue', 'i', { headline: 'Ana, edited' });
    ben.update('issue', 'i', { headline: 'Ben' });
    ben.settle(ledger);
    ana.settle(ledger);
    expect(ana.state.discard([first])).toEqual({ ok: true, value: { alsoHeld: [second] } });
  });

  test('[OB6 OB7 CM3] mine that cannot be said any more is refused with the reason, and goes on waiting', () => {
    const { ana, ben, meet } = world();
    const max = Number.MAX_SAFE_INTEGER;
    const action = ana.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: max } }]);
    ben.commit([{ do: 'update', entity: 'issue', id: 'i', inc: { votes: 1 } }]);
    meet();
    expect(ana.state.resolve({ ids: [entryOf(ana)], choice: 'mine' })).toMatchObject({
      ok: false,
      fault: { code: 'invalid-change', facts: { issues: [{ code: 'out-of-range' }] } },
    });
    expect([ana.state.outcome(action)?.state, ana.state.counts().attention]).toEqual(['refused', 1]);
  });

  test('[OB6 LQ6] whoever shows an entry is told that less waits for it', () => {
    const { ana, ben, meet } = world();
    ana.update('issue', 'i', { headline: 'Ana' });
    const held = ana.update('issue', 'i', { body: 'made on it' });
    ben.update('issue', 'i', { headline: 'Ben' });
    meet();
    const told: boolean[] = [];
    ana.state.onChange(({ desk }) => told.push(desk));
    ana.state.discard([held]);
    expect([ana.state.desk().map((entry) => entry.held), told]).toEqual([[0], [true]]);
  });

  test('[OB6] a delete that clashes is kept with chosen fields, or deletes', () => {
    const { ledger, ana, ben, meet, finish } = world();
    ana.delete('plan', 'p');
    ben.update('plan', 'p', { name: 'Ben' });
    meet();
    expect(ana.state.desk()).toMatchObject([{ kind: 'clash', entity: { type: 'plan', id: 'p' } }]);
    ana.state.resolve({ ids: [entryOf(ana)], choice: { name: 'kept' } });
    finish();
    expect(ledger.entity('plan', 'p')?.fields).toEqual({ name: 'kept' });
  });

  test('[OB6] an edit of what was deleted comes back as a restore', () => {
    const { ledger, ana, ben, meet, finish } = world();
    ana.update('plan', 'p', { name: 'Ana' });
    ben.delete('plan', 'p');
    meet();
    ana.state.resolve({ ids: [entryOf(ana)], choice: 'mine' });
    finish();
    expect([ledger.entity('plan', 'p')?.fields, ben.row('plan', 'p')?.['name']]).toEqual([{ name: 'Ana' }, 'Ana']);
  });
});

describe('notices', () => {
  test('[MG6] who was overwritten under last is told, and takes it back by one commit', () => {
    const { ledger, ana, ben, finish } = world();
    ana.update('issue', 'i', { status: 'done' });
    ben.commit([{ do: 'update', entity: 'issue', id: 'i', set: { status: 'todo' } }]);
    ana.settle(ledger);
    ben.settle(ledger);
    ana.settle(ledger);
    const [notice] = ana.state.desk();
    expect(notice).toMatchObject({
      kind: 'overwritten',
      needs: 'nothing',
      fields: [{ field: 'status', mine: 'done' }],
    });
    expect(ana.row('issue', 'i')?.['sync']).toBe('synced');
    ana.state.resolve({ ids: [notice?.id ?? ''], choice: 'mine' });
    finish();
    expect([ana.state.desk(), ben.row('issue', 'i')?.['status']]).toEqual([[], 'done']);
  });

  test('[MG5] an edit stands against a delete, and the deleter is told', () => {
    const { ledger, ana, ben, finish } = world();
    ana.update('issue', 'i', { body: 'Ana' });
    ben.delete('issue', 'i');
    ben.settle(ledger);
    ana.settle(ledger);
    finish();
    expect(ben.row('issue', 'i')).toMatchObject({ headline: 'A', body: 'Ana' });
    expect(ben.state.desk()).toMatchObject([{ kind: 'not-deleted', needs: 'nothing' }]);
  });

  test('[MG5] a delete against an edit is dropped, told, and can be taken up again', () => {
    const { ledger, ana, ben, meet, finish } = world();
    const action = ana.delete('issue', 'i');
    ben.update('issue', 'i', { body: 'Ben' });
    meet();
    expect([ana.state.outcome(action), ana.state.desk()[0]?.kind]).toEqual([{ state: 'discarded' }, 'not-deleted']);
    ana.state.resolve({ ids: [entryOf(ana)], choice: 'mine' });
    finish();
    expect([ledger.entity('issue', 'i'), ben.row('issue', 'i')]).toEqual([undefined, undefined]);
  });
});
