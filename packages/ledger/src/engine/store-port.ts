import type { JsonObject } from '@holdfast/core';
import type { MaybePromise } from './answer.ts';

/**
 * Where logs live. One port for an embedded store, which answers at once, and for a database behind a network, which
 * answers later and costs a round trip per call: whatever one decision needs is read in one call, and decided in memory.
 *
 * Every log has `append` as its only way to grow. All texts are canonical JSON, kept byte for byte. A store that fails
 * throws or rejects with `StoreFault` and has changed nothing, unless the fault says that it does not know.
 */
export interface LedgerStore {
  workspaces(): MaybePromise<readonly WorkspaceRow[]>;
  /** With its first log. False, and nothing changes, if the workspace exists. */
  createWorkspace(workspace: string, log: NewLog): MaybePromise<boolean>;
  /** False, and nothing changes, if the log exists. The workspace does. */
  createLog(ref: StoreRef, log: NewLog): MaybePromise<boolean>;
  /** Undefined where the workspace does not exist. */
  logs(workspace: string): MaybePromise<readonly LogRow[] | undefined>;
  log(ref: StoreRef): MaybePromise<LogRow | undefined>;

  /**
   * Locks the log, reads what `read` names, calls `judge` once and synchronously, writes what it returns and commits with
   * full durability (LG9), all in one transaction. `judge` gets undefined where the log does not exist. If it throws,
   * nothing is written and the error comes out as it is. `value` comes out only when the transaction is durable.
   */
  append<T>(
    ref: StoreRef,
    read: AppendRead,
    judge: (state: AppendState | undefined) => AppendVerdict<T>,
  ): MaybePromise<T>;

  /** As `append`, but locks only the replica's fence. `judge` gets undefined where the workspace does not exist. */
  meet<T>(workspace: string, read: MeetRead, judge: (state: MeetState | undefined) => MeetVerdict<T>): MaybePromise<T>;

  /**
   * Events after a version, in one snapshot: `choose` sees the log and outlines of the operations that end in
   * the next `eventsMax` events, in order, or else of the first that ends later, and says up to which version to read;
   * null for none. Undefined where the log is absent.
   */
  page(ref: StoreRef, read: PageRead): MaybePromise<PageRows | undefined>;
  /** Live entities in byte order of (type, id), in one snapshot with the log's head. */
  entities(ref: StoreRef, read: EntitiesRead): MaybePromise<EntitiesRows | undefined>;
  entity(
    ref: StoreRef,
    key: EntityKey,
  ): MaybePromise<{ readonly log: LogRow; readonly entity: EntityRow | undefined } | undefined>;
  /** Events of one entity after an entity version, oldest first, at most `max`. */
  history(
    ref: StoreRef,
    key: EntityKey & { readonly after: number; readonly max: number },
  ): MaybePromise<readonly EventText[] | undefined>;
  replicas(workspace: string): MaybePromise<readonly ReplicaRow[] | undefined>;
  /** RT7. Kept when it is higher than what was known; need not be durable at once. */
  recordProven(
    ref: StoreRef,
    proven: readonly { readonly replica: string; readonly version: number }[],
  ): MaybePromise<void>;
  usage(workspace: string): MaybePromise<readonly UsageRow[] | undefined>;
  /**
   * Where what the store says twice about a log differs: its medium and indexes, the ids that it remembers, the events of
   * each entity, fences, counters. Reads everything, in one snapshot, and changes nothing; at most `max` findings.
   */
  examine(ref: StoreRef, max: number): MaybePromise<readonly StoreFinding[] | undefined>;

  /** A hint that another node appended to a log, or raised a replica's generation. An embedded store has none. */
  watch?(listener: (hint: StoreHint) => void): () => void;
  close(): MaybePromise<void>;
}

/** A payload does not belong in one: ids and numbers only. */
export interface StoreFinding {
  readonly what: 'file' | 'operation' | 'remembered' | 'history' | 'fence' | 'serial';
  readonly version?: number;
  readonly entity?: { readonly type: string; readonly id: string };
  readonly expected: string;
  readonly found: string;
}

export interface StoreRef {
  readonly workspace: string;
  readonly log: string;
}

export type StoreHint =
  | { readonly kind: 'appended'; readonly ref: StoreRef }
  | { readonly kind: 'fenced'; readonly workspace: string; readonly replica: string; readonly generation: number };

