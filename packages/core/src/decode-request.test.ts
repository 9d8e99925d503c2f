import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import { decodeChange, decodeEventDraft } from './decode-event.ts';
import { decodeClientFrame, decodeHandshakeRequest, decodePushRequest } from './decode-request.ts';
import { spoiledAt, spoils } from './decode-spoil.fixture.ts';
import { ENVELOPE_KEYS, type EventDraft } from './events.ts';
import type { Outcome } from './faults.ts';
import { type Json, jsonProblem } from './json.ts';
import { LIMITS } from './limits.ts';
import {
  anyChange,
  anyClientFrame,
  anyDraft,
  anyHandshakeRequest,
  anyOperation,
  anyPushRequest,
} from './messages.fixture.ts';
import { parseWire } from './parse.ts';
import type { PushOperation, PushRequest } from './protocol.ts';

const strict: readonly [string, fc.Arbitrary<unknown>, (json: unknown) => Outcome<unknown>][] = [
  ['a handshake', anyHandshakeRequest, decodeHandshakeRequest],
  ['a push', anyPushRequest, (json) => allOf(decodePushRequest(json))],
  ['an operation', anyOperation, (json) => allOf(decodePushRequest(pushOf(json)))],
  ['a client frame', anyClientFrame, decodeClientFrame],
  ['a draft', anyDraft, decodeEventDraft],
  ['a change', anyChange, decodeChange],
];

/** A push of which every operation was read, or the first fault. */
function allOf(decoded: ReturnType<typeof decodePushRequest>): Outcome<unknown> {
  if (!decoded.ok) return decoded;
  const refused = decoded.value.operations.find((one) => !one.ok);
  return refused === undefined || refused.ok ? { ok: true, value: decoded.value } : refused;
}

const POSITION = { epoch: 'e', version: 5, chain: '0'.repeat(64) };
const REPLICA = { id: 'r', generation: 1, instance: 'h', permit: 4 };
const pushOf = (...operations: readonly unknown[]) => ({ position: POSITION, replica: REPLICA, operations });
const uuid = (number: number) => `01890a5d-ac96-774b-bcce-${String(number).padStart(12, '0')}`;
const draftOf = (change: unknown, more: object = {}) => ({
  id: uuid(1),
  type: 'issue.updated',
  entityType: 'issue',
  entityId: '7f',
  change,
  base: 3,
  at: '2026-11-30T00:00:00.000Z',
  salt: '0'.repeat(32),
  ...more,
});
const operationOf = (number: number, ...events: readonly unknown[]) => ({
  requestId: uuid(100 + number),
  actionId: uuid(200 + number),
  events,
  merge: 'fields',
});
const setTitle = (title: unknown) => draftOf({ op: 'update', set: { title } });

/** The first fault of a push, as code, path and the rest. */
function faultOf(...operations: readonly unknown[]) {
  const first = allOf(decodePushRequest(pushOf(...operations)));
  return first.ok ? 'ok' : { code: first.fault.code, ...first.fault.facts };
}

describe.each(strict)('[LG6] %s', (_, valid, decode) => {
  test('[LG6] is read when it is well formed', () => {
    fc.assert(
      fc.property(valid, (message) => {
        expect(decode(message)).toMatchObject({ ok: true });
        // From the wire too, whatever the order of its keys.
        expect(decode(JSON.parse(canonical(message as Json)))).toMatchObject({ ok: true });
      }),
    );
  });

  test('[JS1 S02] is refused or in the profile, wherever it was spoiled, and nothing throws', () => {
    fc.assert(
      fc.property(valid, spoils, fc.nat(), (message, spoil, place) => {
        const spoiled = spoiledAt(message, spoil, place);
        const decoded = decode(spoiled);
        if (decoded.ok) expect(jsonProblem(spoiled, '', -LIMITS.frameDepthMax)).toBeNull();
        else expect(decoded.fault.facts).toMatchObject({ path: expect.any(String), reason: expect.any(String) });
      }),
      { numRuns: 150 },
    );
  });

  test('[LG6] is refused without throwing when it is anything at all', () => {
    const anything = fc.oneof(fc.jsonValue(), fc.anything({ withNullPrototype: true, withDate: true, withMap: true }));
    fc.assert(
      fc.property(anything, (value) => {
        expect(decode(value).ok).toBe(false);
      }),
      { numRuns: 100 },
    );
  });
});

