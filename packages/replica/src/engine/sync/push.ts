import {
  decodePushAnswer,
  type Fault,
  fail,
  type Json,
  type JsonObject,
  LIMITS,
  type OperationResult,
  type Outcome,
  type PushAnswer,
  type PushOperation,
  type RequestReplica,
} from '@holdfast/core';
import type { PushBatch } from '../replica-state.ts';
import { type LogFacts, sawHead, sawProgress } from './facts.ts';
import type { SyncParts } from './parts.ts';
import type { Permit } from './permits.ts';
import { ingestPage } from './pull.ts';
import { type ExchangeFacts, exchange, recordAnswer, recordTrouble } from './request.ts';
import { ask, done, notStarted, type Step } from './step.ts';
import { troubleOf } from './trouble.ts';
import type { Answer } from './vouch.ts';

/**
 * One push of one log: as many operations as fit, in outbox order, with their stored bytes (OB2, OB3). Two transactions:
 * chosen, permitted and marked; answered, applied, settled and released (PM10). What is not known stays owed under its
 * request ids and is asked about again.
 */
export async function pushOnce(
  parts: SyncParts,
  facts: LogFacts,
  retryInMs: (retryAfterMs: number | null) => number,
  only?: readonly string[],
): Promise<Step> {
  const exchanged = await exchange(parts, () => {
    const sent = choose(parts, facts, only);
    if (sent === null) return null;
    const { batch, position } = sent;
    return {
      ...sent,
      class: 'push' as const,
      log: facts.log,
      boundary: { ...position },
      operations: batch.map(({ requestId }) => requestId),
      method: 'POST' as const,
      path: `/logs/${encodeURIComponent(facts.log)}/push`,
      body: (replica: RequestReplica) => JSON.stringify({ position, replica, operations: batch }),
      namesLog: true,
      patience: facts.sizes.patience,
    };
  });
  if (!exchanged.started) return notStarted(exchanged.why);
  const push: AnsweredPush = { ...exchanged.spec, permit: exchanged.permit, facts: exchanged.facts };
  const { answer } = exchanged;
  if (answer.kind !== 'answered') return takeTrouble(parts, facts, push, answer, retryInMs);

  const read = readPushAnswer(answer.body, push);
  if (!read.ok) return takeTrouble(parts, facts, push, { kind: 'unknown', fault: read.fault }, retryInMs);
  return takeAnswer(parts, facts, push, read.value);
}

interface SentPush {
  readonly batch: readonly PushOperation[];
  readonly position: { readonly epoch: string; readonly version: number; readonly chain: string };
  readonly identity: string | null;
}

interface AnsweredPush extends SentPush {
  /** Request ids, in the order of the batch. */
  readonly operations: readonly string[];
  readonly permit: Permit;
  readonly facts: ExchangeFacts;
}

/** Inside transaction 1. */
function choose(parts: SyncParts, facts: LogFacts, only: readonly string[] | undefined): SentPush | null {
  const log = parts.state.log(facts.log);
  if (log === undefined || log.stage !== 'visible' || log.epoch === null) return null;
  const taken = parts.state.takePush({
    log: facts.log,
    eventsMax: LIMITS.pageEventsMax,
    bytesMax: facts.sizes.pushBytesMax,
    nowMs: parts.platform.clock.now(),
    ...(only === undefined ? {} : { only }),
  });
  const batch = cut(taken, facts);
  if (batch.length === 0) return null;
  parts.state.markSending(batch.map(({ requestId }) => requestId));
  return {
    batch,
    position: { epoch: log.epoch, version: log.head, chain: log.chain },
    identity: log.identity,
  };
}

/** One with an expected version is alone in its push (LG5), and so is one that is too large for somebody on the way. */
function cut(batch: PushBatch, facts: LogFacts): readonly PushOperation[] {
  const isAlone = (operation: PushOperation): boolean =>
    operation.expectedLogVersion !== undefined || facts.sizes.mustGoAlone(operation.requestId);
  const at = batch.operations.findIndex(isAlone);
  return at === -1 ? batch.operations : batch.operations.slice(0, Math.max(1, at));
}

