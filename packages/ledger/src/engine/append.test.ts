import {
  chainStart,
  defineSchema,
  type EventDraft,
  entity,
  LIMITS,
  type PushOperation,
  type StoredEvent,
  schemaData,
  serial,
  text,
} from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { createNodePlatform } from '../adapters/node/platform.ts';
import { Author } from './drafts.fixture.ts';
import { ANA, answerOf, BEN, READER, REF, refusalOf, world } from './world.fixture.ts';

const eventsOf = async (w: ReturnType<typeof world>, after = 0) =>
  answerOf(await w.engine.events(ANA, REF, { after })).events;
const fieldsOf = async (w: ReturnType<typeof world>, id: string) =>
  answerOf(await w.engine.entity(ANA, REF, { type: 'issue', id })).entity?.fields;

describe('numbering', () => {
  test('[EV1 EV3] versions are dense, and the events of an operation are neighbours', async () => {
    await using w = world();
    const a = new Author('a');
    await w.push(a, [a.operation([a.create('e1'), a.create('e2')]), a.operation([a.create('e3')])]);
    const events = (await eventsOf(w)) as readonly StoredEvent[];
    expect(events.map(({ version, index, count, entityId }) => [version, index, count, entityId])).toEqual([
      [1, 0, 2, 'e1'],
      [2, 1, 2, 'e2'],
      [3, 0, 1, 'e3'],
    ]);
  });

  test('[EV1 EV3 F96] 64 pushes at once on one log are numbered one after the other, each whole', async () => {
    await using w = world();
    const start = await w.start();
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, at) => {
        const author = new Author(`w${at}`);
        const events = Array.from({ length: 1 + (at % 3) }, (_, n) => author.create(`e${at}-${n}`));
        return w.send(author.request(start, [author.operation(events)]));
      }),
    );
    const ranges = answers
      .map((answer) => ('results' in answer ? answer.results[0] : undefined))
      .map((result) => (result?.status === 'accepted' ? [result.firstVersion, result.entityVersions.length] : []))
      .toSorted((x, y) => (x[0] as number) - (y[0] as number));
    let next = 1;
    for (const [first, count] of ranges) {
      expect(first).toBe(next);
      next += count as number;
    }
    const verified = await w.engine.verify(REF);
    expect(verified).toMatchObject({ events: next - 1, problems: [] });
    // They shared commits: fewer groups than pushes.
    expect((await w.engine.status()).appended.groups).toBeLessThan(16);
  });

  test('[EV2] versions of an entity are dense, through merge, delete and restore', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(a, a.create('e1', { title: 'one', body: 'x' }));
    await w.accept(a, a.set('e1', { title: 'two' }, 1));
    expect((await w.accept(b, b.set('e1', { body: 'y' }, 1))).entityVersions).toEqual([3]);
    await w.accept(a, a.draft({ op: 'delete' }, { base: 3 }));
    expect((await w.accept(a, a.draft({ op: 'restore', fields: { title: 'z' } }, { base: 4 }))).entityVersions).toEqual(
      [5],
    );
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[EV4] the ledger makes the envelope: actor, time, place; a client that sends any of it is refused', async () => {
    await using w = world();
    const a = new Author('a');
    const operation = a.operation([a.create('e1')]);
    await w.push(a, [operation], BEN);
    expect((await eventsOf(w))[0]).toMatchObject({
      actor: 'ben',
      recordedAt: '2026-11-30T00:00:00.000Z',
      requestId: operation.requestId,
      actionId: operation.actionId,
      replicaId: 'a',
      index: 0,
      count: 1,
      version: 1,
      entityVersion: 1,
    });
    for (const forged of [
      { version: 9 },
      { actor: 'eve' },
      { recordedAt: 'x' },
      { assigned: { number: 1 } },
      { entityVersion: 3 },
    ]) {
      const event = { ...a.create('e9'), ...forged } as EventDraft;
      expect(await w.push(a, [a.operation([event])], BEN)).toMatchObject([
        { status: 'refused', code: 'invalid-event' },
      ]);
    }
    expect((await w.head()).version).toBe(1);
  });

  test('[F109 EV5] fields and meta that no schema knows are kept', async () => {
    const schema = schemaData(defineSchema({ issue: entity({ title: text() }) }));
    await using w = world({ schema });
    const a = new Author('a');
    await w.accept(a, { ...a.create('e1', { title: 'x', strange: { deep: [1] } }), meta: { why: 'because' } });
    expect(await fieldsOf(w, 'e1')).toEqual({ title: 'x', strange: { deep: [1] } });
    expect((await eventsOf(w))[0]).toMatchObject({ meta: { why: 'because' } });
  });

  test('[EV6] what cannot be folded is refused with the path', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1', { n: 1, big: Number.MAX_SAFE_INTEGER, title: 'x', tags: ['a'] }));
    const refused = async (event: EventDraft, reason: string) =>
      expect(await w.push(a, [a.operation([event])])).toMatchObject([
        { status: 'refused', code: 'invalid-event', details: { reason } },
      ]);
    await refused(a.draft({ op: 'update', inc: { big: 1 } }, { base: 1 }), 'sum-out-of-range');
    await refused(a.draft({ op: 'update', inc: { title: 1 } }, { base: 1 }), 'not-an-integer');
    await refused(a.draft({ op: 'update', add: { title: ['x'] } }, { base: 1 }), 'not-a-set');
    await w.accept(a, a.draft({ op: 'delete' }, { base: 1 }));
    await refused(a.draft({ op: 'update', set: { title: 'y' } }, { base: 2 }), 'entity-absent');
    await refused(a.draft({ op: 'delete' }, { base: 2 }), 'entity-absent');
    expect((await w.head()).version).toBe(2);
  });

  test('[EV7 LG7] serial numbers are given once, stand in the envelope, and come back with a restore', async () => {
    const schema = schemaData(defineSchema({ issue: entity({ number: serial({ wire: 'no' }), title: text() }) }));
    await using w = world({ schema });
    const a = new Author('a');
    const first = await w.accept(a, a.create('e1', { title: 'x', no: 99 }));
    expect(Object.values(first.assigned ?? {})).toEqual([{ no: 1 }]);
    expect(await fieldsOf(w, 'e1')).toEqual({ no: 1, title: 'x' });
    expect((await eventsOf(w))[0]).toMatchObject({ assigned: { no: 1 }, change: { fields: { no: 99 } } });
    // What a refused operation was about to get, the next one gets.
    const refused = a.operation([a.create('e2'), a.draft({ op: 'delete' }, { entityId: 'e9', base: 1 })]);
    expect(await w.push(a, [refused, a.operation([a.create('e3')])])).toMatchObject([
      { status: 'refused' },
      { status: 'accepted' },
    ]);
    expect(await fieldsOf(w, 'e3')).toMatchObject({ no: 2 });
    await w.accept(a, a.draft({ op: 'delete' }, { base: 1 }));
    await w.accept(a, a.draft({ op: 'restore', fields: { title: 'back' } }, { base: 2 }));
    expect(await fieldsOf(w, 'e1')).toEqual({ no: 1, title: 'back' });
    expect(await w.push(a, [a.operation([a.set('e1', { no: 5 }, 3)])])).toMatchObject([
      { status: 'refused', code: 'invalid-event', details: { field: 'no' } },
    ]);
    await using again = await w.restart();
    expect((await again.accept(a, a.create('e4'))).assigned).toBeDefined();
    expect(answerOf(await again.engine.entity(ANA, REF, { type: 'issue', id: 'e4' })).entity?.fields).toMatchObject({
      no: 3,
    });
    expect((await again.engine.verify(REF))?.problems).toEqual([]);
  });
});

