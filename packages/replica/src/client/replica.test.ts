import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TestSchema } from '../host/host.fixture.ts';
import { type Client, HoldfastError, isHoldfastError, type LiveResult, type Replica } from '../index.ts';
import { type Bench, openBench, until } from './client.fixture.ts';

let bench: Bench;
let client: Client<TestSchema>;
let replica: Replica<TestSchema>;

beforeEach(async () => {
  bench = await openBench();
  client = bench.client('ana');
  replica = await client.open('acme');
});
afterEach(() => bench.end());

const titles = async (of: Replica<TestSchema> = replica) =>
  (await of.query((db) => db.selectFrom('issue').select('title').orderBy('title'))).map(({ title }) => title);
const codeOf = (promise: PromiseLike<unknown>) =>
  promise.then(
    () => 'fine',
    (cause) => (isHoldfastError(cause) ? cause.code : String(cause)),
  );

test('[CM1 LK1] a write is durable, then shown, then ordered', async () => {
  using live = replica.live((db) => db.selectFrom('issue').select(['id', 'title', 'sync']));
  const write = replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const id = await write;
  await write.shown();
  expect(live.current.rows).toMatchObject([{ id, title: 'A' }]);
  const { version } = await write.ordered({ signal: AbortSignal.timeout(10_000) });
  expect(version).toBeGreaterThan(0);
  await until(() => live.current.rows[0]?.sync === 'synced');
  expect(await replica.settle()).toEqual({ settled: true, attention: 0, obstacles: [] });
});

test('[LQ4 SC3] a live query follows what another device writes, with the types of the schema', async () => {
  await replica.settle();
  const other = await bench.client('ben').open('acme');
  using live = replica.live((db) => db.selectFrom('issue').select(['title', 'done', 'labels', 'createdBy']));
  await other.commit((tx) => tx.issue.create({ title: 'from Ben', labels: ['b', 'a'] }));
  await until(() => live.current.rows.length === 1);
  expect(live.current).toEqual({
    rows: [{ title: 'from Ben', done: false, labels: ['a', 'b'], createdBy: 'ben' }],
    state: 'complete',
  });
});

test('[CM4] a transaction whose reads changed meanwhile runs again, and writes by what is there now', async () => {
  const id = await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  let runs = 0;
  const seen = await replica.transact(async (tx) => {
    runs += 1;
    const row = await tx.get('issue', id);
    if (runs === 1) await replica.commit((write) => write.issue.update(id, { title: 'B' }));
    tx.write.issue.update(id, { body: `after ${row?.title}` });
    return row?.title;
  });
  expect([runs, seen]).toEqual([2, 'B']);
  expect(await replica.first((db) => db.selectFrom('issue').select('body'))).toEqual({ body: 'after B' });
});

test('[CM4] five runs at most, then contended, and nothing of it is written', async () => {
  const id = await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  let runs = 0;
  const write = replica.transact(async (tx) => {
    runs += 1;
    await tx.get('issue', id);
    await replica.commit((other) => other.issue.update(id, { votes: { by: 1 } }));
    tx.write.issue.update(id, { body: 'never' });
  });
  expect(await codeOf(write)).toBe('contended');
  expect(runs).toBe(5);
  expect(await replica.first((db) => db.selectFrom('issue').select('body'))).toEqual({ body: '' });
});

test('[CM4] what a transaction throws is thrown, and what it asked for is not written', async () => {
  const write = replica.transact(async (tx) => {
    tx.write.issue.create({ title: 'never' });
    throw new Error('changed my mind');
  });
  await expect(write).rejects.toThrow('changed my mind');
  expect(await titles()).toEqual([]);
});

test('[CM4] a transaction that only reads gives what it read', async () => {
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const write = replica.transact(async (tx) => (await tx.query((db) => db.selectFrom('issue').select('title'))).length);
  expect(await write).toBe(1);
  expect(await write.ordered()).toEqual({ version: 0 });
});

