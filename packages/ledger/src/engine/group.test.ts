import type { PushAnswer } from '@holdfast/core';
import { expect, test } from 'vitest';
import { Author, wire } from './drafts.fixture.ts';
import type { AppendRead, LedgerStore } from './store-port.ts';
import { StoreFault } from './store-port.ts';
import { ANA, BEN, REF, type World, world } from './world.fixture.ts';

/** A store in front of the real one that fails an append when told to, before anything or after everything is durable. */
function unreliable(w: World) {
  const groups: number[] = [];
  let fails: (read: AppendRead) => 'before' | 'after' | StoreFault | null = () => null;
  const store: LedgerStore = {
    ...w.store,
    close: () => undefined,
    append: (ref, read, judge) => {
      groups.push(read.requestIds.length);
      const failure = fails(read);
      if (failure === 'before') throw new Error('stumbled');
      if (failure instanceof StoreFault) throw failure;
      const value = w.store.append(ref, read, judge);
      if (failure === 'after') throw new StoreFault('failed', { isRolledBack: false });
      return value;
    },
  };
  return {
    store,
    groups,
    failWhen: (when: typeof fails) => {
      fails = when;
    },
  };
}

/** A store behind a network: every call answers in a later turn. */
const asynchronous = (store: LedgerStore): LedgerStore =>
  new Proxy(store, {
    get: (target, name) => {
      const member = Reflect.get(target, name) as unknown;
      if (typeof member !== 'function') return member;
      return async (...values: unknown[]) => {
        await new Promise((resolve) => setImmediate(resolve));
        return (member as (...values: unknown[]) => unknown).apply(target, values);
      };
    },
  });

const resultsOf = (answer: Awaited<ReturnType<World['send']>>) =>
  'results' in answer
    ? answer.results.map((result) => (result.status === 'accepted' ? result.firstVersion : result.code))
    : answer.refusal.code;

test('[LG1] pushes that wait at the same moment share one transaction', async () => {
  await using base = world();
  const start = await base.start();
  const { store, groups } = unreliable(base);
  await using w = world({ store });
  await Promise.all(
    ['a', 'b', 'c']
      .map((name) => new Author(name))
      .map((author) => w.send(author.request(start, [author.operation([author.create(author.replica.id)])]))),
  );
  expect(groups).toEqual([3]);
  const status = await w.engine.status();
  expect(status).toMatchObject({ waiting: 0, appended: { groups: 1, operations: 3, events: 3 } });
});

test('[LG1 F98] an unexpected error fails the group; its pushes and operations are tried one by one', async () => {
  await using base = world();
  const start = await base.start();
  const { store, groups, failWhen } = unreliable(base);
  await using w = world({ store });
  const a = new Author('a');
  const b = new Author('b');
  const poison = a.operation([a.create('poison')]);
  failWhen((read) => (read.requestIds.includes(poison.requestId) ? 'before' : null));
  const [first, second] = await Promise.all([
    w.send(a.request(start, [a.operation([a.create('a1')]), poison, a.operation([a.create('a2')])])),
    w.send(b.request(start, [b.operation([b.create('b1')])]), BEN),
  ]);
  expect([resultsOf(first as PushAnswer), resultsOf(second as PushAnswer)]).toEqual([[1, 'internal', 2], [3]]);
  expect(groups).toEqual([4, 3, 1, 1, 1, 1]);
  failWhen(() => null);
  expect(resultsOf(await w.send(a.request(start, [poison])))).toEqual([4]);
  expect((await base.engine.verify(REF))?.problems).toEqual([]);
});

test('[LG1 LG5] an operation that must be alone stays refused when its request is tried one by one', async () => {
  await using base = world();
  const start = await base.start();
  const { store, failWhen } = unreliable(base);
  await using w = world({ store });
  const a = new Author('a');
  failWhen((read) => (read.requestIds.length > 1 ? 'before' : null));
  const restoring = a.operation([a.create('e1')], { expectedLogVersion: 0 });
  expect(resultsOf(await w.send(a.request(start, [restoring, a.operation([a.create('e2')])])))).toEqual([
    'invalid-event',
    1,
  ]);
});

