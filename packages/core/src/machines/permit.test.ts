import { describe, expect, test } from 'vitest';
import {
  DISPOSITIONS,
  isEnded,
  OPERATION_CLASSES,
  type OperationClass,
  PERMIT_GRID,
  PERMIT_STATES,
  type PermitPlace,
  type PermitSignal,
  type PermitStanding,
  permitPlace,
  RELEASED_WITHOUT_APPLY,
  readDisposition,
  readOperationClass,
  readPermitState,
  stepPermit,
} from './permit.ts';

const SIGNALS = Object.keys(PERMIT_GRID['issued-idle']) as PermitSignal[];
const issued = (operationClass: OperationClass): PermitStanding => ({
  state: 'issued-idle',
  disposition: 'not-started',
  class: operationClass,
});

interface Path {
  readonly permit: PermitStanding;
  readonly signals: readonly PermitSignal[];
}

/** Every standing that some sequence of signals reaches, each with one such sequence. */
function reachable(
  from: PermitStanding,
  signals: readonly PermitSignal[] = SIGNALS,
  withoutEffect = false,
): readonly Path[] {
  const found = new Map<string, Path>([[JSON.stringify(from), { permit: from, signals: [] }]]);
  for (const path of found.values()) {
    for (const signal of signals) {
      const step = stepPermit(path.permit, signal, withoutEffect);
      if (step.move !== 'to') continue;
      const permit = { ...path.permit, state: step.state, disposition: step.disposition };
      const key = JSON.stringify(permit);
      if (!found.has(key)) found.set(key, { permit, signals: [...path.signals, signal] });
    }
  }
  return [...found.values()];
}

