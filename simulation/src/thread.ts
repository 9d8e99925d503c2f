import type { Clock } from '@holdfast/core';

/** The thread of a page. While it is frozen nothing runs there; what should have runs at the thaw, in its order. */
export interface Thread {
  readonly isFrozen: boolean;
  run(what: () => void): void;
  freeze(): void;
  thaw(): void;
}

export function createThread(): Thread {
  let waiting: (() => void)[] | null = null;
  return {
    get isFrozen() {
      return waiting !== null;
    },
    run: (what) => void (waiting === null ? what() : waiting.push(what)),
    freeze: () => {
      waiting ??= [];
    },
    thaw: () => {
      const due = waiting ?? [];
      waiting = null;
      for (const what of due) what();
    },
  };
}

/** This clock's timers run on this thread; one that is cancelled in the meantime does not. */
export function clockOn(clock: Clock, thread: Thread): Clock {
  return {
    now: clock.now,
    monotonic: clock.monotonic,
    soon: (run) => clock.soon(() => thread.run(run)),
    timer: (ms, run) => {
      let isOff = false;
      const off = clock.timer(ms, () => thread.run(() => (isOff ? undefined : run())));
      return () => {
        isOff = true;
        off();
      };
    },
  };
}
