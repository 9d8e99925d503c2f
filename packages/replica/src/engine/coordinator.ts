import { type Clock, type Database, type Json, LIMITS, type Outcome } from '@holdfast/core';
import { type StoredAnswer, storeAnswer } from './coordinator-answer.ts';
import {
  type Applied,
  acknowledge,
  applyAnswered,
  applyAnsweredOrAbandon,
  applyGroup,
  applyGroupOrAbandon,
  type DefiniteAnswer,
  type PermitGroup,
  type QueueAgain,
  type Transaction,
} from './coordinator-apply.ts';
import { createDeadlines } from './coordinator-deadlines.ts';
import {
  type Abandonment,
  abandon,
  type EndedPermit,
  expire,
  type Overtaken,
  repairLocalCommit,
  settleEarlierInstances,
} from './coordinator-end.ts';
import type { PermitFaultCode } from './coordinator-fence.ts';
import { issue, issueAndStart, type PermitRequest, start } from './coordinator-issue.ts';
import {
  closeObligations,
  type Evidence,
  listObligations,
  type Obligation,
  obligationsFor,
  settleByConfirmed,
} from './coordinator-obligations.ts';
import { createTransfer, raiseGeneration, type Transfer } from './coordinator-owner.ts';
import { type CoordinatorParts, instantOf } from './coordinator-parts.ts';
import { type Permit, type PermitRef, viewPermit } from './coordinator-permit.ts';
import {
  foundLocalCommits,
  type Inspection,
  inspect,
  type Pruned,
  prune,
  type Retention,
  settleByRepair,
} from './coordinator-upkeep.ts';

/**
 * The durable coordinator (7): which upstream requests may be made, what is known of their outcome, what is owed, and
 * who may act.
 *
 * Every call is synchronous and runs inside the caller's transaction; a refusal changes nothing. What a call reports
 * holds once that transaction commits. The two calls that end in `OrAbandon` open transactions of their own (PM5).
 *
 * Mode `host`, one request (PM10):
 * ```ts
 * const permit = write(() => { const issued = coordinator.issueAndStart({ log, class: 'push', boundary, operations });
 *                              state.markSending(operations); return issued; });
 * // … the request; then, with a definite answer:
 * write(() => coordinator.applyAnswered(permit, { disposition: 'accepted', outcomes }, () => { … ingest … }));
 * // … or without one:
 * write(() => coordinator.abandon(permit, { because: 'no-answer', reason: 'abandoned' }));
 * ```
 * In mode `browser-gateway` `issue`, `start`, `storeAnswer` and `applyGroup` are transactions of their own.
 */
export interface Coordinator {
  issue(request: PermitRequest): Outcome<Permit, PermitFaultCode>;
  start(permit: PermitRef): Outcome<Permit, PermitFaultCode>;
  issueAndStart(request: PermitRequest): Outcome<Permit, PermitFaultCode>;
  storeAnswer(permit: PermitRef, answer: StoredAnswer): Outcome<Permit, PermitFaultCode>;

  applyAnswered<T>(
    permit: PermitRef,
    answer: DefiniteAnswer,
    work: (permit: Permit) => T,
  ): Outcome<Applied<T>, PermitFaultCode>;
  applyGroup(group: PermitGroup, work: (permits: readonly Permit[]) => Json): Outcome<Applied<Json>, PermitFaultCode>;
  applyAnsweredOrAbandon<T>(
    transaction: Transaction,
    request: { readonly permit: PermitRef; readonly answer: DefiniteAnswer; readonly queueAgain: QueueAgain },
    work: (permit: Permit) => T,
  ): Outcome<Applied<T>, PermitFaultCode | 'apply-not-committed'>;
  applyGroupOrAbandon(
    transaction: Transaction,
    request: PermitGroup & { readonly queueAgain: QueueAgain },
    work: (permits: readonly Permit[]) => Json,
  ): Outcome<Applied<Json>, PermitFaultCode | 'apply-not-committed'>;
  /** Without a local commit: a handshake, a push without effect, a rejected request (PM5, PM6). */
  acknowledge(
    permit: PermitRef,
    options?: { readonly answer?: DefiniteAnswer; readonly withoutEffect?: boolean },
  ): Outcome<Applied<undefined>, PermitFaultCode>;
  abandon(permit: PermitRef, how: Abandonment): Outcome<EndedPermit, PermitFaultCode>;

