import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import type { Change, EntityState, Envelope, StoredEvent } from './events.ts';
import { type FoldReason, foldChange, foldStored } from './fold.ts';
import type { Json, JsonObject } from './json.ts';
import { LIMITS } from './limits.ts';
import { utf8Length } from './utf8.ts';

const fold = (fields: JsonObject | undefined, change: Change): JsonObject | undefined => {
  const folded = foldChange(fields, change);
  expect(folded).toMatchObject({ ok: true });
  return folded.ok ? folded.value : undefined;
};
const reason = (fields: JsonObject | undefined, change: Change): unknown => {
  const folded = foldChange(fields, change);
  return folded.ok ? 'folded' : [folded.fault.code, folded.fault.facts?.['reason'], folded.fault.facts?.['path']];
};
const refused = (why: FoldReason, path: string) => ['invalid-event', why, path];
const update = (change: Omit<Extract<Change, { op: 'update' }>, 'op'>): Change => ({ op: 'update', ...change });
const MAX = Number.MAX_SAFE_INTEGER;

test('[EV6] update sets, unsets, counts, adds and removes, and touches nothing else', () => {
  const fields = { count: 1, gone: 'x', labels: ['a', 'b'], other: { deep: [1] }, title: 'old' };
  const next = fold(fields, {
    op: 'update',
    set: { title: 'new', extra: 1 },
    unset: ['gone'],
    inc: { count: 2, votes: -1 },
    add: { labels: ['c'], members: ['ana'] },
    remove: { labels: ['a'] },
  });
  expect(next).toEqual({
    count: 3,
    extra: 1,
    labels: ['b', 'c'],
    members: ['ana'],
    other: { deep: [1] },
    title: 'new',
    votes: -1,
  });
  expect(next?.['other']).toBe(fields.other);
  expect(Object.keys(next ?? {})).toEqual(Object.keys(next ?? {}).sort());
});

test('[EV6] create, put on nothing and restore give the fields, delete takes the entity', () => {
  expect(fold(undefined, { op: 'create', fields: { b: 1, a: 2 } })).toEqual({ a: 2, b: 1 });
  expect(fold(undefined, { op: 'put', set: { a: 2 }, rules: { a: 'max' } })).toEqual({ a: 2 });
  expect(fold(undefined, { op: 'restore', fields: { a: 2 } })).toEqual({ a: 2 });
  expect(fold({ a: 2 }, { op: 'delete' })).toBeUndefined();
});

test('[EV6] put updates a live entity', () => {
  expect(fold({ a: 1, b: 2 }, { op: 'put', set: { a: 3 } })).toEqual({ a: 3, b: 2 });
});

test('[EV6] max keeps the greater value, min the smaller, last the later', () => {
  const set = (value: Json, rule: 'max' | 'min' | 'last', now: Json) =>
    fold({ f: now }, update({ set: { f: value }, rules: { f: rule } }))?.['f'];
  expect([set(2, 'max', 1), set(1, 'max', 2), set(2, 'min', 1), set(1, 'min', 2), set(1, 'last', 2)]).toEqual([
    2, 2, 1, 1, 1,
  ]);
  expect(set('2026-01-02', 'max', '2026-01-01')).toBe('2026-01-02');
  expect(fold({}, { op: 'put', set: { f: 1 }, rules: { f: 'max' } })).toEqual({ f: 1 });
});

test('[EV6 F128] a rule that this code does not know folds as a plain set', () => {
  expect(fold({ f: 5 }, { op: 'update', set: { f: 1 }, rules: { f: 'sum' as 'max' } })).toEqual({ f: 1 });
});

test('[EV6] absent and present entities refuse what does not fit them', () => {
  expect(reason(undefined, update({ set: { a: 1 } }))).toEqual(refused('entity-absent', 'change.op'));
  expect(reason(undefined, { op: 'delete' })).toEqual(refused('entity-absent', 'change.op'));
  expect(reason({}, { op: 'create', fields: {} })).toEqual(refused('entity-present', 'change.op'));
  expect(reason({}, { op: 'restore', fields: {} })).toEqual(refused('entity-present', 'change.op'));
});

test('[EV6] inc takes and gives safe integers only', () => {
  for (const now of ['1', 0.5, true, [], {}])
    expect(reason({ n: now as Json }, update({ inc: { n: 1 } }))).toEqual(refused('not-an-integer', 'change.inc.n'));
  for (const by of [0.5, 2 ** 53, Number.NaN, '1' as unknown as number])
    expect(reason({}, update({ inc: { n: by } }))).toEqual(refused('not-an-integer', 'change.inc.n'));
  expect(reason({ n: MAX }, update({ inc: { n: 1 } }))).toEqual(refused('sum-out-of-range', 'change.inc.n'));
  expect(reason({ n: -MAX }, update({ inc: { n: -1 } }))).toEqual(refused('sum-out-of-range', 'change.inc.n'));
  expect(fold({ n: MAX - 1 }, update({ inc: { n: 1 } }))).toEqual({ n: MAX });
  expect(fold({}, update({ inc: { n: 0 } }))).toEqual({ n: 0 });
});

