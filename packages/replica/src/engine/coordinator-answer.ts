import { type Disposition, fail, type Outcome } from '@holdfast/core';
import { type PermitFaultCode, permittedStep } from './coordinator-fence.ts';
import { type CoordinatorParts, instantOf } from './coordinator-parts.ts';
import {
  movePermit,
  type OperationOutcome,
  type Permit,
  type PermitRef,
  viewPermit,
  writeOutcomes,
} from './coordinator-permit.ts';

/**
 * What came back (PM4). `accepted`: the ledger answered, for a push with one result per operation, whatever they say.
 * `rejected`: it refused the request before it judged any, with LG10's marks and a typed code. Anything else: `unknown`.
 */
export interface StoredAnswer {
  readonly disposition: Exclude<Disposition, 'not-started'>;
  /** For an accepted push: one for each operation of the permit. */
  readonly outcomes?: readonly OperationOutcome[];
}

/**
 * Mode `browser-gateway`: the answer is stored in a transaction of its own, and applied later. Checks only the permit's
 * own fence, so that an owner that drains, or is late, can still record what it learned (PM3); an answer after the
 * permit ended changes nothing (F161).
 *
 * Faults: those of PM2; `permit-identity-conflict` also for an answer that does not name every operation exactly once,
 * which is no answer.
 */
export function storeAnswer(
  parts: CoordinatorParts,
  ref: PermitRef,
  answer: StoredAnswer,
): Outcome<Permit, PermitFaultCode> {
  const view = viewPermit(parts.database, ref.permitId, ref.log);
  const permitted = permittedStep(view, {
    ref,
    actingInstance: parts.hostInstance,
    signals: [answer.disposition],
    depth: 'own',
    isLogActive: true,
    isOtherThanIssued: (permit) =>
      answer.disposition === 'accepted' && !isCompleteAnswer(permit, answer.outcomes ?? []),
  });
  if (!permitted.ok) return permitted;
  const { made, stored } = permitted.value;
  if (made) return { ok: true, value: stored.permit };
  const moved = movePermit(parts.database, stored, permitted.value.step, { instant: instantOf(parts), isEnd: false });
  if (moved === null) return fail('permit-state-conflict', { permit: ref.permitId });
  writeOutcomes(parts.database, stored.seq, answer.outcomes ?? []);
  return { ok: true, value: moved.permit };
}

/** PM4: every operation of the permit, each exactly once, and nothing else: as many as there are, and none missing. */
export function isCompleteAnswer(permit: Permit, outcomes: readonly OperationOutcome[]): boolean {
  const named = new Set(outcomes.map(({ requestId }) => requestId));
  return outcomes.length === permit.operations.length && permit.operations.every((requestId) => named.has(requestId));
}
