import { counter, type Database, defineSchema, entity, schemaData, text } from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodeDigest } from '../adapters/node/platform.ts';
import { FailingDatabase } from '../testing/failing-database.ts';
import { Device, takeFence } from './device.fixture.ts';
import { syncedToMedium } from './file.ts';
import { examine } from './inspect.ts';
import type { IngestPage } from './replica-state.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** Confirmed state advances by one path, in log order, whole pages at a time (6.3); and what is synced to the medium. */
const schema = schemaData(
  defineSchema({ issue: entity({ title: text(), body: text({ default: '' }), votes: counter() }) }),
);

const devices: Device[] = [];
const newDevice = (more: Partial<ConstructorParameters<typeof Device>[0]> = {}) => {
  const device = new Device({ schema, seed: devices.length + 1, ...more });
  devices.push(device);
  return device;
};
afterEach(() => {
  for (const device of devices.splice(0)) device.remove();
});
/** Ana's device and Ben's, with one issue in the log that both have. */
function two(more: Partial<ConstructorParameters<typeof Device>[0]> = {}) {
  const ledger = new TinyLedger(nodeDigest);
  const ana = newDevice(more);
  const ben = newDevice({ account: 'ben' });
  for (const device of [ana, ben]) device.bootstrap(ledger);
  ana.create('issue', { title: 'A', body: '' }, 'i1');
  ana.settle(ledger);
  ben.settle(ledger);
  return { ledger, ana, ben };
}
const sound = (device: Device) => examine(device.state.store).findings.filter(({ check }) => check !== 'permits');
const outbox = (device: Device) =>
  device.database
    .prepare('SELECT state FROM main.hf_outbox ORDER BY seq')
    .all()
    .map(({ state }) => state);
const whole = (device: Device) => [
  device.state.logs(),
  device.rows('issue'),
  device.database.prepare('SELECT version FROM main.hf_event').all(),
];

test('[IN1 PM7] own work accepted directly above the head is ingested with its answer', () => {
  const { ledger, ana } = two();
  const actionId = ana.update('issue', 'i1', { title: 'B' });
  ana.push(ledger);
  expect([ana.head, outbox(ana), ana.state.outcome(actionId)]).toEqual([
    2,
    [],
    { state: 'ordered', log: 'main', version: 2 },
  ]);
  expect(ana.row('issue', 'i1')).toMatchObject({ title: 'B', sync: 'synced' });
  expect(sound(ana)).toEqual([]);
});

test('[IN1] own work accepted ahead of a gap stays accepted, on top and unjudged, until the gap is filled', () => {
  const { ledger, ana, ben } = two();
  ben.update('issue', 'i1', { body: 'Ben' });
  ben.settle(ledger);
  ana.update('issue', 'i1', { title: 'Ana' });
  ana.push(ledger, { withEvents: false });
  expect([ana.head, outbox(ana), ana.state.counts().unsent]).toEqual([1, ['accepted'], 1]);
  expect(ana.row('issue', 'i1')).toMatchObject({ title: 'Ana', body: '', sync: 'pending' });
  expect([ana.take(), sound(ana)]).toEqual([[], []]);
  ana.reopen();
  expect([ana.take(), sound(ana)]).toEqual([[], []]);
  ana.pull(ledger, 1);
  expect(ana.row('issue', 'i1')).toMatchObject({ title: 'Ana', body: 'Ben', sync: 'pending' });
  ana.pullAll(ledger);
  expect([ana.head, outbox(ana)]).toEqual([3, []]);
  expect(ana.row('issue', 'i1')).toMatchObject({ title: 'Ana', body: 'Ben', sync: 'synced' });
  expect([ana.state.log('main')?.signature, sound(ana)]).toEqual([ledger.signature, []]);
});

