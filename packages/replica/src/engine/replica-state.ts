import type {
  EntityData,
  EntityState,
  ErasedEvent,
  Fault,
  Json,
  JsonObject,
  LogStanding,
  OperationResult,
  Outcome,
  OwnEventReference,
  Position,
  PushOperation,
  RecordedChange,
  StoredEvent,
  Through,
} from '@holdfast/core';

/**
 * What one replica file knows, as the rest of the engine sees it: the sync loop asks it what to send and hands it what
 * came back, the host hands it commits and answers of people. Every call is synchronous; a call that writes runs inside
 * `write`, or opens a transaction of its own. Nothing here does IO besides the database, and nothing here decides when.
 */
export interface ReplicaState {
  readonly identity: ReplicaIdentity;
  /**
   * One transaction: BEGIN IMMEDIATE, fence (generation and host instance are still ours, else `outranked` is thrown
   * as a `FaultError`), work, COMMIT. A nested call joins the outer one. Listeners are told after the commit, never
   * after a rollback. A promise returned by `work` is refused.
   */
  write<T>(work: () => T): T;
  /** Reads that belong together, of one state; inside a transaction, of that one. `work` writes nothing. */
  read<T>(work: () => T): T;
  /** Told once per committed transaction. */
  onChange(listener: (change: LocalChange) => void): () => void;

  // ── logs ────────────────────────────────────────────────────────────────────────────────────────────────────────
  logs(): readonly FollowedLog[];
  log(name: string): FollowedLog | undefined;
  follow(log: string): void;
  unfollow(log: string): void;
  /** Head first, then older versions that this file still has chains for, ever sparser; at most 64 (DG5, HL1). */
  positions(log: string): readonly Position[];
  /** Some of those strictly between two versions, newest first, spread evenly; as many as one request takes. */
  positionsBetween(log: string, above: number, below: number): readonly Position[];
  /** What a handshake said of one log: epoch, ledger head, `history-changed` (HL1 moves own work above the common
   *  version back into the outbox as `lost`), `moved`, `deleted`, `not-allowed` → blocked. */
  recordStanding(standing: LogStanding): void;
  block(log: string, fault: Fault | null): void;
  /** HL4: repair to the ledger's state; `lost` work becomes `queued`. */
  adopt(log: string): void;
  /** RP1: a copy or an old backup goes on under a new replica id; data, outbox and ids kept. */
  renewReplicaId(): void;

  // ── commits (6.2) ───────────────────────────────────────────────────────────────────────────────────────────────
  commit(request: CommitRequest): Outcome<CommitReceipt>;
  /** CM5: what became of an action, for at least 7 days and 10,000 batches. */
  outcome(actionId: string): ActionOutcome | undefined;

  // ── outbox (6.4) ────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * Operations to send now, in outbox order: `queued` and due `waiting` ones, none that is held, whole operations up to
   * the bounds, at least one if any is due. Their bytes are the stored ones.
   * `only` (recovery): exactly those of the named request ids that still wait for an answer, in outbox order, due or
   * not, held or not: an owed operation must be answered before anything else may happen to it (OB3).
   */
  takePush(request: {
    log: string;
    eventsMax: number;
    bytesMax: number;
    nowMs: number;
    only?: readonly string[];
  }): PushBatch;
  /** Of these request ids, those under which nothing waits for an answer any more: in the log, accepted, or closed. */
  answeredSince(requestIds: readonly string[]): readonly { readonly requestId: string; readonly outcome: string }[];
  /** In the transaction that starts the permit: the operations become `sending`. */
  markSending(requestIds: readonly string[]): void;
  /** In the transaction that stores an unknown outcome or a restart: they are `queued` again under their request ids. */
  markUnknown(requestIds: readonly string[], fault: Fault, retryAtMs: number | null): void;
  /**
   * In the transaction that applies a push answer, BEFORE its events are ingested: every operation of the request with
   * its definite result; own events are rebuilt from it. Accepted
   * ones retire through ingest or at once (IN1); refusals follow the recovery table. `judge` ones are marked to be
   * judged once the head has reached the named version.
   */
  recordResults(log: string, results: readonly OperationResult[], nowMs: number): void;
  /** Earliest stored retry instant of waiting work, for the loop's timer. */
  nextRetryAtMs(log: string): number | null;
  /** OB4: online, visible or a person: waiting work is due now. */
  resetRetries(): void;
  /** Work on its way: operations that are queued, sending, waiting or accepted, and not held. Asked after every step of a cycle. */
  flowing(log: string): number;
  /** The highest outbox seq among it. */
  newestFlowing(log: string): number | null;
  /** Any of it up to an outbox seq: `settle()` waits for what was committed before it, not for what comes after (SY2). */
  isFlowing(log: string, upTo: number): boolean;
  counts(): OutboxCounts;
  /** Forgets a bounded batch of what is no longer needed; true: there is more. */
  prune(): boolean;

