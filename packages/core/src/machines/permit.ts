import type { OwnerMode } from './ownership.ts';

/**
 * An execution permit: the durable right to perform one upstream request (7). Its state says how far the request went,
 * its disposition what is known of the outcome; what ends it, and what is then owed, is the grid below (PM6).
 */
export const PERMIT_STATES = [
  'issued-idle',
  'gateway-in-flight',
  'gateway-complete-awaiting-apply',
  'local-commit-entered',
  'released',
  'abandoned-clean',
  'abandoned-reconcile-required',
] as const;
export type PermitState = (typeof PERMIT_STATES)[number];

export const DISPOSITIONS = ['not-started', 'unknown', 'accepted', 'rejected'] as const;
export type Disposition = (typeof DISPOSITIONS)[number];

export const OPERATION_CLASSES = [
  'handshake',
  'bootstrap',
  'push',
  'pull',
  'repair',
  'dispatch',
  'local-apply',
] as const;
export type OperationClass = (typeof OPERATION_CLASSES)[number];

/** Why a permit was abandoned. A closed list (PM6). */
export const END_REASONS = [
  'abandoned',
  'expired',
  'host-restarted',
  'drained-not-started',
  'never-sent',
  'forced-switch',
  'apply-not-committed',
] as const;
export type EndReason = (typeof END_REASONS)[number];

/** A state, with what is known of the outcome where PM6 tells them apart. */
export type PermitPlace =
  | Exclude<PermitState, 'gateway-complete-awaiting-apply'>
  | 'awaiting-accepted'
  | 'awaiting-rejected'
  | 'awaiting-unknown';

/**
 * - `start`: from now on a request may leave.
 * - `accepted`, `rejected`, `unknown`: what came back (PM4).
 * - `enter`, `committed`: the local commit, both inside one transaction.
 * - `release`: acknowledged without a local commit.
 * - `abandon`: given up by its owner. `never-sent`: the transport proves that no byte left.
 * - `overtake`: expiry, forced switch, or a newer host instance.
 * - `repair`: `holdfast replica doctor --repair`, a person's decision (PM10).
 */
export type PermitSignal =
  | 'start'
  | 'accepted'
  | 'rejected'
  | 'unknown'
  | 'enter'
  | 'committed'
  | 'release'
  | 'abandon'
  | 'never-sent'
  | 'overtake'
  | 'repair';

/**
 * `stay`: made already, or left alone; nothing changes and the permit is returned. `refused`: `permit-state-conflict`.
 * `same`: stays if it is the stored disposition once more, else refused. `bug`: must never arrive.
 */
type Cell = PermitPlace | 'stay' | 'refused' | 'same' | 'bug';

export const PERMIT_GRID: Readonly<Record<PermitPlace, Readonly<Record<PermitSignal, Cell>>>> = {
  'issued-idle': {
    start: 'gateway-in-flight',
    accepted: 'refused',
    rejected: 'refused',
    unknown: 'refused',
    enter: 'local-commit-entered',
    committed: 'bug',
    release: 'released',
    abandon: 'abandoned-clean',
    'never-sent': 'abandoned-clean',
    overtake: 'abandoned-clean',
    repair: 'refused',
  },
  'gateway-in-flight': {
    start: 'stay',
    accepted: 'awaiting-accepted',
    rejected: 'awaiting-rejected',
    unknown: 'awaiting-unknown',
    enter: 'refused',
    committed: 'bug',
    release: 'refused',
    abandon: 'refused',
    'never-sent': 'abandoned-clean',
    overtake: 'abandoned-reconcile-required',
    repair: 'refused',
  },
  'awaiting-accepted': {
    start: 'stay',
    accepted: 'stay',
    rejected: 'refused',
    unknown: 'refused',
    enter: 'local-commit-entered',
    committed: 'bug',
    release: 'released',
    abandon: 'abandoned-reconcile-required',
    'never-sent': 'refused',
    overtake: 'abandoned-reconcile-required',
    repair: 'refused',
  },
  'awaiting-rejected': {
    start: 'stay',
    accepted: 'refused',
    rejected: 'stay',
    unknown: 'refused',
    enter: 'refused',
    committed: 'bug',
    release: 'released',
    abandon: 'abandoned-clean',
    'never-sent': 'refused',
    overtake: 'abandoned-clean',
    repair: 'refused',
  },
  'awaiting-unknown': {
    start: 'stay',
    accepted: 'refused',
    rejected: 'refused',
    unknown: 'stay',
    enter: 'refused',
    committed: 'bug',
    release: 'refused',
    abandon: 'abandoned-reconcile-required',
    'never-sent': 'refused',
    overtake: 'abandoned-reconcile-required',
    repair: 'refused',
  },
  'local-commit-entered': {
    start: 'refused',
    accepted: 'refused',
    rejected: 'refused',
    unknown: 'refused',
    enter: 'refused',
    committed: 'released',
    release: 'refused',
    abandon: 'refused',
    'never-sent': 'refused',
    overtake: 'stay',
    repair: 'abandoned-reconcile-required',
  },
  released: {
    start: 'refused',
    accepted: 'same',
    rejected: 'same',
    unknown: 'refused',
    enter: 'stay',
    committed: 'bug',
    release: 'stay',
    abandon: 'stay',
    'never-sent': 'refused',
    overtake: 'stay',
    repair: 'refused',
  },
  'abandoned-clean': {
    start: 'refused',
    accepted: 'refused',
    rejected: 'same',
    unknown: 'refused',
    enter: 'refused',
    committed: 'bug',
    release: 'refused',
    abandon: 'stay',
    'never-sent': 'stay',
    overtake: 'stay',
    repair: 'refused',
  },
  'abandoned-reconcile-required': {
    start: 'refused',
    accepted: 'same',
    rejected: 'same',
    unknown: 'same',
    enter: 'refused',
    committed: 'bug',
    release: 'refused',
    abandon: 'stay',
    'never-sent': 'refused',
    overtake: 'stay',
    repair: 'refused',
  },
};

