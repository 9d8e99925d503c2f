import type { EventDraft, PushOperation } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { Author } from './drafts.fixture.ts';
import { BEN, world } from './world.fixture.ts';

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