  // ── ingest (6.3) ────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * IN1–IN5. Verifies density and chain; a fault changes nothing. Also judges what waited for the new head.
   * `history-changed`: the ledger has lost the history that it continues, and a person has yet to adopt another (HL4).
   * `into: 'bootstrap'`: the page continues `bootstrapCursor(log).head` and goes to what is being fetched (BS2, 6.6),
   * never to the visible tables; its report's `head` is that of the bootstrap.
   */
  ingest(
    page: IngestPage,
    into?: 'bootstrap',
  ): Outcome<IngestReport, 'page-gap' | 'chain-mismatch' | 'not-following' | 'history-changed'>;

  // ── bootstrap and repair (5.3, 6.6) ─────────────────────────────────────────────────────────────────────────────
  beginBootstrap(log: string, from: Through, epoch: string, purpose: 'bootstrap' | 'repair'): void;
  /** One page of `entities`, with the range of keys that it covers. `asOf` below H is refused with `page-gap`. */
  bootstrapPage(log: string, page: BootstrapPage): Outcome<void>;
  bootstrapCursor(log: string): BootstrapProgress | undefined;
  /** Signature at the present head of what has been fetched, to compare with the ledger's. */
  bootstrapSignature(log: string): string;
  /** Makes it visible, or swaps the repaired tables in, keeping and re-applying outbox and desk. One transaction. */
  finishBootstrap(log: string): void;
  discardBootstrap(log: string): void;

  // ── people (OB6) ────────────────────────────────────────────────────────────────────────────────────────────────
  desk(): readonly DeskEntry[];
  resolve(request: {
    ids: readonly string[];
    choice: 'mine' | 'theirs' | JsonObject;
    revision?: number;
  }): Outcome<void>;
  discard(ids: readonly string[]): Outcome<{ readonly alsoHeld: readonly string[] }>;
  undo(scope: string, options: { skipChanged: boolean }): Outcome<{ readonly label: string } | null>;
  redo(scope: string): Outcome<{ readonly label: string } | null>;
  undoState(scope: string): {
    readonly can: boolean;
    readonly label?: string;
    readonly canRedo: boolean;
    readonly redoLabel?: string;
  };
  history(entity: { log: string; type: string; id: string }): readonly (StoredEvent | ErasedEvent)[];

  /** SC4: types that came at run time and have a table. */
  types(): Readonly<Record<string, EntityData>>;
  /** SC7: types that came at run time and have no table here, since the schema has the name: `type-name-taken`. */
  typeFaults(): readonly Fault[];

  /** OB7. */
  pack(): Uint8Array;
  unpack(bytes: Uint8Array): Outcome<{ readonly batches: number; readonly already: number }>;

  readonly journal: {
    write(kind: string, facts: JsonObject): void;
    page(
      before?: number,
    ): readonly { readonly seq: number; readonly at: string; readonly kind: string; readonly facts: JsonObject }[];
  };
  setting(name: string): Json | undefined;
  setSetting(name: string, value: Json): void;
  close(): void;
}

export interface ReplicaIdentity {
  readonly replicaId: string;
  readonly ledger: string;
  readonly account: string;
  readonly workspace: string;
  readonly generation: number;
  readonly hostInstance: string;
}

/** What a transaction touched: live queries run again only for these (LQ6). */
export interface LocalChange {
  /** Grows by one per transaction of this host instance. */
  readonly seq: number;
  /** Entity table → columns that changed; `*` when rows came or went. */
  readonly tables: ReadonlyMap<string, ReadonlySet<string>>;
  readonly outbox: boolean;
  readonly desk: boolean;
  readonly logs: boolean;
  /** Types at run time are others than before (SC4). */
  readonly types: boolean;
  /** Batches that reached the log in this transaction, or were refused or parked. */
  readonly settled: readonly { readonly actionId: string; readonly outcome: ActionOutcome }[];
}

export interface FollowedLog {
  readonly log: string;
  readonly stage: 'new' | 'bootstrapping' | 'visible';
  readonly identity: string | null;
  readonly epoch: string | null;
  readonly head: number;
  readonly chain: string;
  readonly signature: string;
  readonly attest: string | null;
  readonly ledgerHead: number | null;
  readonly blocked: Fault | null;
  readonly lastSyncedAt: string | null;
  readonly repairing: boolean;
  /** HL4: until the swap the visible position is in no log that the ledger has: nothing can be asked from it. */
  readonly adopting?: true;
}

