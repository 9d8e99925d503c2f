import fc from 'fast-check';
import type { Change, EntityState, Envelope, ErasedEvent, EventDraft, StoredEvent } from './events.ts';
import { isSafeKey, type JsonObject } from './json.ts';
import { jsonValue } from './json-values.fixture.ts';
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
  PushRequest,
  RequestRefusal,
  RequestReplica,
  ServerFrame,
  SessionAnswer,
  Through,
} from './protocol.ts';

/** Messages as a well-behaved device or ledger may send them, every optional member there or not. */

export const hexOf = (bytes: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((all) => Buffer.from(all).toString('hex'));
const uuid = fc.uuid({ version: 7 });
const visible = fc.integer({ min: 0x21, max: 0x7e }).map((unit) => String.fromCharCode(unit));
const id = fc.string({ unit: visible, minLength: 1, maxLength: 12 });
const name = fc.constantFrom('title', 'labels', 'status', 'toString', 'valueOf', 'a-b', 'A.b_c', 'x'.repeat(63));
const text = fc.string({ unit: 'binary', maxLength: 10 }).filter((one) => !one.includes('\0'));
const instant = fc.nat(4_000_000_000).map((seconds) => new Date(seconds * 1_000 + 7).toISOString());
const count = fc.nat(1_000);
const positive = fc.integer({ min: 1, max: 1_000 });
const object: fc.Arbitrary<JsonObject> = fc.dictionary(text.filter(isSafeKey), jsonValue, {
  maxKeys: 3,
  noNullPrototype: true,
});

type Members = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** A record of which any optional member may be absent. */
const some = <T extends object>(required: Members, optional: Members = {}): fc.Arbitrary<T> =>
  fc.record({ ...required, ...optional }, { requiredKeys: Object.keys(required), noNullPrototype: true }) as never;

// ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const byField = <T>(value: fc.Arbitrary<T>) => fc.dictionary(name, value, { maxKeys: 4, noNullPrototype: true });
const fields = byField(jsonValue);
const rules = byField(fc.constantFrom('last', 'max', 'min', 'sum'));
const elements = fc.array(jsonValue, { maxLength: 3 });

export const anyChange = fc.oneof(
  some<Change>({ op: fc.constant('create'), fields }),
  some<Change>(
    { op: fc.constant('update') },
    {
      set: fields,
      unset: fc.uniqueArray(name, { maxLength: 3 }),
      inc: byField(fc.maxSafeInteger()),
      add: byField(elements),
      remove: byField(elements),
      rules,
    },
  ),
  some<Change>({ op: fc.constant('put'), set: fields }, { rules }),
  some<Change>({ op: fc.constant('delete') }),
  some<Change>({ op: fc.constant('restore'), fields }),
);

export const anyDraft = some<EventDraft>(
  {
    id: uuid,
    type: fc.constantFrom('issue.updated', 'issue.closed', `${'x'.repeat(63)}.${'y'.repeat(63)}`),
    entityType: fc.constantFrom('issue', 'holdfast.entity-type', 'x'.repeat(63)),
    entityId: id,
    change: anyChange,
    base: count,
    at: instant,
    salt: hexOf(16),
  },
  { prior: uuid, meta: object },
);

export const anyEnvelope = some<Envelope>(
  {
    version: positive,
    entityVersion: positive,
    actor: text,
    recordedAt: instant,
    requestId: id,
    actionId: id,
    replicaId: id,
    index: count,
    count: positive,
  },
  { assigned: object, origin: some({ actor: text, recordedAt: instant }) },
);

const storedEvent = fc
  .tuple(anyDraft, anyEnvelope)
  .map(([draft, envelope]): StoredEvent => ({ ...draft, ...envelope }));
const erasedEvent = fc
  .tuple(anyEnvelope, hexOf(32))
  .map(([envelope, leaf]): ErasedEvent => ({ ...envelope, leaf, erased: true }));
export const anyStoredEvent = fc.oneof(storedEvent, erasedEvent);

export const anyEntityState = some<EntityState>({
  type: name,
  id,
  version: positive,
  fields,
  createdBy: text,
  createdAt: instant,
  updatedBy: text,
  updatedAt: instant,
  arrival: positive,
});

// ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────

const range = some<{ min: number; max: number }>({ min: positive, max: positive });
const position = some<Position>({ epoch: id, version: count, chain: hexOf(32) });
const replica = some<RequestReplica>({ id, generation: positive, instance: id, permit: positive });

export const anyHandshakeRequest = some<HandshakeRequest>(
  {
    protocol: range,
    replica,
    logs: fc.array(some({ log: id, positions: fc.array(position, { maxLength: 3 }) }, { signature: hexOf(32) }), {
      maxLength: 3,
    }),
  },
  {
    app: some({ name: text, schema: text }),
    health: some({ unsent: count, attention: count }, { oldestUnsentMs: count }),
  },
);

export const anyOperation = some<PushOperation>(
  {
    requestId: uuid,
    actionId: uuid,
    events: fc.array(anyDraft, { minLength: 1, maxLength: 3 }),
    merge: fc.constantFrom('fields', 'author'),
  },
  {
    needs: fc.array(uuid, { maxLength: 3 }),
    requires: fc.array(fc.tuple(name, id), { maxLength: 3 }),
    claims: fc.array(object, { maxLength: 2 }),
    expectedLogVersion: count,
    scope: fc.constant('log'),
  },
);

export const anyPushRequest = some<PushRequest>({
  position,
  replica,
  operations: fc.uniqueArray(anyOperation, { minLength: 1, maxLength: 4, selector: ({ requestId }) => requestId }),
});

export const anyClientFrame: fc.Arbitrary<ClientFrame> = fc.oneof(
  some<ClientFrame>(
    { type: fc.constant('hello'), protocol: range, replica: some({ id, generation: positive, instance: id }) },
    { token: text },
  ),
  some<ClientFrame>({ type: fc.constant('follow'), log: id, position }),
  some<ClientFrame>({ type: fc.constant('unfollow'), log: id }),
  some<ClientFrame>({ type: fc.constant('ack'), log: id, version: count }),
  some<ClientFrame>({ type: fc.constantFrom('ping', 'pong'), nonce: id }),
);

// ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const through = some<Through>({ version: count, chain: hexOf(32) }, { attest: hexOf(32) });
const role = fc.constantFrom('reader', 'writer', 'administrator');
const limits = byField(count);
const parts = fc.constantFrom({}, {}, { part: 1, parts: 3 }, { part: 3, parts: 3 });
const inParts = <T extends object>(page: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.tuple(page, parts).map(([one, mark]) => ({ ...one, ...mark }));

export const anySessionAnswer = some<SessionAnswer>(
  { account: text, grants: byField(role), protocol: range, capabilities: fc.array(text), limits, serverTime: instant },
  { expiresAt: instant },
);

const present = { log: id, identity: hexOf(32), epoch: id, head: through };
const standing = fc.oneof(
  some<LogStanding>(
    { ...present, status: fc.constantFrom('ok', 'behind'), role },
    {
      signature: fc.constantFrom('equal', 'differs'),
    },
  ),
  some<LogStanding>({
    ...present,
    status: fc.constant('history-changed'),
    commonVersion: count,
    healing: fc.boolean(),
  }),
  some<LogStanding>({ log: id, status: fc.constant('moved') }, { to: text }),
  some<LogStanding>({ log: id, status: fc.constantFrom('deleted', 'not-allowed') }),
);
export const anyHandshakeAnswer = some<HandshakeAnswer>({
  protocol: positive,
  account: text,
  capabilities: fc.array(text),
  limits,
  serverTime: instant,
  logs: fc.array(standing, { maxLength: 4 }),
});

const code = fc.constantFrom('version-conflict', 'too-large', 'a-code-of-later');
const result = fc.oneof(
  some<OperationResult>(
    {
      requestId: id,
      status: fc.constant('accepted'),
      firstVersion: positive,
      entityVersions: fc.array(positive, { maxLength: 3 }),
      recordedAt: instant,
      actor: text,
    },
    { assigned: byField(object), acceptedUnder: id },
  ),
  some<OperationResult>(
    { requestId: id, status: fc.constant('refused'), code },
    {
      message: text,
      details: object,
    },
  ),
);
const own = some<{ version: number; requestId: string; index: number }>({
  version: positive,
  requestId: id,
  index: count,
});

export const anyPushAnswer = some<PushAnswer>({
  epoch: id,
  results: fc.array(result, { maxLength: 3 }),
  events: fc.array(fc.oneof(anyStoredEvent, own), { maxLength: 3 }),
  through,
  head: count,
  more: fc.boolean(),
});
export const anyEventsPage = inParts(
  some<EventsPage>({
    epoch: id,
    events: fc.array(anyStoredEvent, { maxLength: 3 }),
    through,
    head: count,
    more: fc.boolean(),
  }),
);
export const anyEntitiesPage = some<EntitiesPage>(
  { epoch: id, asOf: through, entities: fc.array(anyEntityState, { maxLength: 3 }) },
  { next: text },
);
export const anyRequestRefusal = some<RequestRefusal>({ code, message: text, requestId: text }, { details: object });

export const anyServerFrame: fc.Arbitrary<ServerFrame> = fc.oneof(
  some<ServerFrame>({ type: fc.constant('welcome'), protocol: positive, account: text, pingMs: positive }),
  some<ServerFrame>({ type: fc.constant('ready'), log: id, epoch: id, head: count, chain: hexOf(32) }),
  inParts(
    some<ServerFrame>({
      type: fc.constant('events'),
      log: id,
      epoch: id,
      events: fc.array(anyStoredEvent, { maxLength: 3 }),
      through,
    }),
  ),
  some<ServerFrame>({ type: fc.constant('moved'), log: id }, { to: text }),
  some<ServerFrame>({ type: fc.constantFrom('deleted', 'forbidden'), log: id }),
  some<ServerFrame>({
    type: fc.constant('resync-required'),
    log: id,
    head: count,
    reason: fc.constantFrom('too-far-behind', 'slow', 'history-changed'),
  }),
  some<ServerFrame>({ type: fc.constant('session-ending'), reason: text }),
  some<ServerFrame>({ type: fc.constant('going-away'), retryMs: count }),
  some<ServerFrame>({ type: fc.constant('refused'), code, message: text }, { details: object }),
  some<ServerFrame>({ type: fc.constantFrom('ping', 'pong'), nonce: id }),
);
