import type { Fault } from '@holdfast/core';
import type { ActionOutcome, LocalChange, ReplicaState } from '../engine/replica-state.ts';

/** Who waits for an action to be in the log. In memory: a caller asks again after a restart. */
export interface Waiters {
  /** Calls `settle` at once if the outcome is known. The returned function ends the wait. */
  wait(action: string, settle: Settle): () => void;
  settled(settled: LocalChange['settled']): void;
}

export type Settle = (
  outcome: { readonly ok: true; readonly version: number } | { readonly ok: false; readonly fault: Fault },
) => void;

export function createWaiters(state: ReplicaState): Waiters {
  const waiting = new Map<string, Set<Settle>>();
  return {
    wait: (action, settle) => {
      const outcome = state.outcome(action);
      if (outcome === undefined) {
        settle({ ok: false, fault: { code: 'not-found', facts: { action } } });
        return () => undefined;
      }
      const definite = definiteOf(outcome);
      if (definite !== null) {
        settle(definite);
        return () => undefined;
      }
      const known = waiting.get(action) ?? new Set();
      known.add(settle);
      waiting.set(action, known);
      return () => {
        known.delete(settle);
        if (known.size === 0) waiting.delete(action);
      };
    },
    settled: (settled) => {
      if (waiting.size === 0) return;
      for (const { actionId, outcome } of settled) {
        const definite = definiteOf(outcome);
        const known = waiting.get(actionId);
        if (definite === null || known === undefined) continue;
        waiting.delete(actionId);
        for (const settle of known) settle(definite);
      }
    },
  };
}

function definiteOf(outcome: ActionOutcome): Parameters<Settle>[0] | null {
  switch (outcome.state) {
    case 'pending':
      return null;
    case 'ordered':
      return { ok: true, version: outcome.version };
    case 'local':
      // Only local entities: nothing of it is ever sent, and nothing is awaited.
      return { ok: true, version: 0 };
    case 'needs-attention':
      return { ok: false, fault: { code: 'needs-attention', facts: { because: outcome.fault } } };
    case 'refused':
      return { ok: false, fault: { code: 'refused', facts: { because: outcome.fault } } };
    case 'discarded':
      return { ok: false, fault: { code: 'refused', facts: { because: { code: 'discarded' } } } };
    case 'replaced':
      return {
        ok: false,
        fault: { code: 'refused', facts: { because: { code: 'replaced' }, ...(outcome.by ? { by: outcome.by } : {}) } },
      };
  }
}
