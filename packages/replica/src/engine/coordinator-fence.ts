import {
  type Fault,
  fail,
  mayEnter,
  mayStart,
  type Outcome,
  type PermitSignal,
  type PermitStanding,
  type PermitStep,
  stepPermit,
} from '@holdfast/core';
import type { Permit, PermitRef, PermitView, StoredPermit } from './coordinator-permit.ts';

/**
 * Whether a step on a permit may be made, in the order of PM2. Pure: it looks at what one statement read.
 *
 * At issue: `local-commit-invariant`, `permit-identity-conflict`, `permit-expired`, `stale-generation`, `inactive-log`,
 * `permits-disabled`. On a permit: `PERMIT_FAULTS`. A refusal changes nothing.
 */
export const PERMIT_FAULTS = [
  'permit-not-found',
  'host-instance-mismatch',
  'stale-generation',
  'inactive-log',
  'permit-state-conflict',
  'permits-disabled',
  'permit-expired',
  'permit-identity-conflict',
  'local-commit-invariant',
] as const;
export type PermitFaultCode = (typeof PERMIT_FAULTS)[number];

/**
 * - `own`: storing an answer, acknowledging, abandoning: the permit's own fence and state, nothing else, so that an owner
 *   that drains or is late can still record what it learned (PM3).
 * - `enter`: also that its generation is the present one, and that its owner may still enter (PM5, PM12).
 * - `start`: also everything that issue checked (PM3).
 */
export type FenceDepth = 'own' | 'enter' | 'start';

export interface StepRequest {
  readonly ref: PermitRef;
  /** The run of the host that makes the step. It may have been outranked without knowing. */
  readonly actingInstance: string;
  /** The grid is asked for each in turn; states in between are not written (PM10). */
  readonly signals: readonly PermitSignal[];
  readonly depth: FenceDepth;
  readonly isLogActive: boolean;
  /** How long ago the deadline was; positive when it has passed. Looked at when a request starts (PM12). */
  readonly overdueMs?: number;
  readonly withoutEffect?: boolean;
  /** Something in what the caller named does not belong to this permit. */
  readonly isOtherThanIssued?: (permit: Permit) => boolean;
}

/** `made`: the step, or the last of the steps, was made before. */
export type PermittedStep =
  | { readonly made: true; readonly stored: StoredPermit }
  | {
      readonly made: false;
      readonly stored: StoredPermit;
      readonly step: Extract<PermitStep, { readonly move: 'to' }>;
    };

export function permittedStep(view: PermitView, request: StepRequest): Outcome<PermittedStep, PermitFaultCode> {
  const { stored } = view;
  const { ref, depth } = request;
  if (stored === null) return fail('permit-not-found', { permit: ref.permitId });
  const { permit } = stored;
  if (ref.hostInstance !== permit.hostInstance) return fail('host-instance-mismatch', { permit: ref.permitId });
  if (isStale(view, request, permit))
    return fail('stale-generation', { held: ref.generation, newest: view.generation });
  if (depth === 'start' && !request.isLogActive) return fail('inactive-log', { log: permit.log });

  const step = walk(permit, request.signals, request.withoutEffect ?? false);
  if (step === 'made') return { ok: true, value: { made: true, stored } };
  if (step === 'refused')
    return fail('permit-state-conflict', { state: permit.state, disposition: permit.disposition });
  if (!isOwnerAllowed(view, depth, permit)) return fail('permits-disabled', { ownership: view.place });
  if (depth === 'start' && (request.overdueMs ?? 0) > 0)
    return fail('permit-expired', { overdueMs: request.overdueMs });
  if (ref.log !== permit.log || request.isOtherThanIssued?.(permit) === true)
    return fail('permit-identity-conflict', { permit: ref.permitId });
  if (depth !== 'own' && view.hasFoundLocalCommit) return fail('local-commit-invariant', { log: permit.log });
  return { ok: true, value: { made: false, stored, step } };
}

function isStale(view: PermitView, { ref, depth, actingInstance }: StepRequest, permit: Permit): boolean {
  if (ref.generation !== permit.generation) return true;
  if (depth === 'own') return false;
  if (permit.generation !== view.generation || permit.hostInstance !== view.hostInstance) return true;
  return actingInstance !== view.hostInstance;
}

function isOwnerAllowed(view: PermitView, depth: FenceDepth, permit: Permit): boolean {
  if (depth === 'own') return true;
  return depth === 'start' ? mayStart(view.place, permit.ownerMode) : mayEnter(view.place, permit.ownerMode);
}

/** The signals in turn. `made` if the last one leaves the permit as it is; a signal before it may be made already. */
function walk(
  permit: PermitStanding,
  signals: readonly PermitSignal[],
  withoutEffect: boolean,
): Extract<PermitStep, { readonly move: 'to' }> | 'made' | 'refused' {
  let standing = permit;
  let last: PermitStep | null = null;
  for (const [at, signal] of signals.entries()) {
    const step = stepPermit(standing, signal, withoutEffect);
    if (step.move === 'refused') return 'refused';
    // Entered before means committed before: both are one transaction (PM5).
    if (step.move === 'bug') return at > 0 && last?.move === 'stay' ? 'made' : 'refused';
    if (step.move === 'to') standing = { ...standing, state: step.state, disposition: step.disposition };
    last = step;
  }
  return last?.move === 'to' ? last : 'made';
}

/** Of several refusals of one call the one that is checked first. */
export const firstFault = (faults: readonly Fault<PermitFaultCode>[]): Fault<PermitFaultCode> | undefined =>
  [...faults].sort((a, b) => PERMIT_FAULTS.indexOf(a.code) - PERMIT_FAULTS.indexOf(b.code))[0];
