import {
  bytesToHex,
  canonical,
  chainLink,
  checkChain,
  type Digest,
  type EventDraft,
  type Fault,
  hexToBytes,
  type JsonObject,
  LIMITS,
  type OperationResult,
  type PushOperation,
  RUN_TIME_TYPE,
  storedEventText,
} from '@holdfast/core';
import type { EngineLimits, Quota } from './engine.ts';
import { assignedText, envelopeWriter } from './envelope.ts';
import type { PageEvent } from './event-page.ts';
import { type EventContext, type EventRefusal, isRefusal, type JudgedEvent, judgeOne, refusal } from './judge-event.ts';
import type { LogInWork } from './log-in-work.ts';
import { partEventsOf } from './parts.ts';
import type { DraftTexts, ReadOperation } from './push-request.ts';
import type { NewEvent, OperationRow } from './store-port.ts';

export interface OperationContext extends EventContext {
  readonly replica: string;
  readonly digest: Digest;
  readonly limits: EngineLimits;
  readonly quota: Quota | undefined;
  /** How many operations its request has: LG5 wants one to be alone. */
  readonly companions: number;
  /** Types that an operation of this request defines and was refused with: what uses them waits (SC4). */
  readonly refusedTypes: Set<string>;
}

/**
 * LG11's order for one operation: remembered result, seal, quota and size, form, ids, bases. It stands or falls alone: a
 * refusal leaves the log in work as it was. Refusals are monotone but for what waits (`prior-missing`, `quota-exceeded`,
 * `sealed`), so none is remembered (LG2).
 */
export function judgeOperation(log: LogInWork, read: ReadOperation, context: OperationContext): OperationResult {
  const requestId = read.isRead ? read.operation.requestId : read.requestId;
  const remembered = log.byRequest(requestId);
  if (remembered !== undefined)
    return read.isRead && remembered.identity === read.drafts.identity
      ? acceptedResult(requestId, remembered)
      : refusedResult(requestId, refusal('idempotency-mismatch', { requestId }));
  if (log.read.log.state !== 'open')
    return refusedResult(
      requestId,
      refusal('sealed', log.read.log.movedTo === null ? {} : { to: log.read.log.movedTo }),
    );
  if (!read.isRead) return refusedResult(requestId, ofFault(read.fault));
  const { operation, drafts } = read;
  const outcome =
    sizeProblem(drafts, context.limits) ??
    quotaProblem(log, drafts, context) ??
    formProblem(operation, context) ??
    acceptedElsewhere(log, operation) ??
    waitsFor(log, operation, context) ??
    staleness(log, operation) ??
    appendOperation(log, operation, drafts, context);
  if (!isRefusal(outcome)) return acceptedResult(requestId, outcome);
  noteRefusedTypes(operation, context);
  return refusedResult(requestId, outcome);
}

// ── results ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function acceptedResult(requestId: string, row: OperationRow): OperationResult {
  return {
    requestId,
    status: 'accepted',
    firstVersion: row.firstVersion,
    entityVersions: row.entityVersions,
    recordedAt: row.recordedAt,
    actor: row.actor,
    ...(row.assigned === null ? {} : { assigned: row.assigned }),
    ...(row.requestId === requestId ? {} : { acceptedUnder: row.requestId }),
  };
}

const refusedResult = (requestId: string, { code, message, details }: EventRefusal): OperationResult => ({
  requestId,
  status: 'refused',
  code,
  ...(message === undefined ? {} : { message }),
  ...(details === undefined ? {} : { details }),
});

const ofFault = ({ code, facts }: Fault<'invalid-event' | 'too-large' | 'entity-version-chain'>): EventRefusal =>
  refusal(code, facts as JsonObject | undefined);

// ── size, quota, form ───────────────────────────────────────────────────────────────────────────────────────────────

