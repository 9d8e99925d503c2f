import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import {
  counter,
  defineType,
  type Entity,
  entity,
  entityNamed,
  flag,
  type Id,
  integer,
  setOf,
  text,
  time,
} from '@holdfast/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TestSchema } from '../host/host.fixture.ts';
import { type HoldfastError, isHoldfastError, many, type Query, type Replica } from '../index.ts';
import { type Bench, openBench, until } from './client.fixture.ts';

let bench: Bench;
let ana: Replica<TestSchema>;
beforeEach(async () => {
  bench = await openBench();
  ana = await bench.client('ana').open('acme');
});
afterEach(() => bench.end());

const invoice = entity({
  number: text(),
  paid: flag({ default: false }),
  tags: setOf(text()),
  seen: counter(),
});
const wider = entity({ ...invoice.fields, due: time({ optional: true }) });

interface Invoice {
  readonly id: Id;
  readonly number: string;
  readonly paid: boolean;
  readonly tags: readonly string[];
  readonly seen: number;
  readonly due: string | null;
  readonly sync: string;
}
const all: Query<TestSchema, any> = (db) =>
  db
    .withTables<{ invoice: Invoice }>()
    .selectFrom('invoice')
    .select(['number', 'paid', 'tags', 'seen'])
    .orderBy('number');
const define = (replica: Replica<any>, type: Entity<any, any> = invoice) =>
  replica.commit((tx) => defineType(tx, 'invoice', type));
const create = (replica: Replica<any>, number: string, more: Record<string, unknown> = {}) =>
  replica.commit((tx) => entityNamed(tx, 'invoice').create({ number, ...more }), { label: `Invoice ${number}` });
const settled = async (...replicas: Replica<any>[]) => {
  for (const replica of replicas) expect(await replica.settle()).toMatchObject({ settled: true, attention: 0 });
};
/** Every device has what the ledger has, bit by bit. */
async function expectEqual(...replicas: Replica<any>[]): Promise<void> {
  // First all send, then all have what the others sent.
  for (const replica of [...replicas, ...replicas]) await replica.settle();
  const verified = await bench.ledger.ledger.engine.verify({ workspace: 'acme', log: 'main' });
  expect(verified?.problems).toEqual([]);
  for (const replica of replicas)
    expect((await replica.facts())['logs']).toMatchObject([{ chain: verified?.chain, signature: verified?.signature }]);
}
const refusalOf = (promise: PromiseLike<unknown>) =>
  promise.then(
    () => 'fine',
    (cause: unknown) => (isHoldfastError(cause) ? cause : cause),
  );

test('[SC4 SC9] a type that is defined offline, and used at once, is a table of every device, in a worker too', async () => {
  const ben = await bench.client('ben').open('acme');
  const cem = await bench
    .client('cem', {
      worker: () => new Worker(new URL('../worker.ts', import.meta.url)),
      dir: join(bench.folder, 'cem'),
    })
    .open('acme');
  await settled(ana, ben, cem);
  using live = ben.live(all);
  await until(() => live.current.error !== undefined);

  await ana.pause();
  const first = await ana.commit((tx) => {
    defineType(tx, 'invoice', invoice);
    return entityNamed(tx, 'invoice').create({ number: '1', tags: ['b', 'a'] });
  });
  await create(ana, '2', { paid: true, seen: { by: 3 } });
  const rows = [
    { number: '1', paid: false, tags: ['a', 'b'], seen: 0 },
    { number: '2', paid: true, tags: [], seen: 3 },
  ];
  expect(await ana.query(all)).toEqual(rows);
  await ana.resume();
  await settled(ana);

  await until(() => live.current.rows.length === 2);
  expect(live.current).toEqual({ rows, state: 'complete' });
  await settled(ben, cem);
  expect(await cem.query(all)).toEqual(rows);
  await ben.commit((tx) => entityNamed(tx, 'invoice').update(first, { paid: true, tags: { add: ['c'] } }));
  await cem.commit((tx) => entityNamed(tx, 'invoice').update(first, { seen: { by: 2 } }));
  await settled(ben, cem, ana);
  expect((await ana.query(all))[0]).toEqual({ number: '1', paid: true, tags: ['a', 'b', 'c'], seen: 2 });
  await expectEqual(ana, ben, cem);
});