test('[EV6] add and remove want a set or nothing', () => {
  for (const now of ['a', 1, { a: 1 }, ['b', 'a'], ['a', 'a']]) {
    expect(reason({ s: now }, update({ add: { s: ['c'] } }))).toEqual(refused('not-a-set', 'change.add.s'));
    expect(reason({ s: now }, update({ remove: { s: ['c'] } }))).toEqual(refused('not-a-set', 'change.remove.s'));
  }
  expect(fold({}, update({ remove: { s: ['c'] } }))).toEqual({});
  expect(fold({ s: ['c'] }, update({ remove: { s: ['c'] } }))).toEqual({ s: [] });
  expect(fold({}, update({ add: { s: ['c'] }, remove: { s: ['d'] } }))).toEqual({ s: ['c'] });
});

test('[JS4] null is no value of a field, and is one inside a value', () => {
  expect(reason({}, update({ set: { a: null } }))).toEqual(refused('null-value', 'change.set.a'));
  expect(reason(undefined, { op: 'create', fields: { a: null } })).toEqual(refused('null-value', 'change.fields.a'));
  expect(reason(undefined, { op: 'restore', fields: { a: null } })).toEqual(refused('null-value', 'change.fields.a'));
  expect(reason(undefined, { op: 'put', set: { a: null } })).toEqual(refused('null-value', 'change.set.a'));
  expect(fold({}, update({ set: { a: [null] } }))).toEqual({ a: [null] });
});

test('[EV6] a change has one effect on a field, and on an element', () => {
  const parts = { set: { f: 1 }, unset: ['f'], inc: { f: 1 }, add: { f: ['a'] }, remove: { f: ['a'] } } as const;
  const names = Object.keys(parts) as (keyof typeof parts)[];
  for (const one of names)
    for (const other of names)
      if (one !== other)
        expect(reason({}, update({ [one]: parts[one], [other]: parts[other] }))).toMatchObject([
          'invalid-event',
          'field-named-twice',
          expect.stringContaining('f'),
        ]);
  expect(reason({}, update({ unset: ['f', 'f'] }))).toEqual(refused('field-named-twice', 'change.f'));
  expect(reason({}, update({ add: { f: ['a'] }, remove: { f: ['b'] } }))).toBe('folded');
});

test('[EV6] an entity over its limits is refused, and one at them is not', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, 1]));
  expect(reason(undefined, { op: 'create', fields: many(LIMITS.fieldsPerEntityMax) })).toBe('folded');
  expect(reason(undefined, { op: 'create', fields: many(LIMITS.fieldsPerEntityMax + 1) })).toEqual(
    refused('too-many-fields', 'change'),
  );
  const frame = utf8Length(canonical({ a: '' }));
  const text = 'é'.repeat((LIMITS.entityBytesMax - frame) / 2);
  expect(utf8Length(canonical({ a: text }))).toBe(LIMITS.entityBytesMax);
  expect(reason({ a: '' }, update({ set: { a: text } }))).toBe('folded');
  expect(reason({ a: '' }, update({ set: { a: `${text}x` } }))).toEqual(refused('entity-too-large', 'change'));
  const ofKeys = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`k${at}`, 1]));
  expect(reason({}, update({ set: { a: ofKeys } }))).toEqual(refused('entity-too-large', 'change'));
});

test('[EV6] fields named like members of every object are fields like others', () => {
  expect(fold({}, update({ inc: { toString: 1 }, add: { valueOf: ['a'] } }))).toEqual({ toString: 1, valueOf: ['a'] });
  expect(fold({ hasOwnProperty: 1 }, update({ unset: ['hasOwnProperty'], set: { toString: 2 } }))).toEqual({
    toString: 2,
  });
});

test('[EV6] a change without effect gives back the same fields', () => {
  const fields = { a: 1, s: ['x'] };
  for (const change of [update({}), update({ set: { a: 1 } }), update({ unset: ['b'] }), update({ add: { s: ['x'] } })])
    expect(fold(fields, change)).toBe(fields);
});

// ── accepted events ─────────────────────────────────────────────────────────────────────────────────────────────────

