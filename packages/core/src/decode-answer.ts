import {
  atLeast,
  byTag,
  type Check,
  decode,
  flag,
  listOf,
  oneOfTexts,
  open,
  optional,
  recordOf,
  text,
  textWhere,
  whole,
} from './decode-check.ts';
import { digestText, entityState, id, instant, storedEvent } from './decode-event.ts';
import type { Outcome, RefusalCode, RequestRefusalCode } from './faults.ts';
import { found, isPlainObject } from './json.ts';
import { LIMITS } from './limits.ts';
import type {
  EntitiesPage,
  EventsPage,
  HandshakeAnswer,
  LogStanding,
  OperationResult,
  PartMark,
  PushAnswer,
  RequestRefusal,
  ServerFrame,
  SessionAnswer,
  Through,
} from './protocol.ts';

/**
 * What a ledger answers. Strict in what is read; a member that this code does not know is passed over, so that a newer
 * ledger may say more. Nothing here throws, whatever it is given.
 */
const answer = <T>(check: Check<T>, json: unknown): Outcome<T, 'answer-malformed'> =>
  decode('answer-malformed', check, json, { depth: -LIMITS.frameDepthMax });

const through: Check<Through> = atLeast({ version: whole(0), chain: digestText, attest: optional(digestText) });
const role = oneOfTexts('reader', 'writer', 'administrator');
const limits = recordOf(whole(0));

/** A code of a later ledger is let through: it is definite, and whoever reads it has a careful default. */
const isCode = (value: unknown): value is string => typeof value === 'string' && /^[a-z][a-z-]{0,62}$/.test(value);
const code = textWhere(isCode, 'a code') as Check<RefusalCode & RequestRefusalCode>;

const sessionAnswer: Check<SessionAnswer> = atLeast({
  account: text,
  grants: recordOf(role),
  expiresAt: optional(instant),
  protocol: atLeast({ min: whole(1), max: whole(1) }),
  capabilities: listOf(text),
  limits,
  serverTime: instant,
});
export const decodeSessionAnswer = (json: unknown): Outcome<SessionAnswer, 'answer-malformed'> =>
  answer(sessionAnswer, json);

// ── handshake ───────────────────────────────────────────────────────────────────────────────────────────────────────

const PRESENT = { log: id, identity: digestText, epoch: id, head: through } as const;
const known = atLeast({
  ...PRESENT,
  status: oneOfTexts('ok', 'behind'),
  role,
  signature: optional(oneOfTexts('equal', 'differs')),
});
const gone = atLeast({ log: id, status: oneOfTexts('deleted', 'not-allowed') });

const standing = byTag<LogStanding>('status', {
  ok: known,
  behind: known,
  'history-changed': atLeast({
    ...PRESENT,
    status: oneOfTexts('history-changed'),
    commonVersion: whole(0),
    healing: flag,
  }),
  moved: atLeast({ log: id, status: oneOfTexts('moved'), to: optional(text) }),
  deleted: gone,
  'not-allowed': gone,
});

const handshakeAnswer: Check<HandshakeAnswer> = atLeast({
  protocol: whole(1),
  account: text,
  capabilities: listOf(text),
  limits,
  serverTime: instant,
  logs: listOf(standing),
});
export const decodeHandshakeAnswer = (json: unknown): Outcome<HandshakeAnswer, 'answer-malformed'> =>
  answer(handshakeAnswer, json);

// ── events and state ────────────────────────────────────────────────────────────────────────────────────────────────

/** PG2: both, or neither. */
const inParts =
  <T extends PartMark>(check: Check<T>): Check<T> =>
  (json, depth) => {
    const problem = check(json, depth);
    if (problem !== null) return problem;
    const { part, parts } = json as PartMark;
    return (part === undefined && parts === undefined) || (part ?? Number.POSITIVE_INFINITY) <= (parts ?? 0)
      ? null
      : found('a part has its number and how many there are');
  };
const PARTS = { part: optional(whole(1)), parts: optional(whole(1)) } as const;

const operationResult = byTag<OperationResult>('status', {
  accepted: atLeast({
    requestId: id,
    status: oneOfTexts('accepted'),
    firstVersion: whole(1),
    entityVersions: listOf(whole(1)),
    recordedAt: instant,
    actor: text,
    assigned: optional(recordOf(open)),
    acceptedUnder: optional(id),
  }),
  refused: atLeast({
    requestId: id,
    status: oneOfTexts('refused'),
    code,
    message: optional(text),
    details: optional(open),
  }),
});

const ownReference = atLeast({ version: whole(1), requestId: id, index: whole(0) });
const eventOrOwn: Check<PushAnswer['events'][number]> = (json, depth) =>
  isPlainObject(json) && !Object.hasOwn(json, 'entityVersion') ? ownReference(json, depth) : storedEvent(json, depth);

const pushAnswer: Check<PushAnswer> = atLeast({
  epoch: id,
  results: listOf(operationResult),
  events: listOf(eventOrOwn),
  through,
  head: whole(0),
  more: flag,
});
export const decodePushAnswer = (json: unknown): Outcome<PushAnswer, 'answer-malformed'> => answer(pushAnswer, json);

const eventsPage: Check<EventsPage> = inParts(
  atLeast({ epoch: id, events: listOf(storedEvent), through, head: whole(0), more: flag, ...PARTS }),
);
export const decodeEventsPage = (json: unknown): Outcome<EventsPage, 'answer-malformed'> => answer(eventsPage, json);

const entitiesPage: Check<EntitiesPage> = atLeast({
  epoch: id,
  asOf: through,
  entities: listOf(entityState),
  next: optional(text),
});
export const decodeEntitiesPage = (json: unknown): Outcome<EntitiesPage, 'answer-malformed'> =>
  answer(entitiesPage, json);

const REFUSAL = { code, message: text, details: optional(open) } as const;
const requestRefusal: Check<RequestRefusal> = atLeast({ ...REFUSAL, requestId: text });
export const decodeRequestRefusal = (json: unknown): Outcome<RequestRefusal, 'answer-malformed'> =>
  answer(requestRefusal, json);

// ── frames ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const ping = atLeast({ type: oneOfTexts('ping', 'pong'), nonce: id });
const noMore = atLeast({ type: oneOfTexts('deleted', 'forbidden'), log: id });

const serverFrame = byTag<ServerFrame>('type', {
  welcome: atLeast({ type: oneOfTexts('welcome'), protocol: whole(1), account: text, pingMs: whole(1) }),
  ready: atLeast({ type: oneOfTexts('ready'), log: id, epoch: id, head: whole(0), chain: digestText }),
  events: inParts(
    atLeast({ type: oneOfTexts('events'), log: id, epoch: id, events: listOf(storedEvent), through, ...PARTS }),
  ),
  moved: atLeast({ type: oneOfTexts('moved'), log: id, to: optional(text) }),
  deleted: noMore,
  forbidden: noMore,
  'resync-required': atLeast({
    type: oneOfTexts('resync-required'),
    log: id,
    head: whole(0),
    reason: oneOfTexts('too-far-behind', 'slow', 'history-changed'),
  }),
  'session-ending': atLeast({ type: oneOfTexts('session-ending'), reason: text }),
  'going-away': atLeast({ type: oneOfTexts('going-away'), retryMs: whole(0) }),
  refused: atLeast({ type: oneOfTexts('refused'), ...REFUSAL }),
  ping,
  pong: ping,
});

/** A frame of a type that this code does not know is a fault here; the socket driver passes over it. */
export const decodeServerFrame = (json: unknown): Outcome<ServerFrame, 'answer-malformed'> => answer(serverFrame, json);
