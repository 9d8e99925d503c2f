import {
  canonical,
  type EntityState,
  type ErasedEvent,
  type Json,
  type PushOperation,
  type StoredEvent,
} from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { createNodePlatform } from '../adapters/node/platform.ts';
import { judgeGroup } from './append.ts';
import { appendReadOf } from './append-read.ts';
import { ENGINE_LIMITS } from './create-engine.ts';
import { Author } from './drafts.fixture.ts';
import { endOfPage, pageBounds } from './event-page.ts';
import { PageCache } from './page-cache.ts';
import { partEventsOf } from './parts.ts';
import { measured, pushOf } from './push-request.ts';
import { serialFieldsOf } from './serials.ts';
import type { AppendRead } from './store-port.ts';
import { ANA, answerOf, REF, refusalOf, type World, world } from './world.fixture.ts';

const many = (author: Author, count: number, name: string) =>
  Array.from({ length: count }, (_, at) => author.create(`${name}${at}`));

/** Everything after a version, page by page, and where each page ended. */
async function pull(
  w: World,
  limit?: number,
): Promise<{ events: (StoredEvent | ErasedEvent)[]; ends: number[]; parts: string[] }> {
  const events: (StoredEvent | ErasedEvent)[] = [];
  const ends: number[] = [];
  const parts: string[] = [];
  for (let after = 0; ; ) {
    const page = answerOf(await w.engine.events(ANA, REF, { after, ...(limit === undefined ? {} : { limit }) }));
    events.push(...page.events);
    ends.push(page.through.version);
    parts.push(page.part === undefined ? 'whole' : `${page.part}/${page.parts}`);
    after = page.through.version;
    if (!page.more) return { events, ends, parts };
  }
}

/** One operation judged alone, under the limits of commands; `read` may be bent on the way. */
async function judgeAlone(
  w: World,
  author: Author,
  operation: PushOperation,
  bend: (read: AppendRead) => AppendRead = (read) => read,
) {
  const platform = createNodePlatform();
  const serials = serialFieldsOf(undefined);
  const texts = operation.events.map((event) => canonical(event as unknown as Json));
  const drafts = measured(operation.actionId, texts, platform.digest);
  const push = pushOf({
    actor: ANA,
    ref: REF,
    position: await w.head(),
    replica: { ...author.replica, permit: 1_000 },
    operations: [{ isRead: true, operation, drafts }],
    continues: false,
    companions: 0,
  });
  return w.store.append(REF, bend(appendReadOf([push], serials)), (state) =>
    judgeGroup(state, [push], {
      digest: platform.digest,
      logger: () => undefined,
      recordedAt: '2026-11-30T00:00:00.000Z',
      serials,
      limits: { ...ENGINE_LIMITS, commitEventsMax: 20_000, commitBytesMax: 32 * 1024 * 1024 },
      admit: undefined,
      quota: undefined,
    }),
  );
}