const stored = (change: Change, envelope: Partial<Envelope & { base: number }> = {}): StoredEvent => ({
  id: 'e',
  type: 'issue.updated',
  entityType: 'issue',
  entityId: 'i',
  change,
  base: 0,
  at: '2026-01-01T00:00:00.000Z',
  salt: '00'.repeat(16),
  version: 7,
  entityVersion: 2,
  actor: 'ben',
  recordedAt: '2026-01-02T00:00:00.000Z',
  requestId: 'r',
  actionId: 'a',
  replicaId: 'p',
  index: 0,
  count: 1,
  ...envelope,
});
const state: EntityState = {
  type: 'issue',
  id: 'i',
  version: 1,
  fields: { a: 1 },
  createdBy: 'ana',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedBy: 'ana',
  updatedAt: '2026-01-01T00:00:00.000Z',
  arrival: 3,
};
const touched = { version: 2, updatedBy: 'ben', updatedAt: '2026-01-02T00:00:00.000Z' };
const made = {
  ...touched,
  type: 'issue',
  id: 'i',
  createdBy: 'ben',
  createdAt: '2026-01-02T00:00:00.000Z',
  arrival: 7,
};

test('[EV6] an accepted update changes fields, and version and author follow its envelope', () => {
  expect(foldStored(state, stored(update({ set: { b: 2 } })))).toEqual({
    ...state,
    ...touched,
    fields: { a: 1, b: 2 },
  });
});

test('[EV6] what makes an entity live names its creator, its arrival and its entity version', () => {
  expect(foldStored(undefined, stored({ op: 'restore', fields: { a: 1 } }))).toEqual({ ...made, fields: { a: 1 } });
  expect(foldStored(undefined, stored({ op: 'put', set: { a: 1 } }))).toEqual({ ...made, fields: { a: 1 } });
  const first = stored({ op: 'create', fields: { a: 1 } }, { entityVersion: 1 });
  expect(foldStored(undefined, first)).toEqual({ ...made, version: 1, fields: { a: 1 } });
});

test('[EV6] an event that was accepted as same changes no field, and counts as one of a live entity', () => {
  for (const change of [
    { op: 'create', fields: { a: 9 } },
    { op: 'restore', fields: { a: 9 } },
  ] as const)
    expect(foldStored(state, stored(change))).toEqual({ ...state, ...touched });
  expect(foldStored(undefined, stored({ op: 'delete' }))).toBeUndefined();
});

test('[EV6 BS3] a create that was the same as the first one does not bring a deleted entity back', () => {
  expect(foldStored(undefined, stored({ op: 'create', fields: { a: 1 } }, { entityVersion: 4 }))).toBeUndefined();
});

test('[EV6] folding is total: what no ledger accepts has no effect on the fields', () => {
  expect(foldStored(undefined, stored(update({ set: { a: 1 } })))).toBeUndefined();
  expect(foldStored(state, stored(update({ set: { b: 1 }, add: { a: ['x'] } })))).toEqual({ ...state, ...touched });
});

test('[EV7] what the ledger assigned is folded as values of fields', () => {
  const first = stored({ op: 'create', fields: { title: 't' } }, { entityVersion: 1, assigned: { number: 12 } });
  expect(foldStored(undefined, first)?.fields).toEqual({ number: 12, title: 't' });
  expect(Object.keys(foldStored(undefined, first)?.fields ?? {})).toEqual(['number', 'title']);
  expect(foldStored(state, stored({ op: 'put', set: {} }, { assigned: { n: 1 } }))?.fields).toEqual({ a: 1, n: 1 });
});

test('[EV6] a healed event keeps who wrote it and when', () => {
  const origin = { actor: 'cleo', recordedAt: '2025-01-01T00:00:00.000Z' };
  expect(foldStored(state, stored(update({}), { origin }))).toMatchObject({
    updatedBy: 'cleo',
    updatedAt: origin.recordedAt,
    createdBy: 'ana',
  });
});

const field = fc.constantFrom('a', 'b', 's');
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ op: fc.constant('create' as const), fields: fc.dictionary(field, fc.constantFrom<Json>(1, ['x'], 't')) }),
  fc.record({ op: fc.constant('put' as const), set: fc.dictionary(field, fc.constantFrom<Json>(1, ['x'], 't')) }),
  fc.record({ op: fc.constant('restore' as const), fields: fc.dictionary(field, fc.constantFrom<Json>(1, ['x'])) }),
  fc.constant({ op: 'delete' } as const),
  field.map((name) => update({ set: { [name]: 2 } })),
  field.map((name) => update({ unset: [name] })),
  field.map((name) => update({ inc: { [name]: 1 } })),
  field.map((name) => update({ add: { [name]: ['y'] } })),
  field.map((name) => update({ remove: { [name]: ['x'] } })),
);

test('[EV6] what a new event may do, the accepted one does', () => {
  fc.assert(
    fc.property(
      fc.option(fc.dictionary(field, fc.constantFrom<Json>(1, ['x'], 't')), { nil: undefined }),
      change,
      (now, next) => {
        const folded = foldChange(now, next);
        if (!folded.ok) return;
        const before = now === undefined ? undefined : { ...state, fields: now };
        expect(foldStored(before, stored(next, { entityVersion: 1 }))?.fields).toEqual(folded.value);
      },
    ),
  );
});
