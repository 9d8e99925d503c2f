import { counter, defineSchema, entity, LIMITS, oneOf, type RecordedChange, schemaData, text } from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** What a commit decides, and that it decides before anything is written (6.2). */
const schema = schemaData(
  defineSchema({
    issue: entity(
      {
        title: text({ max: 200_000 }),
        status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
        closed: text({ optional: true }),
        votes: counter(),
      },
      { rules: (r) => ({ 'done issues say when': r.when(r.is('status', 'done'), r.present('closed')) }) },
    ),
  }),
);
const devices: Device[] = [];
afterEach(() => {
  for (const device of devices.splice(0)) device.remove();
});
function connected(): { readonly device: Device; readonly ledger: TinyLedger } {
  const ledger = new TinyLedger(nodeDigest);
  const device = new Device({ schema, seed: devices.length + 1 });
  devices.push(device);
  device.bootstrap(ledger);
  device.create('issue', { title: 'A', status: 'todo' }, 'i1');
  device.settle(ledger);
  return { device, ledger };
}
const create = (id: string, title: string): RecordedChange => ({
  do: 'create',
  entity: 'issue',
  id,
  fields: { title, status: 'todo' },
});
const rename = (title: string): RecordedChange => ({ do: 'update', entity: 'issue', id: 'i1', set: { title } });
const drafts = (device: Device) =>
  device.database
    .prepare('SELECT drafts FROM main.hf_outbox ORDER BY seq')
    .all()
    .flatMap((row) => JSON.parse(row['drafts'] as string) as { id: string; base: number; prior?: string }[]);

test('[CM1] one commit is rows, confirmed base and the exact bytes that are sent', () => {
  const { device } = connected();
  device.commit([rename('B')]);
  const [{ drafts: stored } = { drafts: '' }] = device.database.prepare('SELECT drafts FROM main.hf_outbox').all();
  const [operation] = device.take();
  expect(JSON.parse(stored as string)).toEqual(operation?.events);
  const [row] = device.database.prepare('SELECT _base, title FROM main.issue').all();
  const [version, pending, lastEvent, was] = JSON.parse(row?.['_base'] as string) as unknown[];
  expect(row?.['title']).toBe('B');
  expect([version, pending, lastEvent, was]).toEqual([1, [1], operation?.events[0]?.id, { title: 'A' }]);
});

test('[CM2] base is the confirmed version and prior the last pending event, whatever comes afterwards', () => {
  const { device, ledger } = connected();
  device.commit([rename('B')]);
  device.commit([rename('C'), { do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
  const before = drafts(device);
  expect(before.map(({ base, prior }) => [base, prior])).toEqual([
    [1, undefined],
    [1, before[0]?.id],
    [1, before[1]?.id],
  ]);
  device.push(ledger, { isAnswered: false });
  device.reopen();
  expect(drafts(device)).toEqual(before);
});

test('[CM2] a field under ask that reads otherwise than its author saw refuses the commit with all three values', () => {
  const { device } = connected();
  const own = device.commit([rename('B')]);
  const seen = [{ entity: 'issue', id: 'i1', field: 'title', value: 'A' }];
  const refused = device.state.commit(device.request([rename('C')], { seen }));
  expect(refused).toMatchObject({
    ok: false,
    fault: { code: 'changed-meanwhile', facts: { fields: [{ field: 'title', seen: 'A', now: 'B', mine: 'C' }] } },
  });
  expect([device.row('issue', 'i1')?.['title'], device.state.counts().unsent]).toEqual(['B', 1]);
  // The same value, the page's own commit, and a field that is not asked about are no reason.
  device.commit([rename('B')], { seen });
  device.commit([rename('C')], { seen, own: [own, ...lastActions(device)] });
  device.commit([{ do: 'update', entity: 'issue', id: 'i1', set: { status: 'todo' } }], {
    seen: [{ entity: 'issue', id: 'i1', field: 'status', value: 'done' }],
  });
  expect(device.row('issue', 'i1')?.['title']).toBe('C');
});
const lastActions = (device: Device) =>
  device.database
    .prepare('SELECT action_id FROM main.hf_outbox')
    .all()
    .map((row) => row['action_id'] as string);

test.each<readonly [string, string, readonly RecordedChange[]]>([
  ['an unknown entity', 'invalid-change', [{ do: 'create', entity: 'nothing', id: 'x', fields: {} }]],
  ['an unknown field', 'invalid-change', [{ do: 'update', entity: 'issue', id: 'i1', set: { nothing: 1 } }]],
  ['a value of another kind', 'invalid-change', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 7 } }]],
  ['a second create', 'invalid-change', [create('i1', 'B')]],
  ['an entity that is not there', 'not-found', [{ do: 'update', entity: 'issue', id: 'i0', set: { title: 'B' } }]],
  ['a broken rule', 'rule-broken', [{ do: 'update', entity: 'issue', id: 'i1', set: { status: 'done' } }]],
])('[CM3] %s is refused before anything is written, with all that was good beside it', (_name, code, changes) => {
  const { device } = connected();
  const before = [device.rows('issue'), device.state.counts()];
  const request = device.request([create('i2', 'good'), ...changes]);
  expect(device.state.commit(request)).toMatchObject({ ok: false, fault: { code } });
  expect([device.rows('issue'), device.state.counts()]).toEqual(before);
  expect(device.state.outcome(request.actionId)).toBeUndefined();
  expect(examine(device.state.store).findings).toEqual([]);
});

