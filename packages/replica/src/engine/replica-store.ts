import {
  type Database,
  type EntityData,
  type Fault,
  type JsonObject,
  type Outcome,
  ok,
  type Platform,
  type SchemaData,
} from '@holdfast/core';
import { ChangeTracker } from './change-tracker.ts';
import { FaultError } from './fault-error.ts';
import type { ActionOutcome, LocalChange } from './replica-state.ts';
import type { EntityTable } from './tables.ts';
import { openView } from './views.ts';
import { type OpenedTables, openTables } from './widen.ts';

/** What a transaction says that it has changed. */
export type Part = 'outbox' | 'desk' | 'logs';

/**
 * What every part of the replica's state stands on: the connection, the transaction with its fence, the tables, and the
 * list of who wants to know. Holds nothing that a rollback would make wrong.
 */
export class ReplicaStore {
  readonly database: Database;
  readonly platform: Platform;
  readonly schema: SchemaData;
  readonly tracker = new ChangeTracker();
  readonly hostInstance: string;
  readonly account: string;
  generation = 0;
  #tables!: OpenedTables;
  /** The transaction in work has made tables of types at run time, or taken them away. */
  #hasDeclared = false;
  #seq = 0;
  /** The last instant that was asked for: many fall into one millisecond. */
  #iso = { ms: -1, text: '' };
  #depth = 0;
  #settled: { readonly actionId: string; readonly outcome: ActionOutcome }[] = [];
  /** How often each part has changed, by a transaction that is over. */
  readonly #revisions: Record<Part, number> = { outbox: 0, desk: 0, logs: 0 };
  readonly #listeners = new Set<(change: LocalChange) => void>();
  readonly #rolledBack = new Set<() => void>();

  constructor(parts: {
    readonly database: Database;
    readonly platform: Platform;
    readonly schema: SchemaData;
    readonly hostInstance: string;
    readonly account: string;
  }) {
    this.database = parts.database;
    this.platform = parts.platform;
    this.schema = parts.schema;
    this.hostInstance = parts.hostInstance;
    this.account = parts.account;
  }

