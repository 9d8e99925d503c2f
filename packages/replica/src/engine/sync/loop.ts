import type { Clock, Random } from '@holdfast/core';
import { type Backoff, createBackoff } from './retry.ts';

/**
 * SY1: one run at a time, and whatever asks while one runs gets exactly one more. Supervised (F13): a run that throws is
 * counted, told, and started again with backoff. Cached only: everything that must survive is in the file.
 */
export type Trigger =
  | 'start'
  | 'commit'
  | 'socket'
  | 'online'
  | 'visible'
  | 'retry'
  | 'manual'
  | 'tab'
  | 'credentials'
  | 'poll'
  | 'watchdog'
  | 'proof'
  | 'follow';

/** OB4: what ends a backoff at once. Everything else waits for its time. */
export const ENDS_BACKOFF: ReadonlySet<Trigger> = new Set(['start', 'online', 'visible', 'manual', 'credentials']);

export type Verdict =
  /** Nothing to do until somebody asks; or at the latest in `withinMs`. */
  | { readonly next: 'idle'; readonly withinMs?: number }
  /** There is more, and others had their turn. */
  | { readonly next: 'again' }
  /** It did not work: not before this time, unless the network or a person says so. */
  | { readonly next: 'retry'; readonly inMs: number };

export interface Loop {
  /** Starts a run soon; while one runs, asks for exactly one more; in a backoff, only some triggers count. */
  kick(trigger: Trigger): void;
  /** No new run until `resume`. A run that is going on ends by itself. */
  pause(): void;
  resume(): void;
  /** As pause, for ever. */
  stop(): void;
  /** When no run is going on. */
  ended(): Promise<void>;
  readonly state: 'idle' | 'due' | 'running' | 'waiting';
  /** When a backoff ends, on the monotonic clock. */
  readonly retryAtMs: number | null;
  readonly backoff: Backoff;
  /** Unexpected errors since the start. */
  readonly faults: number;
}

export function createLoop(parts: {
  readonly clock: Clock;
  readonly random: Random;
  readonly run: (triggers: readonly Trigger[]) => Promise<Verdict>;
  /** An unexpected error; false ends the loop. */
  readonly onFault: (error: unknown) => boolean;
  readonly onState?: () => void;
}): Loop {
  const { clock } = parts;
  const backoff = createBackoff(parts.random);
  const asked = new Set<Trigger>();
  const waiters: (() => void)[] = [];
  let state: Loop['state'] = 'idle';
  let isPaused = false;
  let isStopped = false;
  let faults = 0;
  let retryAtMs: number | null = null;
  let cancelTimer: (() => void) | null = null;

  const setState = (next: Loop['state']) => {
    state = next;
    parts.onState?.();
  };

  const clearTimer = () => {
    cancelTimer?.();
    cancelTimer = null;
    retryAtMs = null;
  };

  const kick = (trigger: Trigger) => {
    if (isStopped) return;
    asked.add(trigger);
    if (state === 'waiting') {
      if (!ENDS_BACKOFF.has(trigger)) return;
      backoff.reset();
    }
    schedule();
  };

  const schedule = () => {
    if (isPaused || isStopped || state === 'running' || state === 'due') return;
    clearTimer();
    setState('due');
    // Soon, not now: a burst of commits made in one turn goes out in one request, without any waiting time (OB5).
    clock.soon(() => void (state === 'due' && start()));
  };

  const start = async () => {
    if (isPaused || isStopped) return setState('idle');
    const triggers = [...asked];
    asked.clear();
    setState('running');
    let verdict: Verdict;
    try {
      verdict = await parts.run(triggers);
    } catch (error) {
      faults += 1;
      if (!parts.onFault(error)) isStopped = true;
      verdict = { next: 'retry', inMs: backoff.next() };
    }
    setState('idle');
    for (const told of waiters.splice(0)) told();
    if (!isStopped) follow(verdict);
  };

  const follow = (verdict: Verdict) => {
    if (verdict.next === 'retry') {
      if ([...asked].some((trigger) => ENDS_BACKOFF.has(trigger))) {
        backoff.reset();
        return schedule();
      }
      return wait(verdict.inMs, 'waiting');
    }
    if (verdict.next === 'again' || asked.size > 0) return schedule();
    if (verdict.withinMs !== undefined) wait(verdict.withinMs, 'idle');
  };

  const wait = (ms: number, as: 'waiting' | 'idle') => {
    clearTimer();
    if (as === 'waiting') retryAtMs = clock.monotonic() + ms;
    setState(as);
    cancelTimer = clock.timer(ms, () => {
      if (state === 'waiting') setState('idle');
      asked.add('retry');
      schedule();
    });
  };

  return {
    kick,
    pause: () => {
      isPaused = true;
      clearTimer();
      if (state === 'waiting') setState('idle');
    },
    resume: () => {
      if (!isPaused) return;
      isPaused = false;
      kick('manual');
    },
    stop: () => {
      isStopped = true;
      clearTimer();
      if (state !== 'running') setState('idle');
    },
    ended: () => (state === 'running' ? new Promise((resolve) => waiters.push(resolve)) : Promise.resolve()),
    get state() {
      return state;
    },
    get retryAtMs() {
      return retryAtMs;
    },
    backoff,
    get faults() {
      return faults;
    },
  };
}
