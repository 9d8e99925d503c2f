import { expect, test } from 'vitest';
import { checkChain } from './chain.ts';
import type { Change, EventDraft } from './events.ts';
import { LIMITS } from './limits.ts';
import { type EntityEvent, theirsSince } from './theirs.ts';

const SET: Change = { op: 'update', set: { x: 1 } };
const event = (entityVersion: number, id: string, prior?: string, change: Change | null = SET): EntityEvent => ({
  entityVersion,
  id,
  prior,
  change,
});
const ids = (found: ReturnType<typeof theirsSince>) =>
  found.isTooMany ? 'too many' : [found.theirs.map((e) => e.id).join(), found.chain.map((e) => e.id).join()];

test('[LG4] theirs are the events after the base', () => {
  const events = [event(1, 'a'), event(2, 'b'), event(3, 'c')];
  expect(ids(theirsSince(events, { base: 0 }))).toEqual(['a,b,c', '']);
  expect(ids(theirsSince(events, { base: 2 }))).toEqual(['c', '']);
  expect(ids(theirsSince(events, { base: 3 }))).toEqual(['', '']);
});

test('[LG4] what is reached from prior through prior is the author’s own', () => {
  const events = [event(1, 'a'), event(2, 'm1'), event(3, 'f1'), event(4, 'm2', 'm1'), event(5, 'f2', 'f1')];
  expect(ids(theirsSince(events, { base: 1, prior: 'm2' }))).toEqual(['f1,f2', 'm1,m2']);
  expect(ids(theirsSince(events, { base: 1, prior: 'm1' }))).toEqual(['f1,m2,f2', 'm1']);
  expect(ids(theirsSince(events, { base: 2, prior: 'm2' }))).toEqual(['f1,f2', 'm2']);
  expect(ids(theirsSince(events, { base: 1, prior: null }))).toEqual(['m1,f1,m2,f2', '']);
});

test('[LG4] more of theirs than may be examined is said, and own events do not count', () => {
  const many = Array.from({ length: LIMITS.theirsExaminedMax }, (_, at) => event(at + 1, `f${at}`));
  const own = event(many.length + 1, 'm');
  expect(theirsSince([...many, own], { base: 0, prior: 'm' })).toMatchObject({ isTooMany: false });
  expect(theirsSince([...many, own], { base: 0 })).toEqual({ isTooMany: true });
  expect(theirsSince([...many, own], { base: 1 })).toMatchObject({ isTooMany: false });
  expect(theirsSince([event(1, 'a'), event(2, 'b')], { base: 0, max: 1 })).toEqual({ isTooMany: true });
});

test('[LG4] equal creates count as one: theirs is left out beside an own one, and a later one always', () => {
  const create: Change = { op: 'create', fields: { x: 1 } };
  const theirsFirst = [event(1, 'f', undefined, create), event(2, 'm', undefined, create), event(3, 'f2', 'f')];
  expect(ids(theirsSince(theirsFirst, { base: 0, prior: 'm' }))).toEqual(['f2', 'm']);
  expect(ids(theirsSince(theirsFirst, { base: 0 }))).toEqual(['f,f2', '']);
  expect(ids(theirsSince(theirsFirst, { base: 1 }))).toEqual(['f2', '']);
  const afterPut = [event(1, 'f', undefined, create), event(2, 'm', undefined, { op: 'put', set: { y: 1 } })];
  expect(ids(theirsSince(afterPut, { base: 0, prior: 'm' }))).toEqual(['f', 'm']);
});

test('[LG4] an erased event stays among theirs', () => {
  expect(ids(theirsSince([event(1, 'a'), event(2, 'b', undefined, null)], { base: 1 }))).toEqual(['b', '']);
});

const draft = (id: string, change: Change, base: number, prior?: string, entityId = 'i'): EventDraft => ({
  id,
  type: 'issue.updated',
  entityType: 'issue',
  entityId,
  change,
  base,
  ...(prior !== undefined && { prior }),
  at: '2026-01-01T00:00:00.000Z',
  salt: '00'.repeat(16),
});
const code = (...events: EventDraft[]) => {
  const checked = checkChain(events);
  return checked.ok ? 'ok' : [checked.fault.code, checked.fault.facts?.['path']];
};

test('[LG4] a create is made on nothing, an update, delete or restore on something', () => {
  const create: Change = { op: 'create', fields: {} };
  expect(code(draft('a', create, 0))).toBe('ok');
  expect(code(draft('a', create, 1))).toEqual(['invalid-event', 'events[0].base']);
  expect(code(draft('a', create, 0, 'p'))).toEqual(['invalid-event', 'events[0].base']);
  for (const change of [SET, { op: 'delete' }, { op: 'restore', fields: {} }] as const) {
    expect(code(draft('a', change, 0))).toEqual(['invalid-event', 'events[0].base']);
    expect(code(draft('a', change, 1))).toBe('ok');
    expect(code(draft('a', change, 0, 'p'))).toBe('ok');
  }
  expect(code(draft('a', { op: 'put', set: {} }, 0))).toBe('ok');
});

test('[LG4] events of one operation on one entity are a chain', () => {
  const chain = (prior: string | undefined, base: number) => code(draft('a', SET, 2), draft('b', SET, base, prior));
  expect(chain('a', 2)).toBe('ok');
  expect(chain('a', 3)).toBe('ok');
  expect(chain(undefined, 2)).toEqual(['entity-version-chain', 'events[1].prior']);
  expect(chain('x', 2)).toEqual(['entity-version-chain', 'events[1].prior']);
  expect(chain('a', 1)).toEqual(['entity-version-chain', 'events[1].prior']);
  expect(code(draft('a', SET, 2), draft('b', SET, 1, undefined, 'j'))).toBe('ok');
});
