import type { Clock, Random } from '@holdfast/core';
import { randomHex } from '@holdfast/core';

/**
 * Whether the other end of a socket is alive (RT4, F74). Only an own ping that was answered with its own nonce counts:
 * bytes that lay in a buffer while the device slept prove nothing. A local timer that comes far too late means that it
 * slept, and the socket is given up at once, without waiting for anything.
 */
export interface SocketLife {
  /** The interval that the ledger asks for. */
  begin(pingMs: number): void;
  /** Every message passes here first. False: it comes after a sleep, and the socket is given up. */
  heard(): boolean;
  pong(nonce: string): void;
  stop(): void;
}

const PING_MIN_MS = 1_000;
const PING_MAX_MS = 120_000;

export function createSocketLife(parts: {
  readonly clock: Clock;
  readonly random: Random;
  readonly ping: (nonce: string) => void;
  readonly dead: (reason: 'silent' | 'slept') => void;
}): SocketLife {
  const { clock } = parts;
  let intervalMs = 0;
  let cancelTimer: (() => void) | null = null;
  let lastTick = { monotonicMs: 0, wallMs: 0 };
  let waiting: { readonly nonce: string; readonly sinceMs: number } | null = null;

  /** Late by more than a whole interval. Wall time counts too: where the device sleeps, monotonic time may stand still. */
  const slept = (): boolean => {
    const lateMs = Math.max(clock.monotonic() - lastTick.monotonicMs, clock.now() - lastTick.wallMs) - intervalMs;
    return intervalMs > 0 && lateMs > intervalMs;
  };

  const tick = () => {
    if (slept()) return die('slept');
    const nowMs = clock.monotonic();
    if (waiting !== null && nowMs - waiting.sinceMs >= 2 * intervalMs) return die('silent');
    lastTick = { monotonicMs: nowMs, wallMs: clock.now() };
    if (waiting === null) {
      waiting = { nonce: randomHex(parts.random, 8), sinceMs: nowMs };
      parts.ping(waiting.nonce);
    }
    cancelTimer = clock.timer(intervalMs, tick);
  };

  const die = (reason: 'silent' | 'slept') => {
    stop();
    parts.dead(reason);
  };

  const stop = () => {
    intervalMs = 0;
    cancelTimer?.();
    cancelTimer = null;
    waiting = null;
  };

  return {
    begin: (pingMs) => {
      stop();
      intervalMs = Math.min(PING_MAX_MS, Math.max(PING_MIN_MS, pingMs));
      lastTick = { monotonicMs: clock.monotonic(), wallMs: clock.now() };
      tick();
    },
    heard: () => {
      if (!slept()) return true;
      die('slept');
      return false;
    },
    pong: (nonce) => {
      if (waiting?.nonce === nonce) waiting = null;
    },
    stop,
  };
}