describe('identity', () => {
  test('[LG2 I04 F72] the same request returns its first result, also later, and also after a restart', async () => {
    await using w = world();
    const a = new Author('a');
    const operation = a.operation([a.create('e1'), a.create('e2')]);
    const first = await w.push(a, [operation]);
    await w.accept(a, a.create('e3'));
    w.clock.advance(86_400_000);
    expect(await w.push(a, [operation])).toEqual(first);
    expect(await w.push(new Author('b'), [operation], BEN)).toEqual(first);
    await using again = await w.restart();
    expect(await again.push(new Author('a', 2), [operation])).toEqual(first);
    expect((await again.head()).version).toBe(3);
  });

  test('[LG2 I05] the same request with other bytes is refused and changes nothing', async () => {
    await using w = world();
    const a = new Author('a');
    const event = a.create('e1');
    const operation = a.operation([event]);
    await w.push(a, [operation]);
    const other = (changed: Partial<EventDraft>): PushOperation => ({
      ...operation,
      events: [{ ...event, ...changed }],
    });
    const variants: PushOperation[] = [
      other({ at: '2026-11-30T00:00:00.001Z' }),
      other({ salt: '10112233445566778899aabbccddeeff' }),
      other({ change: { op: 'create', fields: { title: 'two' } } }),
      { ...operation, actionId: a.id() },
      { ...operation, events: [event, a.create('e2')] },
    ];
    for (const variant of variants)
      expect(await w.push(a, [variant])).toMatchObject([{ status: 'refused', code: 'idempotency-mismatch' }]);
    // What is only delivery is not compared.
    expect(await w.push(a, [{ ...operation, merge: 'author', needs: [a.id()] }])).toMatchObject([
      { status: 'accepted' },
    ]);
    expect((await w.head()).version).toBe(1);
  });

  test('[LG2] an operation that is malformed now, under a request id that was accepted, is a mismatch', async () => {
    await using w = world();
    const a = new Author('a');
    const operation = a.operation([a.create('e1')]);
    await w.push(a, [operation]);
    const broken = { ...operation, events: [{ ...operation.events[0], base: -1 }] } as unknown as PushOperation;
    expect(await w.push(a, [broken])).toMatchObject([{ code: 'idempotency-mismatch' }]);
  });

  test('[LG3] ids accepted before under another request answer with where', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(b, b.create('e1', { title: 'theirs', body: 'x' }));
    const event = a.set('e1', { title: 'mine' }, 1);
    const operation = a.operation([event]);
    await w.push(a, [operation]);
    // A rebase changed request, base and salt; the replica had lost the first answer.
    const rebased = {
      ...operation,
      requestId: a.id(),
      events: [{ ...event, base: 2, salt: 'ff112233445566778899aabbccddeeff' }],
    };
    expect(await w.push(a, [rebased])).toMatchObject([
      { status: 'accepted', requestId: rebased.requestId, firstVersion: 2, acceptedUnder: operation.requestId },
    ]);
    expect((await w.head()).version).toBe(2);
    const changed = {
      ...rebased,
      requestId: a.id(),
      events: [{ ...event, change: { op: 'update', set: { title: 'other' } } as const }],
    };
    expect(await w.push(a, [changed])).toMatchObject([{ code: 'event-id-reused', details: { version: 2 } }]);
    const reused = a.operation([{ ...a.create('e5'), id: event.id }]);
    expect(await w.push(a, [reused])).toMatchObject([
      { code: 'event-id-reused', details: { event: event.id, version: 2 } },
    ]);
    const more = { ...operation, requestId: a.id(), events: [event, a.create('e7')] };
    expect(await w.push(a, [more])).toMatchObject([{ code: 'event-id-reused' }]);
  });
});