  /** Bytes of the answer arrived (PM12). Changes nothing durable; needs no transaction. */
  bytesArrived(permitId: string): void;
  /** PM12. `working`: permits whose request this process performs right now. */
  expire(working: readonly string[]): Overtaken;
  /** PM8. In the transaction that raised the generation, or the next one, before anything else is asked. */
  settleEarlierInstances(): Overtaken;
  /** PM10. Each blocks its log with `local-commit-invariant`. */
  foundLocalCommits(): readonly Permit[];
  /** PM10. A person decided: `holdfast replica doctor --repair`. */
  repairLocalCommit(permitId: string): Outcome<EndedPermit, PermitFaultCode>;

  readonly obligations: {
    /** Open ones, oldest first, at most `limit` (1,000 unless asked). */
    open(filter?: { readonly log?: string; readonly limit?: number }): readonly Obligation[];
    /** Open replays of these request ids or command ids. */
    forOperations(identities: readonly string[]): readonly Obligation[];
    close(
      ids: readonly number[],
      evidence: Evidence,
    ): Outcome<{ readonly closed: number }, 'not-found' | 'permit-state-conflict'>;
  };
  /** Own events passed ingest, in the same transaction (PM7). Returns how many obligations that closed. */
  settleByConfirmed(confirmed: readonly { readonly requestId: string; readonly version: number }[]): number;
  /** PM9. Inside the work of the repair that swaps, or after its release in the same transaction. */
  settleByRepair(permit: PermitRef): Outcome<{ readonly closed: number }, PermitFaultCode>;

  /** PM8. RP2: the caller syncs the transaction to the medium before anything leaves. */
  raiseGeneration(): number;
  readonly transfer: Transfer;
  prune(retention?: Retention): Pruned;
  inspect(options?: { readonly limit?: number }): Inspection;
  /** A permit as it now is. */
  permit(permitId: string): Permit | undefined;
}

export interface CoordinatorOptions {
  readonly database: Database;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Ids of permits; random (F162). */
  readonly newId: () => string;
  /** Of this run of the host. */
  readonly hostInstance: string;
  /** Whether a log is followed and not paused (PM1). Asked inside the transaction that acts. */
  readonly isActive: (log: string) => boolean;
}

export function createCoordinator(options: CoordinatorOptions): Coordinator {
  const parts: CoordinatorParts = { ...options, deadlines: createDeadlines() };
  const { database } = parts;
  return {
    issue: (request) => issue(parts, request),
    start: (permit) => start(parts, permit),
    issueAndStart: (request) => issueAndStart(parts, request),
    storeAnswer: (permit, answer) => storeAnswer(parts, permit, answer),

    applyAnswered: (permit, answer, work) => applyAnswered(parts, permit, answer, work),
    applyGroup: (group, work) => applyGroup(parts, group, work),
    applyAnsweredOrAbandon: (transaction, request, work) => applyAnsweredOrAbandon(parts, transaction, request, work),
    applyGroupOrAbandon: (transaction, request, work) => applyGroupOrAbandon(parts, transaction, request, work),
    acknowledge: (permit, how) => acknowledge(parts, permit, how),
    abandon: (permit, how) => abandon(parts, permit, how),

    bytesArrived: (permitId) => parts.deadlines.extend(permitId, parts.clock.monotonic()),
    expire: (working) => expire(parts, working),
    settleEarlierInstances: () => settleEarlierInstances(parts),
    foundLocalCommits: () => foundLocalCommits(database),
    repairLocalCommit: (permitId) => repairLocalCommit(parts, permitId),

    obligations: {
      open: (filter = {}) => listObligations(database, { limit: LIMITS.obligationsListedMax, ...filter }),
      forOperations: (identities) => obligationsFor(database, identities),
      close: (ids, evidence) => closeObligations(database, ids, evidence, instantOf(parts)),
    },
    settleByConfirmed: (confirmed) => settleByConfirmed(database, confirmed, instantOf(parts)),
    settleByRepair: (permit) => settleByRepair(parts, permit),

    raiseGeneration: () => raiseGeneration(database, parts.hostInstance),
    transfer: createTransfer(parts),
    prune: (retention) => prune(parts, retention),
    inspect: (how) => inspect(parts, how),
    permit: (permitId) => viewPermit(database, permitId, '').stored?.permit,
  };
}
