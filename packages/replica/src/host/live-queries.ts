import { type Clock, type Fault, type Json, LIMITS } from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import type { LocalChange } from '../engine/replica-state.ts';
import type { Origin, RawRow } from '../link/messages.ts';
import { diffRows, type RowPatch } from '../link/row-patch.ts';
import type { Observe } from './observe.ts';
import type { PreparedQuery, QueryRunner } from './query-runner.ts';

/**
 * Live queries of all callers of one host.
 *
 * Equal ones are one run (LQ1). A run goes again after a transaction that touched a column it looks at; what gathers
 * until the processor is free makes one run; while nobody who watches it is visible it waits (LQ6). Holds the last rows of
 * each run, to tell only what changed (LQ3). Cached only; the worst outcome is a run too many.
 */
export interface LiveQueries {
  open(watcher: Watcher, key: string, sql: string, parameters: readonly Json[]): void;
  drop(watcher: Watcher, key: string): void;
  /** The caller is gone. */
  leave(watcher: Watcher): void;
  /** After every transaction of the replica. */
  changed(change: LocalChange): void;
  /** Somebody looks again. */
  looked(): void;
  /** Calls once every run shows what was committed so far. */
  whenShown(run: () => void): void;
  /** Tables or views became others: every run goes again. */
  forget(): void;
  close(): void;
  readonly count: number;
}

/** Who is told. */
export interface Watcher {
  readonly isVisible: boolean;
  rows(key: string, result: LiveRows): void;
  failing(key: string, fault: Fault): void;
}

export interface LiveRows {
  readonly upToSeq: number;
  readonly isPartial: boolean;
  readonly columns?: readonly Origin[];
  readonly patch: RowPatch;
}

export function createLiveQueries(parts: {
  readonly runner: QueryRunner;
  readonly clock: Clock;
  readonly observe: Observe;
  /** A followed log has no complete state yet. */
  readonly isPartial: () => boolean;
}): LiveQueries {
  const runs = new Map<string, Run>();
  const waiting: (() => void)[] = [];
  let seq = 0;
  let isPartial = parts.isPartial();
  let isScheduled = false;
  let isClosed = false;

  const flush = () => {
    isScheduled = false;
    if (isClosed) return;
    for (const run of [...runs.values()]) if (run.isDirty && run.isSeen) run.refresh(seq, isPartial);
    for (const told of waiting.splice(0)) told();
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
        run = new Run(parts, sql, parameters);
        runs.set(name, run);
      }
      run.watch(watcher, key, seq, isPartial);
    },
    drop,
    leave: (watcher) => {
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
        isAnyDirty ||= run.isDirty && run.isSeen;
      }
      if (isAnyDirty) schedule();
    },
    looked: schedule,
    whenShown: (told) => {
      if (![...runs.values()].some((run) => run.isDirty && run.isSeen)) return told();
      waiting.push(told);
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
      for (const told of waiting.splice(0)) told();
    },
    get count() {
      return runs.size;
    },
  };
}

interface Watching {
  readonly watcher: Watcher;
  readonly key: string;
}

class Run {
  readonly #parts: { readonly runner: QueryRunner; readonly observe: Observe };
  readonly #sql: string;
  readonly #parameters: readonly Json[];
  readonly #watchers: Watching[] = [];
  #query: PreparedQuery | null = null;
  #rows: readonly RawRow[] = [];
  #columns: readonly Origin[] = [];
  #fault: Fault | null = null;
  #isPartial = false;
  isDirty = true;

  constructor(
    parts: { readonly runner: QueryRunner; readonly observe: Observe },
    sql: string,
    parameters: readonly Json[],
  ) {
    this.#parts = parts;
    this.#sql = sql;
    this.#parameters = parameters;
  }

  get isUnwatched(): boolean {
    return this.#watchers.length === 0;
  }

  get isSeen(): boolean {
    return this.#watchers.some(({ watcher }) => watcher.isVisible);
  }

  /** Whoever comes is told at once what there is; the first one makes it run. */
  watch(watcher: Watcher, key: string, seq: number, isPartial: boolean): void {
    if (this.isDirty) this.refresh(seq, isPartial);
    this.#watchers.push({ watcher, key });
    if (this.#fault !== null) return watcher.failing(key, this.#fault);
    watcher.rows(key, {
      upToSeq: seq,
      isPartial: this.#isPartial,
      columns: this.#columns,
      patch: { length: this.#rows.length, set: this.#rows.map((row, at) => [at, row] as const) },
    });
  }

  forgetWatcher(watcher: Watcher, key?: string): boolean {
    const before = this.#watchers.length;
    for (let at = before - 1; at >= 0; at -= 1) {
      const one = this.#watchers[at] as Watching;
      if (one.watcher === watcher && (key === undefined || one.key === key)) this.#watchers.splice(at, 1);
    }
    return this.#watchers.length < before;
  }

  isTouchedBy(tables: LocalChange['tables']): boolean {
    // A query that could not be prepared may be possible now: a table came with an event (SC4).
    if (this.#query === null) return tables.size > 0;
    for (const [table, changed] of tables) {
      const looked = this.#query.reads.get(table);
      if (looked === undefined) continue;
      if (changed.has('*')) return true;
      for (const column of changed) if (looked.has(column)) return true;
    }
    return false;
  }

  /** Its columns may be others: everything is told again. */
  forget(): void {
    this.#query = null;
    this.#rows = [];
  }

  refresh(seq: number, isPartial: boolean): void {
    this.isDirty = false;
    try {
      this.#refresh(seq, isPartial);
    } catch (cause) {
      if (!(cause instanceof FaultError)) throw cause;
      this.#fault = cause.fault;
      for (const { watcher, key } of this.#watchers) watcher.failing(key, cause.fault);
    }
  }

  #refresh(upToSeq: number, isPartial: boolean): void {
    const isFirst = this.#query === null;
    const query = this.#query ?? this.#parts.runner.prepare(this.#sql);
    const { rows, patch } = this.#parts.observe.timed(
      'live',
      () => {
        const rows = query.run(this.#parameters);
        return { rows, patch: diffRows(this.#rows, rows, query.keyAt) };
      },
      ({ rows, patch }) => ({ rows: rows.length, changed: patch?.set.length ?? 0 }),
    );
    const isAnnounced = patch !== null || this.#fault !== null || isPartial !== this.#isPartial;
    const columns = isFirst ? { columns: query.columns } : {};
    this.#query = query;
    this.#columns = query.columns;
    this.#rows = rows;
    this.#fault = null;
    this.#isPartial = isPartial;
    if (!isAnnounced && !isFirst) return;
    const result = { upToSeq, isPartial, ...columns, patch: patch ?? { length: rows.length, set: [] } };
    for (const { watcher, key } of this.#watchers) watcher.rows(key, result);
  }
}
