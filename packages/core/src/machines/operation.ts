/**
 * The life of one operation in the outbox, from commit to the log (6.4). `held` is no state: it is derived from what an
 * operation names (ST2). `owed` is none either: an open obligation names its request id (PM7).
 */
export const OPERATION_STATES = ['queued', 'sending', 'waiting', 'accepted', 'parked', 'refused', 'lost'] as const;
/** Outside the outbox: in the log and applied here, or closed by a person (OB7). */
export type OperationEnd = 'confirmed' | 'closed';
export type OperationState = (typeof OPERATION_STATES)[number];
export type OperationPlace = OperationState | OperationEnd;

/**
 * - `sent`: the permit that names it started. `postponed`: no definite answer, or one that only asks to wait.
 * - `restarted`: its permit ended with an earlier host instance, or clean: as before the start.
 * - `accepted`: ahead of a gap (IN1). `confirmed`: its events are in the confirmed state.
 * - `must-judge`: the ledger named a version up to which theirs must be read first. `rebased`: it merged, under a new
 *   request id. `parked`: a clash, a broken rule, an engine fault; also a dependent judged again (ST3).
 * - `prior-missing`: answered while what it builds on is not in the log: held from now on, or held already. `held`: what
 *   it builds on was set aside, nobody answered (ST2). `refused`: as it is, it can never be accepted.
 * - `asked-again`: what the ledger said of it holds no more, since the place that it promised went to somebody else, or
 *   history may have been cut above the head (HL1): the ledger is asked once more, under the same request id.
 * - `closed`: discarded or replaced by a person. `history-changed`: it is above the common version (HL1).
 * - `adopted`: a person chose the ledger's state; lost work is offered again (HL4).
 */
export type OperationSignal =
  | 'sent'
  | 'postponed'
  | 'restarted'
  | 'accepted'
  | 'confirmed'
  | 'must-judge'
  | 'rebased'
  | 'parked'
  | 'prior-missing'
  | 'held'
  | 'asked-again'
  | 'refused'
  | 'closed'
  | 'history-changed'
  | 'adopted';

/** `later`: a person's wish, stored and carried out once the answer is known (OB3). */
type Cell = OperationPlace | 'stay' | 'later' | 'bug';

export const OPERATION_GRID: Readonly<Record<OperationPlace, Readonly<Record<OperationSignal, Cell>>>> = {
  queued: {
    sent: 'sending',
    postponed: 'waiting',
    restarted: 'stay',
    accepted: 'bug',
    confirmed: 'confirmed',
    'must-judge': 'bug',
    rebased: 'stay',
    parked: 'parked',
    'prior-missing': 'bug',
    held: 'stay',
    'asked-again': 'stay',
    refused: 'bug',
    closed: 'closed',
    'history-changed': 'stay',
    adopted: 'stay',
  },
  sending: {
    sent: 'bug',
    postponed: 'waiting',
    restarted: 'queued',
    accepted: 'accepted',
    confirmed: 'confirmed',
    'must-judge': 'waiting',
    rebased: 'bug',
    parked: 'parked',
    'prior-missing': 'queued',
    held: 'stay',
    'asked-again': 'stay',
    refused: 'refused',
    closed: 'later',
    'history-changed': 'stay',
    adopted: 'stay',
  },
  waiting: {
    sent: 'sending',
    postponed: 'stay',
    restarted: 'stay',
    accepted: 'bug',
    confirmed: 'confirmed',
    'must-judge': 'stay',
    rebased: 'queued',
    parked: 'parked',
    'prior-missing': 'bug',
    held: 'queued',
    'asked-again': 'queued',
    refused: 'bug',
    closed: 'closed',
    'history-changed': 'stay',
    adopted: 'stay',
  },
  accepted: {
    sent: 'bug',
    postponed: 'bug',
    restarted: 'stay',
    accepted: 'stay',
    confirmed: 'confirmed',
    'must-judge': 'bug',
    rebased: 'bug',
    parked: 'bug',
    'prior-missing': 'bug',
    held: 'bug',
    'asked-again': 'queued',
    refused: 'bug',
    closed: 'later',
    'history-changed': 'lost',
    adopted: 'stay',
  },
  parked: {
    sent: 'bug',
    postponed: 'bug',
    restarted: 'stay',
    accepted: 'bug',
    confirmed: 'confirmed',
    'must-judge': 'bug',
    rebased: 'bug',
    parked: 'stay',
    'prior-missing': 'bug',
    held: 'stay',
    'asked-again': 'stay',
    refused: 'bug',
    closed: 'closed',
    'history-changed': 'stay',
    adopted: 'stay',
  },
  refused: {
    sent: 'bug',
    postponed: 'bug',
    restarted: 'stay',
    accepted: 'bug',
    confirmed: 'confirmed',
    'must-judge': 'bug',
    rebased: 'bug',
    parked: 'bug',
    'prior-missing': 'bug',
    held: 'stay',
    'asked-again': 'stay',
    refused: 'stay',
    closed: 'closed',
    'history-changed': 'stay',
    adopted: 'stay',
  },
  lost: {
    sent: 'bug',
    postponed: 'bug',
    restarted: 'stay',
    accepted: 'bug',
    confirmed: 'confirmed',
    'must-judge': 'bug',
    rebased: 'bug',
    parked: 'bug',
    'prior-missing': 'bug',
    held: 'stay',
    'asked-again': 'stay',
    refused: 'bug',
    closed: 'closed',
    'history-changed': 'stay',
    adopted: 'queued',
  },
  confirmed: {
    sent: 'bug',
    postponed: 'bug',
    restarted: 'stay',
    accepted: 'stay',
    confirmed: 'stay',
    'must-judge': 'bug',
    rebased: 'bug',
    parked: 'bug',
    'prior-missing': 'bug',
    held: 'bug',
    'asked-again': 'stay',
    refused: 'bug',
    closed: 'stay',
    'history-changed': 'lost',
    adopted: 'stay',
  },
  closed: {
    sent: 'bug',
    postponed: 'bug',
    restarted: 'stay',
    accepted: 'bug',
    confirmed: 'stay',
    'must-judge': 'bug',
    rebased: 'bug',
    parked: 'bug',
    'prior-missing': 'bug',
    held: 'bug',
    'asked-again': 'stay',
    refused: 'bug',
    closed: 'stay',
    'history-changed': 'stay',
    adopted: 'stay',
  },
};

