import { LIMITS, type Random } from '@holdfast/core';

/**
 * OB4: exponential with full jitter, from 1 s to 60 s. `Retry-After` is honoured and clamped. Nothing here gives up: an
 * unreachable ledger never needs a person and never uses up a budget.
 */
export interface Backoff {
  /** Failures since the last reset. Never counts an answer that asks for sign-in. */
  readonly attempts: number;
  /** Counts one failure and gives the milliseconds to wait. */
  next(retryAfterMs?: number | null): number;
  reset(): void;
}

export function createBackoff(random: Random): Backoff {
  let attempts = 0;
  return {
    get attempts() {
      return attempts;
    },
    next: (retryAfterMs) => {
      const waitMs = retryDelayMs({ attempt: attempts, unit: random.unit(), retryAfterMs: retryAfterMs ?? null });
      attempts += 1;
      return waitMs;
    },
    reset: () => {
      attempts = 0;
    },
  };
}

/** `attempt` counts from 0; `unit` is uniform in [0, 1). Jitter comes after the cap, so that no two devices meet there. */
export function retryDelayMs(of: { attempt: number; unit: number; retryAfterMs: number | null }): number {
  const { retryMinMs, retryMaxMs } = LIMITS;
  const ceilingMs = Math.min(retryMaxMs, retryMinMs * 2 ** Math.min(of.attempt + 1, 16));
  const jitteredMs = retryMinMs + of.unit * (ceilingMs - retryMinMs);
  if (of.retryAfterMs === null) return jitteredMs;
  // What the ledger asked for, and a spread on top: all who were told the same must not come back together.
  return clampRetryMs(of.retryAfterMs + of.unit * retryMinMs);
}

export const clampRetryMs = (ms: number): number =>
  Number.isFinite(ms) ? Math.min(LIMITS.retryMaxMs, Math.max(LIMITS.retryMinMs, ms)) : LIMITS.retryMaxMs;

/** A stored instant, read back: a clock that went back may not make it wait longer than the cap. */
export const untilRetryMs = (of: { storedAtMs: number; nowMs: number }): number =>
  Math.min(LIMITS.retryMaxMs, Math.max(0, of.storedAtMs - of.nowMs));

/** Seconds or an HTTP date, as the header allows; null if it says neither. Not clamped. */
export function retryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // An HTTP date begins with the name of a day; what else `Date.parse` takes for a date is none.
  const atMs = /^[A-Za-z]{3,9}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}