test('[JS2 I26] what a push is read as re-encodes to the same canonical bytes', () => {
  fc.assert(
    fc.property(anyPushRequest, (request) => {
      const parsed = parseWire(JSON.stringify(request), { bytesMax: 1e9, depthMax: 99 });
      const decoded = decodePushRequest(parsed.ok && parsed.value);
      expect(decoded.ok).toBe(true);
      if (!decoded.ok) return;
      const { position, replica, operations } = decoded.value;
      const read = operations.map((one) => one.ok && one.operation);
      expect(canonical({ position, replica, operations: read } as unknown as Json)).toBe(canonicalize(request));
      operations.forEach((one, at) => {
        const { events } = request.operations[at] as PushOperation;
        expect(one.ok && one.draftTexts).toEqual(events.map((event) => canonicalize(event)));
        if (one.ok) for (const text of one.draftTexts) expect(canonical(JSON.parse(text) as Json)).toBe(text);
      });
    }),
    { numRuns: 100 },
  );
});

test('[LG6] a spoiled operation is refused alone, under its request id, and the others are read', () => {
  fc.assert(
    fc.property(anyPushRequest, spoils, fc.nat(), fc.nat(), (request, spoil, pick, place) => {
      const at = pick % request.operations.length;
      const operations = request.operations.map((one, index) =>
        index === at ? { ...one, events: spoiledAt(one.events, spoil, place) } : one,
      );
      const decoded = decodePushRequest({ ...request, operations });
      expect(decoded.ok).toBe(true);
      if (!decoded.ok) return;
      decoded.value.operations.forEach((one, index) => {
        const { requestId } = request.operations[index] as PushOperation;
        if (index !== at) expect(one).toMatchObject({ ok: true, operation: { requestId } });
        else if (!one.ok) {
          expect(one).toMatchObject({ requestId, fault: { code: 'invalid-event' } });
          expect(one.fault.facts?.['path']).toMatch(new RegExp(`^operations\\[${at}\\]\\.events`));
        }
      });
    }),
    { numRuns: 150 },
  );
});

test.each([
  ['a lone surrogate', setTitle('a\ud83d'), 'change.set.title'],
  ['NUL', setTitle('a\0'), 'change.set.title'],
  ['1e400', setTitle([1, [JSON.parse('1e400')]]), 'change.set.title[1][0]'],
  ['2^53', setTitle({ deep: 2 ** 53 }), 'change.set.title.deep'],
  ['the key __proto__', draftOf({ op: 'create', fields: JSON.parse('{"__proto__":1}') }), 'change.fields.__proto__'],
  ['the field constructor', draftOf({ op: 'create', fields: { constructor: 1 } }), 'change.fields.constructor'],
  ['null as a value', setTitle(null), 'change.set.title'],
  ['a field with a space', draftOf({ op: 'update', set: { 'a b': 1 } }), 'change.set."a b"'],
  ['a field of 64 letters', draftOf({ op: 'update', inc: { ['x'.repeat(64)]: 1 } }), `change.inc.${'x'.repeat(64)}`],
  ['null in a set', draftOf({ op: 'update', add: { labels: ['a', null] } }), 'change.add.labels[1]'],
  ['an inc by a fraction', draftOf({ op: 'update', inc: { votes: 0.5 } }), 'change.inc.votes'],
  ['an unset that is no list', draftOf({ op: 'update', unset: 'title' }), 'change.unset'],
  ['an unknown op', draftOf({ op: 'merge' }), 'change.op'],
  ['an op that every object inherits', draftOf({ op: 'toString' }), 'change.op'],
  ['an unknown key in a change', draftOf({ op: 'delete', fields: {} }), 'change.fields'],
  ['a missing change', draftOf(undefined), 'change'],
  ['an unknown key in a draft', draftOf({ op: 'delete' }, { note: 1 }), 'note'],
  ['a broken salt', draftOf({ op: 'delete' }, { salt: 'A'.repeat(32) }), 'salt'],
  ['an event id of version 4', draftOf({ op: 'delete' }, { id: uuid(1).replace('-7', '-4') }), 'id'],
  ['a negative base', draftOf({ op: 'delete' }, { base: -1 }), 'base'],
  ['a local instant', draftOf({ op: 'delete' }, { at: '2026-11-30T00:00:00' }), 'at'],
  ['meta that is a list', draftOf({ op: 'delete' }, { meta: [] }), 'meta'],
  ['NUL in meta', draftOf({ op: 'delete' }, { meta: { 'a.b': '\0' } }), 'meta.a.b'],
])('[LG6 JS1 JS4 F125] %s in a draft is an invalid event, with the path', (_, draft, path) => {
  expect(faultOf(operationOf(1, setTitle('fine')), operationOf(0, setTitle('x'), draft))).toEqual({
    code: 'invalid-event',
    path: `operations[1].events[1].${path}`,
    reason: expect.any(String),
  });
});

