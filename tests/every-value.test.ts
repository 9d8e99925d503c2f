import {
  canonical,
  counter,
  defineSchema,
  type EntitiesPage,
  type EventDraft,
  entity,
  flag,
  integer,
  type Json,
  json,
  type LogStanding,
  number,
  oneOf,
  type PushAnswer,
  rank,
  ref,
  schemaData,
  serial,
  setOf,
  text,
  time,
} from '@holdfast/core';
import { createWorld, type World, type WorldDevice } from '@holdfast/replica/testing';
import { describe, expect, test } from 'vitest';
import { HARD_VALUES } from '../packages/core/src/json-values.fixture.ts';
import { Author } from '../packages/ledger/src/engine/drafts.fixture.ts';

/** What may be said, and how much of it at once, from one device's commit over the real ledger to another device's rows. */
const schema = defineSchema({
  event: entity({ title: text(), outbox: ref('outbox', { optional: true }) }),
  outbox: entity({ title: text(), body: json({ optional: true }), votes: counter() }, { search: ['title'] }),
  thing: entity({
    text: text({ optional: true }),
    integer: integer({ optional: true }),
    number: number({ optional: true }),
    flag: flag({ optional: true }),
    time: time({ optional: true }),
    oneOf: oneOf(['backlog', 'review'], { otherwise: 'backlog', optional: true }),
    set: setOf(text()),
    json: json({ optional: true }),
  }),
});
type S = typeof schema;

/** One field of each kind that the DSL has; `serial` by itself, since nobody but the ledger writes one. */
const kinds = defineSchema({
  thing: entity({
    text: text({ optional: true }),
    integer: integer({ optional: true }),
    number: number({ optional: true }),
    flag: flag({ optional: true }),
    time: time({ optional: true }),
    json: json<Json>({ optional: true }),
    counter: counter(),
    setOf: setOf(text()),
    oneOf: oneOf(['backlog', 'review'], { otherwise: 'backlog', optional: true }),
    ref: ref('thing', { optional: true, onDelete: 'keep' }),
    rank: rank(),
  }),
  numbered: entity({ serial: serial() }),
});
const KINDS = Object.keys(schemaData(kinds).entities['thing']?.fields ?? {});

async function pair(seed: number): Promise<{ world: World<S>; ana: WorldDevice<S>; ben: WorldDevice<S> }> {
  const world = await createWorld({ schema, seed });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  await world.settle();
  return { world, ana, ben };
}

test('[SC7 I12] an app whose entities are called event and outbox syncs, reopens and begins anew like any other', async () => {
  const { world, ana, ben } = await pair(61);
  await using _ = world;
  const [outbox, event] = await ana.replica.commit((tx) => {
    const made = tx.outbox.create({ title: 'letters', body: { drafts: [] } });
    return [made, tx.event.create({ title: 'posted', outbox: made })] as const;
  });
  await world.settle();
  await ben.replica.commit((tx) => {
    tx.outbox.update(outbox, { votes: { by: 1 } });
    tx.event.delete(event);
  });
  await ben.crash();
  await ben.restart();
  await world.settle();
  const late = await world.device('eve');
  await world.settle();
  await world.converged();
  for (const { replica } of [ana, ben, late]) {
    const rows = await replica.query((db) => db.selectFrom('outbox').select(['id', 'title', 'body', 'votes', 'sync']));
    expect(rows).toEqual([{ id: outbox, title: 'letters', body: { drafts: [] }, votes: 1, sync: 'synced' }]);
    expect(await replica.query((db) => db.selectFrom('event').select('id'))).toEqual([]);
  }
});

// ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Built, not written, so that no editor changes them. */
const cat = (...codes: number[]): string => String.fromCharCode(...codes);
const KEPT: readonly Json[] = [
  ...HARD_VALUES,
  // F120: marks of order and bytes, characters that are none, a pair of surrogates, control characters.
  ...[cat(0xfeff), cat(0xfffe), cat(0xfdd0), cat(0x202e), cat(0xd83d, 0xde00), cat(1), cat(0x7f), cat(0x2028)],
  // F127: two forms of one letter stay two.
  [cat(0xe9), cat(0x65, 0x301)],
  // F124: keys that look like numbers; F125: names of every object.
  { 10: 'b', 9: 'a', '-1': 'c', '01': 'd' },
  { hasOwnProperty: 2, toString: 3 },
];

/** Built from within, since no stack is that deep. */
function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let at = 0; at < depth; at += 1) value = [value];
  return value;
}
const manyFields = (count: number): unknown =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, at]));
const refused: readonly (readonly [name: string, value: () => unknown])[] = [
  ['F120: a lone surrogate', () => cat(0x61, 0xd800)],
  ['F120: a lone surrogate in a key', () => ({ [cat(0xdc00)]: 1 })],
  ['F120: NUL', () => cat(0x61, 0)],
  ['F121: NaN', () => Number.NaN],
  ['F121: Infinity', () => Number.POSITIVE_INFINITY],
  ['F121: -Infinity', () => Number.NEGATIVE_INFINITY],
  ['F121: an integer beyond 2^53', () => 2 ** 53],
  ['F121: a bigint', () => 1n],
  ['F121: a Date inside', () => ({ at: new Date(0) })],
  ['F121: a Map', () => new Map([[1, 2]])],
  ['F121: undefined in an array', () => [undefined]],
  ['F121: a function', () => () => 1],
  ['F123: depth 1,001', () => nested(1_001)],
  ['F123: depth 200,000', () => nested(200_000)],
  ['F121: undefined in an object', () => ({ a: undefined })],
  ['F121: a symbol', () => Symbol('x')],
  ['F126: a hundred thousand fields', () => manyFields(100_000)],
  ['F126: a key of 1 MB', () => ({ ['k'.repeat(1_048_576)]: 1 })],
  ['F125: a field __proto__', () => JSON.parse('{"__proto__":1}')],
  ['F125: a field constructor', () => ({ constructor: { prototype: 1 } })],
  ['F126: two million characters', () => 'x'.repeat(2_000_000)],
];

