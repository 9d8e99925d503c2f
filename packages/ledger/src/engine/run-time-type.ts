import { type EntityFields, LIMITS, readDefinition } from '@holdfast/core';
import type { LogInWork } from './log-in-work.ts';

/**
 * Why an entity cannot define a type at run time (SC4), or null. Its id is the type's name, its field `schema` what the
 * type is. A definition only widens and is never deleted, so each of these refusals holds for ever (LG2). Whoever reads a
 * log takes definitions as they come; this keeps new nonsense out.
 */
export function definitionProblem(
  name: string,
  change: { readonly before: EntityFields; readonly after: EntityFields },
  log: LogInWork,
): string | null {
  const { before, after } = change;
  if (after === undefined) return before === undefined ? null : `${name}: a type stays`;
  if (before === undefined && (log.typeCount ?? 0) >= LIMITS.runTimeTypesMax)
    return `at most ${LIMITS.runTimeTypesMax} types`;
  const read = readDefinition(name, after['schema'], before?.['schema']);
  return 'problem' in read ? read.problem : null;
}
