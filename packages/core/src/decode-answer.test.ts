import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import {
  decodeEntitiesPage,
  decodeEventsPage,
  decodeHandshakeAnswer,
  decodePushAnswer,
  decodeRequestRefusal,
  decodeServerFrame,
  decodeSessionAnswer,
} from './decode-answer.ts';
import { decodeEntityState, decodeEventDraft, decodeStoredEvent } from './decode-event.ts';
import { spoiledAt, spoils } from './decode-spoil.fixture.ts';
import type { Outcome } from './faults.ts';
import { type Json, jsonProblem } from './json.ts';
import { LIMITS } from './limits.ts';
import {
  anyDraft,
  anyEntitiesPage,
  anyEntityState,
  anyEnvelope,
  anyEventsPage,
  anyHandshakeAnswer,
  anyPushAnswer,
  anyRequestRefusal,
  anyServerFrame,
  anySessionAnswer,
  anyStoredEvent,
} from './messages.fixture.ts';

const answers: readonly [string, fc.Arbitrary<unknown>, (json: unknown) => Outcome<unknown>][] = [
  ['a session', anySessionAnswer, decodeSessionAnswer],
  ['a handshake answer', anyHandshakeAnswer, decodeHandshakeAnswer],
  ['a push answer', anyPushAnswer, decodePushAnswer],
  ['a page of events', anyEventsPage, decodeEventsPage],
  ['a page of state', anyEntitiesPage, decodeEntitiesPage],
  ['a refusal', anyRequestRefusal, decodeRequestRefusal],
  ['a server frame', anyServerFrame, decodeServerFrame],
  ['a stored event', anyStoredEvent, decodeStoredEvent],
  ['an entity', anyEntityState, decodeEntityState],
];

describe.each(answers)('[LG10] %s', (_, valid, decode) => {
  test('[LG10] is read as it is when it is well formed', () => {
    fc.assert(
      fc.property(valid, (message) => {
        const read = decode(JSON.parse(canonical(message as Json)));
        expect(read.ok && canonical(read.value as Json)).toBe(canonical(message as Json));
      }),
    );
  });

  test('[JS1] is refused or in the profile, wherever it was spoiled, and nothing throws', () => {
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

  test('[LG10] is refused without throwing when it is anything at all', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.anything({ withNullPrototype: true })), (value) => {
        expect(decode(value).ok).toBe(false);
      }),
      { numRuns: 100 },
    );
  });
});

const CHAIN = '0'.repeat(64);
const THROUGH = { version: 1, chain: CHAIN };
const PAGE = { epoch: 'e', events: [], through: THROUGH, head: 1, more: false };

test('[LG12] what a newer ledger says besides is passed over, as long as the profile allows it', () => {
  expect(decodeEventsPage({ ...PAGE, note: { deep: [1] }, through: { ...THROUGH, seal: 'x' } }).ok).toBe(true);
  expect(decodeEventsPage({ ...PAGE, note: { deep: ['\ud800'] } })).toMatchObject({
    fault: { code: 'answer-malformed', facts: { path: 'note.deep[0]' } },
  });
  expect(decodeEventsPage({ ...PAGE, ...JSON.parse('{"x":{"__proto__":1}}') })).toMatchObject({
    fault: { facts: { path: 'x.__proto__' } },
  });
});

test('[DG1] an event has exactly its keys even in an answer, since the chain is over them', () => {
  fc.assert(
    fc.property(anyStoredEvent, fc.constantFrom('note', 'leaf2', 'toString'), (event, key) => {
      expect(decodeStoredEvent({ ...event, [key]: 1 }).ok).toBe(false);
    }),
  );
  const erased = { ...fc.sample(anyEnvelope, 1)[0], leaf: CHAIN, erased: true };
  expect(decodeStoredEvent(erased).ok).toBe(true);
  expect(decodeStoredEvent({ ...erased, erased: false }).ok).toBe(false);
  expect(decodeStoredEvent({ ...erased, salt: '0'.repeat(32) }).ok).toBe(false);
});

test('[F129] whatever a ledger accepted as a draft, a replica reads as an event', () => {
  fc.assert(
    fc.property(anyDraft, anyEnvelope, spoils, fc.nat(), (draft, envelope, spoil, place) => {
      const given = spoiledAt(draft, spoil, place);
      if (!decodeEventDraft(given).ok) return;
      expect(decodeStoredEvent({ ...(given as object), ...envelope })).toMatchObject({ ok: true });
    }),
    { numRuns: 400 },
  );
});

test('[F129] an event that older limits accepted is still read', () => {
  const [draft] = fc.sample(anyDraft, 1);
  const [envelope] = fc.sample(anyEnvelope, 1);
  const fields = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`a field of long ago ${at}`, at]));
  const event = { ...draft, ...envelope, change: { op: 'create', fields }, type: 'x'.repeat(500), at: '1999' };
  expect(decodeEventDraft({ ...draft, change: event.change }).ok).toBe(false);
  expect(decodeStoredEvent(event).ok).toBe(true);
});

test('[PG2] a part names its number and how many there are', () => {
  const page = (mark: object) => decodeEventsPage({ ...PAGE, ...mark }).ok;
  expect([{}, { part: 1, parts: 1 }, { part: 2, parts: 3 }].map(page)).toEqual([true, true, true]);
  expect([{ part: 1 }, { parts: 2 }, { part: 3, parts: 2 }, { part: 0, parts: 2 }].some(page)).toBe(false);
});

test('[LG12] a refusal with a code of later is read, one without a code is not', () => {
  const refusal = { code: 'not-yet-known', message: 'x', requestId: 'a' };
  expect(decodeRequestRefusal(refusal).ok).toBe(true);
  for (const code of ['', 'Not A Code', '__proto__', 'toString', null])
    expect(decodeRequestRefusal({ ...refusal, code }).ok).toBe(false);
});

test('[RT4] a frame of an unknown type is refused by name, not by accident', () => {
  for (const type of ['signal', 'toString', '__proto__', 1, null, undefined])
    expect(decodeServerFrame({ type })).toMatchObject({ fault: { code: 'answer-malformed', facts: { path: 'type' } } });
});
