import {
  type DecodedDraft,
  digestText,
  draftWithText,
  entityState,
  id,
  instant,
  storedEvent,
  uuid,
  wireName,
} from './decode-event.ts';
import {
  decoding,
  flag,
  listOf,
  member,
  objectAt,
  objectOf,
  oneOfTexts,
  open,
  optional,
  type Read,
  recordOf,
  text,
  unreadable,
  whole,
} from './decode-read.ts';
import { type Fault, fail, type Outcome } from './faults.ts';
import { isId } from './ids.ts';
import type { Json } from './json.ts';
import { LIMITS } from './limits.ts';
import type {
  ClientFrame,
  EntitiesPage,
  EventsPage,
  HandshakeAnswer,
  HandshakeRequest,
  LogStanding,
  OperationResult,
  Position,
  PushAnswer,
  PushOperation,
  RequestRefusal,
  RequestReplica,
  ServerFrame,
  SessionAnswer,
  Through,
} from './protocol.ts';

/** Strict for requests, lenient for additional members of answers. Nothing here throws, whatever it is given. */

const LENIENT = { lenient: true } as const;
const range = objectOf({ min: whole(1), max: whole(1) });
const position: Read<Position> = objectOf({ epoch: id, version: whole(0), chain: digestText });
const replica: Read<RequestReplica> = objectOf({ id, generation: whole(1), instance: id, permit: whole(1) });
const through: Read<Through> = objectOf(
  { version: whole(0), chain: digestText, attest: optional(digestText) },
  LENIENT,
);

// ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────

const handshakeRequest: Read<HandshakeRequest> = objectOf({
  protocol: range,
  replica,
  app: optional(objectOf({ name: text, schema: text })),
  health: optional(objectOf({ unsent: whole(0), attention: whole(0), oldestUnsentMs: optional(whole(0)) })),
  logs: listOf(
    objectOf({ log: id, positions: listOf(position, LIMITS.handshakePositionsMax), signature: optional(digestText) }),
    1_000,
  ),
});

export const decodeHandshakeRequest = (json: Json): Outcome<HandshakeRequest, 'malformed'> =>
  decoding('malformed', () => handshakeRequest(json, ''));

/** One operation of a push: read, or refused alone for its form (LG6). */
export type DecodedOperation =
  | { readonly ok: true; readonly operation: PushOperation; readonly draftTexts: readonly string[] }
  | { readonly ok: false; readonly requestId: string; readonly fault: Fault<'invalid-event'> };

export interface DecodedPush {
  readonly position: Position;
  readonly replica: RequestReplica;
  readonly operations: readonly DecodedOperation[];
}

const OPERATION = objectOf({
  requestId: uuid,
  actionId: uuid,
  events: listOf(draftWithText, LIMITS.commitEventsMax),
  needs: optional(listOf(uuid, LIMITS.needsMax)),
  requires: optional(listOf((json, path) => pair(json, path), LIMITS.requiresMax)),
  claims: optional(listOf(open, LIMITS.requiresMax)),
  merge: oneOfTexts('fields', 'author'),
  expectedLogVersion: optional(whole(0)),
  scope: optional(oneOfTexts('log')),
});

const pair: Read<readonly [string, string]> = (json, path) => {
  if (!Array.isArray(json) || json.length !== 2) return unreadable(path, '[type, id] is expected');
  return [wireName(json[0] as Json, `${path}[0]`), id(json[1] as Json, `${path}[1]`)];
};

function operationAt(json: Json, path: string): DecodedOperation {
  const requestId = objectAt(json, path)['requestId'];
  // Without an id nobody could be told of the refusal, so the request as a whole is not of the form.
  if (!isId(requestId)) unreadable(member(path, 'requestId'), 'an id is expected');
  const read = decoding('invalid-event', () => OPERATION(json, path));
  if (!read.ok) return { ok: false, requestId: requestId as string, fault: read.fault };
  const { events, ...rest } = read.value;
  if (events.length === 0)
    return {
      requestId: rest.requestId,
      ...fail('invalid-event', { path: `${path}.events`, reason: 'no events' }),
    };
  const operation = { ...rest, events: events.map((event: DecodedDraft) => event.draft) } as PushOperation;
  return { ok: true, operation, draftTexts: events.map((event: DecodedDraft) => event.text) };
}

const PUSH_KEYS: ReadonlySet<string> = new Set(['position', 'replica', 'operations']);