function sizeProblem({ texts, sizes, bytes }: DraftTexts, limits: EngineLimits): EventRefusal | null {
  const over = (limit: string, max: number, found: number) => refusal('too-large', { limit, max, found });
  if (texts.length > limits.commitEventsMax) return over('commitEventsMax', limits.commitEventsMax, texts.length);
  if (bytes > limits.commitBytesMax) return over('commitBytesMax', limits.commitBytesMax, bytes);
  const big = sizes.find((size) => size > LIMITS.eventBytesMax);
  return big === undefined ? null : over('eventBytesMax', LIMITS.eventBytesMax, big);
}

function quotaProblem(log: LogInWork, { texts, bytes }: DraftTexts, context: OperationContext): EventRefusal | null {
  const { quota, actor, workspace } = context;
  const used = quota?.({ account: actor.account, workspace, log: log.read.log.log, events: texts.length, bytes });
  return used === undefined ? null : refusal('quota-exceeded', { retryAfterMs: used.retryAfterMs });
}

function formProblem(operation: PushOperation, context: OperationContext): EventRefusal | null {
  // What would be lost if it were passed over is refused, and the operation waits (LG12).
  if (operation.claims !== undefined) return refusal('protocol-unsupported', { part: 'claims' });
  if (operation.expectedLogVersion !== undefined && context.companions > 0)
    return refusal('invalid-event', { path: 'expectedLogVersion', reason: 'such an operation is alone in its push' });
  for (const [at, { entityType }] of operation.events.entries())
    if (entityType.startsWith('holdfast.') && entityType !== RUN_TIME_TYPE)
      return refusal('invalid-event', { path: `events[${at}].entityType`, reason: 'a reserved type' });
  const ids = new Set(operation.events.map((event) => event.id));
  if (ids.size < operation.events.length)
    return refusal('entity-version-chain', { reason: 'an event id stands twice' });
  const chain = checkChain(operation.events);
  return chain.ok ? null : ofFault(chain.fault);
}

// ── ids ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** LG3: these ids were accepted before, under another request. */
function acceptedElsewhere(log: LogInWork, operation: PushOperation): OperationRow | EventRefusal | null {
  const row = log.byAction(operation.actionId);
  if (row !== undefined) {
    if (isSameOperation(log, row, operation)) return row;
    return refusal('event-id-reused', { actionId: row.actionId, requestId: row.requestId, version: row.firstVersion });
  }
  for (const { id } of operation.events) {
    const event = log.event(id);
    if (event !== undefined) return refusal('event-id-reused', { event: id, version: event.version });
  }
  return null;
}

/** Same events in the same places; what a rebase changes (base, prior, salt, device time) is not compared. */
function isSameOperation(log: LogInWork, row: OperationRow, operation: PushOperation): boolean {
  if (row.count !== operation.events.length) return false;
  return operation.events.every((draft, at) => {
    const known = log.event(draft.id);
    if (known === undefined || known.version !== row.firstVersion + at) return false;
    // Nobody can compare with what was erased; the ids are all that is left of it.
    if (known.draft === null) return true;
    return intentOf(JSON.parse(known.draft) as EventDraft) === intentOf(draft);
  });
}

const intentOf = ({ type, entityType, entityId, change }: EventDraft): string =>
  canonical([type, entityType, entityId, change as unknown as JsonObject]);

// ── what it waits for ───────────────────────────────────────────────────────────────────────────────────────────────

function waitsFor(log: LogInWork, operation: PushOperation, context: OperationContext): EventRefusal | null {
  const need = operation.needs?.find((actionId) => !log.isAccepted(actionId));
  if (need !== undefined) return refusal('prior-missing', { needs: need });
  const used = operation.events.find(({ entityType }) => context.refusedTypes.has(entityType));
  return used === undefined ? null : refusal('prior-missing', { definitionOf: used.entityType });
}

function noteRefusedTypes({ events }: PushOperation, { refusedTypes }: OperationContext): void {
  for (const { entityType, entityId } of events) if (entityType === RUN_TIME_TYPE) refusedTypes.add(entityId);
}