test('[LG1 LG9] nothing whose outcome is not known is tried again or told as refused', async () => {
  await using base = world();
  const start = await base.start();
  const { store, groups, failWhen } = unreliable(base);
  await using w = world({ store });
  const a = new Author('a');
  const operations = [a.operation([a.create('e1')]), a.operation([a.create('e2')])];
  failWhen(() => 'after');
  expect(await w.send(a.request(start, operations))).toMatchObject({ status: 500, refusal: { code: 'internal' } });
  expect(groups).toEqual([2]);
  failWhen(() => null);
  expect(resultsOf(await w.send(a.request(start, operations)))).toEqual([1, 2]);
  expect((await base.head()).version).toBe(2);
});

test('[F98 F102] a store that cannot now is told with a time to come back, and nothing is tried one by one', async () => {
  await using base = world();
  const start = await base.start();
  const { store, groups, failWhen } = unreliable(base);
  await using w = world({ store });
  const a = new Author('a');
  for (const [code, status] of [
    ['full', 507],
    ['busy', 503],
    ['replaced', 503],
  ] as const) {
    failWhen(() => new StoreFault(code, { isRolledBack: true }));
    const answer = await w.send(a.request(start, [a.operation([a.create('e1')]), a.operation([a.create('e2')])]));
    expect(answer).toMatchObject({ status, retryAfterMs: expect.any(Number) as number });
  }
  expect(groups).toEqual([2, 2, 2]);
});

test('[F183] beyond the queue’s bound a push is refused before it waits', async () => {
  await using w = world({ limits: { groupQueueMax: 2 } });
  const start = await w.start();
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, at) => new Author(`w${at}`)).map((author) =>
      w.send(author.request(start, [author.operation([author.create(author.replica.id)])])),
    ),
  );
  expect(answers.map(resultsOf)).toEqual([[1], [2], 'rate-limited', 'rate-limited']);
  const a = new Author('a');
  expect(resultsOf(await w.send(a.request(start, [a.operation([a.create('later')])])))).toEqual([3]);
});

test('[LG1] a group is bounded by events; what does not fit is in the next one', async () => {
  await using base = world();
  const start = await base.start();
  const { store, groups } = unreliable(base);
  await using w = world({ store, limits: { groupEventsMax: 2 } });
  const authors = Array.from({ length: 5 }, (_, at) => new Author(`w${at}`));
  const answers = await Promise.all(
    authors.map((author) => w.send(author.request(start, [author.operation([author.create(author.replica.id)])]))),
  );
  expect(answers.map(resultsOf)).toEqual([[1], [2], [3], [4], [5]]);
  expect(groups).toEqual([2, 2, 1]);
});

test('[EV1 LG1] a store that answers later serves the same engine', async () => {
  await using base = world();
  const start = await base.start();
  await using w = world({ store: asynchronous(base.store) });
  const authors = Array.from({ length: 64 }, (_, at) => new Author(`w${at}`));
  const answers = await Promise.all(
    authors.map((author) => w.send(author.request(start, [author.operation([author.create(author.replica.id)])]))),
  );
  expect(
    answers.map((answer) => (resultsOf(answer) as number[])[0]).toSorted((x, y) => (x as number) - (y as number)),
  ).toEqual(Array.from({ length: 64 }, (_, at) => at + 1));
  const a = new Author('a');
  expect(
    await w.engine.handshake(
      ANA,
      'acme',
      wire({
        protocol: { min: 1, max: 1 },
        replica: { ...a.replica, permit: 1 },
        logs: [{ log: 'main', positions: [start] }],
      }),
    ),
  ).toMatchObject({ ok: true });
  expect(await w.engine.events(ANA, REF, { after: 60 })).toMatchObject({ ok: true });
  expect((await w.engine.verify(REF))?.problems).toEqual([]);
});

test('[SY4] close finishes what waits', async () => {
  await using base = world();
  const start = await base.start();
  const { store } = unreliable(base);
  const w = world({ store });
  const a = new Author('a');
  const sent = w.send(a.request(start, [a.operation([a.create('e1')])]));
  await w.engine.close();
  expect(resultsOf(await sent)).toEqual([1]);
});