describe('pages', () => {
  test('[PG1 F106] operations of 1, 511, 512 and 1 events come whole, whatever the limit', async () => {
    await using w = world();
    const a = new Author('a');
    for (const count of [1, 511, 512, 1]) await w.accept(a, ...many(a, count, `${count}-${a.id()}-`));
    expect((await pull(w)).ends).toEqual([512, 1024, 1025]);
    expect((await pull(w, 100)).ends).toEqual([1, 512, 1024, 1025]);
    expect((await pull(w, 1)).ends).toEqual([1, 512, 1024, 1025]);
    const { events } = await pull(w);
    expect(events.map(({ version }) => version)).toEqual(Array.from({ length: 1025 }, (_, at) => at + 1));
  });

  test('[PG1] a page is bounded by bytes too, and holds at least one operation', async () => {
    await using w = world();
    const a = new Author('a');
    for (let at = 0; at < 4; at += 1)
      await w.accept(a, ...[0, 1].map((n) => a.create(`e${at}-${n}`, { body: 'x'.repeat(200_000) })));
    expect((await pull(w)).ends).toEqual([4, 8]);
  });

  test('[PG2] an operation larger than a page comes in parts, each known by its number, resumable at each', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('before'));
    const c = new Author('c');
    await judgeAlone(w, c, c.operation(many(c, 1_300, 'large')));
    await using again = await w.restart();
    await again.accept(new Author('a', 2), a.create('after'));
    const { events, ends, parts } = await pull(again);
    expect(ends).toEqual([1, 513, 1025, 1301, 1302]);
    expect(parts).toEqual(['whole', '1/3', '2/3', '3/3', 'whole']);
    expect(events.length).toBe(1302);
    expect((await again.engine.verify(REF))?.problems).toEqual([]);
    const resumed = answerOf(await again.engine.events(ANA, REF, { after: 513 }));
    expect([resumed.part, resumed.through.version]).toEqual([2, 1025]);
  });

  test('[PG2] parts are no larger than a page in bytes', () => {
    expect(partEventsOf(Array.from({ length: 512 }, () => 2_000))).toBeNull();
    expect(partEventsOf(Array.from({ length: 513 }, () => 10))).toBe(512);
    expect(partEventsOf(Array.from({ length: 20_000 }, () => 1_600))).toBe(512);
    expect(partEventsOf(Array.from({ length: 20 }, () => 256 * 1024))).toBe(4);
  });

  test('[PG1] a page ends before an operation in parts, and never joins one', () => {
    const outline = (firstVersion: number, count: number, partEvents: number | null = null) => ({
      firstVersion,
      count,
      partEvents,
      bytes: count,
      requestId: '',
      actionId: '',
      replicaId: '',
      actor: '',
      recordedAt: '',
      origin: null,
      signature: '',
    });
    const operations = [outline(1, 10), outline(11, 600, 512), outline(611, 1)];
    expect(endOfPage(operations, 0, pageBounds(undefined))).toEqual({ to: 10 });
    expect(endOfPage(operations.slice(1), 10, pageBounds(undefined))).toEqual({ to: 522, part: 1, parts: 2 });
    expect(endOfPage(operations.slice(1), 522, pageBounds(undefined))).toEqual({ to: 610, part: 2, parts: 2 });
    expect(endOfPage([], 0, pageBounds(undefined))).toBeNull();
  });

  test('[PG1] a position at or beyond the head gets an empty page with the head', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1'));
    const head = await w.head();
    for (const after of [1, 2, 99])
      expect(answerOf(await w.engine.events(ANA, REF, { after }))).toMatchObject({
        events: [],
        through: { version: 1, chain: head.chain },
        head: 1,
        more: false,
      });
  });

  test('[LG15] a full page is the same for ever, but for the head', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1'));
    await w.accept(a, a.create('e2'));
    const first = answerOf(await w.engine.events(ANA, REF, { after: 0, limit: 1 }));
    await w.accept(a, a.create('e3'));
    const again = answerOf(await w.engine.events(ANA, REF, { after: 0, limit: 1 }));
    expect(again).toEqual({ ...first, head: 3 });
    const last = answerOf(await w.engine.events(ANA, REF, { after: 2, limit: 1 }));
    expect([last.more, last.through.version]).toEqual([false, 3]);
    await w.accept(a, a.create('e4'));
    expect(answerOf(await w.engine.events(ANA, REF, { after: 2, limit: 2 })).events.length).toBe(2);
  });

  test('[LG15 I28] pages in memory are bounded by bytes; the one used longest ago goes', () => {
    const cache = new PageCache<{ bytes: number }>(10);
    cache.set('a', { bytes: 4 });
    cache.set('b', { bytes: 4 });
    expect(cache.get('a')).toBeDefined();
    cache.set('c', { bytes: 4 });
    expect([cache.get('a'), cache.get('b'), cache.get('c')].map((page) => page !== undefined)).toEqual([
      true,
      false,
      true,
    ]);
    cache.set('huge', { bytes: 11 });
    expect(cache.get('huge')).toBeUndefined();
    cache.set('a', { bytes: 1 });
    expect(cache.bytes).toBe(5);
  });

  test('[I26] what a page tells is what its author sent, byte for byte', async () => {
    await using w = world();
    const a = new Author('a');
    const awkward = { title: '\u2028 "\\" é \u{1f600} \ufeff', n: -0, f: 1e-7, deep: [[{ b: 1, a: [null, true] }]] };
    await w.accept(a, a.create('e1', awkward));
    const page = await w.engine.events(ANA, REF, { after: 0 });
    const text = page.ok ? page.body : '';
    expect(text).toContain('"f":1e-7,"n":0,"title":"\u2028 \\"\\\\\\" é \u{1f600} \ufeff"');
    expect(answerOf(page).events[0]).toMatchObject({ change: { fields: { deep: awkward.deep } } });
  });
});

test('[LG4] events of an entity that were not read are never taken for none', async () => {
  await using w = world();
  const a = new Author('a');
  const b = new Author('b');
  await w.accept(a, a.create('e1', { title: 'one', body: 'x' }));
  await w.accept(b, b.set('e1', { title: 'theirs' }, 1));
  await w.accept(b, b.set('e1', { body: 'y' }, 2));
  const mine = a.operation([a.set('e1', { title: 'mine' }, 1)]);
  const judged = await judgeAlone(w, a, mine, (read) => ({
    ...read,
    entities: read.entities.map((entity) => ({ ...entity, theirsMax: 1 })),
  }));
  expect(judged.pushes).toMatchObject([{ results: [{ code: 'version-conflict' }] }]);
});