test('[CM4 F09] a callback that is over takes nothing any more', async () => {
  let kept: Parameters<Parameters<typeof replica.commit>[0]>[0] | undefined;
  await replica.commit((tx) => {
    kept = tx;
    tx.issue.create({ title: 'A' });
  });
  expect(() => kept?.issue.create({ title: 'late' })).toThrow(TypeError);
  const asynchronous = replica.commit((async (tx: { issue: { create(f: object): void } }) => {
    tx.issue.create({ title: 'never' });
  }) as never);
  expect(await codeOf(asynchronous)).toBe('async-callback');
  expect(await titles()).toEqual(['A']);
});

test('[CM3] a refused commit tells one issue per field, and wrote nothing', async () => {
  const refused = await replica
    .commit((tx) => tx.issue.create({ title: 7, done: 'yes', nope: 1 } as never))
    .catch((cause: unknown) => cause);
  expect(refused).toBeInstanceOf(HoldfastError);
  expect(refused).toMatchObject({ code: 'invalid-change', retry: 'after-change' });
  expect((refused as HoldfastError).issues.map(({ path }) => path.at(-1)).sort()).toEqual(['done', 'nope', 'title']);
  expect(await titles()).toEqual([]);
});

test('[CM2] a row that was changed since it was read refuses the commit; an own change does not', async () => {
  const id = await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await replica.settle();
  const row = await replica.first((db) => db.selectFrom('issue').selectAll());
  const other = await bench.client('ben').open('acme');
  await other.settle();
  await other.commit((tx) => tx.issue.update(id, { title: 'Ben' })).ordered();
  await until(async () => (await titles())[0] === 'Ben');
  const stale = await replica.commit((tx) => tx.issue.update(row!, { title: 'mine' })).catch((cause: unknown) => cause);
  expect(stale).toMatchObject({ code: 'changed-meanwhile' });
  const fresh = await replica.first((db) => db.selectFrom('issue').selectAll());
  await replica.pause();
  await replica.commit((tx) => tx.issue.update(fresh!, { title: 'one' }));
  await replica.commit((tx) => tx.issue.update(fresh!, { title: 'two' }));
  expect(await titles()).toEqual(['two']);
});

test('[CM5] a write is found again by its id, in another run, with its outcome', async () => {
  const write = replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await write;
  const { version } = await write.ordered();
  await replica.close();
  replica = await client.open('acme');
  const again = await replica.write(write.id);
  expect(again?.state).toBe('ordered');
  expect(await again?.ordered()).toEqual({ version });
  expect(await replica.write('0190a000-0000-7000-8000-000000000000')).toBeUndefined();
});

test('[CM6] a list too large for one commit is many batches', async () => {
  await replica.pause();
  const rows = Array.from({ length: 1_300 }, (_, at) => at);
  const { batches } = await replica.commitAll(rows, (tx, at) => void tx.issue.create({ title: `n${at}` }), {
    label: 'Import',
  });
  expect(batches).toBe(3);
  expect(await titles()).toHaveLength(1_300);
});

test('[CM6] commitAll goes on after a crash where it stopped, and writes nothing twice', async () => {
  await replica.pause();
  const rows = Array.from({ length: 1_300 }, (_, at) => at);
  const failing = replica.commitAll(
    rows,
    (tx, at) => {
      if (at === 1_000) throw new Error('killed');
      tx.issue.create({ title: `n${String(at).padStart(4, '0')}` });
    },
    { label: 'Import' },
  );
  await expect(failing).rejects.toThrow('killed');
  const written = (await titles()).length;
  expect(written).toBeGreaterThan(0);
  await replica.close();
  replica = await client.open('acme');
  let built = 0;
  async function* again() {
    yield* rows;
  }
  await replica.commitAll(
    again(),
    (tx, at) => {
      built += 1;
      tx.issue.create({ title: `n${String(at).padStart(4, '0')}` });
    },
    { label: 'Import' },
  );
  expect(built).toBe(1_300 - written);
  expect(new Set(await titles()).size).toBe(1_300);
  // A later list under the same label is a list of its own.
  await replica.commitAll([1, 2], (tx, at) => void tx.issue.create({ title: `later${at}` }), { label: 'Import' });
  expect(await titles()).toHaveLength(1_302);
});