test('[IN1] own work found at or below the head is taken out of local state by its answer, and counted once', () => {
  const { ledger, ana } = two();
  const actionId = ana.commit([{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
  // The answer is lost; the state comes whole from elsewhere, with the work in it.
  ana.push(ledger, { isAnswered: false });
  ana.fetch(ledger, 'repair');
  expect(ana.head).toBe(2);
  expect(sound(ana)).toEqual([]);
  ana.settle(ledger);
  expect([ana.row('issue', 'i1')?.['votes'], outbox(ana)]).toEqual([1, []]);
  expect(ana.state.outcome(actionId)).toMatchObject({ state: 'ordered', version: 2 });
  expect([ana.state.log('main')?.signature, sound(ana)]).toEqual([ledger.signature, []]);
});

test('[F99 F132 IN1] events at or below the head are ignored, and a page that is all of them moves nothing', () => {
  const { ledger, ana, ben } = two();
  ben.update('issue', 'i1', { body: 'Ben' });
  ben.settle(ledger);
  ana.pullAll(ledger);
  const before = ana.rows('issue');
  expect(ana.state.ingest(ledger.page(0))).toMatchObject({ ok: true, value: { applied: 0, ignored: 2, head: 2 } });
  expect([ana.head, ana.rows('issue'), sound(ana)]).toEqual([2, before, []]);
  ben.update('issue', 'i1', { body: 'Ben 2' });
  ben.settle(ledger);
  expect(ana.state.ingest(ledger.page(0))).toMatchObject({ ok: true, value: { applied: 1, ignored: 2, head: 3 } });
});

test('[F191 IN1 IN3] a page with a gap, another chain or a changed event changes nothing', () => {
  const { ledger, ana, ben } = two();
  for (const body of ['1', '2', '3']) {
    ben.update('issue', 'i1', { body });
    ben.settle(ledger);
  }
  const page = ledger.page(1);
  const [first, second, third] = page.events as IngestPage['events'];
  const bad: readonly (readonly [string, IngestPage])[] = [
    ['page-gap', ledger.page(2)],
    ['page-gap', { ...page, events: [first, third] as IngestPage['events'] }],
    ['page-gap', { ...page, events: [second, first, third] as IngestPage['events'] }],
    ['page-gap', { ...page, events: [first, second] as IngestPage['events'] }],
    ['chain-mismatch', { ...page, through: { ...page.through, chain: '0'.repeat(64) } }],
    ['chain-mismatch', { ...page, events: [first, { ...second, actor: 'eve' }, third] as IngestPage['events'] }],
    ['not-following', { ...page, log: 'other' }],
  ];
  const before = whole(ana);
  for (const [code, one] of bad) {
    expect(ana.state.ingest(one)).toMatchObject({ ok: false, fault: { code } });
    expect(whole(ana)).toEqual(before);
  }
  expect(ana.state.ingest(page)).toMatchObject({ ok: true, value: { applied: 3 } });
  expect(sound(ana)).toEqual([]);
});

test('[IN2] pending changes are applied again on what came, entity by entity, and their bytes are not touched', () => {
  const { ledger, ana, ben } = two();
  ana.update('issue', 'i1', { title: 'Ana' });
  ana.commit([{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 2 } }]);
  ana.create('issue', { title: 'mine', body: '' }, 'i2');
  const drafts = () => ana.database.prepare('SELECT drafts FROM main.hf_outbox ORDER BY seq').all();
  const before = drafts();
  ben.commit([{ do: 'update', entity: 'issue', id: 'i1', set: { body: 'Ben', title: 'Ben' }, inc: { votes: 5 } }]);
  ben.settle(ledger);
  ana.pullAll(ledger);
  expect(ana.row('issue', 'i1')).toMatchObject({ title: 'Ana', body: 'Ben', votes: 7, sync: 'pending' });
  expect(ana.row('issue', 'i2')).toMatchObject({ title: 'mine', sync: 'pending' });
  expect(drafts()).toEqual(before);
  expect(sound(ana)).toEqual([]);
});

test('[IN2] an outbox of a thousand batches costs a page that touches none of their entities nothing more', () => {
  let failing: FailingDatabase | null = null;
  const { ledger, ana, ben } = two({
    through: (inner) => {
      failing = new FailingDatabase(inner);
      return failing;
    },
  });
  const cost = () => {
    ben.update('issue', 'i1', { body: `${ledger.head}` });
    ben.settle(ledger);
    (failing as FailingDatabase | null)?.arm(Number.POSITIVE_INFINITY, { cause: new Error('never') });
    ana.pullAll(ledger);
    return (failing as FailingDatabase | null)?.ran;
  };
  ana.create('issue', { title: 'one', body: '' });
  const few = cost();
  ana.state.write(() => {
    for (let at = 0; at < 1_000; at += 1) ana.create('issue', { title: `${at}`, body: '' });
  });
  expect(ana.state.counts().unsent).toBe(1_001);
  expect(cost()).toBe(few);
});

test('[IN4] another reader of the file sees a whole page or none of it, and listeners hear once, afterwards', () => {
  const file = newDevice().file;
  const seen: number[] = [];
  let reader: Database | null = null;
  const look = () => {
    const { n } = reader?.prepare('SELECT count(*) AS n FROM main.issue').get() ?? {};
    if (typeof n === 'number' && seen.at(-1) !== n) seen.push(n);
  };
  devices.pop()?.database.close();
  const ledger = new TinyLedger(nodeDigest);
  const ana = newDevice({
    file,
    through: (inner) => ({
      ...inner,
      get inTransaction() {
        return inner.inTransaction;
      },
      prepare: (sql) => {
        look();
        return inner.prepare(sql);
      },
    }),
  });
  const ben = newDevice({ account: 'ben' });
  for (const device of [ana, ben]) device.bootstrap(ledger);
  for (let at = 0; at < 20; at += 1) ben.create('issue', { title: `${at}`, body: '' });
  ben.settle(ledger);
  const heard: number[] = [];
  ana.state.onChange(() => heard.push(ana.rows('issue').length));
  reader = openNodeDatabase({ file });
  ana.pull(ledger);
  look();
  expect([seen, heard]).toEqual([[0, 20], [20]]);
  reader.close();
});

test('[RP2] a new replica id and a raised generation are written with the medium synced, and nothing else is', () => {
  const said: string[] = [];
  const level = (database: Database) => database.prepare('PRAGMA synchronous').get()?.['synchronous'];
  const ana = newDevice({
    through: (inner) => ({
      ...inner,
      get inTransaction() {
        return inner.inTransaction;
      },
      prepare: (sql) => {
        if (sql === 'COMMIT') said.push(`commit at ${String(level(inner))}`);
        return inner.prepare(sql);
      },
    }),
  });
  said.length = 0;
  const before = ana.state.identity.replicaId;
  ana.state.renewReplicaId();
  expect(ana.state.identity.replicaId).not.toBe(before);
  expect(said).toEqual(['commit at 2']);
  ana.bootstrap(new TinyLedger(nodeDigest));
  said.length = 0;
  ana.create('issue', { title: 'A', body: '' });
  expect(said).toEqual(['commit at 1']);
  // Also when the work fails, the level is what it was.
  expect(() =>
    syncedToMedium(ana.database, () => {
      expect(level(ana.database)).toBe(2);
      takeFence(ana.database, 'a'.repeat(32));
      throw new Error('no');
    }),
  ).toThrow('no');
  expect(level(ana.database)).toBe(1);
  expect(ana.state.identity.replicaId).toBe(
    ana.database.prepare('SELECT replica_id FROM main.hf_coordinator').get()?.['replica_id'],
  );
});
