import type { Role } from '@holdfast/core';

/** A verified caller: who it is and what it may open. Nothing in a request can change any of it. */
export interface Caller {
  /** The account id: the actor of every event that this caller appends. */
  readonly account: string;
  /** Workspace → role. `'*'` grants every workspace; only `--dev` and administrators' tools use it. */
  readonly grants: Readonly<Record<string, Role>>;
  /** When the credential ends, in milliseconds since 1970; absent for one that does not. */
  readonly expiresAtMs?: number;
}

/**
 * Verifies a credential. Resolves to null for one that is absent, unknown, malformed or expired: the caller learns
 * nothing about which. Rejects only when the verifier itself cannot work (its keys are unreachable): the request is then
 * answered 503, never as if the credential were bad.
 */
export interface Access {
  readonly name: string;
  verify(credential: { readonly token: string | null; readonly cookie: string | null }): Promise<Caller | null>;
}

/** The role of a caller in a workspace, or null for none. */
export function roleIn(caller: Caller, workspace: string): Role | null {
  const granted = Object.hasOwn(caller.grants, workspace) ? caller.grants[workspace] : undefined;
  if (granted !== undefined) return granted;
  return Object.hasOwn(caller.grants, '*') ? (caller.grants['*'] ?? null) : null;
}

const RANK: Readonly<Record<Role, number>> = { reader: 1, writer: 2, administrator: 3 };

export const mayWrite = (role: Role): boolean => RANK[role] >= RANK.writer;
export const mayAdminister = (role: Role): boolean => RANK[role] >= RANK.administrator;