describe('operations of one request', () => {
  test('[LG1] each sees those accepted before it, and stands or falls alone', async () => {
    await using w = world();
    const a = new Author('a');
    const created = a.create('e1', { title: 'one' });
    const poison = a.operation([a.create('e2'), a.set('e9', { title: 'absent' }, 7)]);
    const results = await w.push(a, [
      a.operation([created]),
      poison,
      a.operation([a.set('e1', { title: 'two' }, 0, created.id)]),
      a.operation([a.create('e2', { title: 'again' })]),
    ]);
    expect(results.map((result) => (result.status === 'accepted' ? result.firstVersion : result.code))).toEqual([
      1,
      'base-ahead',
      2,
      3,
    ]);
    expect(await fieldsOf(w, 'e1')).toEqual({ title: 'two' });
    expect(await fieldsOf(w, 'e2')).toEqual({ title: 'again' });
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[LG1] what a refused operation would have done is not there for the next one', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1', { title: 'one', body: 'x' }));
    const poison = a.operation([
      a.set('e1', { body: 'gone' }, 1),
      a.draft({ op: 'delete' }, { entityId: 'e9', base: 3 }),
    ]);
    const late = a.operation([a.set('e1', { body: 'mine' }, 1)]);
    const results = await w.push(a, [a.operation([a.set('e1', { title: 'two' }, 1)]), poison, late]);
    expect(results).toMatchObject([
      { status: 'accepted' },
      { code: 'base-ahead' },
      { status: 'accepted', entityVersions: [3] },
    ]);
    expect(await fieldsOf(w, 'e1')).toEqual({ title: 'two', body: 'mine' });
  });

  test('[LG1] a poison operation among 100 holds back none of them', async () => {
    await using w = world();
    const a = new Author('a');
    const operations = Array.from({ length: 100 }, (_, at) => a.operation([a.create(`e${at}`)]));
    const poison = { ...a.operation([a.create('p')]), merge: 'sideways' } as unknown as PushOperation;
    const results = await w.push(a, [...operations.slice(0, 50), poison, ...operations.slice(50)]);
    expect(results.filter(({ status }) => status === 'accepted').length).toBe(100);
    expect(results[50]).toMatchObject({ requestId: poison.requestId, code: 'invalid-event' });
  });

  test('[LG1] an operation over which admit stumbles is refused for now, the others are accepted', async () => {
    let isBroken = true;
    await using w = world({
      admit: ({ entityId }) => {
        if (isBroken && entityId === 'bad') throw new Error('a defect of the operator');
        return undefined;
      },
    });
    const a = new Author('a');
    const bad = a.operation([a.create('e0'), a.create('bad')]);
    const results = await w.push(a, [a.operation([a.create('e1')]), bad, a.operation([a.create('e2')])]);
    expect(results.map((result) => (result.status === 'accepted' ? result.firstVersion : result.code))).toEqual([
      1,
      'internal',
      2,
    ]);
    const told = w.told.filter(({ level }) => level === 'error');
    // What it was and where, never its words: they may quote a payload (S19).
    expect(told).toMatchObject([{ facts: { error: { name: 'Error', at: expect.any(Array) } } }]);
    expect(JSON.stringify(told)).not.toMatch('defect');
    isBroken = false;
    expect(await w.push(a, [bad])).toMatchObject([{ status: 'accepted', firstVersion: 3 }]);
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[F108 LG5] an operation with an expected version is alone, and stale once its entities or the log moved', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1'));
    await w.accept(a, a.create('e2'));
    const restoring = (expectedLogVersion: number, scope?: 'log') =>
      a.operation([a.set('e1', { title: `r${expectedLogVersion}${scope}` }, 1)], {
        expectedLogVersion,
        ...(scope === undefined ? {} : { scope }),
      });
    expect(await w.push(a, [restoring(2), a.operation([a.create('e3')])])).toMatchObject([
      { code: 'invalid-event' },
      { status: 'accepted' },
    ]);
    expect(await w.push(a, [restoring(0)])).toMatchObject([
      { code: 'stale-restore-preview', details: { head: 3, id: 'e1' } },
    ]);
    expect(await w.push(a, [restoring(2, 'log')])).toMatchObject([{ code: 'stale-restore-preview' }]);
    expect(await w.push(a, [restoring(1)])).toMatchObject([{ status: 'accepted', firstVersion: 4 }]);
  });
});

