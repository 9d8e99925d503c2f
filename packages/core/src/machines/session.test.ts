import { describe, expect, test } from 'vitest';
import {
  audienceArrived,
  LOOP_STANDS,
  SESSION_AT_REST,
  SESSION_GRID,
  SESSION_PHASES,
  type Session,
  type SessionEffect,
  type SessionPhase,
  type SessionSignal,
  stepSession,
} from './session.ts';

const SIGNALS = Object.keys(SESSION_GRID.offline) as SessionSignal[];
const next = (phase: SessionPhase, signal: SessionSignal): SessionPhase =>
  stepSession({ phase, notice: 'none' }, signal, true).session.phase;

function reachable(from: SessionPhase, signals: readonly SessionSignal[]): Set<SessionPhase> {
  const found = new Set([from]);
  for (const phase of found) for (const signal of signals) found.add(next(phase, signal));
  return found;
}

function run(signals: readonly SessionSignal[], hasAudience: boolean): { session: Session; effects: SessionEffect[] } {
  let session = SESSION_AT_REST;
  const effects: SessionEffect[] = [];
  for (const signal of signals) {
    const step = stepSession(session, signal, hasAudience);
    session = step.session;
    effects.push(...step.effects);
  }
  return { session, effects };
}

describe('session', () => {
  test('[SY3] every phase is reachable from the first', () => {
    expect(reachable('offline', SIGNALS)).toEqual(new Set(SESSION_PHASES));
  });

  test('[I29] with a ledger that answers, every phase goes live without a person, but those that name one', () => {
    /** What the loop, the watchdog and a healthy ledger do by themselves. */
    const alone: readonly SessionSignal[] = ['begin', 'behind', 'at-head', 'progress'];
    const needsSomebody: readonly SessionPhase[] = ['sign-in-needed', 'no-owner', 'stopped'];
    for (const phase of SESSION_PHASES)
      expect([phase, reachable(phase, alone).has('live')]).toEqual([phase, !needsSomebody.includes(phase)]);
    expect(reachable('sign-in-needed', ['credentials', ...alone])).toContain('live');
    expect(reachable('no-owner', ['owner-found', ...alone])).toContain('live');
  });

  test('[SY4] stopped absorbs, and is reached from everywhere by one signal', () => {
    for (const phase of SESSION_PHASES) expect(next(phase, 'stop')).toBe('stopped');
    for (const signal of SIGNALS) expect(next('stopped', signal)).toBe('stopped');
  });

  test('[AC1] expiry stops the loop once, whatever late answers still say', () => {
    const late = SIGNALS.filter((signal) => !['credentials', 'stop', 'owner-gone'].includes(signal));
    const { session, effects } = run(['begin', 'at-head', 'expired', 'expired', ...late, 'expired'], true);
    expect(session).toEqual({ phase: 'sign-in-needed', notice: 'told' });
    expect(effects.filter((effect) => effect === 'stop-loop')).toHaveLength(1);
    expect(effects).not.toContain('start-loop');
  });

  test('[AC1] the app is told once per expiry, and again for the next one', () => {
    const told = (signals: readonly SessionSignal[]): number =>
      run(signals, true).effects.filter((effect) => effect === 'tell-sign-in-needed').length;
    expect(told(['begin', 'expired', 'expired', 'unreachable', 'expired'])).toBe(1);
    expect(told(['begin', 'expired', 'owner-gone', 'owner-found', 'expired'])).toBe(1);
    expect(told(['begin', 'expired', 'credentials', 'at-head', 'expired'])).toBe(2);
  });

  test('[AC1] with nobody there to hear, it is told to the first who comes', () => {
    const { session, effects } = run(['begin', 'expired', 'expired'], false);
    expect(session.notice).toBe('due');
    expect(effects).not.toContain('tell-sign-in-needed');
    const heard = audienceArrived(session);
    expect(heard.effects).toEqual(['tell-sign-in-needed']);
    expect(audienceArrived(heard.session).effects).toEqual([]);
  });

  test('[AC1] nobody is asked to sign in after the session is good again', () => {
    const { session } = run(['begin', 'expired', 'credentials'], false);
    expect(audienceArrived(session).effects).toEqual([]);
    const away = run(['begin', 'expired', 'owner-gone'], false).session;
    expect(audienceArrived(away).effects).toEqual([]);
  });

  test('[AC1] the loop starts again exactly when it leaves a phase in which it stands', () => {
    for (const phase of SESSION_PHASES)
      for (const signal of SIGNALS) {
        const { session, effects } = stepSession({ phase, notice: 'none' }, signal, false);
        expect(effects.includes('start-loop')).toBe(LOOP_STANDS[phase] && !LOOP_STANDS[session.phase]);
        expect(effects.includes('stop-loop')).toBe(!LOOP_STANDS[phase] && LOOP_STANDS[session.phase]);
      }
  });

  test('[SY3] a stall is kicked once, and ends with progress', () => {
    const { effects } = run(['begin', 'behind', 'stalled', 'stalled'], true);
    expect(effects.filter((effect) => effect === 'kick')).toHaveLength(1);
    expect(next('stalled', 'progress')).toBe('catching-up');
  });

  test('[I30] a known hindrance is not hidden by an unreachable ledger', () => {
    for (const phase of ['blocked', 'other-account', 'update-needed', 'moved', 'deleted', 'history-changed'] as const)
      expect(next(phase, 'unreachable')).toBe(phase);
  });
});