describe('permit', () => {
  test('[I20 PM6] ended states absorb: no signal leads out of them', () => {
    for (const operationClass of OPERATION_CLASSES)
      for (const state of PERMIT_STATES.filter(isEnded))
        for (const disposition of DISPOSITIONS)
          for (const signal of SIGNALS)
            expect(stepPermit({ state, disposition, class: operationClass }, signal, true).move).not.toBe('to');
  });

  test('[I20 F166] every state has a way to an end that needs nothing but the engine, but a found local commit', () => {
    const engineOnly = SIGNALS.filter((signal) => signal !== 'repair');
    for (const operationClass of OPERATION_CLASSES) {
      for (const { permit } of reachable(issued(operationClass))) {
        const overtaken = stepPermit(permit, 'overtake');
        if (permit.state === 'local-commit-entered') {
          expect(overtaken.move).toBe('stay');
          expect(stepPermit(permit, 'repair')).toMatchObject({ move: 'to', state: 'abandoned-reconcile-required' });
        } else if (!isEnded(permit.state)) {
          expect(overtaken.move === 'to' && isEnded(overtaken.state)).toBe(true);
        }
        if (isEnded(permit.state)) continue;
        expect(reachable(permit, engineOnly).some((path) => isEnded(path.permit.state))).toBe(true);
      }
    }
  });

  test('[I20] a class reaches exactly the states that its rules name', () => {
    const placesOf = (operationClass: OperationClass): Set<PermitPlace> =>
      new Set(reachable(issued(operationClass)).map((path) => permitPlace(path.permit)));
    const all = new Set(Object.keys(PERMIT_GRID) as PermitPlace[]);
    for (const operationClass of OPERATION_CLASSES.filter((one) => one !== 'local-apply'))
      expect(placesOf(operationClass)).toEqual(all);
    expect(placesOf('local-apply')).toEqual(
      new Set(['issued-idle', 'local-commit-entered', 'released', 'abandoned-clean', 'abandoned-reconcile-required']),
    );
  });

  test('[PM3 I21] what was started and has no definite answer ends owed, unless the transport proves that no byte left', () => {
    for (const operationClass of OPERATION_CLASSES)
      for (const { permit } of reachable(issued(operationClass)).filter(
        (path) => path.permit.disposition === 'unknown',
      ))
        for (const signal of SIGNALS) {
          const step = stepPermit(permit, signal, true);
          if (step.move !== 'to' || !isEnded(step.state) || signal === 'never-sent') continue;
          expect(step).toMatchObject({ state: 'abandoned-reconcile-required', disposition: 'unknown' });
          expect(step.effects).toContain('owe');
        }
  });

  test('[PM3] from the start on the disposition is known only by an answer, and a definite one never changes', () => {
    for (const operationClass of OPERATION_CLASSES)
      for (const { permit } of reachable(issued(operationClass)))
        for (const signal of SIGNALS) {
          const step = stepPermit(permit, signal, true);
          if (step.move !== 'to') continue;
          if (permit.disposition === 'accepted' || permit.disposition === 'rejected')
            expect(step.disposition).toBe(permit.disposition);
          if (signal === 'start') expect(step).toMatchObject({ state: 'gateway-in-flight', disposition: 'unknown' });
          if (step.disposition === 'accepted' && permit.disposition !== 'accepted') expect(signal).toBe('accepted');
        }
  });

  test('[PM5] an accepted answer is released only through a local commit, but for the named classes', () => {
    for (const operationClass of OPERATION_CLASSES) {
      const accepted: PermitStanding = {
        state: 'gateway-complete-awaiting-apply',
        disposition: 'accepted',
        class: operationClass,
      };
      const rule = RELEASED_WITHOUT_APPLY[operationClass];
      expect(stepPermit(accepted, 'release').move === 'to').toBe(rule === 'always');
      expect(stepPermit(accepted, 'release', true).move === 'to').toBe(rule !== 'never');
      const entered = { ...accepted, state: 'local-commit-entered' as const };
      expect(stepPermit(entered, 'committed')).toMatchObject({ state: 'released', effects: ['settle'] });
    }
  });

  test('[PM6 PM7] obligations are owed by exactly one state, and only a completed request settles any', () => {
    for (const operationClass of OPERATION_CLASSES)
      for (const { permit } of reachable(issued(operationClass)))
        for (const signal of SIGNALS) {
          const step = stepPermit(permit, signal, true);
          if (step.move !== 'to') continue;
          expect(step.effects.includes('owe')).toBe(step.state === 'abandoned-reconcile-required');
          expect(step.effects.includes('queue-again')).toBe(step.state.startsWith('abandoned'));
          if (step.effects.includes('settle'))
            expect([step.state, signal === 'committed' || step.disposition === 'accepted']).toEqual(['released', true]);
        }
  });

  test('[PM2] a step that was made already stays, whatever happened since, as long as it says the same', () => {
    const answered = stepPermit({ ...issued('pull'), state: 'gateway-in-flight', disposition: 'unknown' }, 'accepted');
    expect(answered.move).toBe('to');
    for (const state of ['gateway-complete-awaiting-apply', 'released', 'abandoned-reconcile-required'] as const) {
      const permit: PermitStanding = { state, disposition: 'accepted', class: 'pull' };
      expect(stepPermit(permit, 'accepted').move).toBe('stay');
      expect(stepPermit(permit, 'rejected').move).toBe('refused');
      expect(stepPermit(permit, 'unknown').move).toBe('refused');
    }
  });

  test('[PM10] nothing but the step after it, inside the same transaction, may commit', () => {
    for (const place of Object.keys(PERMIT_GRID) as PermitPlace[])
      expect(PERMIT_GRID[place].committed === 'bug').toBe(place !== 'local-commit-entered');
  });

  test('[PM13] a value that cannot be read counts as the careful one', () => {
    const unread: PermitStanding = {
      state: readPermitState('shipped-by-pigeon'),
      disposition: readDisposition(7),
      class: readOperationClass('gossip', 'operations'),
    };
    expect(unread).toEqual({ state: 'gateway-in-flight', disposition: 'unknown', class: 'push' });
    expect(stepPermit(unread, 'overtake')).toMatchObject({ state: 'abandoned-reconcile-required' });
    expect(readOperationClass(null, 'command')).toBe('dispatch');
    expect(readOperationClass(undefined, 'nothing')).toBe('pull');
    expect(readPermitState('released')).toBe('released');
    expect(readDisposition('rejected')).toBe('rejected');
  });
});