describe('merge at the ledger', () => {
  const prepared = async () => {
    const w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(a, a.create('e1', { title: 'one', body: 'x', votes: 0, tags: [] }));
    await w.accept(b, b.set('e1', { title: 'theirs' }, 1));
    return { w, a, b };
  };

  test('[LG4 MG3] other fields merge; the same field clashes, with the entity, its version and its last log version', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    await w.accept(new Author('c'), new Author('c2').create('elsewhere'));
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'mine' }, 1)])])).toMatchObject([{ status: 'accepted' }]);
    expect(await fieldsOf(w, 'e1')).toMatchObject({ title: 'theirs', body: 'mine' });
    expect(await w.push(a, [a.operation([a.set('e1', { title: 'mine' }, 1)])])).toMatchObject([
      { code: 'version-conflict', details: { type: 'issue', id: 'e1', entityVersion: 3, logVersion: 4 } },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { title: 'theirs' }, 1)])])).toMatchObject([
      { status: 'accepted' },
    ]);
  });

  test('[LG4 MG1] only an operation that says so is merged', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'mine' }, 1)], { merge: 'author' })])).toMatchObject([
      { code: 'version-conflict' },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'mine' }, 2)], { merge: 'author' })])).toMatchObject([
      { status: 'accepted' },
    ]);
  });

  test('[LG4] what an author made on his own chain is not theirs', async () => {
    const { w, a, b } = await prepared();
    await using _ = w;
    const first = a.set('e1', { body: '1' }, 2);
    const second = a.set('e1', { body: '2' }, 2, first.id);
    await w.accept(a, first);
    await w.accept(b, b.set('e1', { title: 'b' }, 3));
    expect(await w.push(a, [a.operation([second])])).toMatchObject([{ status: 'accepted' }]);
    // Without the prior the same change would stand against the first one.
    expect(await w.push(a, [a.operation([a.set('e1', { body: '3' }, 2)])])).toMatchObject([
      { code: 'version-conflict' },
    ]);
  });

  test('[LG4] a prior or a need that is not accepted: prior-missing; a base that is not there: base-ahead', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 2, a.id())])])).toMatchObject([
      { code: 'prior-missing' },
    ]);
    expect(await w.push(a, [a.operation([a.create('e2')], { needs: [a.id()] })])).toMatchObject([
      { code: 'prior-missing' },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 3)])])).toMatchObject([
      { code: 'base-ahead', details: { base: 3, entityVersion: 2 } },
    ]);
    // A version that this very operation makes is none that its author can have seen confirmed.
    const one = a.set('e1', { body: 'm' }, 2);
    expect(await w.push(a, [a.operation([one, a.set('e1', { body: 'n' }, 3, one.id)])])).toMatchObject([
      { code: 'base-ahead' },
    ]);
    const needed = a.operation([a.create('e3')]);
    expect(await w.push(a, [needed, a.operation([a.create('e4')], { needs: [needed.actionId] })])).toMatchObject([
      { status: 'accepted' },
      { status: 'accepted' },
    ]);
    const wrong = a.set('e3', { title: 'x' }, 1, needed.events[0]?.id);
    expect(await w.push(a, [a.operation([{ ...wrong, entityId: 'e4' }])])).toMatchObject([{ code: 'invalid-event' }]);
  });

  test('[LG4] events of one operation that contradict each other; a reference that must exist', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    const one = a.set('e1', { body: 'm' }, 2);
    expect(await w.push(a, [a.operation([one, a.set('e1', { body: 'n' }, 2)])])).toMatchObject([
      { code: 'entity-version-chain' },
    ]);
    const requires = (id: string) => ({ requires: [['issue', id]] as const });
    expect(await w.push(a, [a.operation([a.create('e5')], requires('e9'))])).toMatchObject([
      { code: 'missing-reference', details: { type: 'issue', id: 'e9' } },
    ]);
    expect(await w.push(a, [a.operation([a.create('e5')], requires('e1'))])).toMatchObject([{ status: 'accepted' }]);
    expect(await w.push(a, [a.operation([a.create('e6')], requires('e6'))])).toMatchObject([{ status: 'accepted' }]);
    await w.accept(a, a.draft({ op: 'delete' }, { base: 2 }));
    expect(await w.push(a, [a.operation([a.create('e7')], requires('e1'))])).toMatchObject([
      { code: 'missing-reference' },
    ]);
  });

  test('[LG4 MG2] an equal change of both is the same, and has no effect', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(a, a.create('e1', { title: 'one' }));
    expect((await w.accept(b, b.create('e1', { title: 'one' }))).entityVersions).toEqual([2]);
    expect(await w.push(b, [b.operation([b.create('e1', { title: 'two' })])])).toMatchObject([
      { code: 'version-conflict' },
    ]);
    await w.accept(a, a.draft({ op: 'delete' }, { base: 2 }));
    await w.accept(b, b.draft({ op: 'delete' }, { base: 2 }));
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[LG4] more of theirs than anybody looks at is a conflict for the replica to judge', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(a, a.create('e1', { title: 'one', body: 'x' }));
    let base = 1;
    for (let round = 0; round < 2; round += 1) {
      let prior: string | undefined;
      const own = base;
      const events = Array.from({ length: 501 }, (_, at) => {
        const event = b.set('e1', { title: `${round} ${at}` }, own, prior);
        prior = event.id;
        return event;
      });
      await w.accept(b, ...events);
      base += 501;
    }
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 1)])])).toMatchObject([
      { code: 'version-conflict', details: { entityVersion: 1003, logVersion: 1003 } },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 3)])])).toMatchObject([{ status: 'accepted' }]);
  });
});