test('[SC4] a reopened replica keeps the type; it is widened for everybody; undo takes the entity back, never the type', async () => {
  const client = bench.client('ben');
  const first = await client.open('acme');
  await settled(ana, first);
  await first.commit((tx) => defineType(tx, 'invoice', invoice), { label: 'Invoices' });
  expect(first.undo.can).toBe(false);
  await create(first, '1');
  await settled(first);
  await first.close();
  const ben = await client.open('acme');
  // At once: what is open knows the types.
  await ben.commit((tx) => void entityNamed(tx, 'invoice').create({ id: 'one', number: '0' }), { undo: false });
  await ben.commit((tx) => entityNamed(tx, 'invoice').delete('one'), { undo: false });
  expect(await ben.query(all)).toMatchObject([{ number: '1', paid: false, tags: [] }]);

  // Both widen it in the same way, neither knowing of the other: that is one definition.
  await ben.pause();
  await settled(ana);
  await define(ben, wider);
  await define(ana, wider);
  await settled(ana);
  await ben.resume();
  await create(ana, '2', { due: '2027-01-01T00:00:00Z' });
  await settled(ana, ben);
  const due: Query<TestSchema, any> = (db) =>
    db.withTables<{ invoice: Invoice }>().selectFrom('invoice').select(['number', 'due']).orderBy('number');
  const rows = [
    { number: '1', due: null },
    { number: '2', due: '2027-01-01T00:00:00.000Z' },
  ];
  expect([await ana.query(due), await ben.query(due)]).toEqual([rows, rows]);
  await ben.undo.undo();
  expect(ben.undo.can).toBe(false);
  await settled(ben, ana);
  expect(await ana.query(due)).toEqual([rows[1]]);
  await ben.undo.redo();
  await settled(ben, ana);
  expect(await ana.query(due)).toEqual(rows);
  // The same definition again is nothing to say.
  const before = await ana.facts();
  await define(ana, wider);
  expect((await ana.settle()).settled).toBe(true);
  expect((await ana.facts())['logs']).toEqual(before['logs']);
  await expectEqual(ana, ben);
});

test('[SC4 ST2 LG4] of two types of one name that were defined at once the later one waits for a person, with what was made of it', async () => {
  const ben = await bench.client('ben').open('acme');
  await settled(ana, ben);
  await ben.pause();
  const other = entity({ number: integer(), total: integer({ default: 0 }) });
  await define(ben, other);
  const used = ben.commit((tx) => entityNamed(tx, 'invoice').create({ number: 7 }));
  const id = await used;
  await define(ana);
  await create(ana, '1');
  await settled(ana);
  await ben.resume();
  expect(await refusalOf(used.ordered())).toMatchObject({ code: 'needs-attention' });
  const [item, ...more] = await ben.desk.list();
  expect([item?.kind, item?.entity, item?.held, more]).toEqual([
    'clash',
    { type: 'holdfast.entity-type', id: 'invoice' },
    1,
    [],
  ]);
  // What everybody has is what is shown, and what is written.
  expect(await ben.query(all)).toEqual([{ number: '1', paid: false, tags: [], seen: 0 }]);
  await create(ben, '2');
  await expectEqual(ana, ben);
  // Whoever insists is refused: the fields of the first one keep their kinds.
  expect(await refusalOf(ben.desk.resolve(item?.id as string, 'mine'))).toMatchObject({ code: 'invalid-change' });
  await ben.desk.resolve(item?.id as string, 'theirs');
  await settled(ben, ana);
  // What was made of the other type is not lost: a value that the column cannot hold is kept beside it (SC5).
  const rows = await ana.query(all);
  expect(rows.map(({ number }) => number)).toEqual([null, '1', '2']);
  expect((await ana.historyNamed('invoice', id as Id)).map(({ change }) => change)).toMatchObject([
    { op: 'create', fields: { number: 7, total: 0 } },
  ]);
  await expectEqual(ana, ben);
});

test.each(['mine', 'theirs', 'discard'] as const)(
  '[SC4 ST2 ST3] work of another log waits for the definition in main that it needs, and flows once a person decided it (%s)',
  async (choice) => {
    const ben = await bench.client('ben').open('acme');
    await settled(ana, ben);
    for (const replica of [ana, ben]) await replica.follow('p1');
    await settled(ana, ben);
    await ana.pause();
    await define(ana, wider);
    const made = ana.commit((tx) => entityNamed(tx, 'invoice').create({ number: '1' }), { log: 'p1' });
    await made;
    await define(ben);
    await settled(ben);

    await ana.resume();
    expect(await ana.settle()).toMatchObject({ attention: 1 });
    const [entry] = await ana.desk.list();
    expect(entry).toMatchObject({ log: 'main', held: 1 });
    const id = entry?.id as string;
    if (choice === 'discard') expect(await ana.desk.discard(id)).toEqual({ alsoHeld: [made.id] });
    else await ana.desk.resolve(id, choice);
    await settled(ana, ben);
    expect((await ana.write(made.id))?.state).toBe('ordered');
    expect(await ben.query(all)).toMatchObject([{ number: '1' }]);
  },
);

