import {
  type Disposition,
  type EndReason,
  fail,
  LIMITS,
  type Outcome,
  type PermitSignal,
  stepPermit,
} from '@holdfast/core';
import { isCompleteAnswer } from './coordinator-answer.ts';
import { type PermitFaultCode, permittedStep } from './coordinator-fence.ts';
import { openObligations } from './coordinator-obligations.ts';
import { type CoordinatorParts, instantOf } from './coordinator-parts.ts';
import {
  activePermits,
  type Move,
  movePermit,
  type OperationOutcome,
  type Permit,
  type PermitRef,
  type StoredPermit,
  viewPermit,
  writeOutcomes,
} from './coordinator-permit.ts';

/**
 * How permits end without an applied answer (PM6): given up by their owner, or overtaken by expiry, a newer host
 * instance or a forced switch. What is owed is opened in the same transaction, the caller's.
 */
export interface EndedPermit {
  readonly permit: Permit;
  /** Operations that are to be `queued` again, under their request ids, in this transaction. */
  readonly queueAgain: readonly string[];
}

export type Abandonment =
  /** Given up before the start, or after the answer was stored. */
  | { readonly because: 'abandoned' }
  /** The transport proves that no byte left. */
  | { readonly because: 'never-sent' }
  /** No definite answer came, or it came too late for its owner (PM12), or it is no longer at hand. */
  | { readonly because: 'no-answer'; readonly reason: 'abandoned' | 'expired' | 'apply-not-committed' }
  /** A definite answer that could not be applied (PM5). It is recorded, and asked for again. */
  | {
      readonly because: 'apply-not-committed';
      readonly disposition: Extract<Disposition, 'accepted' | 'rejected'> | 'stored';
      readonly outcomes?: readonly OperationOutcome[];
    };

/** Checks only the permit's own fence (PM3). A permit that has ended is returned as it is. */
export function abandon(
  parts: CoordinatorParts,
  ref: PermitRef,
  how: Abandonment,
): Outcome<EndedPermit, PermitFaultCode> {
  const view = viewPermit(parts.database, ref.permitId, ref.log);
  const outcomes = how.because === 'apply-not-committed' ? how.outcomes : undefined;
  const permitted = permittedStep(view, {
    ref,
    actingInstance: parts.hostInstance,
    signals: signalsOf(how),
    depth: 'own',
    isLogActive: true,
    isOtherThanIssued: (permit) => outcomes !== undefined && !isCompleteAnswer(permit, outcomes),
  });
  if (!permitted.ok) return permitted;
  const { made, stored } = permitted.value;
  if (made) return { ok: true, value: { permit: stored.permit, queueAgain: [] } };
  const ended = endPermit(parts, stored, permitted.value.step, reasonOf(how));
  if (ended === null) return fail('permit-state-conflict', { permit: ref.permitId });
  writeOutcomes(parts.database, stored.seq, outcomes ?? []);
  return { ok: true, value: ended };
}

function signalsOf(how: Abandonment): readonly PermitSignal[] {
  if (how.because === 'abandoned') return ['abandon'];
  if (how.because === 'never-sent') return ['never-sent'];
  if (how.because === 'no-answer') return ['unknown', 'abandon'];
  return how.disposition === 'stored' ? ['abandon'] : [how.disposition, 'abandon'];
}

const reasonOf = (how: Abandonment): EndReason => (how.because === 'no-answer' ? how.reason : how.because);

/** Moves a permit to its end. Null: it is no longer as it was read, somebody else ended it (F163). */
export function endPermit(
  parts: CoordinatorParts,
  stored: StoredPermit,
  step: Move,
  reason: EndReason,
): EndedPermit | null {
  const instant = instantOf(parts);
  const ended = movePermit(parts.database, stored, { ...step, reason }, { instant, isEnd: true });
  if (ended === null) return null;
  if (step.effects.includes('owe')) openObligations(parts.database, ended, reason, instant);
  return { permit: ended.permit, queueAgain: step.effects.includes('queue-again') ? ended.permit.operations : [] };
}

// ── Overtaken ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Overtaken {
  readonly ended: readonly EndedPermit[];
  /** `local-commit-entered`, found in the file: their logs are to be blocked with `local-commit-invariant` (PM10). */
  readonly untouched: readonly Permit[];
}

/** Ends each of these permits as PM6 says; one that moved on since it was read is left out. */
export function overtake(parts: CoordinatorParts, permits: readonly StoredPermit[], reason: EndReason): Overtaken {
  const ended: EndedPermit[] = [];
  const untouched: Permit[] = [];
  for (const stored of permits) {
    const step = stepPermit(stored.permit, 'overtake');
    if (step.move !== 'to') {
      untouched.push(stored.permit);
      continue;
    }
    const end = endPermit(parts, stored, step, reason);
    if (end !== null) ended.push(end);
  }
  return { ended, untouched };
}

/** PM8: permits of earlier generations. The cut is the generation, never a time (F164). */
export const settleEarlierInstances = (parts: CoordinatorParts): Overtaken =>
  overtake(
    parts,
    activePermits(
      parts.database,
      'p.generation < (SELECT c.generation FROM main.hf_coordinator c WHERE c.one = 1)',
      [],
      LIMITS.permitPruneSweep,
    ),
    'host-restarted',
  );

/**
 * Ends what is past its deadline and nobody works on any more. `working`: permits whose request this process still
 * performs; it ends them itself.
 */
export function expire(parts: CoordinatorParts, working: readonly string[]): Overtaken {
  const inWork = new Set(working);
  const nowMs = parts.clock.monotonic();
  const active = activePermits(
    parts.database,
    // A host that was outranked knows no deadline of its successor's permits.
    'EXISTS (SELECT 1 FROM main.hf_coordinator c WHERE c.one = 1 AND c.host_instance = ?)',
    [parts.hostInstance],
    LIMITS.permitPruneSweep,
  );
  const overdue = active.filter(
    ({ permit }) => !inWork.has(permit.permitId) && parts.deadlines.overdueMs(permit.permitId, nowMs) > 0,
  );
  return overtake(parts, overdue, 'expired');
}

/** PM10: `holdfast replica doctor --repair`, after a person decided. Ends a found local commit as owed. */
export function repairLocalCommit(parts: CoordinatorParts, permitId: string): Outcome<EndedPermit, PermitFaultCode> {
  const { stored } = viewPermit(parts.database, permitId, '');
  if (stored === null) return fail('permit-not-found', { permit: permitId });
  const step = stepPermit(stored.permit, 'repair');
  if (step.move !== 'to') return fail('permit-state-conflict', { state: stored.permit.state });
  const ended = endPermit(parts, stored, step, 'abandoned');
  return ended === null ? fail('permit-state-conflict', { permit: permitId }) : { ok: true, value: ended };
}