describe('form and limits', () => {
  test('[LG6] a malformed event is refused with its path, alone', async () => {
    await using w = world();
    const a = new Author('a');
    const bad = (change: unknown): PushOperation => a.operation([{ ...a.create('e1'), change } as EventDraft]);
    expect(await w.push(a, [bad({ op: 'create', fields: { title: null } })])).toMatchObject([
      { code: 'invalid-event', details: { path: expect.stringContaining('fields.title') as string } },
    ]);
    expect(await w.push(a, [bad({ op: 'explode' })])).toMatchObject([{ code: 'invalid-event' }]);
    expect(await w.push(a, [a.operation([{ ...a.create('x'), entityType: 'holdfast.secret' }])])).toMatchObject([
      { code: 'invalid-event' },
    ]);
    expect(await w.send({ position: await w.head(), replica: {}, operations: [] })).toMatchObject({ status: 400 });
    expect(await w.send('nonsense')).toMatchObject({ status: 400, refusal: { code: 'malformed' } });
  });

  test('[LG6] operations of 1, 511 and 512 events are accepted, one of 513 is too large', async () => {
    await using w = world();
    const a = new Author('a');
    const of = (count: number, name: string) =>
      a.operation(Array.from({ length: count }, (_, at) => a.create(`${name}${at}`)));
    expect(await w.push(a, [of(1, 'a'), of(511, 'b')])).toMatchObject([{ firstVersion: 1 }, { firstVersion: 2 }]);
    expect(await w.push(a, [of(512, 'c')])).toMatchObject([{ firstVersion: 513 }]);
    expect(await w.push(a, [of(513, 'd'), of(1, 'e')])).toMatchObject([
      { code: 'too-large', details: { limit: 'commitEventsMax', max: 512, found: 513 } },
      { firstVersion: 1025 },
    ]);
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[LG6] an operation over the byte limit is too large, with the limit', async () => {
    await using w = world();
    const a = new Author('a');
    const events = Array.from({ length: 6 }, (_, at) => a.create(`e${at}`, { body: 'x'.repeat(200_000) }));
    expect(await w.push(a, [a.operation(events)])).toMatchObject([
      { code: 'too-large', details: { limit: 'commitBytesMax', max: LIMITS.commitBytesMax } },
    ]);
    const published = w.engine.describe().limits;
    expect(published).toMatchObject({ eventBytesMax: 262_144, commitEventsMax: 512, pageEventsMax: 512 });
  });

  test('[F109 LG12] a part of the protocol that this ledger cannot keep is refused, and waits', async () => {
    await using w = world();
    const a = new Author('a');
    expect(await w.push(a, [a.operation([a.create('e1')], { claims: [{ unique: 'x' }] })])).toMatchObject([
      { code: 'protocol-unsupported' },
    ]);
  });

  test('[SC4] a run-time type is checked; what uses a type whose definition was refused waits', async () => {
    await using w = world();
    const a = new Author('a');
    const define = (name: string, schema: unknown) =>
      a.draft({ op: 'create', fields: { schema } as never }, { entityType: 'holdfast.entity-type', entityId: name });
    const fields = { label: { kind: 'text' }, number: { kind: 'serial' } };
    const use = (type: string, id: string) =>
      a.operation([a.draft({ op: 'create', fields: { label: 'x' } }, { entityType: type, entityId: id })]);
    expect(
      await w.push(a, [a.operation([define('note', { fields: { label: { kind: 'nonsense' } } })]), use('note', 'n0')]),
    ).toMatchObject([{ code: 'invalid-event' }, { code: 'prior-missing', details: { definitionOf: 'note' } }]);
    expect(await w.push(a, [a.operation([define('note', { fields })]), use('note', 'n1')])).toMatchObject([
      { status: 'accepted' },
      { status: 'accepted', assigned: expect.any(Object) as object },
    ]);
    const next = await w.push(a, [use('note', 'n2')]);
    expect(Object.values((next[0] as { assigned: object }).assigned)).toEqual([{ number: 2 }]);
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });
});

