import { LIMITS } from '@holdfast/core';
import { expect, test } from 'vitest';
import { createSeededRandom } from '../../testing/seeded-random.ts';
import { clampRetryMs, createBackoff, retryAfterMs, retryDelayMs, untilRetryMs } from './retry.ts';

test('[OB4] every delay lies between one second and a minute, and jitter fills the range up to the cap', () => {
  for (let attempt = 0; attempt < 40; attempt += 1) {
    const least = retryDelayMs({ attempt, unit: 0, retryAfterMs: null });
    const most = retryDelayMs({ attempt, unit: 0.999_999, retryAfterMs: null });
    expect(least).toBe(LIMITS.retryMinMs);
    expect(most).toBeLessThanOrEqual(LIMITS.retryMaxMs);
    expect(most).toBeGreaterThan(Math.min(LIMITS.retryMaxMs, LIMITS.retryMinMs * 2 ** (attempt + 1)) * 0.99);
  }
});

test('[OB4] Retry-After is honoured, clamped, and spread', () => {
  expect(retryDelayMs({ attempt: 0, unit: 0, retryAfterMs: 7_000 })).toBe(7_000);
  expect(retryDelayMs({ attempt: 0, unit: 0.5, retryAfterMs: 7_000 })).toBe(7_500);
  expect(retryDelayMs({ attempt: 0, unit: 0, retryAfterMs: 0 })).toBe(LIMITS.retryMinMs);
  expect(retryDelayMs({ attempt: 9, unit: 0.9, retryAfterMs: 1e12 })).toBe(LIMITS.retryMaxMs);
});

test('[OB4 F46] Retry-After in seconds, as a date, in the past, far away, or not readable at all', () => {
  const nowMs = Date.UTC(2026, 10, 30, 12);
  expect(retryAfterMs('12', nowMs)).toBe(12_000);
  expect(retryAfterMs('Mon, 30 Nov 2026 12:00:30 GMT', nowMs)).toBe(30_000);
  expect(retryAfterMs('Mon, 30 Nov 2020 12:00:30 GMT', nowMs)).toBe(0);
  for (const text of [null, '', 'soon', '-3', '1e9999']) expect(retryAfterMs(text, nowMs)).toBe(null);
  expect(clampRetryMs(Number.NaN)).toBe(LIMITS.retryMaxMs);
  expect(clampRetryMs(Number.POSITIVE_INFINITY)).toBe(LIMITS.retryMaxMs);
});

test('[OB4] a stored instant is never waited for beyond a minute, whatever the clock did', () => {
  expect(untilRetryMs({ storedAtMs: 5_000, nowMs: 1_000 })).toBe(4_000);
  expect(untilRetryMs({ storedAtMs: 1_000, nowMs: 5_000 })).toBe(0);
  expect(untilRetryMs({ storedAtMs: 1e15, nowMs: 0 })).toBe(LIMITS.retryMaxMs);
});

test('[OB4] a reset begins anew', () => {
  const backoff = createBackoff(createSeededRandom(3));
  for (let at = 0; at < 10; at += 1) backoff.next();
  expect(backoff.attempts).toBe(10);
  backoff.reset();
  expect(backoff.attempts).toBe(0);
  expect(backoff.next()).toBeLessThan(2 * LIMITS.retryMinMs);
});