test('[CM6 CM7] all batches of one list are one undo, and one redo', async () => {
  await replica.settle();
  await replica.commit((tx) => tx.issue.create({ title: 'before' }), { label: 'New issue' });
  const rows = Array.from({ length: 1_000 }, (_, at) => at);
  const { batches } = await replica.commitAll(rows, (tx, at) => void tx.issue.create({ title: `n${at}` }), {
    label: 'Import',
  });
  expect(batches).toBeGreaterThan(1);
  await until(() => replica.undo.label === 'Import');
  await replica.undo.undo();
  expect(await titles()).toEqual(['before']);
  expect([replica.undo.label, replica.undo.redoLabel]).toEqual(['New issue', 'Import']);
  await replica.undo.redo();
  expect(await titles()).toHaveLength(1_001);
  expect(replica.undo.label).toBe('Import');
});

test('[CM6] commitAll cuts by bytes too', async () => {
  await replica.pause();
  const body = 'x'.repeat(200_000);
  const { batches } = await replica.commitAll(
    [1, 2, 3, 4, 5, 6],
    (tx, at) => void tx.issue.create({ title: `n${at}`, body }),
    { label: 'Big' },
  );
  expect(batches).toBeGreaterThan(1);
  expect(await titles()).toHaveLength(6);
});

test('[CM7] undo is offered as soon as a labelled commit is durable, and redo after it', async () => {
  await replica.settle();
  expect(replica.undo.can).toBe(false);
  const changes: boolean[] = [];
  replica.undo.subscribe(() => changes.push(replica.undo.can));
  await replica.commit((tx) => tx.issue.create({ title: 'A' }), { label: 'New issue' });
  expect([replica.undo.can, replica.undo.label]).toEqual([true, 'New issue']);
  await replica.undo.undo();
  expect(await titles()).toEqual([]);
  expect([replica.undo.can, replica.undo.canRedo, replica.undo.redoLabel]).toEqual([false, true, 'New issue']);
  await replica.undo.redo();
  expect(await titles()).toEqual(['A']);
  expect(changes.length).toBeGreaterThan(0);
});

test('[CM7 LK1] who commits and gives it up at once is told what can be taken back then, though it is what was told before', async () => {
  await replica.commit((tx) => tx.issue.create({ title: 'A' }), { label: 'Old' });
  await replica.settle();
  const write = replica.commit((tx) => tx.issue.create({ title: 'B' }), { label: 'New' });
  const given = replica.desk.discard(write.id);
  await Promise.all([write, given]);
  await until(async () => (await replica.write(write.id))?.state === 'discarded');
  await until(() => replica.undo.label === 'Old');
});

test('[SC10] a local entity is written, read and never sent', async () => {
  const write = replica.commit((tx) => tx.panel.create({ open: true }));
  const id = await write;
  expect(await write.ordered()).toEqual({ version: 0 });
  expect(await replica.first((db) => db.selectFrom('panel').select(['id', 'open']))).toEqual({ id, open: true });
  expect(replica.status.current.unsent).toBe(0);
});

test('[OB6] a clash is on the desk with both sides; deciding needs what was shown', async () => {
  const id = await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await replica.settle();
  const other = await bench.client('ben').open('acme');
  await other.settle();
  await replica.pause();
  const mine = replica.commit((tx) => tx.issue.update(id, { title: 'Ana' }), { label: 'Rename' });
  await mine;
  await other.commit((tx) => tx.issue.update(id, { title: 'Ben' })).ordered();
  let heard = 0;
  replica.desk.subscribe(() => {
    heard += 1;
  });
  await replica.resume();
  expect(await codeOf(mine.ordered())).toBe('needs-attention');
  expect(heard).toBeGreaterThan(0);
  const [item] = await replica.desk.list();
  expect(item).toMatchObject({ kind: 'clash', needs: 'answer', write: mine.id, label: 'Rename', held: 0 });
  expect(item?.fields).toMatchObject([{ field: 'title', base: 'A', mine: 'Ana', theirs: 'Ben', by: 'ben' }]);
  await until(() => replica.status.current.attention === 1);
  expect((await replica.settle()).attention).toBe(1);
  expect(await codeOf(replica.desk.resolve('nobody', 'mine'))).toBe('not-found');
  // What a person chose is held to the schema, as any commit is (CM3), and nothing has moved where it cannot be.
  const wrong = [{ title: 5 }, { title: null }, { nope: 'x' }, { createdBy: 'me' }, { 'issue/other.title': 'x' }];
  for (const choice of [...wrong, 'ours', 42, ['x'], null])
    expect(await codeOf(replica.desk.resolve(item?.id ?? '', choice as never)), JSON.stringify(choice)).toBe(
      'invalid-change',
    );
  expect(await replica.desk.list()).toEqual([item]);
  await replica.desk.resolve(item?.id ?? '', 'mine');
  await replica.settle();
  await until(async () => (await titles(other))[0] === 'Ana');
  expect(await replica.desk.list()).toEqual([]);
});