describe('definitions of types', () => {
  const text = { kind: 'text' };
  const before = { fields: { label: text, size: { kind: 'integer', default: 1 } } };
  test.each([
    ['gives a field another kind', { fields: { ...before.fields, size: text } }, 'note.size: integer → text.'],
    [
      'points a ref elsewhere',
      { fields: { ...before.fields, of: { kind: 'ref', to: 'b' } } },
      'note.of: ref(a) → ref(b).',
    ],
    ['leaves a field out', { fields: { label: text } }, 'note.size: a field stays.'],
    ['derives ids', { ...before, key: ['label'] }, 'note: key none → label.'],
    ['is local', { ...before, local: true }, 'note: what a log defines is not local'],
  ])('[SC2 SC4 LG2] one that %s is refused, and refused again after the type was widened', async (_, wrong, reason) => {
    await using w = world();
    const a = new Author('a');
    const change = (of: unknown) => a.draft(of as never, { entityType: 'holdfast.entity-type', entityId: 'note' });
    const define = (schema: unknown) => change({ op: 'put', set: { schema } });
    const push = async (draft: ReturnType<typeof change>, base: number) =>
      (await w.push(a, [a.operation([{ ...draft, base }])]))[0];
    const of = reason.includes('ref') ? { of: { kind: 'ref', to: 'a' } } : {};
    const first = { ...before, fields: { ...before.fields, ...of } };
    expect(await push(define(first), 0)).toMatchObject({ status: 'accepted' });
    const refused = { code: 'invalid-event', details: { reason: expect.stringContaining(reason) as string } };
    const again = define(wrong);
    expect(await push(again, 1)).toMatchObject(refused);
    const wide = { ...first, fields: { ...first.fields, more: { ...text, optional: true } } };
    expect(await push(define(wide), 1)).toMatchObject({ status: 'accepted' });
    expect(await push(again, 2)).toMatchObject({ code: 'invalid-event' });
    expect(await push(change({ op: 'delete' }), 2)).toMatchObject({
      code: 'invalid-event',
      details: { reason: 'note: a type stays' },
    });
    expect(await push(define(wide), 2)).toMatchObject({ status: 'accepted' });
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });
});