describe('values', () => {
  test('[I26 JS1 F120 F121 F124 F125 F127] whatever a commit takes is the same at the ledger, elsewhere, and after reopening', async () => {
    const { world, ana, ben } = await pair(62);
    await using _ = world;
    // As canonical texts: byte for byte, and -0 is 0 there (JS1).
    const written = new Map<string, string>();
    for (const value of KEPT) {
      const id = await ana.replica.commit((tx) => tx.outbox.create({ title: 'x', body: value }));
      written.set(id, canonical(value));
    }
    const isText = (value: Json): value is string => typeof value === 'string';
    const things = new Map<string, string>();
    for (const value of KEPT.filter(isText))
      things.set(await ana.replica.commit((tx) => tx.thing.create({ text: value, set: [value] })), value);
    await world.settle();
    for (const device of [ana, ben]) {
      await device.crash();
      await device.restart();
    }
    await world.settle();
    await world.converged();
    for (const { replica } of [ana, ben]) {
      const rows = await replica.query((db) => db.selectFrom('outbox').select(['id', 'body']));
      expect(new Map<string, string>(rows.map(({ id, body }) => [id, canonical(body as Json)]))).toEqual(written);
      const texts = await replica.query((db) => db.selectFrom('thing').select(['id', 'text', 'set']));
      expect(texts).toHaveLength(things.size);
      for (const { id, text: said, set } of texts) expect([said, set]).toEqual([things.get(id), [things.get(id)]]);
    }
    for (const [id, value] of written) {
      const answered = await world.ledger.current.fetch(
        new Request(`http://ledger.test/v1/workspaces/world/logs/main/entities/outbox/${id}`, {
          headers: { Authorization: 'Bearer ana' },
        }),
      );
      const { entity } = (await answered.json()) as { entity: { fields: { body: Json } } };
      expect(canonical(entity.fields.body)).toBe(value);
    }
  });

  test.each(refused)(
    '[JS1 F120 F121 F123 F125 F126] %s is refused at the commit, and nothing is written',
    async (_name, value) => {
      await using world = await createWorld({ schema, seed: 63 });
      const { replica } = await world.device('ana');
      const commit = async () => {
        await replica.commit((tx) => tx.outbox.create({ title: 'x', body: value() as Json }));
      };
      await expect(commit()).rejects.toMatchObject({ code: expect.stringMatching(/^(invalid-change|too-large)$/) });
      expect(replica.status.current.unsent).toBe(0);
      expect(await replica.query((db) => db.selectFrom('outbox').select('id'))).toEqual([]);
    },
  );

  /** No JSON, in the place of a value of each kind; `time` takes a Date for what it says. */
  const NO_JSON: readonly (readonly [name: string, value: unknown, kinds: readonly string[]])[] = [
    ['a bigint', 1n, KINDS],
    ['a Date', new Date(0), KINDS.filter((kind) => kind !== 'time')],
    ['a date that is none', new Date(Number.NaN), KINDS],
    ['a function', () => 1, KINDS],
    ['a symbol', Symbol('x'), KINDS],
  ];
  test.each(NO_JSON)(
    '[JS1 F121] %s is no value of a field of any kind, and nothing is written',
    async (_name, value, of) => {
      await using world = await createWorld({ schema: kinds, seed: 68 });
      const { replica } = await world.device('ana');
      for (const kind of of) {
        const commit = async () => {
          await replica.commit((tx) => tx.thing.create({ [kind]: value } as never));
        };
        await expect(commit(), kind).rejects.toMatchObject({ code: 'invalid-change' });
      }
      expect(of.length).toBeGreaterThan(9);
      expect(await replica.query((db) => db.selectFrom('thing').select('id'))).toEqual([]);
    },
  );

  test('[JS1 F121] undefined as the value of a field is a field that was not said', async () => {
    const { world, ana } = await pair(69);
    await using _ = world;
    const id = await ana.replica.commit((tx) => tx.outbox.create({ title: 'x', body: 1 }));
    await ana.replica.commit((tx) => tx.outbox.update(id, { title: 'y', body: undefined as never }));
    await world.settle();
    await world.converged();
    const row = await ana.replica.first((db) => db.selectFrom('outbox').select(['title', 'body']));
    expect(row).toEqual({ title: 'y', body: 1 });
  });
});

// ── every kind of field × every value ───────────────────────────────────────────────────────────────────────────────

test('[F188 SC5 I12 I26] one field, every JSON value, every kind of field: what another app wrote is signed as the ledger signs it, on two devices, reopened, and fetched whole', async () => {
  await using world = await createWorld({ schema: kinds, seed: 66 });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  await world.settle();
  const other = await otherApp(world);
  const written = new Map<string, { readonly kind: string; readonly value: Json }>();
  const events = KINDS.flatMap((kind) =>
    KEPT.map((value, at) => {
      written.set(`${kind}-${at}`, { kind, value });
      return {
        entityType: 'thing',
        entityId: `${kind}-${at}`,
        change: { op: 'create' as const, fields: { [kind]: value } },
      };
    }),
  );
  for (let at = 0; at < events.length; at += 512) expect(await other.push(events.slice(at, at + 512))).toBe('accepted');
  await world.settle();
  for (const device of [ana, ben]) {
    await device.crash();
    await device.restart();
  }
  await world.device('eve');
  await world.settle();
  // Chain, signature and every file's own check, of each device against the ledger.
  await world.converged();
  const atLedger = new Map<string, string>();
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page: EntitiesPage = await other.entities(cursor);
    for (const { id, fields } of page.entities) atLedger.set(id, canonical(fields));
    cursor = page.next;
  }
  expect(atLedger).toEqual(
    new Map([...written].map(([id, { kind, value }]) => [id, canonical({ [kind]: value })] as const)),
  );
});

