import {
  assert,
  canonical,
  type Disposition,
  type Fault,
  fail,
  type Json,
  type Outcome,
  type PermitSignal,
} from '@holdfast/core';
import { isCompleteAnswer } from './coordinator-answer.ts';
import { abandon } from './coordinator-end.ts';
import { firstFault, type PermitFaultCode, type PermittedStep, permittedStep } from './coordinator-fence.ts';
import { settleByCompleted } from './coordinator-obligations.ts';
import { type CoordinatorParts, instantOf } from './coordinator-parts.ts';
import {
  movePermit,
  type OperationOutcome,
  type Permit,
  type PermitRef,
  type PermitView,
  type StoredPermit,
  viewPermit,
  writeOutcomes,
} from './coordinator-permit.ts';
import { FaultError } from './fault-error.ts';

/**
 * Applying what came back (PM5): enter the local commit, apply, settle matching obligations and release, in one
 * transaction. `local-commit-entered` is passed inside it, checked by the grid, and never written (PM10).
 *
 * Worst outcome: an answer applied twice, or by an owner that was replaced. Every permit is compared before the work and
 * again by the compare-and-set after it; if that fails, the thrown fault undoes all.
 */
export interface Applied<T> {
  readonly permits: readonly Permit[];
  /** False when all of it was applied before: the work did not run. */
  readonly isNew: boolean;
  readonly result: T | undefined;
  /** Obligations that this closed. */
  readonly settled: number;
}

export interface DefiniteAnswer {
  readonly disposition: Extract<Disposition, 'accepted' | 'rejected'>;
  /** For an accepted push: one for each operation of the permit, exactly once (PM4). */
  readonly outcomes?: readonly OperationOutcome[];
}

/**
 * Mode `host`, second transaction (PM10): answer, fence, enter, `work`, settle, release. Also for an answer stored
 * before. A rejected one is released with `work` as its outbox change, and settles nothing.
 *
 * Runs inside the caller's transaction. What `work` throws passes through: the caller undoes the transaction and calls
 * `abandon(…, 'apply-not-committed')` in another; `applyAnsweredOrAbandon` does both.
 */
export function applyAnswered<T>(
  parts: CoordinatorParts,
  ref: PermitRef,
  answer: DefiniteAnswer,
  work: (permit: Permit) => T,
): Outcome<Applied<T>, PermitFaultCode> {
  const view = viewPermit(parts.database, ref.permitId, ref.log);
  const isAccepted = answer.disposition === 'accepted';
  const permitted = permittedStep(view, {
    ref,
    actingInstance: parts.hostInstance,
    signals: isAccepted ? ['accepted', 'enter', 'committed'] : ['rejected', 'release'],
    depth: isAccepted ? 'enter' : 'own',
    isLogActive: true,
    isOtherThanIssued: (permit) => isAccepted && !isCompleteAnswer(permit, answer.outcomes ?? []),
  });
  if (!permitted.ok) return permitted;
  const { stored } = permitted.value;
  if (permitted.value.made) return repeated([stored]);
  const result = runWork(() => work(stored.permit));
  writeOutcomes(parts.database, stored.seq, isAccepted ? (answer.outcomes ?? []) : []);
  const released = release(parts, stored, permitted.value);
  const settled = isAccepted ? settle(parts, view, [released]) : 0;
  return { ok: true, value: { permits: [released.permit], isNew: true, result, settled } };
}

/**
 * Released without a local commit: a handshake, a push that changes nothing here (`withoutEffect`), a rejected request,
 * one that never started. Obligations of an accepted one are settled alike. Inside the caller's transaction.
 */
