import type { Id, JsonObject, Row, Schema, StoredEvent, Tx } from '@holdfast/core';
import type { WaitSignal } from '../link/link.ts';
import type { JournalEntry, UndoState } from '../link/messages.ts';
import type { Status } from '../link/status.ts';
import type { Live } from './live.ts';
import type { Query } from './query-compiler.ts';
import type { EarlierWrite, Write } from './write.ts';

/** Refuses by type what would run after the commit is over. */
export type NotAPromise<T> = T extends PromiseLike<unknown> ? 'a commit callback must not be async' : unknown;

export interface CommitOptions {
  /** What a person did, in words: makes it undoable, and names it on the desk. */
  readonly label?: string;
  /** The log that it goes to; `main` unless said. */
  readonly log?: string;
  /** False: not undoable. A text: another scope of undo than `main`. */
  readonly undo?: false | string;
}

export interface ReadTx<S extends Schema> {
  query<O>(query: Query<S, O>): Promise<O[]>;
  first<O>(query: Query<S, O>): Promise<O | undefined>;
  get<E extends keyof S & string>(entity: E, id: Id<NoInfer<E>>): Promise<Row<S, E> | undefined>;
  /**
   * The row of a type that is known at run time only (`defineType`), as a query would read it: by its name, not checked by
   * the compiler. Rejects with `query-refused` or `query-failed` where nobody here knows the type.
   */
  getNamed(entity: string, id: Id): Promise<Readonly<Record<string, unknown>> | undefined>;
  readonly write: Tx<S>;
}

export interface DeskItem {
  readonly id: string;
  readonly kind:
    | 'clash'
    | 'rule'
    | 'refused'
    | 'missing-reference'
    | 'no-access'
    | 'overwritten'
    | 'not-deleted'
    | 'engine';
  /** `answer`: it waits for a person. `nothing`: it tells what happened, and can be taken back. */
  readonly needs: 'answer' | 'nothing';
  readonly label?: string;
  /** The write that it is about. */
  readonly write: string;
  readonly log: string;
  readonly entity: { readonly type: string; readonly id: string };
  readonly fields: readonly {
    readonly field: string;
    readonly base: unknown;
    readonly mine: unknown;
    readonly theirs: unknown;
    /** Empty: nobody has written it since, or nobody here knows who, because the state came whole. So `at`. */
    readonly by: string;
    readonly at: string;
  }[];
  /** The ledger's or the engine's code, where one led here. */
  readonly code?: string;
  /** What goes with the code: `reason` and `message` of an app's hook for `not-admitted`, `rules` for `rule-broken`. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** Later writes that wait for this one. */
  readonly held: number;
}

export interface Subject<T> {
  readonly current: T;
  /** Calls after every change. */
  subscribe(run: (value: T) => void): () => void;
}

export interface Desk {
  list(): Promise<readonly DeskItem[]>;
  /**
   * Decides: `mine` writes what its author meant on top of theirs, `theirs` drops it, values write those. All of them or
   * none. Rejects with `conflict-changed` if one is other than when it was listed last.
   */
  resolve(
    ids: string | readonly string[],
    choice: 'mine' | 'theirs' | Readonly<Record<string, unknown>>,
  ): Promise<void>;
  /** Gives work up, and says which later writes are held by that. */
  discard(ids: string | readonly string[]): Promise<{ readonly alsoHeld: readonly string[] }>;
  subscribe(run: () => void): () => void;
}

export interface Undo {
  readonly can: boolean;
  readonly label?: string;
  readonly canRedo: boolean;
  readonly redoLabel?: string;
  /** Takes the last labelled action back. Rejects with `changed-meanwhile` if somebody changed it since. */
  undo(o?: { readonly skipChanged?: boolean }): Promise<void>;
  redo(): Promise<void>;
  subscribe(run: () => void): () => void;
  /** The stack of another scope, as `commit(…, { undo: scope })` names it: an editor's own undo, beside the app's. */
  in(scope: string): ScopedUndo;
}

/** Asked of the host each time: nobody is told when it changes. */
export interface ScopedUndo {
  state(): Promise<UndoState>;
  /** As `Undo.undo`. Does nothing where there is nothing to undo. */
  undo(o?: { readonly skipChanged?: boolean }): Promise<void>;
  redo(): Promise<void>;
}