/** What went wrong in a store, translated once by its adapter. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly code: StoreFaultCode;
  /** False where a commit may have happened: a connection that broke while it was answering. */
  readonly isRolledBack: boolean;

  constructor(code: StoreFaultCode, options: { readonly isRolledBack: boolean; readonly cause?: unknown }) {
    super(`store: ${code}`, { cause: options.cause });
    this.code = code;
    this.isRolledBack = options.isRolledBack;
  }
}
export type StoreFaultCode =
  /** No space left. Reads go on. */
  | 'full'
  /** Locked by another, a deadlock, a pool with nothing free: try again. */
  | 'busy'
  /** The file or timeline under this process is not the one that it opened. Nothing may be acknowledged. */
  | 'replaced'
  | 'damaged'
  /** A newer format than this code. */
  | 'too-new'
  | 'closed'
  | 'failed';

// ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface WorkspaceRow {
  readonly workspace: string;
  readonly createdAt: string;
}

export interface NewLog {
  readonly identity: string;
  readonly epoch: string;
  /** chain(0). */
  readonly chain: string;
  /** The signature of nothing. */
  readonly signature: string;
  readonly createdAt: string;
}

export interface EpochRow {
  readonly epoch: string;
  /** It begins after this version. */
  readonly after: number;
  readonly why: string;
  readonly at: string;
}

export interface LogRow {
  readonly log: string;
  readonly identity: string;
  readonly head: number;
  readonly chain: string;
  readonly signature: string;
  /** Oldest first, at least one (DG3). */
  readonly epochs: readonly EpochRow[];
  readonly state: 'open' | 'sealed' | 'deleted';
  readonly movedTo: string | null;
  /** The last number given, by `type.field` (LG7). */
  readonly serials: Readonly<Record<string, number>>;
  readonly createdAt: string;
}

/** What the envelopes of an operation share, and what pages are cut by. */
export interface OperationOutline {
  readonly firstVersion: number;
  readonly count: number;
  readonly requestId: string;
  readonly actionId: string;
  readonly replicaId: string;
  readonly actor: string;
  readonly recordedAt: string;
  /** HL3: who and when before a loss, canonical JSON, or null. */
  readonly origin: string | null;
  /** State signature after it (DG2). */
  readonly signature: string;
  /** UTF-8 bytes of its stored events. */
  readonly bytes: number;
  /** How many events a part of it has; null for one that fits into a page (PG2). */
  readonly partEvents: number | null;
}

/** An accepted operation: the memory of LG2. */
export interface OperationRow extends OperationOutline {
  readonly identity: string;
  /** Per event; a store reads them from the events. */
  readonly entityVersions: readonly number[];
  /** What each event got, by event id; null for none. A store reads it from the events. */
  readonly assigned: Readonly<Record<string, JsonObject>> | null;
}

export interface EventRow {
  readonly id: string;
  readonly version: number;
  readonly entityType: string;
  readonly entityId: string;
  readonly entityVersion: number;
  readonly prior: string | null;
  /** Null where it was erased. */
  readonly draft: string | null;
}

/**
 * An event to keep. Its envelope is not stored as text: what it shares with its operation stands once, in the operation's
 * row, and canonical JSON made again is the same (JS2).
 */
export interface NewEvent extends EventRow {
  readonly draft: string;
  /** Canonical, or null. */
  readonly assigned: string | null;
  readonly chain: string;
  /** Log version of the entity's event before this one; 0 for its first. */
  readonly previous: number;
}

export interface EntityKey {
  readonly type: string;
  readonly id: string;
}

/** An entity that ever had an event; one that is absent now keeps its version, so that versions stay dense (EV2). */
export interface EntityRow extends EntityKey {
  readonly version: number;
  /** Log version of its last event. */
  readonly lastVersion: number;
  /** Canonical; null while absent. */
  readonly fields: string | null;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly updatedBy: string;
  readonly updatedAt: string;
  readonly arrival: number;
  /** Serial numbers that it was ever given; a restore gets them back. */
  readonly assigned: string | null;
}

/** LG8, for one replica and, in `append`, one log. */
export interface FenceRow {
  readonly replica: string;
  readonly account: string;
  readonly generation: number;
  readonly instance: string;
  /** Highest permit number of this generation in this log; 0 for none. */
  readonly permit: number;
}

export interface ReplicaRow {
  readonly replica: string;
  readonly account: string;
  readonly generation: number;
  readonly instance: string;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
  /** JSON as the last handshake said, or null. */
  readonly app: string | null;
  readonly health: string | null;
  readonly proven: Readonly<Record<string, number>>;
}

export interface UsageRow {
  readonly log: LogRow;
  readonly operations: number;
  readonly entities: number;
  readonly replicas: number;
  /** Of the whole workspace where logs share a file; then the same in each row. */
  readonly bytes: number;
}