export function acknowledge(
  parts: CoordinatorParts,
  ref: PermitRef,
  options: { readonly answer?: DefiniteAnswer; readonly withoutEffect?: boolean } = {},
): Outcome<Applied<undefined>, PermitFaultCode> {
  const view = viewPermit(parts.database, ref.permitId, ref.log);
  const { answer } = options;
  const signals: readonly PermitSignal[] = answer === undefined ? ['release'] : [answer.disposition, 'release'];
  const permitted = permittedStep(view, {
    ref,
    actingInstance: parts.hostInstance,
    signals,
    depth: 'own',
    isLogActive: true,
    withoutEffect: options.withoutEffect ?? false,
    isOtherThanIssued: (permit) =>
      answer?.disposition === 'accepted' && !isCompleteAnswer(permit, answer.outcomes ?? []),
  });
  if (!permitted.ok) return permitted;
  const { stored } = permitted.value;
  if (permitted.value.made) return repeated([stored]);
  writeOutcomes(parts.database, stored.seq, answer?.outcomes ?? []);
  const isCompleted = permitted.value.step.effects.includes('settle');
  const released = release(parts, stored, permitted.value);
  const settled = isCompleted ? settle(parts, view, [released]) : 0;
  return { ok: true, value: { permits: [released.permit], isNew: true, result: undefined, settled } };
}

// ── Groups ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface PermitGroup {
  /** Each once, by its exact id; of one log, boundary, owner and generation. */
  readonly permits: readonly PermitRef[];
  /** The boundary that the work is to commit. */
  readonly boundary: Json;
}

/**
 * Applies stored answers together, and `local-apply` (PM11). The work gets a copy of the group and returns the boundary
 * that it committed; another than announced undoes all. Inside the caller's transaction; see `applyAnswered`.
 */
export function applyGroup(
  parts: CoordinatorParts,
  group: PermitGroup,
  work: (permits: readonly Permit[]) => Json,
): Outcome<Applied<Json>, PermitFaultCode> {
  assert(group.permits.length > 0, 'a group has a permit');
  const views = group.permits.map((ref) => viewPermit(parts.database, ref.permitId, ref.log));
  const checked = checkGroup(parts, group, views);
  if (!checked.ok) return checked;
  const steps = checked.value;
  if (steps.every((step) => step.made)) return repeated(steps.map(({ stored }) => stored));
  const boundary = runWork(() => work(steps.map(({ stored }) => ({ ...stored.permit }))));
  if (canonical(boundary) !== canonical(group.boundary))
    throw new FaultError({ code: 'apply-not-committed', facts: { announced: group.boundary, committed: boundary } });
  const released = steps.map((step) => release(parts, step.stored, step));
  const settled = settle(parts, views[0] as PermitView, released);
  return {
    ok: true,
    value: { permits: released.map(({ permit }) => permit), isNew: true, result: boundary, settled },
  };
}

function checkGroup(
  parts: CoordinatorParts,
  group: PermitGroup,
  views: readonly PermitView[],
): Outcome<readonly PermittedStep[], PermitFaultCode> {
  const [first] = views;
  const isTwice = new Set(group.permits.map(({ permitId }) => permitId)).size !== group.permits.length;
  const faults: Fault<PermitFaultCode>[] = [];
  const steps: PermittedStep[] = [];
  for (const [at, ref] of group.permits.entries()) {
    const view = views[at] as PermitView;
    const permitted = permittedStep(view, {
      ref,
      actingInstance: parts.hostInstance,
      signals: ['enter', 'committed'],
      depth: 'enter',
      isLogActive: true,
      isOtherThanIssued: () => isTwice || !isOfOneGroup(first?.stored ?? null, view.stored),
    });
    if (permitted.ok) steps.push(permitted.value);
    else faults.push(permitted.fault);
  }
  const fault = firstFault(faults);
  if (fault !== undefined) return { ok: false, fault };
  // Partly applied is applied by somebody else: what is left of it is no longer this group.
  const isMixed = steps.some((step) => step.made) && !steps.every((step) => step.made);
  return isMixed ? fail('permit-state-conflict', { reason: 'applied in part' }) : { ok: true, value: steps };
}

