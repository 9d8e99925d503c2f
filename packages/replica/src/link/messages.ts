import type {
  EntityData,
  ErasedEvent,
  Fault,
  FieldKind,
  Json,
  JsonObject,
  RecordedChange,
  SeenValue,
  StoredEvent,
} from '@holdfast/core';
import type { ActionOutcome, DeskEntry } from '../engine/replica-state.ts';
import type { SettleReport } from '../engine/sync/settle.ts';
import type { RowPatch } from './row-patch.ts';
import type { Status } from './status.ts';

/**
 * The one protocol between whoever uses a replica and the host that holds it open (LK1). Plain data: a function call, a
 * MessagePort and, later, a WebSocket carry the same messages. Every `Ask` with an `id` is answered by one `Tell` with
 * that id; the transport's order is kept, so what was told before an answer is known when the answer comes.
 */
export const LINK_PROTOCOL = 1;

/** What SQLite gives for a column. Bytes are what `many` and `one` made: no field of a schema is bytes. */
export type RawValue = null | number | string | Uint8Array;
export type RawRow = readonly RawValue[];

/** What a result's column is, so that 1 can become true: from the statement's column metadata (SC3). */
export interface Origin {
  readonly name: string;
  readonly entity?: string;
  readonly field?: string;
  /** Only where the value must be decoded. */
  readonly kind?: FieldKind;
}

/** What a transaction looked at. The host runs it again inside the commit (CM4). */
export interface Read {
  readonly sql: string;
  readonly parameters: readonly Json[];
  readonly digest: string;
}

export interface CommitAsk {
  /** The action id, made by the caller, so that he may repeat it to another host (CM5). */
  readonly id: string;
  readonly log: string;
  readonly label?: string;
  readonly undo?: false | string;
  readonly changes: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
  readonly reads: readonly Read[];
  /** A batch of `commitAll`: how far the work has come with it, kept in the commit's transaction (CM6). */
  readonly work?: { readonly name: string; readonly group: string; readonly progress: WorkProgress | null };
}

/** How far a `commitAll` has come. */
export interface WorkProgress {
  readonly rows: number;
  readonly batches: number;
  /** Names the batches that are one undo. */
  readonly group: string;
}

export interface JournalEntry {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly facts: JsonObject;
}

export interface UndoState {
  readonly can: boolean;
  readonly label?: string;
  readonly canRedo: boolean;
  readonly redoLabel?: string;
}

/** Types at run time, as their definitions say them. At most `runTimeTypesMax` of the ledger, of `entityBytesMax` each. */
export type RunTimeTypesByName = Readonly<Record<string, EntityData>>;

export interface QueryAnswer {
  readonly columns: readonly Origin[];
  readonly rows: readonly RawRow[];
  /** Of the rows, where it was asked for. */
  readonly digest?: string;
}

/** Everything that can be asked for with an answer: what is sent, and what comes back. */
export interface Requests {
  readonly commit: {
    readonly send: Omit<CommitAsk, 'id'>;
    readonly answer: { readonly seq: number; readonly repeated: boolean };
  };
  readonly query: {
    readonly send: { readonly sql: string; readonly parameters: readonly Json[]; readonly digest?: true };
    readonly answer: QueryAnswer;
  };
  /** Answered once every live query of this caller shows the commits up to `seq` (LQ2). */
  readonly shown: { readonly send: { readonly seq: number }; readonly answer: null };
  /** Answered once the action is in the log; refused with `refused`, `needs-attention` or `not-found`. */
  readonly ordered: { readonly send: { readonly action: string }; readonly answer: { readonly version: number } };
  readonly outcome: { readonly send: { readonly action: string }; readonly answer: ActionOutcome | null };
  /** Answered with what is known when the wait is ended (SY2). */
  readonly settle: { readonly send: {}; readonly answer: SettleReport };
  readonly desk: { readonly send: {}; readonly answer: readonly DeskEntry[] };
  readonly resolve: {
    readonly send: {
      /** With the revision that the person was shown. */
      readonly items: readonly { readonly id: string; readonly revision?: number }[];
      readonly choice: 'mine' | 'theirs' | JsonObject;
    };
    readonly answer: null;
  };
  readonly discard: {
    readonly send: { readonly items: readonly string[] };
    readonly answer: { readonly alsoHeld: readonly string[] };
  };
  readonly undo: {
    readonly send: { readonly scope: string; readonly skipChanged: boolean };
    readonly answer: { readonly label: string } | null;
  };
  readonly redo: { readonly send: { readonly scope: string }; readonly answer: { readonly label: string } | null };
  readonly undoState: { readonly send: { readonly scope: string }; readonly answer: UndoState };
  readonly follow: { readonly send: { readonly log: string }; readonly answer: null };
  readonly unfollow: { readonly send: { readonly log: string }; readonly answer: null };
  readonly pause: { readonly send: {}; readonly answer: null };
  readonly resume: { readonly send: {}; readonly answer: null };
  /** Something outside happened that the loop should know: fresh credentials, the network, a person. */
  readonly nudge: {
    readonly send: { readonly why: 'credentials' | 'online' | 'visible' | 'manual' };
    readonly answer: null;
  };
  /** HL4: a person gave up on what the ledger no longer has. */
  readonly adopt: { readonly send: { readonly log: string }; readonly answer: null };
  readonly journal: { readonly send: { readonly before?: number }; readonly answer: readonly JournalEntry[] };
  readonly history: {
    readonly send: { readonly log: string; readonly entity: string; readonly of: string };
    readonly answer: readonly (StoredEvent | ErasedEvent)[];
  };
  readonly pack: { readonly send: {}; readonly answer: Uint8Array };
  readonly unpack: {
    readonly send: { readonly bytes: Uint8Array };
    readonly answer: { readonly batches: number; readonly already: number };
  };
  readonly progress: { readonly send: { readonly work: string }; readonly answer: WorkProgress | null };
  /** Facts for people and tools: replica id, generation, logs, counts. */
  readonly facts: { readonly send: {}; readonly answer: JsonObject };
}