test.each(ENVELOPE_KEYS)('[EV4 S02] a draft that names the envelope member %s is refused', (key) => {
  expect(faultOf(operationOf(0, draftOf({ op: 'delete' }, { [key]: 1 })))).toEqual({
    code: 'invalid-event',
    path: `operations[0].events[0].${key}`,
    reason: 'this key is not allowed here',
  });
});

test('[S02] an unknown key of an operation is refused with it, one of the request with the request', () => {
  expect(faultOf({ ...operationOf(0, setTitle('x')), actor: 'root' })).toMatchObject({ path: 'operations[0].actor' });
  for (const more of [
    { actor: 'root' },
    { position: { ...POSITION, x: 1 } },
    { replica: { ...REPLICA, account: 'x' } },
  ])
    expect(decodePushRequest({ ...pushOf(operationOf(0, setTitle('x'))), ...more })).toMatchObject({
      ok: false,
      fault: { code: 'malformed', facts: { reason: 'this key is not allowed here' } },
    });
});

test('[JS1 F123] the depth of a draft counts from the draft, so a push takes whatever a commit took', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
  const levels = LIMITS.jsonDepthMax - 3;
  const parsed = (draft: unknown) => {
    const wire = parseWire(JSON.stringify(pushOf(operationOf(0, draft))), {
      bytesMax: 1e6,
      depthMax: LIMITS.jsonDepthMax + LIMITS.frameDepthMax,
    });
    return allOf(decodePushRequest(wire.ok && wire.value));
  };
  expect(jsonProblem(setTitle(nested(levels)))).toBeNull();
  expect(parsed(setTitle(nested(levels))).ok).toBe(true);
  expect(jsonProblem(setTitle(nested(levels + 1)))).not.toBeNull();
  expect(parsed(setTitle(nested(levels + 1)))).toMatchObject({
    ok: false,
    fault: { code: 'invalid-event', facts: { reason: 'nested deeper than 64' } },
  });
});

test('[LG6 F126] what is too large is told as such, with the limit and the path', () => {
  const ofBytes = (bytes: number, unit: string) => {
    const empty = canonical(setTitle('') as Json).length;
    return setTitle(unit.repeat((bytes - empty) / Buffer.byteLength(unit)));
  };
  expect(faultOf(operationOf(0, ofBytes(LIMITS.eventBytesMax, 'a')))).toBe('ok');
  for (const unit of ['a', 'é'])
    expect(faultOf(operationOf(0, setTitle('x'), ofBytes(LIMITS.eventBytesMax + 2, unit)))).toEqual({
      code: 'too-large',
      path: 'operations[0].events[1]',
      limit: 'eventBytesMax',
      max: LIMITS.eventBytesMax,
      found: expect.any(Number),
    });
  const many = Array.from({ length: LIMITS.commitEventsMax }, (_, at) => ({ ...setTitle('x'), id: uuid(at) }));
  expect(faultOf(operationOf(0, ...many))).toBe('ok');
  expect(faultOf(operationOf(0, ...many, setTitle('x')))).toEqual({
    code: 'too-large',
    path: 'operations[0].events',
    limit: 'commitEventsMax',
    max: LIMITS.commitEventsMax,
    found: LIMITS.commitEventsMax + 1,
  });
  expect(decodeEventDraft(ofBytes(LIMITS.eventBytesMax + 2, 'a'))).toMatchObject({ fault: { code: 'too-large' } });
});

test('[F126] of too many fields none beyond the limit is looked at', () => {
  const fields = (count: number) => ({
    ...Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, at])),
    last: '\ud800',
  });
  const { fieldsPerEntityMax } = LIMITS;
  const reasonOf = (count: number) => faultOf(operationOf(0, draftOf({ op: 'create', fields: fields(count) })));
  expect(reasonOf(fieldsPerEntityMax - 1)).toMatchObject({ reason: 'a lone surrogate at 0' });
  expect(reasonOf(fieldsPerEntityMax)).toMatchObject({ reason: `at most ${fieldsPerEntityMax} are allowed` });
});