/** Owner and generation are equal by the fence: each permit is of the present generation, and its owner may enter. */
const isOfOneGroup = (a: StoredPermit | null, b: StoredPermit | null): boolean =>
  a !== null && b !== null && a.permit.log === b.permit.log && a.storedBoundary === b.storedBoundary;

// ── Failing work ────────────────────────────────────────────────────────────────────────────────────────────────────

export type Transaction = <T>(work: () => T) => T;

/**
 * `applyAnswered` in a transaction of its own; if it does not commit, all is undone, and the permit is abandoned as
 * `apply-not-committed` in another. Never called inside a transaction.
 *
 * Faults: those of PM2, with nothing changed; `apply-not-committed` with the `cause`, and whether the permit could be
 * `abandoned`. If not, `expire` ends it.
 */
export function applyAnsweredOrAbandon<T>(
  parts: CoordinatorParts,
  transaction: Transaction,
  request: { readonly permit: PermitRef; readonly answer: DefiniteAnswer; readonly queueAgain: QueueAgain },
  work: (permit: Permit) => T,
): Outcome<Applied<T>, PermitFaultCode | 'apply-not-committed'> {
  const { permit, answer, queueAgain } = request;
  return orAbandon(
    parts,
    transaction,
    () => applyAnswered(parts, permit, answer, work),
    () => {
      const ended = abandon(parts, permit, { because: 'apply-not-committed', ...answer });
      if (ended.ok) queueAgain(ended.value.queueAgain);
    },
  );
}

/** `applyGroup`, likewise: the whole group is abandoned. */
export function applyGroupOrAbandon(
  parts: CoordinatorParts,
  transaction: Transaction,
  request: PermitGroup & { readonly queueAgain: QueueAgain },
  work: (permits: readonly Permit[]) => Json,
): Outcome<Applied<Json>, PermitFaultCode | 'apply-not-committed'> {
  return orAbandon(
    parts,
    transaction,
    () => applyGroup(parts, request, work),
    () => {
      for (const permit of request.permits) {
        const ended = abandon(parts, permit, { because: 'apply-not-committed', disposition: 'stored' });
        if (ended.ok) request.queueAgain(ended.value.queueAgain);
      }
    },
  );
}

/** Operations that are `queued` again, marked in the transaction that ends their permit. */
export type QueueAgain = (requestIds: readonly string[]) => void;

function orAbandon<T>(
  parts: CoordinatorParts,
  transaction: Transaction,
  apply: () => Outcome<T, PermitFaultCode>,
  abandonAll: () => void,
): Outcome<T, PermitFaultCode | 'apply-not-committed'> {
  assert(!parts.database.inTransaction, 'a failing apply is abandoned in a transaction of its own');
  try {
    return transaction(apply);
  } catch (cause) {
    try {
      transaction(abandonAll);
      return fail('apply-not-committed', { cause, abandoned: true });
    } catch (notAbandoned) {
      return fail('apply-not-committed', { cause, abandoned: false, notAbandoned });
    }
  }
}

// ── Leaves ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function runWork<T>(work: () => T): T {
  const result = work();
  if (isPromise(result)) throw new FaultError({ code: 'async-callback' });
  return result;
}

const isPromise = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

function release(parts: CoordinatorParts, stored: StoredPermit, permitted: PermittedStep): StoredPermit {
  const released = permitted.made
    ? null
    : movePermit(parts.database, stored, permitted.step, { instant: instantOf(parts), isEnd: true });
  if (released === null)
    throw new FaultError({ code: 'permit-state-conflict', facts: { permit: stored.permit.permitId } });
  return released;
}

const settle = (parts: CoordinatorParts, view: PermitView, released: readonly StoredPermit[]): number =>
  settleByCompleted(parts.database, view, released, instantOf(parts));

const repeated = <T>(stored: readonly StoredPermit[]): { readonly ok: true; readonly value: Applied<T> } => ({
  ok: true,
  value: { permits: stored.map(({ permit }) => permit), isNew: false, result: undefined, settled: 0 },
});