describe('state', () => {
  const scan = async (w: World, limit: number): Promise<EntityState[]> => {
    const entities: EntityState[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = answerOf(await w.engine.entities(ANA, REF, { limit, ...(cursor === undefined ? {} : { cursor }) }));
      entities.push(...page.entities);
      cursor = page.next;
      if (cursor === undefined) return entities;
    }
  };

  test('[BS1 BS3] state is told in order, run-time types first, with the version it was read at; deleted entities not', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, ...['c', 'a', 'b', 'gone'].map((id) => a.create(id, { title: id })));
    await w.accept(a, a.draft({ op: 'delete' }, { entityId: 'gone', base: 1 }));
    await w.accept(
      a,
      a.draft(
        { op: 'create', fields: { schema: { fields: { x: { kind: 'text' } } } } },
        { entityType: 'holdfast.entity-type', entityId: 'note' },
      ),
    );
    await w.accept(a, a.draft({ op: 'create', fields: {} }, { entityType: 'alpha', entityId: 'z' }));
    for (const limit of [1, 2, 512])
      expect((await scan(w, limit)).map(({ type, id }) => `${type}/${id}`)).toEqual([
        'holdfast.entity-type/note',
        'alpha/z',
        'issue/a',
        'issue/b',
        'issue/c',
      ]);
    expect(answerOf(await w.engine.entities(ANA, REF, {})).asOf).toMatchObject({ version: 7 });
    expect((await scan(w, 512))[2]).toEqual({
      type: 'issue',
      id: 'a',
      version: 1,
      fields: { title: 'a' },
      createdBy: 'ana',
      createdAt: '2026-11-30T00:00:00.000Z',
      updatedBy: 'ana',
      updatedAt: '2026-11-30T00:00:00.000Z',
      arrival: 2,
    });
  });

  test('[BS1] an empty log has one empty page of state; a cursor that nobody gave is malformed', async () => {
    await using w = world();
    const page = answerOf(await w.engine.entities(ANA, REF, {}));
    expect([page.entities, page.next, page.asOf.version]).toEqual([[], undefined, 0]);
    for (const cursor of ['x', 'o', 'o:a:', 'o::b', 'z:a:b', 'o:a:b\u0000'])
      expect(refusalOf(await w.engine.entities(ANA, REF, { cursor }))).toMatchObject({ status: 400 });
  });

  test('[EV2] one entity, and its history oldest first', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1', { title: 'one' }));
    for (let version = 1; version < 5; version += 1) await w.accept(a, a.set('e1', { title: `t${version}` }, version));
    const key = { type: 'issue', id: 'e1' };
    expect(answerOf(await w.engine.entity(ANA, REF, key))).toMatchObject({
      asOf: 5,
      entity: { version: 5, fields: { title: 't4' } },
    });
    expect(answerOf(await w.engine.entity(ANA, REF, { ...key, id: 'absent' }))).toEqual({ asOf: 5, entity: null });
    const all = answerOf(await w.engine.history(ANA, REF, key));
    expect(all.events.map((event) => ('entityVersion' in event ? event.entityVersion : 0))).toEqual([1, 2, 3, 4, 5]);
    expect(all.events).toEqual(answerOf(await w.engine.events(ANA, REF, { after: 0 })).events);
    const some = answerOf(await w.engine.history(ANA, REF, { ...key, after: 1, limit: 2 }));
    expect([some.events.length, some.more]).toEqual([2, true]);
    expect(answerOf(await w.engine.history(ANA, REF, { ...key, after: 3, limit: 2 })).more).toBe(false);
  });

  test('[DG2] verify finds what was changed behind the ledger’s back', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1', { title: 'one' }), a.create('e2'));
    await w.accept(a, a.set('e1', { title: 'two' }, 1));
    expect(await w.engine.verify(REF)).toMatchObject({ events: 3, entities: 2, problems: [] });
    expect(await w.engine.verify({ workspace: 'acme', log: 'none' })).toBeNull();
    const spoiled: World = { ...w, store: { ...w.store } };
    const { createEngine } = await import('./engine.ts');
    const look = async (store: typeof w.store) =>
      (
        await createEngine({ store, platform: createNodePlatform(), logger: () => undefined }).verify(REF)
      )?.problems.map(({ what }) => what);
    const page = w.store.page;
    const lying = (change: (event: { draft: string | null; entityVersion: number }) => object): typeof w.store => ({
      ...spoiled.store,
      page: async (ref, read) => {
        const rows = await page(ref, read);
        return (
          rows && {
            ...rows,
            events: rows.events.map((event) => (event.version === 3 ? { ...event, ...change(event) } : event)),
          }
        );
      },
    });
    expect(await look(lying(({ draft }) => ({ draft: draft?.replace('two', 'six') ?? null })))).toEqual([
      'chain',
      'signature',
      'signature',
      'entity',
    ]);
    expect(await look(lying(({ entityVersion }) => ({ entityVersion: entityVersion + 1 })))).toContain(
      'entity-version',
    );
    expect(
      await look({
        ...w.store,
        entities: async (ref, read) => {
          const rows = await w.store.entities(ref, read);
          return rows && { ...rows, entities: rows.entities.slice(1), more: false };
        },
      }),
    ).toEqual(['entity']);
  });
});
