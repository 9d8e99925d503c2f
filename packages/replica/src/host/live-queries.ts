import { type Clock, type Json, LIMITS } from '@holdfast/core';
import type { LocalChange } from '../engine/replica-state.ts';
import { LiveRun, type Watcher } from './live-run.ts';
import type { Observe } from './observe.ts';
import type { QueryRunner } from './query-runner.ts';

/**
 * Live queries of all callers of one host.
 *
 * Equal ones are one run (LQ1). A run goes again after a transaction that touched a column it looks at; what gathers
 * until the processor is free makes one run; while nobody listens who watches it, it waits (LQ6). Holds the last rows of
 * each run, and of each watcher who does not listen those that he was told last, to tell only what changed (LQ3). Cached
 * only; the worst outcome is a run too many.
 */
export interface LiveQueries {
  open(watcher: Watcher, key: string, sql: string, parameters: readonly Json[]): void;
  drop(watcher: Watcher, key: string): void;
  /** The caller is gone. */
  leave(watcher: Watcher): void;
  /** After every transaction of the replica. */
  changed(change: LocalChange): void;
  /** Somebody listens again. */
  looked(): void;
  /** Calls once every run shows what was committed so far, and this watcher was told, unless nobody looks at him. */
  whenShown(watcher: Watcher, run: () => void): void;
  /** Tables or views became others: every run goes again. */
  forget(): void;
  close(): void;
  readonly count: number;
}

export function createLiveQueries(parts: {
  readonly runner: QueryRunner;
  readonly clock: Clock;
  readonly observe: Observe;
  /** A followed log has no complete state yet. */
  readonly isPartial: () => boolean;
}): LiveQueries {
  const runs = new Map<string, LiveRun>();
  let waiting: { readonly watcher: Watcher; readonly told: () => void }[] = [];
  let seq = 0;
  let isPartial = parts.isPartial();
  let isScheduled = false;
  let isClosed = false;

  const flush = () => {
    isScheduled = false;
    if (isClosed) return;
    for (const run of [...runs.values()]) if (run.isDue) run.bringUp(seq, isPartial);
    const shown = waiting.filter(({ watcher }) => !watcher.isBehind);
    waiting = waiting.filter(({ watcher }) => watcher.isBehind);
    for (const { told } of shown) told();
  };
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    parts.clock.soon(flush);
  };
  const drop = (watcher: Watcher, key: string) => {
    for (const [name, run] of runs) {
      if (!run.forgetWatcher(watcher, key)) continue;
      if (run.isUnwatched) runs.delete(name);
    }
  };

  return {
    open: (watcher, key, sql, parameters) => {
      drop(watcher, key);
      const name = JSON.stringify([sql, parameters]);
      let run = runs.get(name);
      if (run === undefined) {
        if (runs.size >= LIMITS.liveQueriesMax)
          return watcher.failing(key, {
            code: 'query-failed',
            facts: { reason: 'too many live queries', liveQueriesMax: LIMITS.liveQueriesMax },
          });
        run = new LiveRun(parts, sql, parameters);
        runs.set(name, run);
      }
      run.watch(watcher, key, seq, isPartial);
    },
    drop,
    leave: (watcher) => {
      waiting = waiting.filter((one) => one.watcher !== watcher);
      for (const [name, run] of runs) {
        run.forgetWatcher(watcher);
        if (run.isUnwatched) runs.delete(name);
      }
    },
    changed: (change) => {
      seq = change.seq;
      if (change.logs && parts.isPartial() !== isPartial) {
        isPartial = !isPartial;
        for (const run of runs.values()) run.isDirty = true;
      }
      let isAnyDirty = false;
      for (const run of runs.values()) {
        run.isDirty ||= run.isTouchedBy(change.tables);
        isAnyDirty ||= run.isDue;
      }
      if (isAnyDirty) schedule();
    },
    looked: schedule,
    whenShown: (watcher, told) => {
      if (!watcher.isBehind && ![...runs.values()].some(({ isDue }) => isDue)) return told();
      waiting.push({ watcher, told });
      schedule();
    },
    forget: () => {
      for (const run of runs.values()) {
        run.forget();
        run.isDirty = true;
      }
      if (runs.size > 0) schedule();
    },
    close: () => {
      isClosed = true;
      runs.clear();
      for (const { told } of waiting.splice(0)) told();
    },
    get count() {
      return runs.size;
    },
  };
}
