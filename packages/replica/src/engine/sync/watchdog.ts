import type { Clock, Fault } from '@holdfast/core';

/**
 * SY3: compares progress with time. Work that could move, a ledger that can be reached, and nothing moved for 30 s: first
 * everything is kicked, then the status says `stalled` with what it waits for. No state is a trap.
 */
export interface Watchdog {
  /** Something changed: begins to watch, unless it does already. */
  begin(): void;
  look(): void;
  stop(): void;
}

export interface Watched {
  /** Work on its way, or a log that is behind. */
  readonly hasWork: boolean;
  readonly isReachable: boolean;
  /** Changes whenever anything moved, apart from what `waiting` counts. */
  readonly marker: string;
  /** Batches on their way. Fewer is progress; more is only somebody at work. */
  readonly waiting: number;
  /** What it waits for, if it moves no more. */
  readonly waitsFor: Fault;
}

export function createWatchdog(parts: {
  readonly clock: Clock;
  readonly stallMs: number;
  readonly watch: () => Watched;
  readonly kick: () => void;
  /** Said again at every look until something moves: the ledger may have been away in between. */
  readonly stalled: (reason: Fault) => void;
  readonly moved: () => void;
}): Watchdog {
  const { clock, stallMs } = parts;
  const intervalMs = Math.max(1, Math.floor(stallMs / 3));
  let cancelTimer: (() => void) | null = null;
  let marker = '';
  let waiting = 0;
  let movedAtMs = 0;
  let lookedAtMs = 0;
  let stage: 'moving' | 'kicked' | 'stalled' = 'moving';

  const look = (wasWatching: boolean) => {
    const watched = parts.watch();
    const nowMs = clock.monotonic();
    const hasSlept = wasWatching && nowMs - lookedAtMs > 3 * intervalMs;
    lookedAtMs = nowMs;
    const hasMoved = !wasWatching || watched.marker !== marker || watched.waiting < waiting;
    waiting = watched.waiting;
    if (!watched.hasWork || hasMoved || hasSlept) {
      marker = watched.marker;
      movedAtMs = nowMs;
      if (stage === 'stalled') parts.moved();
      stage = 'moving';
    } else if (!watched.isReachable) {
      // It waits for the network now. That ends no stall: only what moves does.
      movedAtMs = nowMs;
      if (stage === 'kicked') stage = 'moving';
    } else if (nowMs - movedAtMs >= stallMs && stage === 'moving') {
      stage = 'kicked';
      parts.kick();
    } else if (nowMs - movedAtMs >= stallMs + intervalMs && stage === 'kicked') {
      stage = 'stalled';
      parts.stalled(watched.waitsFor);
    } else if (stage === 'stalled') {
      parts.stalled(watched.waitsFor);
    }
    if (watched.hasWork) again();
    else stop();
  };

  const again = () => {
    cancelTimer ??= clock.timer(intervalMs, () => {
      cancelTimer = null;
      look(true);
    });
  };

  const stop = () => {
    cancelTimer?.();
    cancelTimer = null;
  };

  return {
    begin: () => {
      if (cancelTimer === null) look(false);
    },
    look: () => look(cancelTimer !== null),
    stop,
  };
}
