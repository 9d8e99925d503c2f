import { canonical } from './canonical.ts';
import {
  byTag,
  type Check,
  decode,
  exactly,
  faultOf,
  listOf,
  oneOfTexts,
  open,
  optional,
  textUpTo,
  unchecked,
  whole,
} from './decode-check.ts';
import { digestText, draft, eventSizeFault, id, uuid, wireName } from './decode-event.ts';
import { type Fault, fail, type Outcome, ok } from './faults.ts';
import { isId } from './ids.ts';
import { found, isPlainObject, type Json, within } from './json.ts';
import { LIMITS } from './limits.ts';
import type { ClientFrame, HandshakeRequest, Position, PushOperation, RequestReplica } from './protocol.ts';

/** What devices send. Strict: a key that nobody reads is refused. Nothing here throws, whatever it is given. */

const range = exactly({ min: whole(1), max: whole(1) });
const position: Check<Position> = exactly({ epoch: id, version: whole(0), chain: digestText });
const replica: Check<RequestReplica> = exactly({ id, generation: whole(1), instance: id, permit: whole(1) });
const label = textUpTo(LIMITS.labelLengthMax);

const handshakeRequest: Check<HandshakeRequest> = exactly({
  protocol: range,
  replica,
  app: optional(exactly({ name: label, schema: label })),
  health: optional(exactly({ unsent: whole(0), attention: whole(0), oldestUnsentMs: optional(whole(0)) })),
  logs: listOf(
    exactly({ log: id, positions: listOf(position, LIMITS.handshakePositionsMax), signature: optional(digestText) }),
    LIMITS.handshakeLogsMax,
  ),
});

export const decodeHandshakeRequest = (json: unknown): Outcome<HandshakeRequest, 'malformed'> =>
  decode('malformed', handshakeRequest, json);

// ── push ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One operation of a push: read, or refused alone for its form (LG6). */
export type DecodedOperation =
  | {
      readonly ok: true;
      readonly operation: PushOperation;
      /** The canonical text of each event, made once: nobody serialises a draft again. */
      readonly draftTexts: readonly string[];
    }
  | { readonly ok: false; readonly requestId: string; readonly fault: Fault<'invalid-event' | 'too-large'> };

export interface DecodedPush {
  readonly position: Position;
  readonly replica: RequestReplica;
  readonly operations: readonly DecodedOperation[];
}

const push = exactly({ position, replica, operations: listOf(unchecked, LIMITS.pageEventsMax) });

/** The operations' texts may be out of the profile here (`parseWire`): such a one is refused alone. */
export function decodePushRequest(json: unknown): Outcome<DecodedPush, 'malformed'> {
  const frame = decode('malformed', push, json);
  if (!frame.ok) return frame;
  const given = frame.value.operations;
  if (given.length === 0) return fail('malformed', { path: 'operations', reason: 'no operations' });
  const operations: DecodedOperation[] = [];
  const ids = new Set<string>();
  for (let at = 0; at < given.length; at += 1) {
    const path = `operations[${at}]`;
    const requestId = requestIdOf(given[at]);
    // Without an id nobody could be told of the refusal, so the request as a whole is not of the form.
    if (requestId === null) return fail('malformed', { path: `${path}.requestId`, reason: 'an id is expected' });
    if (ids.has(requestId)) return fail('malformed', { path: `${path}.requestId`, reason: 'this id stands twice' });
    ids.add(requestId);
    operations.push(decodeOperation(given[at] as Json, requestId, path));
  }
  return ok({ position: frame.value.position, replica: frame.value.replica, operations });
}

function requestIdOf(json: unknown): string | null {
  const requestId = isPlainObject(json) ? json['requestId'] : null;
  return isId(requestId) ? requestId : null;
}

const pair: Check<readonly [string, string]> = (json, depth) => {
  if (!Array.isArray(json) || json.length !== 2) return found('[type, id] is expected');
  const type = wireName(json[0], depth + 1);
  if (type !== null) return within(type, 0);
  const entityId = id(json[1], depth + 1);
  return entityId === null ? null : within(entityId, 1);
};

const operation: Check<PushOperation> = exactly({
  requestId: uuid,
  actionId: uuid,
  events: listOf(draft),
  needs: optional(listOf(uuid, LIMITS.needsMax)),
  requires: optional(listOf(pair, LIMITS.requiresMax)),
  claims: optional(listOf(open, LIMITS.requiresMax)),
  merge: oneOfTexts('fields', 'author'),
  expectedLogVersion: optional(whole(0)),
  scope: optional(oneOfTexts('log')),
});

function decodeOperation(json: Json, requestId: string, path: string): DecodedOperation {
  const refused = (fault: Fault<'invalid-event' | 'too-large'>) => ({ ok: false, requestId, fault }) as const;
  const given = (json as { readonly events?: unknown }).events;
  if (Array.isArray(given) && given.length > LIMITS.commitEventsMax)
    return refused(
      fail('too-large', {
        path: `${path}.events`,
        limit: 'commitEventsMax',
        max: LIMITS.commitEventsMax,
        found: given.length,
      }).fault,
    );
  const problem = operation(json, 0);
  if (problem !== null) return refused(faultOf('invalid-event', problem, path));
  const { events } = json as unknown as PushOperation;
  if (events.length === 0) return refused(fail('invalid-event', { path: `${path}.events`, reason: 'no events' }).fault);
  const draftTexts: string[] = [];
  for (let at = 0; at < events.length; at += 1) {
    const text = canonical(events[at] as unknown as Json);
    const tooLarge = eventSizeFault(text, `${path}.events[${at}]`);
    if (tooLarge !== null) return refused(tooLarge);
    draftTexts.push(text);
  }
  return { ok: true, operation: json as unknown as PushOperation, draftTexts };
}

// ── frames ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const clientFrame = byTag<ClientFrame>('type', {
  hello: exactly({
    type: oneOfTexts('hello'),
    token: optional(textUpTo(LIMITS.socketFrameBytesMax)),
    protocol: range,
    replica: exactly({ id, generation: whole(1), instance: id }),
  }),
  follow: exactly({ type: oneOfTexts('follow'), log: id, position }),
  unfollow: exactly({ type: oneOfTexts('unfollow'), log: id }),
  ack: exactly({ type: oneOfTexts('ack'), log: id, version: whole(0) }),
  ping: exactly({ type: oneOfTexts('ping'), nonce: id }),
  pong: exactly({ type: oneOfTexts('pong'), nonce: id }),
});

export const decodeClientFrame = (json: unknown): Outcome<ClientFrame, 'malformed'> =>
  decode('malformed', clientFrame, json);
