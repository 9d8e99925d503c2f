import { addressNameProblem, isAddressName } from '@holdfast/core';
import { type Refused, refusedBy } from './answer.ts';

/** `path`: which of them it was. */
export const refusedName = (path: 'workspace' | 'log'): Refused =>
  refusedBy('malformed', { details: addressNameProblem(path) });

/** Null: both are names. */
export function nameProblem(ref: { readonly workspace: string; readonly log: string }): Refused | null {
  if (!isAddressName(ref.workspace)) return refusedName('workspace');
  return isAddressName(ref.log) ? null : refusedName('log');
}
