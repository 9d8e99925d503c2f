import type { Json, JsonObject } from './json.ts';

/** How concurrent sets of one field merge. A field that no rule names asks a person. */
export type MergeRule = 'last' | 'max' | 'min';

/**
 * What an event does to its entity, as data: any ledger or replica folds it without the app's code (4.2).
 * `put` is for entities with a natural key: an update of a live one, a create of an absent one.
 */
export type Change =
  | { readonly op: 'create'; readonly fields: JsonObject }
  | {
      readonly op: 'update';
      readonly set?: JsonObject;
      readonly unset?: readonly string[];
      readonly inc?: Readonly<Record<string, number>>;
      readonly add?: Readonly<Record<string, readonly Json[]>>;
      readonly remove?: Readonly<Record<string, readonly Json[]>>;
      readonly rules?: Readonly<Record<string, MergeRule>>;
    }
  | { readonly op: 'put'; readonly set: JsonObject; readonly rules?: Readonly<Record<string, MergeRule>> }
  | { readonly op: 'delete' }
  | { readonly op: 'restore'; readonly fields: JsonObject };

/** What an author signs. Its canonical bytes are made once, at commit, and never change except by a rebase (OB3). */
export interface EventDraft {
  /** UUIDv7, made by the caller of `commit()`; kept by every rebase. */
  readonly id: string;
  /** The intent, for people and for history: `issue.updated`, or a name that the schema declares. */
  readonly type: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly change: Change;
  /** The entity's confirmed version in what the author saw; 0 for none. Pending changes are not counted. */
  readonly base: number;
  /** Id of the not yet confirmed event of this entity that this one was made on top of. */
  readonly prior?: string;
  /** Device time, ISO 8601 UTC with milliseconds. For people, never for order. */
  readonly at: string;
  /** 16 random bytes in lower-case hex, so that an erased event cannot be guessed from its leaf. */
  readonly salt: string;
  readonly meta?: JsonObject;
}

/** What the ledger adds. A client that sends any of these keys is refused (EV4). */
export interface Envelope {
  readonly version: number;
  readonly entityVersion: number;
  /** The verified account. */
  readonly actor: string;
  /** Ledger time, ISO 8601 UTC with milliseconds. */
  readonly recordedAt: string;
  readonly requestId: string;
  readonly actionId: string;
  readonly replicaId: string;
  /** Place in its operation, from 0, and how many events that operation has. */
  readonly index: number;
  readonly count: number;
  /** What the ledger gave, such as serial numbers: `{ number: 123 }` (EV7). */
  readonly assigned?: JsonObject;
  /** Set by a healed history: who and when, before the loss (HL3). */
  readonly origin?: { readonly actor: string; readonly recordedAt: string };
}

/** One event of a log. Draft and envelope have disjoint key sets, so one flat object holds both. */
export type StoredEvent = EventDraft & Envelope;

export const DRAFT_KEYS = [
  'at',
  'base',
  'change',
  'entityId',
  'entityType',
  'id',
  'meta',
  'prior',
  'salt',
  'type',
] as const satisfies readonly (keyof EventDraft)[];

export const ENVELOPE_KEYS = [
  'actionId',
  'actor',
  'assigned',
  'count',
  'entityVersion',
  'index',
  'origin',
  'recordedAt',
  'replicaId',
  'requestId',
  'version',
] as const satisfies readonly (keyof Envelope)[];

/** An erased event: what remains of it in a page (DG1). */
export interface ErasedEvent extends Envelope {
  readonly leaf: string;
  readonly erased: true;
}

/** The folded state of a live entity, the same at the ledger and on every replica. */
export interface EntityState {
  readonly type: string;
  readonly id: string;
  /** Count of events this entity has had (EV2). */
  readonly version: number;
  /** Exactly what events set: never a default, never a fallback. */
  readonly fields: JsonObject;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly updatedBy: string;
  readonly updatedAt: string;
  /** The log version of its create or restore. */
  readonly arrival: number;
}
