import { chainStart, type Digest, type JsonObject, type Logger, type OperationResult } from '@holdfast/core';
import { type Refused, refusedBy } from './answer.ts';
import type { Admit, EngineLimits, Quota } from './engine.ts';
import { judgeOperation, type OperationContext } from './judge-operation.ts';
import { type AcceptedOperation, LogInWork } from './log-in-work.ts';
import { loggedError } from './logged-error.ts';
import { type ReadOperation, type ReadPush, requestIdOf } from './push-request.ts';
import type { SerialFields } from './serials.ts';
import type { AppendState, AppendVerdict, LogRow } from './store-port.ts';

/** What judging takes besides what was read. Everything else is decided by these and the read alone. */
export interface JudgeContext {
  readonly digest: Digest;
  readonly logger: Logger;
  /** Ledger time of the group. */
  readonly recordedAt: string;
  readonly serials: SerialFields;
  readonly limits: EngineLimits;
  readonly admit: Admit | undefined;
  readonly quota: Quota | undefined;
}

export type PushOutcome =
  | { readonly kind: 'refused'; readonly refused: Refused; readonly logIdentity: string | null }
  | { readonly kind: 'judged'; readonly results: readonly OperationResult[]; readonly logIdentity: string };

export interface GroupOutcome {
  /** The log before the group; undefined where there is none. */
  readonly log: LogRow | undefined;
  /** One per push, in order. */
  readonly pushes: readonly PushOutcome[];
  readonly accepted: readonly AcceptedOperation[];
  /** Replicas whose generation rose: older sessions of theirs end (RT3). */
  readonly raised: readonly { readonly replica: string; readonly generation: number }[];
}

/**
 * Judges a group of pushes on one log, in order, and says what to write (LG1). Pure: the same read, pushes and context
 * give the same verdict. Durable only when the store has written it.
 */
export function judgeGroup(
  state: AppendState | undefined,
  pushes: readonly ReadPush[],
  context: JudgeContext,
): AppendVerdict<GroupOutcome> {
  if (state === undefined || state.log.state === 'deleted') {
    const refused = refusedBy(state === undefined ? 'not-found' : 'deleted');
    const logIdentity = state?.log.identity ?? null;
    const outcomes = pushes.map((): PushOutcome => ({ kind: 'refused', refused, logIdentity }));
    return { value: { log: state?.log, pushes: outcomes, accepted: [], raised: [] }, write: null };
  }
  const log = new LogInWork(state, context.digest);
  const raised: { replica: string; generation: number }[] = [];
  const outcomes = pushes.map((push) => judgePush(log, push, context, raised));
  return {
    value: { log: state.log, pushes: outcomes, accepted: log.accepted, raised },
    write: log.write(),
  };
}

function judgePush(
  log: LogInWork,
  push: ReadPush,
  context: JudgeContext,
  raised: { replica: string; generation: number }[],
): PushOutcome {
  const logIdentity = log.read.log.identity;
  const refused = positionProblem(log, push, context.digest) ?? takeFence(log, push, context, raised);
  if (refused !== null) return { kind: 'refused', refused, logIdentity };
  const operation: OperationContext = {
    ...context,
    workspace: push.ref.workspace,
    actor: push.actor,
    replica: push.replica.id,
    merge: 'fields',
    companions: push.companions,
    refusedTypes: new Set(),
  };
  return {
    kind: 'judged',
    results: push.operations.map((one) => judgeSafely(log, one, operation, context.logger)),
    logIdentity,
  };
}

/** An operation over which this code stumbles is refused alone, for now; the others go on (LG1). */
function judgeSafely(log: LogInWork, one: ReadOperation, context: OperationContext, logger: Logger): OperationResult {
  try {
    return judgeOperation(log, one, context);
  } catch (cause) {
    const requestId = requestIdOf(one);
    logger('error', 'An operation could not be judged.', {
      requestId,
      workspace: context.workspace,
      log: log.read.log.log,
      error: loggedError(cause),
    });
    return { requestId, status: 'refused', code: 'internal' };
  }
}

// ── position ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** DG5: the chain decides, and nothing else. */
function positionProblem({ read }: LogInWork, { position }: ReadPush, digest: Digest): Refused | null {
  const chain = position.version === 0 ? chainStart(read.log.identity, digest) : read.chains.get(position.version);
  return chain === position.chain
    ? null
    : refusedBy('history-changed', { details: { version: position.version, head: read.log.head } });
}

// ── fence (LG8) ─────────────────────────────────────────────────────────────────────────────────────────────────────

function takeFence(
  log: LogInWork,
  push: ReadPush,
  { recordedAt }: JudgeContext,
  raised: { replica: string; generation: number }[],
): Refused | null {
  const { id, generation, instance, permit } = push.replica;
  const known = log.fence(id);
  const outranked = fenceProblem(known, { account: push.actor.account, generation, instance });
  if (outranked !== null) return outranked;
  const highest = known !== undefined && known.generation === generation ? known.permit : 0;
  const isLate = push.continues ? permit < highest : permit <= highest;
  // A late request changes nothing; one that is all remembered work is answered.
  if (isLate)
    return push.operations.every((one) => isRemembered(log, one))
      ? null
      : refusedBy('stale-permit', { details: { highest } });
  if (known === undefined || known.generation < generation) raised.push({ replica: id, generation });
  log.raiseFence({
    replica: id,
    account: push.actor.account,
    generation,
    instance,
    permit,
    proven: push.position.version,
    at: recordedAt,
  });
  return null;
}

const isRemembered = (log: LogInWork, one: ReadOperation): boolean =>
  one.isRead && log.byRequest(one.operation.requestId)?.identity === one.drafts.identity;

/** Account, generation and host instance; the same for push, handshake and hello. */
export function fenceProblem(
  known: { readonly account: string; readonly generation: number; readonly instance: string } | undefined,
  asks: { readonly account: string; readonly generation: number; readonly instance: string },
): Refused | null {
  if (known === undefined) return null;
  if (known.account !== asks.account) return refusedBy('other-account');
  const details: JsonObject = { generation: known.generation };
  if (asks.generation < known.generation) return refusedBy('stale-generation', { details });
  return asks.generation === known.generation && asks.instance !== known.instance
    ? refusedBy('replica-cloned', { details })
    : null;
}