describe('order of checks', () => {
  test('[LG11] a reader may not push, whatever he sends', async () => {
    await using w = world();
    const a = new Author('a');
    expect(await w.send(a.request(await w.head(), [a.operation([a.create('e1')])]), READER)).toMatchObject({
      status: 403,
      refusal: { code: 'not-allowed' },
    });
    expect(await w.send('nonsense', READER)).toMatchObject({ status: 403 });
  });

  test('[LG11] a log that does not exist', async () => {
    await using w = world({ createOnFirstUse: false });
    await w.engine.createWorkspace('acme');
    const a = new Author('a');
    const request = a.request({ epoch: 'e', version: 0, chain: '0'.repeat(64) }, [a.operation([a.create('e1')])]);
    expect(await w.send(request, ANA, { workspace: 'acme', log: 'none' })).toMatchObject({ status: 404 });
    expect(await w.send(request, ANA, { workspace: 'none', log: 'main' })).toMatchObject({ status: 404 });
  });

  test('[LG11 DG5] a position that is not in the log refuses the whole request; nothing is judged, no fence is taken', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1'));
    const head = await w.head();
    const operation = a.operation([a.create('e2')]);
    for (const wrong of [
      { ...head, chain: 'f'.repeat(64) },
      { ...head, version: 2 },
      { ...head, version: 0 },
    ])
      expect(await w.send(a.request(wrong, [operation], { generation: 9, permit: 99 }))).toMatchObject({
        status: 409,
        refusal: { code: 'history-changed', details: { head: 1 } },
      });
    // The epoch does not decide, and generation 1 is still the highest.
    expect(await w.send(a.request({ ...head, epoch: 'another' }, [operation]))).toMatchObject({
      results: [{ status: 'accepted' }],
    });
  });

  test('[LG8] a replica belongs to its account; lower generations and second copies are told so', async () => {
    await using w = world();
    const a = new Author('a', 2, 'host-1');
    await w.accept(a, a.create('e1'));
    const operation = a.operation([a.create('e2')]);
    const head = await w.head();
    expect(await w.send(a.request(head, [operation]), BEN)).toMatchObject({ refusal: { code: 'other-account' } });
    expect(await w.send(a.request(head, [operation], { generation: 1 }))).toMatchObject({
      refusal: { code: 'stale-generation', details: { generation: 2 } },
    });
    expect(await w.send(a.request(head, [operation], { instance: 'host-2' }))).toMatchObject({
      refusal: { code: 'replica-cloned' },
    });
    expect((await w.head()).version).toBe(1);
    expect(await w.send(a.request(head, [operation], { generation: 3, instance: 'host-2' }))).toMatchObject({
      results: [{ status: 'accepted' }],
    });
    expect(await w.send(a.request(head, [a.operation([a.create('e3')])]))).toMatchObject({
      refusal: { code: 'stale-generation' },
    });
  });

  test('[F181 LG2] the request id of somebody else gives nothing of his away, changes nothing, and is nothing in another log', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    const first = a.operation([a.create('e1', { title: 'a secret' })]);
    await w.push(a, [first]);
    const stolen = b.operation([b.create('e2')], { requestId: first.requestId });
    expect(await w.push(b, [stolen], BEN)).toEqual([
      {
        requestId: first.requestId,
        status: 'refused',
        code: 'idempotency-mismatch',
        details: { requestId: first.requestId },
      },
    ]);
    expect((await w.head()).version).toBe(1);
    expect(await w.push(a, [first])).toMatchObject([{ status: 'accepted', firstVersion: 1 }]);
    const team = { workspace: 'acme', log: 'team' };
    expect(await w.send(b.request(await w.head(team), [stolen]), BEN, team)).toMatchObject({
      results: [{ status: 'accepted', firstVersion: 1 }],
    });
  });

  test('[LG8] a permit number that does not grow is refused, but for a repeat of remembered work', async () => {
    await using w = world();
    const a = new Author('a');
    const head = await w.head();
    const first = a.operation([a.create('e1')]);
    expect(await w.send(a.request(head, [first], { permit: 5 }))).toMatchObject({ results: [{ status: 'accepted' }] });
    const second = a.operation([a.create('e2')]);
    for (const permit of [4, 5])
      expect(await w.send(a.request(head, [second], { permit }))).toMatchObject({
        refusal: { code: 'stale-permit', details: { highest: 5 } },
      });
    expect(await w.send(a.request(head, [first], { permit: 4 }))).toMatchObject({ results: [{ firstVersion: 1 }] });
    expect(await w.send(a.request(head, [first, second], { permit: 5 }))).toMatchObject({
      refusal: { code: 'stale-permit' },
    });
    expect((await w.head()).version).toBe(1);
    expect(await w.send(a.request(head, [second], { permit: 6 }))).toMatchObject({ results: [{ status: 'accepted' }] });
    // A new generation counts from the beginning.
    expect(await w.send(a.request(head, [a.operation([a.create('e3')])], { generation: 2, permit: 1 }))).toMatchObject({
      results: [{ status: 'accepted' }],
    });
    await using again = await w.restart();
    expect(
      await again.send(a.request(head, [a.operation([a.create('e4')])], { generation: 2, permit: 1 })),
    ).toMatchObject({
      refusal: { code: 'stale-permit' },
    });
  });

  test('[LG11 F103] a remembered result costs no quota; what is new does', async () => {
    let isOver = false;
    await using w = world({ quota: () => (isOver ? { retryAfterMs: 9_000 } : undefined) });
    const a = new Author('a');
    const first = a.operation([a.create('e1')]);
    await w.push(a, [first]);
    isOver = true;
    expect(await w.push(a, [first, a.operation([a.create('e2')])])).toMatchObject([
      { status: 'accepted' },
      { code: 'quota-exceeded', details: { retryAfterMs: 9_000 } },
    ]);
  });

  test('[LG14] admit sees before, after and changed, and may refuse with a field', async () => {
    const seen: unknown[] = [];
    await using w = world({
      admit: (change, actor) => {
        seen.push([change.type, change.before?.fields, change.after?.fields, change.changed, actor.account]);
        return change.before !== undefined && change.before.createdBy !== actor.account
          ? { reason: 'not-yours', message: 'Only its author may change it.', field: 'title' }
          : undefined;
      },
    });
    const a = new Author('a');
    await w.push(a, [a.operation([a.create('e1', { title: 'one', body: 'x' })])]);
    const edit = a.operation([a.set('e1', { title: 'two', body: 'x' }, 1)]);
    const b = new Author('b');
    expect(await w.push(b, [b.operation([b.set('e1', { title: 'no' }, 1)])], BEN)).toMatchObject([
      {
        code: 'not-admitted',
        message: 'Only its author may change it.',
        details: { reason: 'not-yours', field: 'title' },
      },
    ]);
    expect(await w.push(a, [edit])).toMatchObject([{ status: 'accepted' }]);
    expect(seen).toEqual([
      ['issue.created', undefined, { title: 'one', body: 'x' }, ['body', 'title'], 'ana'],
      ['issue.updated', { title: 'one', body: 'x' }, { title: 'no', body: 'x' }, ['title'], 'ben'],
      ['issue.updated', { title: 'one', body: 'x' }, { title: 'two', body: 'x' }, ['title'], 'ana'],
    ]);
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[F117 LG14] a right that ends after the change was made is asked for when it is accepted, at each change alone', async () => {
    const may = new Set(['e1', 'e2', 'e3']);
    await using w = world({
      admit: ({ entityId: id }) => {
        const reason = may.has(id) ? undefined : { reason: 'not-yours', message: 'No more.' };
        // Whoever is judged next in the same transaction meets what this one left.
        if (id === 'e1') may.delete('e2');
        return reason;
      },
    });
    const a = new Author('a');
    const made = a.request(
      await w.head(),
      ['e1', 'e2', 'e3'].map((id) => a.operation([a.create(id)])),
    );
    may.delete('e3');
    expect(await w.send(made)).toMatchObject({
      results: [{ status: 'accepted' }, { code: 'not-admitted' }, { code: 'not-admitted' }],
    });
    expect((await w.head()).version).toBe(1);
  });

  test('[LG14] an admit that answers later is a defect, never an acceptance', async () => {
    await using w = world({ admit: () => Promise.resolve(undefined) as never });
    const a = new Author('a');
    expect(await w.push(a, [a.operation([a.create('e1')])])).toMatchObject([{ code: 'internal' }]);
    expect((await w.head()).version).toBe(0);
  });
});

