import type {
  EntitiesPage,
  EntityState,
  ErasedEvent,
  EventsPage,
  HandshakeAnswer,
  Json,
  JsonObject,
  Logger,
  Platform,
  PushAnswer,
  RefusalCode,
  Role,
  SchemaData,
  SessionAnswer,
  StoredEvent,
} from '@holdfast/core';
import type { Answered, MaybePromise } from './answer.ts';
import type { LedgerStore } from './store-port.ts';

/**
 * The ledger without its doors: HTTP, WebSocket, access and configuration stand around it. Requests come as JSON that is
 * already of the profile (strict parse, JS3); the engine reads their form itself, because what it refuses for its form
 * has a place in the order of checks (LG11). Answers come as JSON text.
 *
 * Every method may be called at any time from any number of requests. None throws or rejects for what a caller sent, or
 * for a store that failed: that is `internal`.
 */
export interface Engine {
  /** What `/session` and every handshake publish. */
  describe(): Pick<SessionAnswer, 'protocol' | 'capabilities' | 'limits' | 'serverTime'>;

  /** All that exist; the door shows a caller those that are granted. */
  workspaces(): MaybePromise<readonly WorkspaceFacts[]>;
  /** False if it exists already. */
  createWorkspace(workspace: string): MaybePromise<boolean>;
  /** Administrators create logs; `main` exists in every workspace. */
  createLog(actor: Actor, ref: LogRef): MaybePromise<Answered<LogFacts>>;
  logs(actor: Actor, workspace: string): MaybePromise<Answered<{ readonly logs: readonly LogFacts[] }>>;

  handshake(actor: Actor, workspace: string, request: Json): MaybePromise<Answered<HandshakeAnswer>>;
  /** Durable when it answers `ok`, as LG9 says. */
  push(actor: Actor, ref: LogRef, request: Json): MaybePromise<Answered<PushAnswer>>;
  events(actor: Actor, ref: LogRef, at: EventsQuery): MaybePromise<Answered<EventsPage>>;
  entities(actor: Actor, ref: LogRef, at: EntitiesQuery): MaybePromise<Answered<EntitiesPage>>;
  entity(actor: Actor, ref: LogRef, at: EntityQuery): MaybePromise<Answered<EntityAnswer>>;
  /** Oldest first, after an entity version. */
  history(actor: Actor, ref: LogRef, at: HistoryQuery): MaybePromise<Answered<HistoryAnswer>>;
  replicas(actor: Actor, workspace: string): MaybePromise<Answered<{ readonly replicas: readonly ReplicaFacts[] }>>;

  /**
   * One socket. Hand every text message to `message`, in order, and call `closed` once. The engine sends and closes
   * through `socket`; `access` is asked for the first `hello`, and again every few seconds while the socket lives (RT3).
   */
  live(workspace: string, socket: LiveSocket, access: LiveAccess): LiveConnection;

  // ── for operators: no actor, no refusal; a store that fails rejects ─────────────────────────────────────────────
  status(): MaybePromise<EngineStatus>;
  usage(workspace: string): MaybePromise<readonly LogUsage[]>;
  /** Computes chain, folded state and signature of a log from its events, and compares with what is stored. Null: no such log. */
  verify(ref: LogRef): MaybePromise<VerifyReport | null>;

  /** No new requests, `going-away` to all sockets, groups in work finished, store closed. */
  close(): Promise<void>;
}

/** A verified caller in one workspace. The door has looked up the role; who has none never gets here. */
export interface Actor {
  readonly account: string;
  readonly role: Role;
  /** When the credential ends, in milliseconds since 1970. */
  readonly expiresAtMs?: number;
}

export interface LogRef {
  readonly workspace: string;
  readonly log: string;
}

export interface EngineConfig {
  readonly store: LedgerStore;
  readonly platform: Platform;
  readonly logger: Logger;
  /** Names serial fields. Without it the ledger folds and merges all the same (4.2). */
  readonly schema?: SchemaData;
  readonly admit?: Admit;
  /** Asked once per operation that is not remembered (LG11). */
  readonly quota?: Quota;
  /** DG4. Absent: positions carry no `attest`. */
  readonly logKey?: Uint8Array;
  /** Workspaces and logs are made when first used: development only. */
  readonly createOnFirstUse?: boolean;
  readonly limits?: Partial<EngineLimits>;
}

/** What an operator may set. The rest of `LIMITS` is part of the protocol. */
export interface EngineLimits {
  readonly commitEventsMax: number;
  readonly commitBytesMax: number;
  /** Operations waiting for one log's group commit. Beyond: `rate-limited`. */
  readonly groupQueueMax: number;
  readonly groupEventsMax: number;
  readonly groupBytesMax: number;
  /** Page texts kept in memory, all logs together (LG15). */
  readonly pageCacheBytesMax: number;
  /** Open sockets of one account in all workspaces; beyond: `rate-limited`. A replica has one. */
  readonly socketsPerAccountMax: number;
  readonly pingMs: number;
  readonly accessCheckMs: number;
}