function readPushAnswer(body: Json, push: SentPush): Outcome<PushAnswer> {
  const read = decodePushAnswer(body);
  if (read.ok && !namesEveryOperation(push.batch, read.value.results))
    return fail('answer-malformed', { why: 'operations' });
  return read;
}

function takeAnswer(parts: SyncParts, facts: LogFacts, push: AnsweredPush, answer: PushAnswer): Step {
  const { permit } = push;
  if (isOfPastHistory(parts, push)) return oweToNewHistory(parts, push, answer);
  const outcomes = answer.results.map((result) => ({ requestId: result.requestId, outcome: outcomeOf(result) }));
  let doubt: Fault | null = null;
  recordAnswer(
    parts,
    { permit, outcomes },
    () => {
      // First what became of each operation: own events are rebuilt from it.
      parts.state.recordResults(facts.log, answer.results, parts.platform.clock.now());
      doubt = ingestAnswer(parts, push, answer);
      parts.journal.write('push', journalOf(facts.log, answer));
    },
    (fault) => parts.state.markUnknown(push.operations, fault, null),
  );
  facts.pushRefused = null;
  facts.pushFailed = false;
  facts.overQuota = quotaOf(answer.results);
  sawHead(facts, Math.max(answer.head, ...answer.results.map(versionToRead)));
  if (doubt !== null) return ask(doubt);
  facts.sizes.worked();
  sawProgress(facts, parts.platform.clock.monotonic());
  if (answer.results.some(isBaseAhead)) return ask({ code: 'base-ahead' });
  return done(answer.events.length > 0 || !answer.results.every(isHeldBack));
}

/**
 * The ledger has said since that its history is another one: what it accepted before may be gone from the log (HL1), and
 * the version that it promised be somebody else's.
 */
function isOfPastHistory(parts: SyncParts, { permit }: AnsweredPush): boolean {
  const log = parts.state.log(permit.log);
  return log?.blocked?.code === 'history-changed' || log?.adopting === true;
}

/** Asked again under the same request ids: it may be in the log still, and only the ledger can say so. */
function oweToNewHistory(parts: SyncParts, push: AnsweredPush, { epoch }: PushAnswer): Step {
  const fault: Fault = { code: 'history-changed', facts: { epoch } };
  recordTrouble(parts, { permit: push.permit, answer: { kind: 'unknown', fault } }, () =>
    parts.state.markUnknown(push.operations, fault, null),
  );
  return ask(fault);
}

/**
 * The results are definite whatever the events look like: they are recorded even if the page does not continue our chain,
 * or stands in another epoch; a handshake then decides about the position.
 */
function ingestAnswer(parts: SyncParts, push: AnsweredPush, answer: PushAnswer): Fault | null {
  const { epoch, events, through, head } = answer;
  if (epoch !== push.position.epoch) return { code: 'history-changed', facts: { epoch } };
  if (head < push.position.version) return { code: 'history-changed', facts: { head } };
  if (events.length === 0) return null;
  const { log } = push.permit;
  const outcome = ingestPage(parts, log, { log, epoch, events, through, head });
  return outcome.ok ? null : outcome.fault;
}

