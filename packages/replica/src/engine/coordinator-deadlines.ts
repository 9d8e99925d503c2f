import { LIMITS } from '@holdfast/core';

/**
 * Deadlines of the permits that this run of the host issued: durations on its monotonic clock (PM12).
 *
 * Owns nothing durable. A permit that is not in here, because another run issued it, or because the transaction that
 * ended it was undone, counts as overdue: the worst outcome is one more question to the ledger.
 */
export interface Deadlines {
  /** At most `LIMITS.requestTotalMs`. */
  begin(permitId: string, durationMs: number, nowMs: number): void;
  /** Bytes arrived: the silence begins anew, up to the named maximum. */
  extend(permitId: string, nowMs: number): void;
  /** Milliseconds since the deadline passed; 0 or less before. */
  overdueMs(permitId: string, nowMs: number): number;
  end(permitId: string): void;
  /** Forgets all others. */
  keep(permitIds: ReadonlySet<string>): void;
  readonly size: number;
}

export const clampDurationMs = (durationMs: number): number => Math.min(durationMs, LIMITS.requestTotalMs);

export function createDeadlines(): Deadlines {
  const running = new Map<string, { readonly durationMs: number; readonly endMs: number; dueMs: number }>();
  return {
    begin: (permitId, durationMs, nowMs) => {
      const clamped = clampDurationMs(durationMs);
      running.set(permitId, { durationMs: clamped, endMs: nowMs + LIMITS.requestTotalMs, dueMs: nowMs + clamped });
    },
    extend: (permitId, nowMs) => {
      const deadline = running.get(permitId);
      if (deadline !== undefined && nowMs <= deadline.dueMs)
        deadline.dueMs = Math.min(nowMs + deadline.durationMs, deadline.endMs);
    },
    overdueMs: (permitId, nowMs) => {
      const deadline = running.get(permitId);
      return deadline === undefined ? Number.POSITIVE_INFINITY : nowMs - deadline.dueMs;
    },
    end: (permitId) => void running.delete(permitId),
    keep: (permitIds) => {
      for (const permitId of running.keys()) if (!permitIds.has(permitId)) running.delete(permitId);
    },
    get size() {
      return running.size;
    },
  };
}
