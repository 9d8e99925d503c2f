import type { Clock, OpenSocket } from '@holdfast/core';

/**
 * Where the platform calls the engine: timers, turns, sockets. Nobody stands behind such a call, and what it throws would end
 * the process of whoever has embedded the engine, for one page of a file that could not be read. Here it is told instead, and
 * whatever was to be done then is asked for again later (F13).
 */
export interface Edge {
  readonly clock: Clock;
  /** Runs it; never throws. */
  run(work: () => void): void;
  /** What only memory knew may be lost with what failed: called when everything is to be looked at again. */
  onMend(listener: () => void): void;
}

export function createEdge(clock: Clock, failed: (error: unknown) => void): Edge & { readonly mend: () => void } {
  const listeners: (() => void)[] = [];
  const run = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      failed(error);
    }
  };
  return {
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      timer: (ms, work) => clock.timer(ms, () => run(work)),
      soon: (work) => clock.soon(() => run(work)),
    },
    run,
    onMend: (listener) => void listeners.push(listener),
    mend: () => {
      for (const listener of listeners) run(listener);
    },
  };
}

/** The same for a socket's events. */
export const guardedSocket =
  (open: OpenSocket, edge: Pick<Edge, 'run'>): OpenSocket =>
  (url, events) =>
    open(url, {
      open: () => edge.run(() => events.open()),
      message: (text) => edge.run(() => events.message(text)),
      closed: (reason) => edge.run(() => events.closed(reason)),
    });