  /** Once the fence is ours: one transaction that makes the tables fit (SC1). */
  openTables(): void {
    // Another owner may have written since this file was opened here.
    for (const part of PARTS) this.#revisions[part] += 1;
    this.write(() => this.#open());
    this.openViews();
  }

  /** For a reader that owns nothing: the schema is the one that opened the file last, so there is nothing to fit. */
  attachTables(): void {
    this.#open();
    this.openViews();
  }

  #open(): void {
    this.#tables = openTables({
      database: this.database,
      platform: this.platform,
      tracker: this.tracker,
      schema: this.schema,
      now: this.nowIso(),
    });
  }

  openViews(): void {
    for (const { model } of this.#tables.tables.values())
      if (model !== null && model.isHidden !== true) openView(this.database, model);
  }

  get tables(): ReadonlyMap<string, EntityTable> {
    return this.#tables.tables;
  }
  tableOf(type: string): EntityTable {
    return this.#tables.tableOf(type);
  }
  /** The same, for what a log has under this type. */
  logTableOf(type: string): EntityTable {
    return this.#tables.logTableOf(type);
  }
  /** Types at run time that have a table (SC4). */
  get runTimeTypes(): ReadonlyMap<string, EntityData> {
    return this.#tables.declared;
  }
  /** SC4: gives a type its table before its definition is written. False where the name is taken. */
  declareType(type: string, data: EntityData): boolean {
    this.#hasDeclared = true;
    return this.#tables.declare(type, data);
  }
  /**
   * Makes the tables fit the definitions, if any were written. True: tables are others now, and whoever holds rows of them
   * forgets those. Views follow after the commit.
   */
  followDefinitions(): boolean {
    if (!this.tracker.definitions) return false;
    this.tracker.definitions = false;
    const before = this.#hasDeclared;
    // Until it is through: a failure half way undoes it.
    this.#hasDeclared = true;
    const isMoved = this.#tables.refresh();
    this.#hasDeclared = before || isMoved;
    return isMoved;
  }
  /** SC7: run-time types whose names are other types', ordered by name. */
  typeFaults(): readonly Fault[] {
    return [...this.#tables.taken].sort().map((type) => ({ code: 'type-name-taken', facts: { type } }));
  }

  nowMs(): number {
    return this.platform.clock.now();
  }
  nowIso(): string {
    const ms = this.nowMs();
    if (ms !== this.#iso.ms) this.#iso = { ms, text: isoOf(ms) };
    return this.#iso.text;
  }
  get seq(): number {
    return this.#seq;
  }

  /**
   * Answers from what was computed before, as long as none of the parts has changed since: sync and host ask many times
   * between two transactions. Inside one that has changed a part it is computed, and not kept.
   */
  remembered<A extends string | void, T>(parts: readonly Part[], compute: (asked: A) => T): (asked: A) => T {
    const kept = new Map<A, T>();
    let revision = -1;
    return (asked) => {
      if (parts.some((part) => this.tracker[part])) return compute(asked);
      let now = 0;
      for (const part of parts) now += this.#revisions[part];
      if (now !== revision) kept.clear();
      revision = now;
      if (kept.has(asked)) return kept.get(asked) as T;
      const value = compute(asked);
      kept.set(asked, value);
      return value;
    };
  }

  /** See `ReplicaState.write`. */
  write<T>(work: () => T): T {
    if (this.#depth > 0) return this.#nested(work);
    this.database.prepare('BEGIN IMMEDIATE').run();
    this.#depth = 1;
    let result: T;
    try {
      this.#fence();
      result = work();
      if (isPromise(result)) throw new FaultError({ code: 'async-callback' });
      if (this.#hasDeclared) this.openViews();
      this.database.prepare('COMMIT').run();
    } catch (cause) {
      this.#depth = 0;
      this.#undo();
      throw cause;
    }
    this.#depth = 0;
    this.#tell();
    return result;
  }

  /**
   * See `ReplicaState.read`. A read outside a transaction takes and gives back the file's locks for itself, which costs more
   * than what it reads; reads that belong together take them once, and see one state.
   */
  read<T>(work: () => T): T {
    if (this.database.inTransaction) return work();
    this.database.prepare('BEGIN').run();
    try {
      return work();
    } finally {
      this.#endRead();
    }
  }

  /** Whatever fails here, no transaction is left open: every later one would be refused. */
  #endRead(): void {
    if (!this.database.inTransaction) return;
    try {
      this.database.prepare('COMMIT').run();
    } catch (cause) {
      if (this.database.inTransaction) this.database.exec('ROLLBACK');
      throw cause;
    }
  }

  /** A transaction whose expected failures are values. */
  attempt<T>(work: () => T): Outcome<T> {
    try {
      return ok(this.write(work));
    } catch (cause) {
      if (cause instanceof FaultError && this.#depth === 0) return { ok: false, fault: cause.fault };
      throw cause;
    }
  }

  /** The outcome of a batch that this transaction decided. */
  settle(actionId: string, outcome: ActionOutcome): void {
    this.#settled.push({ actionId, outcome });
  }

  onChange(listener: (change: LocalChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whoever keeps something in memory forgets it when a transaction is undone (F08). */
  onRollback(forget: () => void): void {
    this.#rolledBack.add(forget);
  }

  #nested<T>(work: () => T): T {
    this.#depth += 1;
    try {
      const result = work();
      if (isPromise(result)) throw new FaultError({ code: 'async-callback' });
      return result;
    } finally {
      this.#depth -= 1;
    }
  }

  /** I22: a host that was outranked changes nothing. F23: nor does one whose file is another by now, or none. */
  #fence(): void {
    if (!this.database.isInPlace()) throw new FaultError({ code: 'replica-gone' });
    const row = this.database.prepare('SELECT generation, host_instance FROM main.hf_coordinator WHERE one = 1').get();
    if (row?.['generation'] === this.generation && row['host_instance'] === this.hostInstance) return;
    throw new FaultError({ code: 'outranked', facts: { held: this.generation, newest: row?.['generation'] ?? null } });
  }

  #undo(): void {
    if (this.database.inTransaction) this.database.exec('ROLLBACK');
    this.tracker.take();
    this.#settled = [];
    // What was declared inside is not: the tables are what the file says again.
    if (this.#hasDeclared) this.#open();
    this.#hasDeclared = false;
    for (const forget of this.#rolledBack) forget();
  }

  #tell(): void {
    const touched = this.tracker.take();
    for (const part of PARTS) if (touched[part]) this.#revisions[part] += 1;
    const settled = this.#settled;
    this.#settled = [];
    const types = this.#hasDeclared;
    this.#hasDeclared = false;
    this.#seq += 1;
    const change: LocalChange = { seq: this.#seq, ...touched, types, settled };
    for (const listener of this.#listeners) listener(change);
  }
}

const PARTS: readonly Part[] = ['outbox', 'desk', 'logs'];

const isPromise = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

/** Milliseconds since 1970 as ISO 8601 in UTC. Pure: the instant is given. */
export const isoOf = (ms: number): string => new Date(ms).toISOString();

export const faultText = (fault: Fault): string => JSON.stringify(fault);
export const readFault = (text: unknown): Fault | null =>
  typeof text === 'string' ? (JSON.parse(text) as Fault) : null;
export const readObject = (text: unknown): JsonObject | null =>
  typeof text === 'string' ? (JSON.parse(text) as JsonObject) : null;