export interface Settled {
  /** Everything committed before the call is ordered and applied, and every log is at the ledger's head. */
  readonly settled: boolean;
  /** Entries on the desk that wait for an answer. */
  readonly attention: number;
  /** What stands in the way, by log. */
  readonly obstacles: readonly { readonly log: string | null; readonly code: string }[];
}

/**
 * One workspace on this device: a complete, queryable replica, written at once and synced by itself. Every call rejects
 * with `HoldfastError`; after `close` with `closed`.
 */
export interface Replica<S extends Schema> extends AsyncDisposable {
  readonly workspace: string;
  readonly account: string;

  /**
   * Records changes and writes them in one transaction. The callback is synchronous and sees nothing; what it returns is
   * returned. Resolves when it is durable on this device. Rejects, with nothing written, with `invalid-change`,
   * `changed-meanwhile`, `rule-broken`, `batch-too-large`, `too-large`, `not-found`, `not-following`, `storage-full`.
   *
   * ```ts
   * const id = await replica.commit(tx => tx.todo.create({ title: 'Milk' }), { label: 'New todo' });
   * ```
   */
  commit<T>(build: (tx: Tx<S>) => T & NotAPromise<T>, o?: CommitOptions): Write<T>;
  /**
   * Writes a list too large for one commit as many batches. After a crash, the same call with the same list and label goes
   * on where it stopped. One undo takes all of it back.
   */
  commitAll<R>(
    rows: Iterable<R> | AsyncIterable<R>,
    build: (tx: Tx<S>, row: R) => void,
    o: CommitOptions & { readonly label: string },
  ): Promise<{ readonly batches: number }>;
  /**
   * Reads, decides, writes. What was read is read again inside the commit; other rows run the callback again, five times
   * at most (`contended`).
   */
  transact<T>(run: (tx: ReadTx<S>) => Promise<T>, o?: CommitOptions): Write<T>;

  query<O>(query: Query<S, O>): Promise<O[]>;
  /** The first row. Add `limit(1)` where there may be many. */
  first<O>(query: Query<S, O>): Promise<O | undefined>;
  /** A result that stays right. Ends with `using`, or when its last subscriber leaves. */
  live<O>(query: Query<S, O>): Live<O>;

  /** A write made before, in this run or an earlier one; undefined if nothing is known of it (any more). */
  write(id: string): Promise<EarlierWrite | undefined>;

  follow(log: string): Promise<void>;
  unfollow(log: string): Promise<void>;

  readonly status: Subject<Status>;
  readonly desk: Desk;
  readonly undo: Undo;

  /** Waits until everything committed before is ordered and applied; or says what stands in the way. Never rejects for the network. */
  settle(o?: { readonly signal?: WaitSignal }): Promise<Settled>;
  /** No further request starts until `resume`; commits and queries go on (SY4). */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Something outside changed: ask the ledger now. */
  sync(why?: 'online' | 'visible' | 'manual'): Promise<void>;

  /** What sync did, newest first, 50 at a time. */
  journal(before?: number): Promise<readonly JournalEntry[]>;
  /** The events of one entity that are kept here, oldest first. */
  history<E extends keyof S & string>(
    entity: E,
    id: Id<NoInfer<E>>,
    o?: { readonly log?: string },
  ): Promise<readonly StoredEvent[]>;
  /** The same of a type that is known at run time only (`defineType`): by its name, not checked by the compiler. */
  historyNamed(entity: string, id: Id, o?: { readonly log?: string }): Promise<readonly StoredEvent[]>;
  /** Everything unsent, sealed into bytes for a file. Nothing leaves the outbox by it (OB7). */
  pack(): Promise<Uint8Array>;
  unpack(bytes: Uint8Array): Promise<{ readonly batches: number; readonly already: number }>;
  /** HL4: go on from the ledger's state of this log; lost work is queued again. */
  adopt(log: string): Promise<void>;
  /** Identity, logs, counts, permits: for people and tools. */
  facts(): Promise<JsonObject>;

  close(): Promise<void>;
}
