import { LIMITS } from '@holdfast/core';

/**
 * Deadlines of the permits that this run of the host issued: durations on its monotonic clock (PM12).
 *
 * Owns nothing durable. A permit that is not in here, because another run issued it or because a thousand newer ones
 * were, counts as overdue: the worst outcome is one more question to the ledger.
 */
export interface Deadlines {
  /** At most `LIMITS.requestTotalMs`. Beyond `LIMITS.permitsKept` the oldest is forgotten. */
  begin(permitId: string, durationMs: number, nowMs: number): void;
  /** Bytes arrived: the silence begins anew, up to the named maximum. */
  extend(permitId: string, nowMs: number): void;
  /** Milliseconds since the deadline passed; 0 or less before. */
  overdueMs(permitId: string, nowMs: number): number;
}

export const clampDurationMs = (durationMs: number): number => Math.min(durationMs, LIMITS.requestTotalMs);

export function createDeadlines(): Deadlines {
  const running = new Map<string, { readonly durationMs: number; readonly endMs: number; dueMs: number }>();
  return {
    begin: (permitId, durationMs, nowMs) => {
      const clamped = clampDurationMs(durationMs);
      if (running.size >= LIMITS.permitsKept) running.delete(running.keys().next().value as string);
      running.set(permitId, { durationMs: clamped, endMs: nowMs + LIMITS.requestTotalMs, dueMs: nowMs + clamped });
    },
    extend: (permitId, nowMs) => {
      const deadline = running.get(permitId);
      if (deadline !== undefined) deadline.dueMs = Math.min(nowMs + deadline.durationMs, deadline.endMs);
    },
    overdueMs: (permitId, nowMs) => {
      const deadline = running.get(permitId);
      return deadline === undefined ? Number.POSITIVE_INFINITY : nowMs - deadline.dueMs;
    },
  };
}