// ── append ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface AppendRead {
  /** Chains wanted. Versions above the head are left out of the answer; version 0 is never asked for. */
  readonly versions: readonly number[];
  readonly replicas: readonly string[];
  readonly requestIds: readonly string[];
  readonly actionIds: readonly string[];
  /** Action ids looked for in all logs of the workspace. */
  readonly needs: readonly string[];
  readonly eventIds: readonly string[];
  readonly entities: readonly EntityRead[];
  /** Entity types whose run-time definition is wanted (SC4), from this log or `main`. */
  readonly types: readonly string[];
  /** How many run-time types the log has is wanted. */
  readonly countsTypes: boolean;
}

export interface EntityRead extends EntityKey {
  /** Events after this entity version are wanted, the newest `theirsMax`; null for none. */
  readonly after: number | null;
  readonly theirsMax: number;
}

export interface EntityEvents {
  readonly entity: EntityRow;
  /** In order of entity version. */
  readonly events: readonly EventRow[];
}

export interface AppendState {
  readonly log: LogRow;
  readonly chains: ReadonlyMap<number, string>;
  readonly fences: ReadonlyMap<string, FenceRow>;
  readonly byRequest: ReadonlyMap<string, OperationRow>;
  readonly byAction: ReadonlyMap<string, OperationRow>;
  /** Those of `needs` that were accepted. */
  readonly accepted: ReadonlySet<string>;
  readonly events: ReadonlyMap<string, EventRow>;
  /** By `entityKey`. */
  readonly entities: ReadonlyMap<string, EntityEvents>;
  /** Fields of the defining entity, canonical, by type name. */
  readonly types: ReadonlyMap<string, string>;
  /** Live run-time types of this log; null where it was not asked. */
  readonly typeCount: number | null;
}

export const entityKey = (type: string, id: string): string => `${type} ${id}`;

export interface AppendVerdict<T> {
  readonly value: T;
  /** Null: nothing is written. */
  readonly write: AppendWrite | null;
}

export interface AppendWrite {
  readonly head: number;
  readonly chain: string;
  readonly signature: string;
  /** Null where no number was given. */
  readonly serials: Readonly<Record<string, number>> | null;
  readonly operations: readonly OperationRow[];
  readonly events: readonly NewEvent[];
  /** Whole rows, as they are after the group. */
  readonly entities: readonly EntityRow[];
  readonly fences: readonly FenceWrite[];
}

export interface FenceWrite extends FenceRow {
  /** RT7; null where nothing was proven. */
  readonly proven: number | null;
  readonly at: string;
}

// ── meet ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface MeetRead {
  readonly replica: string;
  readonly logs: readonly {
    readonly log: string;
    readonly versions: readonly number[];
    /** The state signature at this version is wanted; null for none. */
    readonly signatureAt: number | null;
  }[];
}

export interface MeetState {
  /** `permit` is not looked at here; permits are per log. */
  readonly fence: FenceRow | undefined;
  /** Logs that exist. */
  readonly logs: ReadonlyMap<string, MetLog>;
}

export interface MetLog {
  readonly log: LogRow;
  readonly chains: ReadonlyMap<number, string>;
  /** Null where no operation ends at that version. */
  readonly signature: string | null;
  /** Highest permit number of the replica's present generation in this log. */
  readonly permit: number;
}

export interface MeetVerdict<T> {
  readonly value: T;
  readonly write: MeetWrite | null;
}

export interface MeetWrite {
  readonly replica: string;
  readonly account: string;
  readonly generation: number;
  readonly instance: string;
  readonly at: string;
  readonly app: string | null;
  readonly health: string | null;
  readonly logs: readonly { readonly log: string; readonly permit: number; readonly proven: number | null }[];
}

// ── pages ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A stored event as pages need it. */
export interface EventText {
  readonly version: number;
  readonly entityVersion: number;
  readonly draft: string | null;
  /** Only of an erased event. */
  readonly leaf: string | null;
  readonly assigned: string | null;
  readonly operation: OperationOutline;
}

export interface PageRead {
  readonly after: number;
  readonly eventsMax: number;
  readonly choose: (log: LogRow, operations: readonly OperationOutline[]) => number | null;
  /** The chain of every event is wanted, not only of the last one. */
  readonly allChains?: boolean;
}

export interface PageRows {
  readonly log: LogRow;
  /** Those that `choose` saw. */
  readonly operations: readonly OperationOutline[];
  readonly events: readonly EventText[];
  /** By version: of the last event, or of all. */
  readonly chains: ReadonlyMap<number, string>;
}

export interface EntitiesRead {
  /** The reserved run-time types, or all others. */
  readonly part: 'run-time-types' | 'others';
  readonly after: EntityKey | null;
  readonly max: number;
  /** Of fields; at least one entity comes whatever its size. */
  readonly bytesMax: number;
}

export interface EntitiesRows {
  readonly log: LogRow;
  readonly entities: readonly EntityRow[];
  /** There are more in this part. */
  readonly more: boolean;
}
