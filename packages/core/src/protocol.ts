import type { EntityState, ErasedEvent, EventDraft, StoredEvent } from './events.ts';
import type { RefusalCode, RequestRefusalCode } from './faults.ts';
import type { JsonObject } from './json.ts';

/** Wire messages of `/v1` (5.1, 5.4). Shapes only; `decode.ts` reads them strictly. */

export const PROTOCOL = { min: 1, max: 1 } as const;
/** Headers that vouch for an answer (LG10). Without them it is not the ledger speaking. */
export const HEADERS = {
  protocol: 'Holdfast-Protocol',
  logIdentity: 'Holdfast-Log',
  permit: 'Holdfast-Permit',
} as const;

export type Role = 'reader' | 'writer' | 'administrator';

export interface Position {
  readonly epoch: string;
  readonly version: number;
  /** chain(version), 64 lower-case hex digits. */
  readonly chain: string;
}

/** The head that an answer brings its reader to, with the ledger's signature where a log key is configured (DG4). */
export interface Through {
  readonly version: number;
  readonly chain: string;
  readonly attest?: string;
}

/** Who asks, under which permit: the fence of LG8. */
export interface RequestReplica {
  readonly id: string;
  readonly generation: number;
  readonly instance: string;
  /** The permit's number; the ledger echoes it. */
  readonly permit: number;
}

export interface SessionAnswer {
  readonly account: string;
  readonly grants: Readonly<Record<string, Role>>;
  readonly expiresAt?: string;
  readonly protocol: { readonly min: number; readonly max: number };
  readonly capabilities: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  readonly serverTime: string;
}

export interface HandshakeRequest {
  readonly protocol: { readonly min: number; readonly max: number };
  readonly replica: RequestReplica;
  readonly app?: { readonly name: string; readonly schema: string };
  /** Counts only, never content (LG13). */
  readonly health?: { readonly unsent: number; readonly attention: number; readonly oldestUnsentMs?: number };
  readonly logs: readonly {
    readonly log: string;
    /** Newest first; the first is the replica's head. Empty for a replica that knows nothing of the log yet. */
    readonly positions: readonly Position[];
    /** The replica's state signature at its first position; absent while bootstrapping. */
    readonly signature?: string;
  }[];
}

export type LogStanding =
  | {
      readonly log: string;
      readonly status: 'ok' | 'behind';
      readonly identity: string;
      readonly epoch: string;
      readonly head: Through;
      readonly role: Role;
      /** Absent where there was nothing to compare. */
      readonly signature?: 'equal' | 'differs';
    }
  | {
      readonly log: string;
      readonly status: 'history-changed';
      readonly identity: string;
      readonly epoch: string;
      readonly head: Through;
      /** The highest of the named positions that is in the log; 0 for none. */
      readonly commonVersion: number;
      readonly healing: boolean;
    }
  | { readonly log: string; readonly status: 'moved'; readonly to?: string }
  | { readonly log: string; readonly status: 'deleted' | 'not-allowed' };

export interface HandshakeAnswer {
  readonly protocol: number;
  readonly account: string;
  readonly capabilities: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  readonly serverTime: string;
  readonly logs: readonly LogStanding[];
}

export interface PushOperation {
  readonly requestId: string;
  readonly actionId: string;
  readonly events: readonly EventDraft[];
  /** Action ids that must have been accepted before. */
  readonly needs?: readonly string[];
  /** Entities that must exist: `[type, id]`. */
  readonly requires?: readonly (readonly [type: string, id: string])[];
  /** Reserved: uniqueness across entities. */
  readonly claims?: readonly JsonObject[];
  readonly merge: 'fields' | 'author';
  readonly expectedLogVersion?: number;
  readonly scope?: 'log';
}

export interface PushRequest {
  readonly position: Position;
  readonly replica: RequestReplica;
  readonly operations: readonly PushOperation[];
}

