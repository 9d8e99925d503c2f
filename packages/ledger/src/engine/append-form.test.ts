import { type EventDraft, LIMITS, type PushOperation } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { Author } from './drafts.fixture.ts';
import { REF, world } from './world.fixture.ts';

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