export function decodePushRequest(json: Json): Outcome<DecodedPush, 'malformed'> {
  return decoding('malformed', () => {
    const object = objectAt(json, '', PUSH_KEYS);
    const operations = object['operations'];
    if (!Array.isArray(operations)) unreadable('operations', 'a list is expected');
    const list = operations as readonly Json[];
    if (list.length === 0 || list.length > LIMITS.pageEventsMax)
      unreadable('operations', `1 to ${LIMITS.pageEventsMax} are allowed`);
    const decoded = {
      position: position(object['position'], 'position'),
      replica: replica(object['replica'], 'replica'),
      operations: list.map((operation, at) => operationAt(operation, `operations[${at}]`)),
    };
    const ids = new Set(decoded.operations.map((one) => (one.ok ? one.operation.requestId : one.requestId)));
    if (ids.size !== list.length) unreadable('operations', 'a request id stands twice');
    return decoded;
  });
}

const CLIENT_FRAMES: Readonly<Record<ClientFrame['type'], Read<ClientFrame>>> = {
  hello: objectOf({
    type: oneOfTexts('hello'),
    token: optional(text),
    protocol: range,
    replica: objectOf({ id, generation: whole(1), instance: id }),
  }),
  follow: objectOf({ type: oneOfTexts('follow'), log: id, position }),
  unfollow: objectOf({ type: oneOfTexts('unfollow'), log: id }),
  ack: objectOf({ type: oneOfTexts('ack'), log: id, version: whole(0) }),
  ping: objectOf({ type: oneOfTexts('ping'), nonce: id }),
  pong: objectOf({ type: oneOfTexts('pong'), nonce: id }),
};

export const decodeClientFrame = (json: Json): Outcome<ClientFrame, 'malformed'> =>
  decoding('malformed', () => {
    const type = oneOfTexts('hello', 'follow', 'unfollow', 'ack', 'ping', 'pong')(objectAt(json, '')['type'], 'type');
    return CLIENT_FRAMES[type](json, '');
  });

// ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const role = oneOfTexts('reader', 'writer', 'administrator');
const lenientRange = objectOf({ min: whole(1), max: whole(1) }, LENIENT);

const sessionAnswer: Read<SessionAnswer> = objectOf(
  {
    account: text,
    grants: recordOf(role),
    expiresAt: optional(text),
    protocol: lenientRange,
    capabilities: listOf(text),
    limits: recordOf(whole(0)),
    serverTime: instant,
  },
  LENIENT,
);
export const decodeSessionAnswer = (json: Json): Outcome<SessionAnswer, 'answer-malformed'> =>
  decoding('answer-malformed', () => sessionAnswer(json, ''));

const STANDINGS: Readonly<Record<LogStanding['status'], Read<LogStanding>>> = (() => {
  const present = { log: id, identity: digestText, epoch: id, head: through } as const;
  const known = objectOf(
    { ...present, status: oneOfTexts('ok', 'behind'), role, signature: optional(oneOfTexts('equal', 'differs')) },
    LENIENT,
  );
  const gone = objectOf({ log: id, status: oneOfTexts('deleted', 'not-allowed') }, LENIENT);
  return {
    ok: known,
    behind: known,
    'history-changed': objectOf(
      { ...present, status: oneOfTexts('history-changed'), commonVersion: whole(0), healing: flag },
      LENIENT,
    ),
    moved: objectOf({ log: id, status: oneOfTexts('moved'), to: optional(text) }, LENIENT),
    deleted: gone,
    'not-allowed': gone,
  };
})();

const standing: Read<LogStanding> = (json, path) => {
  const status = oneOfTexts(
    'ok',
    'behind',
    'history-changed',
    'moved',
    'deleted',
    'not-allowed',
  )(objectAt(json, path)['status'], member(path, 'status'));
  return STANDINGS[status](json, path);
};

const handshakeAnswer: Read<HandshakeAnswer> = objectOf(
  {
    protocol: whole(1),
    account: text,
    capabilities: listOf(text),
    limits: recordOf(whole(0)),
    serverTime: instant,
    logs: listOf(standing),
  },
  LENIENT,
);
export const decodeHandshakeAnswer = (json: Json): Outcome<HandshakeAnswer, 'answer-malformed'> =>
  decoding('answer-malformed', () => handshakeAnswer(json, ''));

