import type { Clock } from '@holdfast/core';

/**
 * Virtual time for a whole world: one queue of events, run in order of their instant and, within one instant, of their
 * scheduling. Nothing in a world waits for real time, so a seed always gives the same run.
 */
export interface VirtualTime {
  /** Milliseconds since the world began. */
  readonly elapsedMs: number;
  readonly waiting: number;
  at(delayMs: number, run: () => void): () => void;
  /** A device's clock: its own wall time and its own life; `stop()` silences every timer of a crashed device. */
  clockFor(device: { readonly skewMs?: number }): DeviceClock;
  /** Runs the next event. False when nothing waits. */
  step(): Promise<boolean>;
  /** Runs events until `done()` or until `limitMs` of virtual time have passed. True if done. */
  until(done: () => boolean, limitMs: number): Promise<boolean>;
  /** Runs everything that is due in the next `ms`. */
  advance(ms: number): Promise<void>;
  /** Nothing runs by itself any more. */
  stop(): void;
}

export interface DeviceClock extends Clock {
  skewMs: number;
  /** A sleep: monotonic time and wall time jump, and timers that became due fire afterwards, not in between. */
  jump(ms: number): void;
  stop(): void;
}

interface Waiting {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** A binary heap by (instant, order of scheduling). */
class Queue {
  readonly #heap: Waiting[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get next(): Waiting | undefined {
    return this.#heap[0];
  }

  push(item: Waiting): void {
    const heap = this.#heap;
    heap.push(item);
    let at = heap.length - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(heap[at] as Waiting, heap[parent] as Waiting)) break;
      [heap[at], heap[parent]] = [heap[parent] as Waiting, heap[at] as Waiting];
      at = parent;
    }
  }

  pop(): Waiting | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = at;
      if (left < heap.length && isBefore(heap[left] as Waiting, heap[least] as Waiting)) least = left;
      if (right < heap.length && isBefore(heap[right] as Waiting, heap[least] as Waiting)) least = right;
      if (least === at) return first;
      [heap[at], heap[least]] = [heap[least] as Waiting, heap[at] as Waiting];
      at = least;
    }
  }
}

const isBefore = (a: Waiting, b: Waiting): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** The wall clock's beginning in every world: Monday, 30 November 2026. */
const WORLD_BEGINS_MS = Date.UTC(2026, 10, 30);

/** Lets every promise that can go on do so: what a world's parts await is only other parts of the same world. */
const settlePromises = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface VirtualTimeOptions {
  /** What is due at the present instant runs by itself: for tests that await a commit without moving the clock. */
  readonly runsDueByItself?: boolean;
}

export function createVirtualTime({ runsDueByItself = false }: VirtualTimeOptions = {}): VirtualTime {
  const queue = new Queue();
  let elapsedMs = 0;
  let order = 0;

  const at = (delayMs: number, run: () => void): (() => void) => {
    order += 1;
    const item: Waiting = { atMs: elapsedMs + Math.max(0, delayMs), order, run, cancelled: false };
    queue.push(item);
    if (runsDueByItself && item.atMs <= elapsedMs) setImmediate(runDue);
    return () => {
      item.cancelled = true;
    };
  };

  const nextDueMs = (): number | null => {
    while (queue.next?.cancelled === true) queue.pop();
    return queue.next?.atMs ?? null;
  };

  let isStopped = false;
  const runDue = (): void => {
    for (let due = nextDueMs(); !isStopped && due !== null && due <= elapsedMs; due = nextDueMs()) queue.pop()?.run();
  };

  const step = async (): Promise<boolean> => {
    await settlePromises();
    for (;;) {
      const item = queue.pop();
      if (item === undefined) return false;
      if (item.cancelled) continue;
      elapsedMs = Math.max(elapsedMs, item.atMs);
      item.run();
      await settlePromises();
      return true;
    }
  };

  const until = async (done: () => boolean, limitMs: number): Promise<boolean> => {
    const endMs = elapsedMs + limitMs;
    await settlePromises();
    while (!done()) {
      const due = nextDueMs();
      if (due === null || due > endMs) {
        elapsedMs = endMs;
        return done();
      }
      await step();
    }
    return true;
  };

  const clockFor = (device: { readonly skewMs?: number }): DeviceClock => {
    let stopped = false;
    let jumpedMs = 0;
    const clock: DeviceClock = {
      skewMs: device.skewMs ?? 0,
      now: () => Math.floor(WORLD_BEGINS_MS + elapsedMs + jumpedMs + clock.skewMs),
      monotonic: () => elapsedMs + jumpedMs,
      timer: (ms, run) => at(ms, () => (stopped ? undefined : run())),
      soon: (run) => {
        at(0, () => (stopped ? undefined : run()));
      },
      jump: (ms) => {
        jumpedMs += ms;
      },
      stop: () => {
        stopped = true;
      },
    };
    return clock;
  };

  return {
    get elapsedMs() {
      return elapsedMs;
    },
    get waiting() {
      return queue.size;
    },
    at,
    clockFor,
    step,
    until,
    advance: async (ms) => {
      await until(() => false, ms);
    },
    stop: () => {
      isStopped = true;
    },
  };
}