export type RequestName = keyof Requests;
export type AskOf<N extends RequestName> = { readonly ask: N; readonly id: string } & Requests[N]['send'];

export type Ask =
  | { [N in RequestName]: AskOf<N> }[RequestName]
  /** The result of a query from now on, under a key of the caller's. Equal ones share a run (LQ1). */
  | { readonly ask: 'live'; readonly key: string; readonly sql: string; readonly parameters: readonly Json[] }
  | { readonly ask: 'drop'; readonly key: string }
  /** Whether anybody looks: while nobody does, live queries wait (LQ6). */
  | { readonly ask: 'visible'; readonly isVisible: boolean }
  /** So many messages more were heard, told by `linkHeardEvery`: who is told and never says so is behind (LK3). */
  | { readonly ask: 'heard'; readonly tells: number }
  /** The caller does not wait any longer. What was asked for goes on. */
  | { readonly ask: 'cancel'; readonly id: string };

export type Tell =
  | {
      readonly tell: 'welcome';
      readonly protocol: typeof LINK_PROTOCOL;
      readonly status: Status;
      readonly undo: UndoState;
      readonly types: RunTimeTypesByName;
      readonly replicaId: string;
    }
  | { readonly tell: 'answer'; readonly id: string; readonly value: unknown }
  | { readonly tell: 'no'; readonly id: string; readonly fault: Fault }
  | {
      readonly tell: 'rows';
      readonly key: string;
      /** The local sequence that this result includes (LQ2). */
      readonly upToSeq: number;
      /** A log that it may read from has no complete state yet. */
      readonly isPartial: boolean;
      /** Only with the first result, and when the columns became others. */
      readonly columns?: readonly Origin[];
      readonly patch: RowPatch;
    }
  /** This query fails; others go on. Its last rows stay. */
  | { readonly tell: 'failing'; readonly key: string; readonly fault: Fault }
  | { readonly tell: 'status'; readonly status: Status }
  | { readonly tell: 'undo'; readonly undo: UndoState }
  /** All types that have a table and are not the schema's, whenever they are others than before (SC4). */
  | { readonly tell: 'types'; readonly types: RunTimeTypesByName }
  /** Something on the desk is other than before: ask for it if anybody looks. */
  | { readonly tell: 'desk' }
  /** The host ends: `closed` in order, `outranked` or a fault otherwise. Nothing is told after it. */
  | { readonly tell: 'end'; readonly fault: Fault };

/** The caller's end of a transport. Messages of one channel keep their order; nothing is told during `open` itself. */
export interface Channel {
  send(ask: Ask): void;
  close(): void;
}

/** What a transport calls. After `closed` nothing else is called. */
export interface ChannelEvents {
  tell(tell: Tell): void;
  closed(): void;
}

export type OpenChannel = (events: ChannelEvents) => Channel;