describe('answers', () => {
  test('[DG1 DG4 DG5] chain, attest and epoch stand in every position that is told', async () => {
    const logKey = new Uint8Array(32).fill(7);
    await using w = world({ logKey });
    const a = new Author('a');
    const answer = await w.pushed(a, [a.operation([a.create('e1')])]);
    const { digest } = createNodePlatform();
    const log = await w.store.log(REF);
    expect((await w.start()).chain).not.toBe(chainStart(log?.identity as string, digest));
    expect(answer.through.attest).toMatch(/^[0-9a-f]{64}$/);
    expect(answer.through).toEqual(answerOf(await w.engine.events(ANA, REF, { after: 0 })).through);
    expect(answerOf(await w.engine.entities(ANA, REF, {})).asOf).toEqual(answer.through);
    await using plain = world();
    expect((await plain.pushed(a, [a.operation([a.create('e1')])])).through.attest).toBeUndefined();
  });

  test('[PG1] a push answer brings what the sender lacks, his own as references', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    const start = await w.start();
    await w.accept(b, b.create('b1'), b.create('b2'));
    const own = a.operation([a.create('a1'), a.create('a2')]);
    const answer = await w.pushed(a, [own], start);
    expect(answer).toMatchObject({ head: 4, more: false, through: { version: 4 } });
    expect(answer.events.map((event) => ('entityId' in event ? [event.version, event.entityId] : event))).toEqual([
      [1, 'b1'],
      [2, 'b2'],
      { version: 3, requestId: own.requestId, index: 0 },
      { version: 4, requestId: own.requestId, index: 1 },
    ]);
    // From another replica the same operation is somebody else's.
    const copy = await w.pushed(new Author('c'), [own], start);
    expect(copy.events.every((event) => 'entityId' in event)).toBe(true);
    // Nothing new: the position stays.
    const head = await w.head();
    expect(await w.pushed(a, [own], head)).toMatchObject({ events: [], through: { version: 4, chain: head.chain } });
  });

  test('[PG1] an answer holds at most a page of whole operations, and says that there is more', async () => {
    await using w = world();
    const b = new Author('b');
    const start = await w.start();
    for (const count of [300, 200, 20])
      await w.accept(b, ...Array.from({ length: count }, (_, at) => b.create(`${count}-${at}`)));
    const a = new Author('a');
    const answer = await w.pushed(a, [a.operation([a.create('a1')])], start);
    expect([answer.events.length, answer.through.version, answer.head, answer.more]).toEqual([500, 500, 521, true]);
    await using again = await w.restart();
    const later = await again.pushed(new Author('a', 2), [a.operation([a.create('a2')])], start);
    expect([later.events.length, later.through.version, later.head]).toEqual([500, 500, 522]);
  });

  test('[LG11] refused and absent look alike to who reads', async () => {
    await using w = world({ createOnFirstUse: false });
    await w.engine.createWorkspace('acme');
    const absent = { workspace: 'acme', log: 'none' };
    const refusals = [
      refusalOf(await w.engine.events(ANA, absent, { after: 0 })),
      refusalOf(await w.engine.entities(ANA, absent, {})),
      refusalOf(await w.engine.history(ANA, { workspace: 'none', log: 'main' }, { type: 'issue', id: 'e1' })),
    ];
    expect(new Set(refusals.map((refused) => JSON.stringify(refused))).size).toBe(1);
    expect(refusals[0]).toMatchObject({ status: 404, refusal: { code: 'not-found' } });
  });
});
