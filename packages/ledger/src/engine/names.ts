import { isId } from '@holdfast/core';
import { type Refused, refusedBy } from './answer.ts';

/**
 * The names of workspaces and logs, by one rule wherever one is made or asked for: an id that is one part of an address.
 * With a "/" it would be written `%2F` there, which proxies and servers take apart.
 */
export const isName = (value: unknown): value is string => isId(value) && !value.includes('/');

/** `path`: which of them it was. */
export const refusedName = (path: 'workspace' | 'log'): Refused =>
  refusedBy('malformed', { details: { path, reason: '1 to 128 visible ASCII characters without "/"' } });

/** Null: both are names. */
export function nameProblem(ref: { readonly workspace: string; readonly log: string }): Refused | null {
  if (!isName(ref.workspace)) return refusedName('workspace');
  return isName(ref.log) ? null : refusedName('log');
}
