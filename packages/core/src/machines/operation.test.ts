import { describe, expect, test } from 'vitest';
import {
  IN_LOCAL_STATE,
  isOperationEnd,
  OPERATION_GRID,
  OPERATION_STATES,
  type OperationPlace,
  type OperationSignal,
  readOperationState,
  stepOperation,
} from './operation.ts';

const PLACES = Object.keys(OPERATION_GRID) as OperationPlace[];
const SIGNALS = Object.keys(OPERATION_GRID.queued) as OperationSignal[];
/** What needs a person, or an administrator: discard or replace, and the choice after a lost history. */
const BY_PERSON: readonly OperationSignal[] = ['closed', 'adopted'];

function reachable(from: OperationPlace, signals: readonly OperationSignal[]): Set<OperationPlace> {
  const found = new Set([from]);
  for (const place of found)
    for (const signal of signals) {
      const step = stepOperation(place, signal);
      if (step.move === 'to') found.add(step.place);
    }
  return found;
}

describe('operation', () => {
  test('[OB7] from the outbox every state and every end is reachable', () => {
    expect(reachable('queued', SIGNALS)).toEqual(new Set(PLACES));
  });

  test('[I29 OB1] without a person every operation that is not on the desk reaches the log', () => {
    const alone = SIGNALS.filter((signal) => !BY_PERSON.includes(signal));
    const way: readonly OperationSignal[] = ['sent', 'postponed', 'accepted', 'confirmed'];
    for (const state of OPERATION_STATES) {
      if (IN_LOCAL_STATE[state]) expect(reachable(state, way)).toContain('confirmed');
      expect(reachable(state, alone)).toContain('confirmed');
    }
  });

  test('[OB6] what waits for a person leaves the desk by a person, or because its events turned up in the log', () => {
    for (const state of ['parked', 'refused', 'lost'] as const)
      for (const signal of SIGNALS) {
        const step = stepOperation(state, signal);
        if (step.move === 'to') expect(['closed', 'confirmed', 'adopted']).toContain(signal);
      }
    for (const state of ['parked', 'refused', 'lost'] as const)
      expect(stepOperation(state, 'closed')).toMatchObject({ move: 'to', place: 'closed' });
  });

  test('[OB7] an operation leaves the outbox by two doors only: its events in the log, or a person', () => {
    for (const place of OPERATION_STATES)
      for (const signal of SIGNALS) {
        const step = stepOperation(place, signal);
        if (step.move !== 'to' || !isOperationEnd(step.place)) continue;
        expect(signal).toBe(step.place);
        expect(step.effects).toEqual(['retire']);
      }
  });

  test('[OB7 HL1] what is closed stays closed; what is confirmed comes back only if history was cut below it', () => {
    for (const signal of SIGNALS) {
      expect(stepOperation('closed', signal).move).not.toBe('to');
      const step = stepOperation('confirmed', signal);
      if (step.move !== 'to') continue;
      expect([signal, step.place]).toEqual(['history-changed', 'lost']);
      expect(step.effects).toEqual(['restore', 'leave-local-state']);
    }
  });

  test('[OB3] work that is sending or accepted is neither rebased nor closed; a wish to discard it is kept', () => {
    for (const state of ['sending', 'accepted'] as const) {
      expect(stepOperation(state, 'rebased').move).toBe('bug');
      expect(stepOperation(state, 'closed')).toEqual({ move: 'stay', effects: ['remember-wish'] });
    }
    expect(stepOperation('accepted', 'parked').move).toBe('bug');
  });

  test('[ST1] a change leaves or enters local state exactly when its state says so', () => {
    for (const from of OPERATION_STATES)
      for (const signal of SIGNALS) {
        const step = stepOperation(from, signal);
        if (step.move !== 'to' || isOperationEnd(step.place)) continue;
        expect(step.effects.includes('leave-local-state')).toBe(IN_LOCAL_STATE[from] && !IN_LOCAL_STATE[step.place]);
        expect(step.effects.includes('enter-local-state')).toBe(!IN_LOCAL_STATE[from] && IN_LOCAL_STATE[step.place]);
      }
  });

  test('[PM8 OB3] a restart puts what was sending back under its own request id, and moves nothing else on', () => {
    for (const state of OPERATION_STATES) {
      const step = stepOperation(state, 'restarted');
      expect(step.move === 'to' ? step.place : state).toBe(state === 'sending' ? 'queued' : state);
    }
  });

  test('[PM13] a state that cannot be read may have been sent', () => {
    expect(readOperationState('teleported')).toBe('sending');
    expect(readOperationState('parked')).toBe('parked');
  });
});