test('[SC10 EV7 I12] one field, every JSON value, of kind serial: the ledger numbers it whatever another app says, on every device', async () => {
  await using world = await createWorld({ schema: kinds, seed: 67 });
  const ana = await world.device('ana');
  const other = await otherApp(world);
  const serials = KEPT.map((value, at) => ({ entityType: 'numbered', entityId: `n${at}`, fields: { serial: value } }));
  const made = serials.map(({ fields, ...of }) => ({ ...of, change: { op: 'create' as const, fields } }));
  expect(await other.push(made)).toBe('accepted');
  for (const { fields, ...of } of serials)
    expect(await other.push([{ ...of, base: 1, change: { op: 'update', set: fields } }])).toBe('invalid-event');
  await world.settle();
  await ana.crash();
  await ana.restart();
  await world.device('ben');
  await world.settle();
  await world.converged();
  const rows = await ana.replica.query((db) => db.selectFrom('numbered').select(['id', 'serial']).orderBy('serial'));
  expect(rows).toEqual(serials.map(({ entityId: id }, at) => ({ id, serial: at + 1 })));
});

/** An app that takes no values from the schema: what it says goes through the ledger's door as it is. */
async function otherApp({ ledger }: World<typeof kinds>) {
  const author = new Author('other');
  const call = async <T>(path: string, body?: unknown): Promise<T> => {
    const request = new Request(`http://ledger.test/v1/workspaces/world/${path}`, {
      headers: { Authorization: 'Bearer other', 'Content-Type': 'application/json', 'Holdfast-Protocol': '1' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    return (await (await ledger.current.fetch(request)).json()) as T;
  };
  const { logs } = await call<{ logs: readonly LogStanding[] }>('handshake', {
    protocol: { min: 1, max: 1 },
    replica: author.request({ epoch: '', version: 0, chain: '' }, []).replica,
    logs: [{ log: 'main', positions: [] }],
  });
  const { epoch, head } = logs[0] as Extract<LogStanding, { role: unknown }>;
  return {
    /** One operation of so many events: `accepted`, or the code that it was refused with. */
    push: async (events: readonly Partial<EventDraft>[]): Promise<string> => {
      const drafts = events.map((event) => author.draft({ op: 'delete' }, { type: 'thing.made', ...event }));
      const pushed = author.request({ epoch, ...head }, [author.operation(drafts)]);
      const { results } = await call<PushAnswer>('logs/main/push', pushed);
      const [result] = results;
      return result?.status === 'refused' ? result.code : (result?.status ?? 'no answer');
    },
    entities: (cursor: string) =>
      call<EntitiesPage>(`logs/main/entities${cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`}`),
  };
}

// ── sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const SIZES = [1, 511, 512, 2] as const;

test('[F106 PG1 IN1] operations of 1, 511 and 512 events cross frames, pages, answers and a first state whole; one of 513 is refused', async () => {
  const { world, ana, ben } = await pair(64);
  await using _ = world;
  const cyd = await world.device('cyd');
  await world.settle();
  cyd.offline();
  // Whoever looks sees whole operations only: none of them leaves a count that is none of the sums.
  const sums = new Set<number>([0]);
  let sum = 0;
  for (const size of SIZES) {
    sum += size;
    sums.add(sum);
  }
  const seen = new Set<number>();
  const watch = async ({ replica }: WorldDevice<S>) => {
    seen.add((await replica.query((db) => db.selectFrom('event').select('id'))).length);
  };
  for (const size of SIZES) {
    await ana.replica.commit((tx) => {
      for (let at = 0; at < size; at += 1) tx.event.create({ title: `${at}` });
    });
    await world.advance(1);
    await watch(ben);
  }
  await world.settle();
  cyd.online();
  for (let look = 0; look < 8; look += 1) {
    await world.advance(1);
    await watch(cyd);
  }
  await world.device('eve');
  await world.settle();
  expect([...seen].filter((count) => !sums.has(count))).toEqual([]);
  expect(await world.converged()).toBe(true);
  const commit = ana.replica.commit((tx) => {
    for (let at = 0; at < 513; at += 1) tx.event.create({ title: `${at}` });
  });
  await expect(commit).rejects.toMatchObject({ code: 'batch-too-large' });
  for (const name of ['ana', 'ben', 'cyd', 'eve']) {
    const { replica } = await world.device(name);
    expect(await replica.query((db) => db.selectFrom('event').select('id'))).toHaveLength(sum);
  }
});

test('[F105 BS1 BS2 I12] a first state fetched while others delete, restore and create between any two pages is the ledger’s', async () => {
  const { world, ana, ben } = await pair(65);
  await using _ = world;
  const ids: string[] = [];
  for (let batch = 0; batch < 6; batch += 1)
    ids.push(
      ...(await ana.replica.commit((tx) =>
        Array.from({ length: 500 }, (_, at) => tx.event.create({ title: `${batch}/${at}` })),
      )),
    );
  await world.settle();
  // What each page showed to eve, as it left the ledger.
  const pages: string[][] = [];
  const { engine } = world.ledger.current;
  const entities = engine.entities.bind(engine);
  engine.entities = async (actor, ref, at) => {
    const answered = await entities(actor, ref, at);
    if (actor.account === 'eve' && answered.ok)
      pages.push((JSON.parse(answered.body) as EntitiesPage).entities.map(({ id }) => id));
    return answered;
  };
  const eve = await world.device('eve');
  eve.network.delayMs = [40, 40];
  const asked = () => eve.counts.requests;
  const deleted = { shown: [] as string[], unshown: [] as string[] };
  const restored = { shown: 0, unshown: 0 };
  let rounds = 0;
  for (let before = asked(); !(await isWhole(eve)); rounds += 1) {
    await world.run(() => asked() > before || eve.replica.status.current.phase === 'live', { what: 'the next page' });
    before = asked();
    // A page that does not come in time is asked for once more, and is smaller then.
    if (rounds === 3) eve.next('answer-lost', 'entities');
    const seen = new Set(pages.flat());
    const gone = new Set([...deleted.shown, ...deleted.unshown]);
    const live = ids.filter((id) => !gone.has(id));
    const [shown, unshown] = [live.filter((id) => seen.has(id)).at(-1 - rounds), live.findLast((id) => !seen.has(id))];
    // One is there again that a page had shown, and one that none had.
    const back = { shown: deleted.shown.at(-2), unshown: deleted.unshown.at(-2) };
    const writer = rounds % 2 === 0 ? ana : ben;
    await writer.replica.commit((tx) => {
      for (const id of [shown, unshown]) if (id !== undefined) tx.event.delete(id as never);
      tx.event.create({ title: `new ${rounds}` });
      for (const [when, id] of Object.entries(back) as ['shown' | 'unshown', string | undefined][])
        if (id !== undefined && rounds % 2 === 0) {
          tx.event.restore(id as never);
          restored[when] += 1;
          deleted[when] = deleted[when].filter((other) => other !== id);
        }
    });
    if (shown !== undefined) deleted.shown.push(shown);
    if (unshown !== undefined) deleted.unshown.push(unshown);
    await world.advance(5);
  }
  expect(Math.min(deleted.shown.length, deleted.unshown.length)).toBeGreaterThan(1);
  expect(Math.min(restored.shown, restored.unshown)).toBeGreaterThan(0);
  expect(new Set(pages.slice(0, -1).map(({ length }) => length)).size).toBeGreaterThan(1);
  eve.network.delayMs = [1, 1];
  await world.settle();
  expect(rounds).toBeGreaterThan(4);
  await world.converged();
  const rowsOf = ({ replica }: WorldDevice<S>) =>
    replica.query((db) => db.selectFrom('event').select(['id', 'title', 'sync']).orderBy('id'));
  expect(await rowsOf(eve)).toEqual(await rowsOf(ana));
});

const isWhole = async ({ replica }: WorldDevice<S>): Promise<boolean> => replica.status.current.phase === 'live';