test('[CM5] a repeat gives the first outcome in every stage, in another run too; other content is refused', () => {
  const { device, ledger } = connected();
  const request = device.request([rename('B')], { label: 'Rename' });
  const repeats = () => {
    const outcome = device.state.commit(request);
    const other = device.state.commit({ ...request, changes: [rename('C')] });
    return [outcome.ok && outcome.value.repeated, !other.ok && other.fault.code];
  };
  expect(device.state.commit(request)).toMatchObject({ ok: true, value: { repeated: false } });
  expect(repeats()).toEqual([true, 'idempotency-mismatch']);
  device.reopen();
  expect(repeats()).toEqual([true, 'idempotency-mismatch']);
  device.settle(ledger);
  expect(repeats()).toEqual([true, 'idempotency-mismatch']);
  device.reopen();
  expect(repeats()).toEqual([true, 'idempotency-mismatch']);
  expect(device.state.outcome(request.actionId)).toEqual({ state: 'ordered', log: 'main', version: 2 });
  expect(ledger.head).toBe(2);
});

test('[CM6] a commit of 512 events is taken and of 513 refused, as one beyond 1 MiB is, with both numbers', () => {
  const { device } = connected();
  const many = (count: number) => Array.from({ length: count }, (_, at) => create(`n${at}`, 'x'));
  expect(device.state.commit(device.request(many(LIMITS.commitEventsMax + 1)))).toMatchObject({
    ok: false,
    fault: {
      code: 'batch-too-large',
      facts: { events: LIMITS.commitEventsMax + 1, eventsMax: LIMITS.commitEventsMax },
    },
  });
  const heavy = Array.from({ length: 20 }, (_, at) => create(`h${at}`, 'x'.repeat(60_000)));
  const refused = device.state.commit(device.request(heavy));
  expect(refused).toMatchObject({
    ok: false,
    fault: { code: 'batch-too-large', facts: { bytesMax: LIMITS.commitBytesMax } },
  });
  expect(device.state.counts().unsent).toBe(0);
  device.commit(many(LIMITS.commitEventsMax));
  expect(device.rows('issue')).toHaveLength(LIMITS.commitEventsMax + 1);
});

/** What a page of another version, a daemon's client or a file may ask for, and the recorder never makes (CM3). */
const NOT_THE_SCHEMAS: readonly (readonly [string, RecordedChange, readonly [field: string, code: string]])[] = [
  [
    'unsets a field that must be there',
    { do: 'update', entity: 'issue', id: 'i1', unset: ['title'] },
    ['title', 'not-optional'],
  ],
  ['adds to a text', { do: 'update', entity: 'issue', id: 'i1', inc: { title: 1 } }, ['title', 'not-settable']],
  ['sets a counter', { do: 'update', entity: 'issue', id: 'i1', set: { votes: 3 } }, ['votes', 'not-settable']],
  [
    'puts an element into a text',
    { do: 'update', entity: 'issue', id: 'i1', add: { title: ['x'] } },
    ['title', 'not-settable'],
  ],
  [
    'creates without a required field',
    { do: 'create', entity: 'issue', id: 'i2', fields: { status: 'todo' } },
    ['title', 'missing'],
  ],
];

test.each(NOT_THE_SCHEMAS)(
  '[CM3] the host refuses a change that %s, and names the field',
  (_what, change, [field, code]) => {
    const { device } = connected();
    const before = device.row('issue', 'i1');
    const outcome = device.state.commit(device.request([rename('B'), change]));
    expect(outcome).toMatchObject({
      ok: false,
      fault: { code: 'invalid-change', facts: { issues: [{ path: ['issue', field], code }] } },
    });
    expect([device.row('issue', 'i1'), drafts(device)]).toEqual([before, []]);
  },
);