/** What was not answered, or refused as a whole. */
function takeTrouble(
  parts: SyncParts,
  facts: LogFacts,
  push: AnsweredPush,
  answer: Exclude<Answer, { kind: 'answered' }>,
  retryInMs: (retryAfterMs: number | null) => number,
): Step {
  const trouble = troubleOf(answer);
  const fault = trouble.fault;
  const isUnknown = answer.kind === 'unknown';
  if (isUnknown && fault.code === 'request-timeout') facts.sizes.pushTimedOut(push.facts.sentBytes);
  const againAtMs = parts.platform.clock.monotonic() + LIMITS.retryMaxMs;
  const size = { bytes: push.facts.sentBytes, requestIds: push.operations, againAtMs };

  // For the second time, while the handshake in between came through: somebody on the way may have a limit and say
  // nothing of it (an empty 503, a reset).
  const isCutOff = isUnknown && facts.pushFailed && fault.code === 'ledger-unreachable';
  if (trouble.next === 'shrink' || trouble.next === 'unreadable' || isCutOff) {
    const isCut = facts.sizes.pushTooLarge(size);
    const isDefinite = trouble.next === 'unreadable' || (trouble.next === 'shrink' && trouble.definite);
    if (!isCut && isDefinite) return refuseAlone(parts, facts, push, answer, fault);
    const retryAtMs = isCut ? null : parts.platform.clock.now() + LIMITS.retryMaxMs;
    recordTrouble(parts, { permit: push.permit, answer }, () =>
      parts.state.markUnknown(push.operations, fault, retryAtMs),
    );
    facts.fault = fault;
    return done(true);
  }

  const inMs = trouble.next === 'retry' ? retryInMs(trouble.retryAfterMs) : null;
  recordTrouble(parts, { permit: push.permit, answer }, () =>
    parts.state.markUnknown(push.operations, fault, inMs === null ? null : parts.platform.clock.now() + inMs),
  );
  return { step: 'trouble', trouble, as: push.facts.as, ...(inMs === null ? {} : { inMs }) };
}

/** The ledger itself says that this one operation, alone, can never be accepted as it is (6.4). */
function refuseAlone(
  parts: SyncParts,
  facts: LogFacts,
  push: AnsweredPush,
  answer: Exclude<Answer, { kind: 'answered' }>,
  fault: Fault,
): Step {
  const [requestId] = push.operations as [string];
  const code = fault.code === 'too-large' ? 'too-large' : 'invalid-event';
  const result: OperationResult = {
    requestId,
    status: 'refused',
    code,
    details: { answer: fault.code, bytes: push.facts.sentBytes },
  };
  recordTrouble(parts, { permit: push.permit, answer }, () =>
    parts.state.recordResults(facts.log, [result], parts.platform.clock.now()),
  );
  sawProgress(facts, parts.platform.clock.monotonic());
  return done(true);
}

/** PM4: an answer that does not name every operation exactly once is no answer. */
export function namesEveryOperation(
  operations: readonly PushOperation[],
  results: readonly OperationResult[],
): boolean {
  const open = new Set(operations.map(({ requestId }) => requestId));
  return results.length === open.size && results.every(({ requestId }) => open.delete(requestId));
}

/** The version up to which theirs must be read before this clash is judged. */
function versionToRead(result: OperationResult): number {
  if (result.status !== 'refused') return 0;
  const version = result.details?.['logVersion'] ?? result.details?.['version'];
  return result.code === 'version-conflict' && typeof version === 'number' ? version : 0;
}

const isBaseAhead = (result: OperationResult): boolean => result.status === 'refused' && result.code === 'base-ahead';

/** Nothing has changed for it: sent again at once, it would get the same answer. */
const isHeldBack = (result: OperationResult): boolean => result.status === 'refused' && result.code === 'prior-missing';

const quotaOf = (results: readonly OperationResult[]): Fault | null =>
  results.some((result) => result.status === 'refused' && result.code === 'quota-exceeded')
    ? { code: 'quota-exceeded' }
    : null;

const outcomeOf = (result: OperationResult): JsonObject =>
  result.status === 'accepted'
    ? { status: 'accepted', firstVersion: result.firstVersion }
    : { status: 'refused', code: result.code };

function journalOf(log: string, answer: PushAnswer): JsonObject {
  const accepted = answer.results.filter(({ status }) => status === 'accepted').length;
  const codes = answer.results.flatMap((result) => (result.status === 'refused' ? [result.code] : []));
  return {
    log,
    operations: answer.results.length,
    accepted,
    events: answer.events.length,
    head: answer.through.version,
    ...(codes.length > 0 ? { refused: [...new Set(codes)] } : {}),
  };
}