test('[LG6] without a readable request id, or with one that stands twice, the whole request is malformed', () => {
  const good = operationOf(0, setTitle('x'));
  const whole = (...operations: readonly unknown[]) => {
    const decoded = decodePushRequest(pushOf(...operations));
    return decoded.ok ? 'ok' : decoded.fault.facts?.['path'];
  };
  const { requestId: _, ...nameless } = good;
  expect(whole(good, nameless)).toBe('operations[1].requestId');
  expect(whole({ ...good, requestId: 'a b' })).toBe('operations[0].requestId');
  expect(whole(null)).toBe('operations[0].requestId');
  expect(whole(Object.create(good))).toBe('operations[0].requestId');
  expect(whole(good, good)).toBe('operations[1].requestId');
  expect(whole()).toBe('operations');
  const many = (count: number) => Array.from({ length: count }, (_, at) => operationOf(at, setTitle('x')));
  expect(whole(...many(LIMITS.pageEventsMax))).toBe('ok');
  expect(whole(...many(LIMITS.pageEventsMax + 1))).toBe('operations');
});

test('[LG6] an operation that names an id of another form is refused alone', () => {
  const good = operationOf(0, setTitle('x'));
  expect(faultOf({ ...good, requestId: 'readable' })).toMatchObject({ path: 'operations[0].requestId' });
  expect(faultOf({ ...good, events: [] })).toMatchObject({ code: 'invalid-event', path: 'operations[0].events' });
  expect(faultOf({ ...good, events: {} })).toMatchObject({ code: 'invalid-event', path: 'operations[0].events' });
  expect(faultOf({ ...good, needs: Array(LIMITS.needsMax + 1).fill(uuid(1)) })).toMatchObject({
    path: 'operations[0].needs',
  });
  expect(faultOf({ ...good, requires: [['issue', 'a', 'b']] })).toMatchObject({ path: 'operations[0].requires[0]' });
  expect(faultOf({ ...good, requires: [['issue', '']] })).toMatchObject({ path: 'operations[0].requires[0][1]' });
  expect(faultOf({ ...good, merge: 'last' })).toMatchObject({ path: 'operations[0].merge' });
  expect(faultOf({ ...good, claims: [{ a: '\ud800' }] })).toMatchObject({ path: 'operations[0].claims[0].a' });
});

test('[LG12] a handshake over its limits is refused', () => {
  const logs = (count: number, positions: number) => ({
    protocol: { min: 1, max: 1 },
    replica: REPLICA,
    logs: Array.from({ length: count }, () => ({ log: 'main', positions: Array(positions).fill(POSITION) })),
  });
  const { handshakeLogsMax, handshakePositionsMax } = LIMITS;
  expect(decodeHandshakeRequest(logs(handshakeLogsMax, handshakePositionsMax)).ok).toBe(true);
  expect(decodeHandshakeRequest(logs(handshakeLogsMax + 1, 0)).ok).toBe(false);
  expect(decodeHandshakeRequest(logs(1, handshakePositionsMax + 1)).ok).toBe(false);
});

test('[EV5] a rule that this version does not know is kept', () => {
  const change = { op: 'update', set: { title: 'x' }, rules: { title: 'longest' } };
  const decoded = decodeEventDraft(draftOf(change) as unknown as EventDraft);
  expect(decoded.ok && decoded.value.draft.change).toEqual(change);
});

test('[S16] reading hostile messages leaves every prototype as it was', () => {
  const before = Object.getOwnPropertyNames(Object.prototype).sort();
  const hostile = JSON.parse(
    '{"__proto__":{"operations":[]},"position":{"__proto__":{"polluted":1}},"replica":{},"operations":[{"requestId":"a","__proto__":{"polluted":1},"events":[{"change":{"op":"update","set":{"__proto__":{"polluted":1}},"inc":{"__proto__":1}}}]}]}',
  ) as PushRequest;
  for (const [, , decode] of strict) expect(decode(hostile).ok).toBe(false);
  expect(decodePushRequest({ ...pushOf(), operations: hostile.operations }).ok).toBe(true);
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});