test('[SY4] pause starts no request until resume; commits and queries go on', async () => {
  await replica.settle();
  await replica.pause();
  const write = replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await write;
  expect(await titles()).toEqual(['A']);
  expect((await replica.settle({ signal: AbortSignal.timeout(50) })).settled).toBe(false);
  expect(replica.status.current).toMatchObject({ isPaused: true, unsent: 1 });
  await replica.resume();
  await write.ordered();
});

test('[SY4] after close every call rejects with closed, and what was open says so', async () => {
  using live = replica.live((db) => db.selectFrom('issue').select('id'));
  const rows: LiveResult<unknown>[] = [];
  live.subscribe((result) => rows.push(result));
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await replica.close();
  await replica.close();
  expect(rows.at(-1)?.error).toMatchObject({ code: 'closed' });
  const calls = [
    replica.commit((tx) => tx.issue.create({ title: 'B' })),
    replica.query((db) => db.selectFrom('issue').select('id')),
    replica.settle(),
    replica.desk.list(),
    replica.undo.undo(),
    replica.follow('other'),
    replica.pack(),
    replica.transact(async (tx) => tx.get('issue', 'x')),
  ];
  expect(await Promise.all(calls.map(codeOf))).toEqual(calls.map(() => 'closed'));
  expect(replica.status.current.phase).toBe('stopped');
});

test('[SY4] one workspace opened twice is one host, which ends with the last of them', async () => {
  const second = await client.open('acme');
  await second.commit((tx) => tx.issue.create({ title: 'A' }));
  expect(await titles()).toEqual(['A']);
  await replica.close();
  expect(await titles(second)).toEqual(['A']);
  await second.close();
  replica = await client.open('acme');
  expect(await titles()).toEqual(['A']);
});

test('[LQ3] rows that did not change are the same objects; a result that did not change is the same array', async () => {
  const [a, b] = await replica.commit(
    (tx) => [tx.issue.create({ title: 'a' }), tx.issue.create({ title: 'b' })] as const,
  );
  using live = replica.live((db) => db.selectFrom('issue').select(['id', 'title', 'labels']).orderBy('title'));
  const before = live.current.rows;
  await replica.commit((tx) => tx.issue.update(b, { title: 'bb' })).shown();
  const after = live.current.rows;
  expect(after[0]).toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
  await replica.commit((tx) => tx.issue.update(a, { body: 'not selected' })).shown();
  expect(live.current.rows).toBe(after);
  await replica.commit((tx) => tx.issue.create({ title: '0' })).shown();
  expect(live.current.rows.slice(1)).toEqual(after);
  expect(live.current.rows[2]).toBe(after[1]);
});

test('[LQ1] equal live queries of a page share rows; the last to leave ends them', async () => {
  const query = () => replica.live((db) => db.selectFrom('issue').select('id'));
  const [one, two] = [query(), query()];
  await replica.commit((tx) => tx.issue.create({ title: 'A' })).shown();
  expect(one.current.rows).toBe(two.current.rows);
  one[Symbol.dispose]();
  await replica.commit((tx) => tx.issue.create({ title: 'B' })).shown();
  expect([one.current.rows.length, one.current.state, two.current.rows.length]).toEqual([1, 'stale', 2]);
  two[Symbol.dispose]();
});