test.each([
  ['another kind', entity({ ...invoice.fields, number: integer() }), 'invoice.number: text → integer.'],
  ['a field less', entity({ number: text() }), 'invoice.paid: a field stays.'],
  ['a key', entity({ ...invoice.fields }, { key: ['number'] }), 'invoice: key none → number.'],
  ['a local type', entity({ ...invoice.fields }, { local: true }), 'invoice: what a log defines is not local'],
])(
  '[SC4 SC2 CM3] a definition with %s is refused where it is written, as the ledger would',
  async (_, definition, reason) => {
    await define(ana);
    await settled(ana);
    const local = await refusalOf(define(ana, definition as never));
    const { issues } = local as HoldfastError;
    expect(local).toMatchObject({ code: 'invalid-change' });
    expect(issues.map(({ message }) => message.slice(0, reason.length))).toEqual([reason]);
  },
);

test('[SC4 CM3] unknown types, names of the schema and wrong values are refused with a sentence', async () => {
  const issuesOf = async (promise: PromiseLike<unknown>) => ((await refusalOf(promise)) as HoldfastError).issues;
  expect(await issuesOf(create(ana, '1'))).toEqual([
    { path: ['invoice'], code: 'unknown-entity', message: 'unknown type: nobody defined invoice' },
  ]);
  for (const name of ['issue', 'Issue'])
    expect(await issuesOf(ana.commit((tx) => defineType(tx, name, invoice)))).toMatchObject([
      { path: [name], code: 'not-settable' },
    ]);
  expect(await issuesOf(ana.commit((tx) => defineType(tx, 'sync', invoice)))).toMatchObject([{ path: ['sync'] }]);
  await define(ana);
  expect(
    await issuesOf(ana.commit((tx) => void entityNamed(tx, 'invoice').create({ paid: 'yes', colour: 'red' }))),
  ).toMatchObject([
    { path: ['invoice', 'colour'], code: 'unknown-field' },
    { path: ['invoice', 'number'], code: 'missing' },
    { path: ['invoice', 'paid'], code: 'wrong-type' },
  ]);
  expect(await ana.query(all)).toEqual([]);
});

test('[SC4 SC3] rows inside rows, transactions and lists know a type that came at run time', async () => {
  await define(ana);
  await ana.commitAll(['1', '2'], (tx, number) => void entityNamed(tx, 'invoice').create({ number, paid: true }), {
    label: 'Import',
  });
  const paid = await ana.transact(async (tx) => {
    const rows = await tx.query(all);
    for (const { number } of rows) entityNamed(tx.write, 'invoice').create({ number: `${number}b`, tags: ['copy'] });
    return rows.length;
  });
  expect(paid).toBe(2);
  await ana.commit((tx) => tx.issue.create({ title: 'A' }));
  const nested = await ana.query((db) =>
    db
      .withTables<{ invoice: Invoice }>()
      .selectFrom('issue')
      .select((eb) => [
        'title',
        many(eb.selectFrom('invoice').select(['number', 'paid', 'tags']).orderBy('number')).as('invoices'),
      ]),
  );
  expect(nested).toEqual([
    {
      title: 'A',
      invoices: [
        { number: '1', paid: true, tags: [] },
        { number: '1b', paid: false, tags: ['copy'] },
        { number: '2', paid: true, tags: [] },
        { number: '2b', paid: false, tags: ['copy'] },
      ],
    },
  ]);
});

test('[SC4 CM4] one entity of a type that came at run time is read by its name, in a transaction and in its history', async () => {
  await define(ana);
  const id = await create(ana, '1');
  const paid = await ana.transact(async (tx) => {
    const before = await tx.getNamed('invoice', id);
    entityNamed(tx.write, 'invoice').update(id, { paid: true });
    return before?.['paid'];
  });
  expect(paid).toBe(false);
  expect((await ana.transact((tx) => tx.getNamed('invoice', id))) ?? {}).toMatchObject({ id, number: '1', paid: true });
  await settled(ana);
  expect((await ana.historyNamed('invoice', id)).map(({ change }) => change.op)).toEqual(['create', 'update']);
  expect(await refusalOf(ana.transact((tx) => tx.getNamed('nobody', id)))).toMatchObject({ code: 'query-refused' });
});
