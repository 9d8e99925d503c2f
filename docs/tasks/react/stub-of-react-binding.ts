/**
 * The surface of `@holdfast/react` as types, so that the tasks that need it compile. Nothing else may import this file; it
 * goes when the package comes. Its runtime half in tests is tests/react-binding.fixture.ts.
 */
import type { Id, PatchOf, Row, Schema, Tx } from '@holdfast/core';
import type { Client, CommitOptions, DeskItem, LiveResult, Query, Replica, Status, Write } from '@holdfast/replica';
import type { ReactNode } from 'react';

type NotAPromise<T> = T extends PromiseLike<unknown> ? 'a commit callback must not be async' : unknown;

/** Hooks for one schema. Each reads the replica of the nearest `ReplicaProvider`. */
export interface ReactBinding<S extends Schema> {
  /** Opens the workspace while it is mounted; another `workspace` is another replica. */
  readonly ReplicaProvider: (props: {
    readonly client: Client<S>;
    readonly workspace: string;
    /** Shown until the replica is open. */
    readonly fallback?: ReactNode;
    readonly children: ReactNode;
  }) => ReactNode;
  readonly useReplica: () => Replica<S>;
  /** Unchanged rows are the same objects, and `rows` the same array while nothing in it changed. */
  readonly useLiveQuery: <O>(query: Query<S, O>) => LiveResult<O>;
  /** Suspends until there are rows; throws what the query fails with. */
  readonly useSuspenseLiveQuery: <O>(query: Query<S, O>) => readonly O[];
  readonly useEntity: <E extends keyof S & string>(entity: E, id: Id<NoInfer<E>>) => Row<S, E> | undefined;
  readonly useDraft: <E extends keyof S & string>(entity: E, id: Id<NoInfer<E>>) => Draft<S, E>;
  readonly useCommit: () => <T>(build: (tx: Tx<S>) => T & NotAPromise<T>, o?: CommitOptions) => Write<T>;
  readonly useUndo: (scope?: string) => UndoButtons;
  /** Renders again only where what was selected is another. */
  readonly useStatus: <T = Status>(select?: (status: Status) => T) => T;
  readonly useDesk: () => DeskHook;
}

/**
 * A local entity: it survives reload and crash, is never sent, starts from the row that was seen, sends only changed
 * fields, and is synchronous, so that the caret stays.
 */
export interface Draft<S extends Schema, E extends keyof S & string> {
  readonly values: Row<S, E>;
  set(patch: PatchOf<S[E]['fields']>): void;
  readonly changed: readonly (keyof S[E]['fields'])[];
  /** Fields that somebody else changed since the draft began, with their value. */
  readonly theirs: PatchOf<S[E]['fields']>;
  readonly problems: Readonly<Partial<Record<keyof S[E]['fields'], string>>>;
  /** Rejects with `changed-meanwhile` where somebody changed the same field and `take` does not say whose is kept. */
  save(o?: CommitOptions & { readonly take?: 'mine' | 'theirs' }): Promise<void>;
  discard(): void;
}

export interface UndoButtons {
  readonly can: boolean;
  readonly canRedo: boolean;
  readonly label?: string | undefined;
  readonly redoLabel?: string | undefined;
  readonly undo: () => void;
  readonly redo: () => void;
}

export interface DeskHook {
  readonly items: readonly DeskItem[];
  resolve(
    ids: string | readonly string[],
    choice: 'mine' | 'theirs' | Readonly<Record<string, unknown>>,
  ): Promise<void>;
}

/** Types only: no provider, no state, no cost. Call it once, beside the schema. */
export declare function bindReact<S extends Schema>(): ReactBinding<S>;