/** LG14. Runs inside the accepting transaction; must not return a promise, and must not change what it is given. */
export type Admit = (change: AdmitChange, actor: Actor) => AdmitRefusal | undefined;

/** Types and fields by wire name. */
export interface AdmitChange {
  readonly workspace: string;
  readonly log: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly before: EntityState | undefined;
  readonly after: EntityState | undefined;
  /** Fields whose value is another, sorted. */
  readonly changed: readonly string[];
  /** The event's name: `issue.closed`. */
  readonly type: string;
}

export interface AdmitRefusal {
  readonly reason: string;
  readonly message?: string;
  readonly field?: string;
  readonly details?: JsonObject;
}

export type Quota = (use: {
  readonly account: string;
  readonly workspace: string;
  readonly log: string;
  readonly events: number;
  readonly bytes: number;
}) => { readonly retryAfterMs: number } | undefined;

export interface EventsQuery {
  readonly after: number;
  readonly limit?: number;
}
export interface EntitiesQuery {
  /** As the last page gave it in `next`. */
  readonly cursor?: string;
  readonly limit?: number;
}
export interface EntityQuery {
  readonly type: string;
  readonly id: string;
}
export interface HistoryQuery extends EntityQuery {
  /** Entity version. */
  readonly after?: number;
  readonly limit?: number;
}

/** An entity that is absent, or was deleted, is null. */
export interface EntityAnswer {
  readonly asOf: number;
  readonly entity: EntityState | null;
}
export interface HistoryAnswer {
  readonly events: readonly (StoredEvent | ErasedEvent)[];
  readonly more: boolean;
}

export interface WorkspaceFacts {
  readonly workspace: string;
  readonly createdAt: string;
}

export interface LogFacts {
  readonly log: string;
  readonly identity: string;
  readonly epoch: string;
  readonly head: number;
  readonly state: 'open' | 'sealed' | 'deleted';
  readonly createdAt: string;
}

export interface ReplicaFacts {
  readonly replica: string;
  readonly account: string;
  readonly generation: number;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
  readonly app: { readonly name: string; readonly schema: string } | null;
  readonly health: { readonly unsent: number; readonly attention: number; readonly oldestUnsentMs?: number } | null;
  /** Per log the highest version that the replica proved to hold (RT7). */
  readonly proven: Readonly<Record<string, number>>;
}

export interface EngineStatus {
  readonly workspaces: number;
  readonly sockets: number;
  readonly subscriptions: number;
  /** Pushes that wait for a group commit. */
  readonly waiting: number;
  readonly appended: { readonly groups: number; readonly operations: number; readonly events: number };
}

export interface LogUsage extends LogFacts {
  readonly operations: number;
  readonly entities: number;
  readonly replicas: number;
  readonly bytes: number;
}

export interface VerifyReport {
  readonly log: string;
  readonly events: number;
  readonly entities: number;
  readonly chain: string;
  readonly signature: string;
  /** Empty when everything is as the events say. At most 100. */
  readonly problems: readonly VerifyProblem[];
}
export interface VerifyProblem {
  readonly what:
    | 'version'
    | 'chain'
    | 'entity-version'
    | 'entity'
    | 'signature'
    | 'draft'
    /** The medium: what the database says of its own pages and indexes. */
    | 'file'
    /** Where operations begin and end, and how many there are. */
    | 'operation'
    /** Ids of requests, actions and events, by which what comes again is known (LG2). */
    | 'remembered'
    /** The list of one entity's events. */
    | 'history'
    /** Generations, permits, proven positions (LG8, RT7). */
    | 'fence'
    /** Numbers that were given, and their counters (LG7). */
    | 'serial';
  readonly version?: number;
  readonly entity?: { readonly type: string; readonly id: string };
  readonly expected: string;
  readonly found: string;
}

export interface LiveSocket {
  send(text: string): void;
  /** After what was sent. */
  close(code: number, reason: string): void;
  /** At once, for a peer that does not read (F100). */
  terminate(): void;
  /** Bytes that `send` took and the network did not. */
  readonly bufferedBytes: number;
}

export interface LiveAccess {
  /** For `hello`. The token is absent where the upgrade request carried a cookie. Null: nobody. */
  admit(token: string | undefined): MaybePromise<Actor | null>;
  /** Every few seconds for a socket that lives. Absent: only expiry ends it. */
  stillAdmitted?(actor: Actor): MaybePromise<Actor | null>;
}

export interface LiveConnection {
  message(text: string): void;
  /**
   * A ping or pong of the WebSocket protocol itself came. It counts as a message, however it is answered; true if a ping
   * may be answered now.
   */
  control(): boolean;
  closed(): void;
}

export { createEngine } from './create-engine.ts';
/** What refused operations carry; named here so that a door needs no other import. */
export type { RefusalCode };
