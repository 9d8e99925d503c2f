import type { CancelSignal } from '@holdfast/core';

export interface Cancel {
  readonly signal: CancelSignal;
  cancel(): void;
}

/** The part of `AbortController` that a request needs; the engine has no platform globals. */
export function createCancel(): Cancel {
  const listeners = new Set<() => void>();
  let aborted = false;
  return {
    signal: {
      get aborted() {
        return aborted;
      },
      addEventListener: (_type, run) => void listeners.add(run),
      removeEventListener: (_type, run) => void listeners.delete(run),
    },
    cancel: () => {
      if (aborted) return;
      aborted = true;
      const told = [...listeners];
      listeners.clear();
      for (const run of told) run();
    },
  };
}
