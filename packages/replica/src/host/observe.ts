import type { Clock } from '@holdfast/core';

/** TM1: what a piece of work took. Counts and names, never payloads. */
export interface Signal {
  readonly name: string;
  readonly ms: number;
  readonly [fact: string]: unknown;
}

export interface Observe {
  /** Runs the work; told only if somebody observes. Unobserved it costs one comparison. */
  timed<T>(name: string, work: () => T, facts?: (result: T) => Readonly<Record<string, unknown>>): T;
  tell(signal: Signal): void;
}

/** Whoever observes. Without `isListening` it always does. */
export interface Observer {
  (signal: Signal): void;
  readonly isListening?: () => boolean;
}

/** `observer` is the app's; it must not disturb what it observes, so what it throws is dropped. */
export function createObserve(clock: Clock, observer: Observer | undefined): Observe {
  if (observer === undefined) return { timed: (_, work) => work(), tell: () => undefined };
  const tell = (signal: Signal) => {
    try {
      observer(signal);
    } catch {
      // The app's own observer failed; that is no fault of the work.
    }
  };
  return {
    tell,
    timed: (name, work, facts) => {
      if (observer.isListening?.() === false) return work();
      const begun = clock.monotonic();
      try {
        const result = work();
        tell({ name, ms: clock.monotonic() - begun, ...facts?.(result) });
        return result;
      } catch (cause) {
        tell({ name, ms: clock.monotonic() - begun, failed: true });
        throw cause;
      }
    },
  };
}
