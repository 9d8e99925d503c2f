/**
 * Declarations of parts that do not exist yet, so that the tasks that need them compile. Nothing else may import this
 * file; each goes when its part comes.
 */
import type { Row, Schema, Tx } from '@holdfast/core';

/** Waits for reactions (LG16). */
export declare function reaction<S extends Schema, E extends keyof S & string>(
  schema: S,
  entity: E,
  how: {
    readonly when: (change: ReactedChange<S, E>) => boolean;
    readonly run: (
      change: ReactedChange<S, E>,
      context: { readonly idempotencyKey: string; readonly signal: AbortSignal },
    ) => Promise<void>;
  },
): unknown;

export interface ReactedChange<S extends Schema, E extends keyof S & string> {
  readonly before?: Row<S, E>;
  readonly after?: Row<S, E>;
  readonly changed: readonly (keyof S[E]['fields'])[];
}

/** Waits for callers without a replica. */
export declare function createCaller<S extends Schema>(o: {
  readonly schema: S;
  readonly ledger: string;
  readonly workspace: string;
  readonly token: () => string | Promise<string>;
}): { append(build: (tx: Tx<S>) => void, o: { readonly idempotencyKey: string }): Promise<void> };