/** Without a local commit only these may be released once accepted (PM5, PM6). */
export const RELEASED_WITHOUT_APPLY: Readonly<Record<OperationClass, 'always' | 'without-effect' | 'never'>> = {
  handshake: 'always',
  push: 'without-effect',
  bootstrap: 'never',
  pull: 'never',
  repair: 'never',
  dispatch: 'never',
  'local-apply': 'never',
};

/** What the grid and the class table look at. */
export interface PermitStanding {
  readonly state: PermitState;
  readonly disposition: Disposition;
  readonly class: OperationClass;
}

/** `owe`: its obligations are opened. `queue-again`: its operations wait under their request ids as before the start. */
export type PermitEffect = 'owe' | 'queue-again' | 'settle';

export type PermitStep =
  | {
      readonly move: 'to';
      readonly state: PermitState;
      readonly disposition: Disposition;
      readonly effects: readonly PermitEffect[];
    }
  | { readonly move: 'stay' | 'refused' | 'bug' };

/**
 * One step of one permit. Total: what may not happen is `refused`.
 * `withoutEffect`: the caller knows that the accepted push changes nothing here.
 */
export function stepPermit(permit: PermitStanding, signal: PermitSignal, withoutEffect = false): PermitStep {
  const place = permitPlace(permit);
  const cell = PERMIT_GRID[place][signal];
  if (cell === 'same') return { move: permit.disposition === signal ? 'stay' : 'refused' };
  if (cell === 'stay' || cell === 'refused' || cell === 'bug') return { move: cell };
  if (!isAllowedByClass(permit.class, place, signal, withoutEffect)) return { move: 'refused' };
  return {
    move: 'to',
    state: placeState(cell),
    disposition: nextDisposition(permit.disposition, signal),
    effects: effectsOf(cell, permit, signal),
  };
}

function isAllowedByClass(
  operationClass: OperationClass,
  place: PermitPlace,
  signal: PermitSignal,
  withoutEffect: boolean,
): boolean {
  if (place === 'issued-idle') {
    if (signal === 'start') return operationClass !== 'local-apply';
    if (signal === 'enter') return operationClass === 'local-apply';
  }
  if (place === 'awaiting-accepted' && signal === 'release') {
    const rule = RELEASED_WITHOUT_APPLY[operationClass];
    return rule === 'always' || (rule === 'without-effect' && withoutEffect);
  }
  return true;
}

function nextDisposition(disposition: Disposition, signal: PermitSignal): Disposition {
  if (signal === 'start') return 'unknown';
  if (signal === 'accepted' || signal === 'rejected' || signal === 'unknown') return signal;
  return disposition;
}

function effectsOf(next: PermitPlace, permit: PermitStanding, signal: PermitSignal): readonly PermitEffect[] {
  if (next === 'abandoned-reconcile-required') return ['owe', 'queue-again'];
  if (next === 'abandoned-clean') return ['queue-again'];
  const isCompleted = signal === 'committed' || (signal === 'release' && permit.disposition === 'accepted');
  return next === 'released' && isCompleted ? ['settle'] : [];
}

export function permitPlace(permit: Pick<PermitStanding, 'state' | 'disposition'>): PermitPlace {
  if (permit.state !== 'gateway-complete-awaiting-apply') return permit.state;
  if (permit.disposition === 'accepted') return 'awaiting-accepted';
  return permit.disposition === 'rejected' ? 'awaiting-rejected' : 'awaiting-unknown';
}

const placeState = (place: PermitPlace): PermitState =>
  place === 'awaiting-accepted' || place === 'awaiting-rejected' || place === 'awaiting-unknown'
    ? 'gateway-complete-awaiting-apply'
    : place;

export const isEnded = (state: PermitState): boolean =>
  state === 'released' || state === 'abandoned-clean' || state === 'abandoned-reconcile-required';

// ── Reading what is stored: a value that this code cannot read counts as the careful one (PM13) ─────────────────────

/** Unreadable: as if the request may have left. It is never started again, and ends as owed. */
export const readPermitState = (value: unknown): PermitState => oneOf(PERMIT_STATES, value, 'gateway-in-flight');

export const readDisposition = (value: unknown): Disposition => oneOf(DISPOSITIONS, value, 'unknown');

/** Unreadable: replayed if it names operations or a command, else fetched again. */
export function readOperationClass(value: unknown, names: 'operations' | 'command' | 'nothing'): OperationClass {
  const careful = names === 'operations' ? 'push' : names === 'command' ? 'dispatch' : 'pull';
  return oneOf(OPERATION_CLASSES, value, careful);
}

/** Unreadable: belongs to the gateway, whose outcome this process cannot know. */
export const readOwnerMode = (value: unknown): OwnerMode => (value === 'host' ? 'host' : 'browser-gateway');

function oneOf<T extends string>(known: readonly T[], value: unknown, careful: T): T {
  return known.includes(value as T) ? (value as T) : careful;
}