export type OperationResult =
  | {
      readonly requestId: string;
      readonly status: 'accepted';
      readonly firstVersion: number;
      readonly entityVersions: readonly number[];
      readonly recordedAt: string;
      readonly actor: string;
      /** Per event that got some: what the ledger assigned (EV7). Absent when none did. */
      readonly assigned?: Readonly<Record<string, JsonObject>>;
      /** The request under which these ids were accepted before, when it was another one (LG3). */
      readonly acceptedUnder?: string;
    }
  | {
      readonly requestId: string;
      readonly status: 'refused';
      readonly code: RefusalCode;
      readonly message?: string;
      readonly details?: JsonObject;
    };

/**
 * An own event in a push answer: the sender has its bytes, and rebuilds the envelope from the operation's result (actor,
 * recordedAt, entityVersions, assigned) and its own ids. An operation that was accepted under another request, or by
 * another replica, comes whole instead.
 */
export interface OwnEventReference {
  readonly version: number;
  readonly requestId: string;
  readonly index: number;
}
/** An event of an operation larger than a page comes in parts (PG2). */
export interface PartMark {
  readonly part?: number;
  readonly parts?: number;
}

export interface PushAnswer {
  readonly epoch: string;
  readonly results: readonly OperationResult[];
  readonly events: readonly (StoredEvent | ErasedEvent | OwnEventReference)[];
  readonly through: Through;
  readonly head: number;
  readonly more: boolean;
}

export interface EventsPage extends PartMark {
  readonly epoch: string;
  readonly events: readonly (StoredEvent | ErasedEvent)[];
  readonly through: Through;
  readonly head: number;
  readonly more: boolean;
}

export interface EntitiesPage {
  readonly epoch: string;
  /** The log version of the snapshot that this page was read in (BS1). */
  readonly asOf: Through;
  readonly entities: readonly EntityState[];
  /** Opaque; absent on the last page. */
  readonly next?: string;
}

/** A refusal of a whole request: the body of every non-2xx answer. */
export interface RequestRefusal {
  readonly code: RequestRefusalCode;
  readonly message: string;
  /** Names this answer in the ledger's logs. */
  readonly requestId: string;
  readonly details?: JsonObject;
}

// ── Realtime (5.4) ──────────────────────────────────────────────────────────────────────────────────────────────────

export type ClientFrame =
  | {
      readonly type: 'hello';
      readonly token?: string;
      readonly protocol: { readonly min: number; readonly max: number };
      readonly replica: { readonly id: string; readonly generation: number; readonly instance: string };
    }
  | { readonly type: 'follow'; readonly log: string; readonly position: Position }
  | { readonly type: 'unfollow'; readonly log: string }
  | { readonly type: 'ack'; readonly log: string; readonly version: number }
  | { readonly type: 'ping' | 'pong'; readonly nonce: string };

export type ServerFrame =
  | { readonly type: 'welcome'; readonly protocol: number; readonly account: string; readonly pingMs: number }
  | {
      readonly type: 'ready';
      readonly log: string;
      readonly epoch: string;
      readonly head: number;
      readonly chain: string;
    }
  | ({
      readonly type: 'events';
      readonly log: string;
      readonly epoch: string;
      readonly events: readonly (StoredEvent | ErasedEvent)[];
      readonly through: Through;
    } & PartMark)
  | { readonly type: 'moved'; readonly log: string; readonly to?: string }
  | { readonly type: 'deleted' | 'forbidden'; readonly log: string }
  | {
      readonly type: 'resync-required';
      readonly log: string;
      readonly head: number;
      readonly reason: 'too-far-behind' | 'slow' | 'history-changed';
    }
  | { readonly type: 'session-ending'; readonly reason: string }
  | { readonly type: 'going-away'; readonly retryMs: number }
  | {
      readonly type: 'refused';
      readonly code: RequestRefusalCode;
      readonly message: string;
      readonly details?: JsonObject;
    }
  | { readonly type: 'ping' | 'pong'; readonly nonce: string };