export type { RecordedChange };

export interface CommitRequest {
  readonly actionId: string;
  readonly log: string;
  readonly label?: string;
  /** false: not undoable; a string: the undo scope; absent: scope 'main' if there is a label. */
  readonly undo?: false | string;
  /** Batches of one group are one undo (CM6, `commitAll`). */
  readonly undoGroup?: string;
  readonly changes: readonly RecordedChange[];
  /** CM1: what the author saw of the fields it writes; null is unset. */
  readonly seen: readonly {
    readonly entity: string;
    readonly id: string;
    readonly field: string;
    readonly value: Json;
  }[];
  /** Commits of the same page since those rows were drawn do not count as foreign: their action ids. */
  readonly own?: readonly string[];
  /** CM4: reads of `transact`, run again inside the commit by the host's query runner. */
  readonly reads: readonly { readonly sql: string; readonly parameters: readonly Json[]; readonly digest: string }[];
  /** Runs a read inside the transaction and gives its digest; supplied by the host. */
  readonly digestOf?: (sql: string, parameters: readonly Json[]) => string;
}

export interface CommitReceipt {
  readonly actionId: string;
  /** The local sequence that includes it (LQ2). */
  readonly seq: number;
  /** True when the action was known already: its first outcome is returned. */
  readonly repeated: boolean;
  readonly eventIds: readonly string[];
}

export type ActionOutcome =
  | { readonly state: 'pending'; readonly seq: number }
  | { readonly state: 'ordered'; readonly log: string; readonly version: number }
  | { readonly state: 'needs-attention' | 'refused'; readonly fault: Fault }
  | { readonly state: 'discarded' | 'replaced'; readonly by?: string }
  /** Only local entities: durable here and never sent. */
  | { readonly state: 'local' };

export interface PushBatch {
  readonly operations: readonly PushOperation[];
  readonly events: number;
  readonly bytes: number;
  /** Due work that did not fit. */
  readonly more: boolean;
}

export interface OutboxCounts {
  /** Everything that is not yet confirmed and not closed by a person. `held` counts the derived ones among them. */
  readonly unsent: number;
  readonly sending: number;
  readonly waiting: number;
  readonly held: number;
  readonly parked: number;
  readonly lost: number;
  readonly attention: number;
  readonly oldestUnsentAtMs: number | null;
}

export interface IngestPage {
  readonly log: string;
  readonly epoch: string;
  readonly events: readonly (StoredEvent | ErasedEvent | OwnEventReference)[];
  readonly through: Through;
  readonly head: number;
  readonly part?: number;
  readonly parts?: number;
}

export interface IngestReport {
  readonly applied: number;
  readonly ignored: number;
  readonly head: number;
  /** Request ids whose own events passed ingest: their push obligations close here (PM7). */
  readonly confirmed: readonly { readonly requestId: string; readonly version: number }[];
  readonly merged: number;
  readonly parked: number;
}

export interface BootstrapPage {
  readonly asOf: Through;
  readonly entities: readonly EntityState[];
  /** The cursor that asked for this page, null for the first, and the next one, null after the last. */
  readonly after: string | null;
  readonly next: string | null;
}

export interface BootstrapProgress {
  readonly purpose: 'bootstrap' | 'repair';
  readonly from: Through;
  readonly epoch: string;
  readonly cursor: string | null;
  /** All pages are here; events from H on are being pulled. */
  readonly scanned: boolean;
  readonly entities: number;
  readonly head: number;
  readonly chain: string;
  /**
   * The newest version that a page was read at. While `head` is below it, what is here is a mixture of versions: no
   * ledger ever had that state, and its signature says nothing.
   */
  readonly readAt: number;
}

export interface DeskEntry {
  readonly id: string;
  readonly revision: number;
  readonly kind:
    | 'clash'
    | 'rule'
    | 'refused'
    | 'missing-reference'
    | 'no-access'
    | 'overwritten'
    | 'not-deleted'
    | 'engine';
  readonly needs: 'answer' | 'nothing';
  readonly actionId: string;
  readonly log: string;
  readonly label?: string;
  readonly entity: { readonly type: string; readonly id: string };
  readonly fields: readonly {
    readonly field: string;
    readonly base: Json | undefined;
    readonly mine: Json | undefined;
    readonly theirs: Json | undefined;
    /** Empty: nobody has written it since, or nobody here knows who, because the state came whole. So `at`. */
    readonly by: string;
    readonly at: string;
  }[];
  readonly fault?: Fault;
  /** How many later batches wait for this one (ST2). */
  readonly held: number;
}
