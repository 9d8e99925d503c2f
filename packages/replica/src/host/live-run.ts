import type { Fault, Json } from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import type { LocalChange } from '../engine/replica-state.ts';
import type { Origin, RawRow } from '../link/messages.ts';
import { diffRows, type RowPatch } from '../link/row-patch.ts';
import type { Observe } from './observe.ts';
import type { PreparedQuery, QueryRunner } from './query-runner.ts';

/** Who is told, while he is visible and not behind. */
export interface Watcher {
  readonly isVisible: boolean;
  /** He has not heard what he was told before. */
  readonly isBehind: boolean;
  rows(key: string, result: LiveRows): void;
  failing(key: string, fault: Fault): void;
}

export interface LiveRows {
  readonly upToSeq: number;
  readonly isPartial: boolean;
  readonly columns?: readonly Origin[];
  readonly patch: RowPatch;
}

interface Watching {
  readonly watcher: Watcher;
  readonly key: string;
  /** What he was told last, if the run has gone on since without him. Null: he knows what the run knows. */
  left: { readonly rows: readonly RawRow[]; readonly columns: readonly Origin[] } | null;
}

const listens = ({ watcher }: Watching): boolean => watcher.isVisible && !watcher.isBehind;

/** One query of however many watchers: its last rows, and what each of them has missed. */
export class LiveRun {
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

  /** Somebody listens who does not know everything. */
  get isDue(): boolean {
    return this.#watchers.some((one) => (this.isDirty || one.left !== null) && listens(one));
  }

  /** Whoever comes is told at once what there is, also beside a failure; the first one makes it run. */
  watch(watcher: Watcher, key: string, seq: number, isPartial: boolean): void {
    if (this.isDirty) this.#run(seq, isPartial);
    this.#watchers.push({ watcher, key, left: null });
    if (this.#query !== null) watcher.rows(key, this.#whole(seq));
    if (this.#fault !== null) watcher.failing(key, this.#fault);
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

  /** Runs, if something it looks at was touched, and tells everybody who listens what he does not know. */
  bringUp(seq: number, isPartial: boolean): void {
    if (this.isDirty) this.#run(seq, isPartial);
    for (const one of this.#watchers) if (one.left !== null && listens(one)) this.#tellSince(one, one.left, seq);
  }

  #run(seq: number, isPartial: boolean): void {
    this.isDirty = false;
    try {
      this.#refresh(seq, isPartial);
    } catch (cause) {
      if (!(cause instanceof FaultError)) throw cause;
      this.#fault = cause.fault;
      this.#tellAll(({ watcher, key }) => watcher.failing(key, cause.fault), this.#rows, this.#columns);
    }
  }

  #refresh(upToSeq: number, isPartial: boolean): void {
    const isFirst = this.#query === null;
    const query = this.#query ?? this.#parts.runner.prepare(this.#sql);
    const [before, columnsBefore] = [this.#rows, this.#columns];
    const { rows, patch } = this.#parts.observe.timed(
      'live',
      () => {
        const rows = query.run(this.#parameters);
        return { rows, patch: diffRows(before, rows, query.keyAt) };
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
    this.#tellAll(({ watcher, key }) => watcher.rows(key, result), before, columnsBefore);
  }

  /** Who does not listen stays with what he knew before: these. */
  #tellAll(tell: (one: Watching) => void, rows: readonly RawRow[], columns: readonly Origin[]): void {
    for (const one of this.#watchers) {
      if (one.left !== null) continue;
      if (listens(one)) tell(one);
      else one.left = { rows, columns };
    }
  }

  #tellSince(one: Watching, { rows, columns }: NonNullable<Watching['left']>, upToSeq: number): void {
    one.left = null;
    const { watcher, key } = one;
    if (this.#fault !== null) return watcher.failing(key, this.#fault);
    if (columns !== this.#columns) return watcher.rows(key, this.#whole(upToSeq));
    const patch = diffRows(rows, this.#rows, this.#query?.keyAt) ?? { length: rows.length, set: [] };
    watcher.rows(key, { upToSeq, isPartial: this.#isPartial, patch });
  }

  /** For whoever has no rows yet, or rows with other columns. */
  #whole(upToSeq: number): LiveRows {
    const set = this.#rows.map((row, at) => [at, row] as const);
    const patch = { length: this.#rows.length, set };
    return { upToSeq, isPartial: this.#isPartial, columns: this.#columns, patch };
  }
}
