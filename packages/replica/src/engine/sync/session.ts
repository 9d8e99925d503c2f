import {
  audienceArrived,
  type Fault,
  LOOP_STANDS,
  SESSION_AT_REST,
  type Session,
  type SessionEffect,
  type SessionPhase,
  type SessionSignal,
  stepSession,
} from '@holdfast/core';

/**
 * Steps the session's grid and does what it says (AC1, SY3). Owns the phase of the whole replica and its reason; cached
 * only.
 */
export interface SessionDriver {
  signal(signal: SessionSignal, reason?: Fault): void;
  /** Whether somebody could be told now: a visible tab that is online. An app without tabs is always there. */
  presence(now: { readonly visible: boolean; readonly online: boolean }): void;
  readonly phase: SessionPhase;
  readonly reason: Fault | null;
  /** The loop does not run in this phase. */
  readonly stands: boolean;
}

export function createSession(
  effects: Readonly<Record<SessionEffect, () => void>>,
  changed: () => void,
): SessionDriver {
  let session: Session = SESSION_AT_REST;
  let reason: Fault | null = null;
  let hasAudience = true;

  const perform = (step: { readonly session: Session; readonly effects: readonly SessionEffect[] }) => {
    session = step.session;
    for (const effect of step.effects) effects[effect]();
  };

  return {
    signal: (signal, given) => {
      const before = session.phase;
      const step = stepSession(session, signal, hasAudience);
      const isOtherReason = given !== undefined && IS_REASON_OF[signal] === before && !isSame(given, reason);
      const isSaid = step.session.phase !== before || isOtherReason;
      // The reason stands before its effects are performed: whoever is told may ask for it.
      if (isSaid) reason = given ?? null;
      perform(step);
      if (isSaid) changed();
    },
    presence: ({ visible, online }) => {
      hasAudience = visible && online;
      if (hasAudience) perform(audienceArrived(session));
    },
    get phase() {
      return session.phase;
    },
    get reason() {
      return reason;
    },
    get stands() {
      return LOOP_STANDS[session.phase];
    },
  };
}

/** The same thing said once more is no news: whoever tells of news would never come to an end. */
const isSame = (one: Fault, other: Fault | null): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Signals that say the same phase once more, perhaps for another reason. */
const IS_REASON_OF: Partial<Record<SessionSignal, SessionPhase>> = {
  unreachable: 'offline',
  quota: 'quota',
  blocked: 'blocked',
  moved: 'moved',
  stalled: 'stalled',
  'update-needed': 'update-needed',
};
