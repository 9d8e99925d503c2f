import {
  defineSchema,
  type EventDraft,
  entity,
  type PushOperation,
  type StoredEvent,
  schemaData,
  serial,
  text,
} from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { Author } from './drafts.fixture.ts';
import { ANA, answerOf, BEN, eventsOf, fieldsOf, REF, world } from './world.fixture.ts';

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