test('[LQ1] a store without subscribers rests, and is there again for the next one', async () => {
  const live = replica.live((db) => db.selectFrom('issue').select('id'));
  live.subscribe(() => undefined)();
  await until(() => live.current.state === 'stale');
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const seen: number[] = [];
  const stop = live.subscribe(({ rows }) => seen.push(rows.length));
  await until(() => seen.includes(1));
  stop();
  live[Symbol.dispose]();
});

test('[LQ2] an iteration gives the rows now and after each change, and ends with the query', async () => {
  const live = replica.live((db) => db.selectFrom('issue').select('title').orderBy('title'));
  const seen: (readonly string[])[] = [];
  const reading = (async () => {
    for await (const rows of live) seen.push(rows.map(({ title }) => title));
  })();
  await replica.commit((tx) => tx.issue.create({ title: 'A' })).shown();
  await until(() => seen.at(-1)?.length === 1);
  await replica.commit((tx) => tx.issue.create({ title: 'B' })).shown();
  await until(() => seen.at(-1)?.length === 2);
  live[Symbol.dispose]();
  await reading;
  expect(seen.at(-1)).toEqual(['A', 'B']);
});

test('[LQ6] a subscriber that throws disturbs nobody else', async () => {
  const failures: unknown[] = [];
  const heard = (cause: unknown) => failures.push(cause);
  process.on('uncaughtException', heard);
  const others = process.listeners('uncaughtException').filter((listener) => listener !== heard);
  for (const other of others) process.off('uncaughtException', other);
  try {
    using live = replica.live((db) => db.selectFrom('issue').select('id'));
    const seen: number[] = [];
    live.subscribe(() => {
      throw new Error('of the app');
    });
    live.subscribe(({ rows }) => seen.push(rows.length));
    await replica.commit((tx) => tx.issue.create({ title: 'A' })).shown();
    expect(seen.at(-1)).toBe(1);
    await until(() => failures.length >= 2);
  } finally {
    process.off('uncaughtException', heard);
    for (const other of others) process.on('uncaughtException', other);
  }
});

test('[OB7] a pack holds what is unsent; it is taken once by another file of the same account', async () => {
  await replica.pause();
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const bytes = await replica.pack();
  const elsewhere = await bench.client('ana').open('acme');
  await elsewhere.settle();
  expect(await elsewhere.unpack(bytes)).toEqual({ batches: 1, already: 0 });
  expect(await elsewhere.unpack(bytes)).toEqual({ batches: 0, already: 1 });
  await elsewhere.settle();
  await replica.resume();
  await replica.settle();
  expect([await titles(), await titles(elsewhere)]).toEqual([['A'], ['A']]);
  expect(await codeOf(replica.unpack(new TextEncoder().encode('no pack')))).toBe('malformed');
});

test('[TM1] journal, history and facts tell people what happened', async () => {
  const id = await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await replica.commit((tx) => tx.issue.closed(id)).ordered();
  expect((await replica.history('issue', id)).map(({ type, actor }) => [type, actor])).toEqual([
    ['issue.created', 'ana'],
    ['issue.closed', 'ana'],
  ]);
  expect((await replica.journal()).length).toBeGreaterThan(0);
  expect(await replica.facts()).toMatchObject({
    identity: { account: 'ana', workspace: 'acme' },
    counts: { unsent: 0 },
  });
});

test('[CM7] each scope of undo has a stack of its own, and says what is on it', async () => {
  const id = await replica.commit((tx) => tx.issue.create({ title: 'A' }), { label: 'New' });
  const editor = replica.undo.in('editor');
  expect(await editor.state()).toEqual({ can: false, canRedo: false });
  await replica.commit((tx) => tx.issue.update(id, { title: 'B' }), { label: 'Type', undo: 'editor' });
  expect(await editor.state()).toMatchObject({ can: true, label: 'Type' });
  expect(replica.undo.label).toBe('New');
  await editor.undo();
  expect([await titles(), await editor.state()]).toEqual([['A'], { can: false, canRedo: true, redoLabel: 'Type' }]);
  await editor.redo();
  expect(await titles()).toEqual(['B']);
  await editor.undo();
  await replica.undo.undo();
  expect(await titles()).toEqual([]);
});