/** ST1: whose changes are in local state, on top of the confirmed one. */
export const IN_LOCAL_STATE: Readonly<Record<OperationState, boolean>> = {
  queued: true,
  sending: true,
  waiting: true,
  accepted: true,
  parked: false,
  refused: false,
  lost: false,
};

export type OperationEffect =
  /** Its change leaves local state; the row says `attention`; the desk shows it whole (ST1). */
  | 'leave-local-state'
  /** Its change is applied on top of the confirmed state again. */
  | 'enter-local-state'
  /** Its outbox row becomes an outcome (CM5). */
  | 'retire'
  /** Its bytes go back into the outbox, request id unchanged (HL1). */
  | 'restore'
  | 'remember-wish';

export type OperationStep =
  | { readonly move: 'to'; readonly place: OperationPlace; readonly effects: readonly OperationEffect[] }
  | { readonly move: 'stay'; readonly effects: readonly OperationEffect[] }
  | { readonly move: 'bug' };

/** One step of one operation. Total: a signal that must never arrive changes nothing and is told as `bug`. */
export function stepOperation(place: OperationPlace, signal: OperationSignal): OperationStep {
  const cell = OPERATION_GRID[place][signal];
  if (cell === 'bug') return { move: 'bug' };
  if (cell === 'stay') return { move: 'stay', effects: [] };
  if (cell === 'later') return { move: 'stay', effects: ['remember-wish'] };
  return { move: 'to', place: cell, effects: effectsBetween(place, cell) };
}

function effectsBetween(from: OperationPlace, to: OperationPlace): readonly OperationEffect[] {
  const effects: OperationEffect[] = [];
  if (isOperationEnd(to)) return ['retire'];
  if (isOperationEnd(from)) effects.push('restore');
  const wasLocal = isOperationEnd(from) ? from === 'confirmed' : IN_LOCAL_STATE[from];
  if (wasLocal && !IN_LOCAL_STATE[to]) effects.push('leave-local-state');
  if (!wasLocal && IN_LOCAL_STATE[to]) effects.push('enter-local-state');
  return effects;
}

export const isOperationEnd = (place: OperationPlace): place is OperationEnd =>
  place === 'confirmed' || place === 'closed';

/** Unreadable counts as the careful one (PM13): it may have been sent, so it is asked about before anything else. */
export const readOperationState = (value: unknown): OperationState =>
  OPERATION_STATES.includes(value as OperationState) ? (value as OperationState) : 'sending';