/** LG5. */
function staleness(log: LogInWork, operation: PushOperation): EventRefusal | null {
  const { expectedLogVersion: expected, scope, events } = operation;
  if (expected === undefined) return null;
  if (scope === 'log') return log.head === expected ? null : stale(log, expected);
  const moved = events.find(({ entityType, entityId }) => log.entity(entityType, entityId).lastVersion > expected);
  return moved === undefined ? null : stale(log, expected, { type: moved.entityType, id: moved.entityId });
}

const stale = (log: LogInWork, expected: number, entity: JsonObject = {}): EventRefusal =>
  refusal('stale-restore-preview', { expectedLogVersion: expected, head: log.head, ...entity });

// ── appending ───────────────────────────────────────────────────────────────────────────────────────────────────────

function appendOperation(
  log: LogInWork,
  operation: PushOperation,
  drafts: DraftTexts,
  context: OperationContext,
): OperationRow | EventRefusal {
  log.begin();
  try {
    const judged = judgeEvents(log, operation, context);
    if (isRefusal(judged)) {
      log.undo();
      return judged;
    }
    return accept(log, operation, drafts, judged, context);
  } catch (cause) {
    log.undo();
    throw cause;
  }
}

function judgeEvents(
  log: LogInWork,
  operation: PushOperation,
  context: OperationContext,
): readonly JudgedEvent[] | EventRefusal {
  const absent = operation.requires?.filter(([type, id]) => log.entity(type, id).state === undefined) ?? [];
  const own = new Map<string, EventDraft>();
  const judged: JudgedEvent[] = [];
  const judging = { ...context, merge: operation.merge };
  for (const [at, draft] of operation.events.entries()) {
    const place = { version: log.head + 1 + at, path: `events[${at}]`, own };
    const event = judgeOne(log, draft, place, judging);
    if (isRefusal(event)) return event;
    own.set(draft.id, draft);
    judged.push(event);
  }
  // What the operation itself creates is there too.
  const missing = absent.find(([type, id]) => log.entity(type, id).state === undefined);
  return missing === undefined ? judged : refusal('missing-reference', { type: missing[0], id: missing[1] });
}

function accept(
  log: LogInWork,
  operation: PushOperation,
  drafts: DraftTexts,
  judged: readonly JudgedEvent[],
  { actor, recordedAt, replica, digest }: OperationContext,
): OperationRow {
  const outline = {
    firstVersion: log.head + 1,
    count: judged.length,
    requestId: operation.requestId,
    actionId: operation.actionId,
    replicaId: replica,
    actor: actor.account,
    recordedAt,
    origin: null,
  };
  const write = envelopeWriter(outline);
  const events: NewEvent[] = [];
  const texts: PageEvent[] = [];
  let chain = hexToBytes(log.chain);
  let { bytes } = drafts;
  for (const [index, { entity, entityVersion, assigned, previous }] of judged.entries()) {
    const { id, prior } = operation.events[index] as EventDraft;
    const draft = drafts.texts[index] as string;
    const place = { version: outline.firstVersion + index, entityVersion, assigned: assignedText(assigned) };
    const envelope = write(place);
    chain = chainLink(chain, draft, envelope, digest);
    const chainText = bytesToHex(chain);
    bytes += envelope.length;
    const { type: entityType, id: entityId } = entity;
    events.push({ ...place, id, entityType, entityId, prior: prior ?? null, draft, chain: chainText, previous });
    texts.push({ version: place.version, chain: chainText, text: storedEventText(draft, envelope) });
  }
  const row: OperationRow = {
    ...outline,
    identity: drafts.identity,
    entityVersions: judged.map((event) => event.entityVersion),
    assigned: assignedByEvent(operation, judged),
    signature: log.sign(),
    bytes,
    partEvents: partEventsOf(drafts.sizes),
  };
  log.accept(row, events, texts);
  return row;
}

function assignedByEvent({ events }: PushOperation, judged: readonly JudgedEvent[]): OperationRow['assigned'] {
  const given = judged.flatMap(({ assigned }, at) =>
    assigned === undefined ? [] : [[(events[at] as EventDraft).id, assigned] as const],
  );
  return given.length === 0 ? null : Object.fromEntries(given);
}