const accepted = objectOf(
  {
    requestId: id,
    status: oneOfTexts('accepted'),
    firstVersion: whole(1),
    entityVersions: listOf(whole(1)),
    recordedAt: instant,
    actor: text,
    assigned: optional(recordOf(open)),
    acceptedUnder: optional(id),
  },
  LENIENT,
);
const refused = objectOf(
  { requestId: id, status: oneOfTexts('refused'), code: text, message: optional(text), details: optional(open) },
  LENIENT,
);
const operationResult: Read<OperationResult> = (json, path) => {
  const status = oneOfTexts('accepted', 'refused')(objectAt(json, path)['status'], member(path, 'status'));
  return (status === 'accepted' ? accepted(json, path) : refused(json, path)) as OperationResult;
};

const ownReference = objectOf({ version: whole(1), requestId: id, index: whole(0) }, LENIENT);
const eventOrOwn: Read<PushAnswer['events'][number]> = (json, path) =>
  !Object.hasOwn(objectAt(json, path), 'entityVersion') ? ownReference(json, path) : storedEvent(json, path);

const pushAnswer: Read<PushAnswer> = objectOf(
  { epoch: id, results: listOf(operationResult), events: listOf(eventOrOwn), through, head: whole(0), more: flag },
  LENIENT,
);
export const decodePushAnswer = (json: Json): Outcome<PushAnswer, 'answer-malformed'> =>
  decoding('answer-malformed', () => pushAnswer(json, ''));

const parts = { part: optional(whole(1)), parts: optional(whole(1)) } as const;
const eventsPage: Read<EventsPage> = objectOf(
  { epoch: id, events: listOf(storedEvent), through, head: whole(0), more: flag, ...parts },
  LENIENT,
);
export const decodeEventsPage = (json: Json): Outcome<EventsPage, 'answer-malformed'> =>
  decoding('answer-malformed', () => eventsPage(json, ''));

const entitiesPage: Read<EntitiesPage> = objectOf(
  { epoch: id, asOf: through, entities: listOf(entityState), next: optional(text) },
  LENIENT,
);
export const decodeEntitiesPage = (json: Json): Outcome<EntitiesPage, 'answer-malformed'> =>
  decoding('answer-malformed', () => entitiesPage(json, ''));

const requestRefusal: Read<RequestRefusal> = objectOf(
  { code: text, message: text, requestId: text, details: optional(open) },
  LENIENT,
) as Read<RequestRefusal>;
export const decodeRequestRefusal = (json: Json): Outcome<RequestRefusal, 'answer-malformed'> =>
  decoding('answer-malformed', () => requestRefusal(json, ''));

const SERVER_FRAMES: Readonly<Record<ServerFrame['type'], Read<ServerFrame>>> = (() => {
  const ping = objectOf({ type: oneOfTexts('ping', 'pong'), nonce: id }, LENIENT);
  const gone = objectOf({ type: oneOfTexts('deleted', 'forbidden'), log: id }, LENIENT);
  return {
    welcome: objectOf({ type: oneOfTexts('welcome'), protocol: whole(1), account: text, pingMs: whole(1) }, LENIENT),
    ready: objectOf({ type: oneOfTexts('ready'), log: id, epoch: id, head: whole(0), chain: digestText }, LENIENT),
    events: objectOf(
      { type: oneOfTexts('events'), log: id, epoch: id, events: listOf(storedEvent), through, ...parts },
      LENIENT,
    ) as Read<ServerFrame>,
    moved: objectOf({ type: oneOfTexts('moved'), log: id, to: optional(text) }, LENIENT),
    deleted: gone,
    forbidden: gone,
    'resync-required': objectOf(
      {
        type: oneOfTexts('resync-required'),
        log: id,
        head: whole(0),
        reason: oneOfTexts('too-far-behind', 'slow', 'history-changed'),
      },
      LENIENT,
    ),
    'session-ending': objectOf({ type: oneOfTexts('session-ending'), reason: text }, LENIENT),
    'going-away': objectOf({ type: oneOfTexts('going-away'), retryMs: whole(0) }, LENIENT),
    refused: objectOf(
      { type: oneOfTexts('refused'), code: text, message: text, details: optional(open) },
      LENIENT,
    ) as Read<ServerFrame>,
    ping,
    pong: ping,
  };
})();

/** A frame of a type that this code does not know is a fault here; the socket driver passes over it. */
export const decodeServerFrame = (json: Json): Outcome<ServerFrame, 'answer-malformed'> =>
  decoding('answer-malformed', () => {
    const type = text(objectAt(json, '')['type'], 'type');
    if (!Object.hasOwn(SERVER_FRAMES, type)) unreadable('type', 'an unknown frame');
    return SERVER_FRAMES[type as ServerFrame['type']](json, '');
  });
