import { checkEntityData, type JsonObject, LIMITS } from '@holdfast/core';
import type { LogInWork } from './log-in-work.ts';

/**
 * Why an entity cannot define a type at run time (SC4), or null. Its id is the type's name, its field `schema` what the
 * type is. Whoever reads a log takes definitions as they come; this keeps new nonsense out.
 */
export function runTimeTypeProblem(
  name: string,
  fields: JsonObject | undefined,
  isNew: boolean,
  log: LogInWork,
): string | null {
  if (fields === undefined) return null;
  if (isNew && (log.typeCount ?? 0) >= LIMITS.runTimeTypesMax) return `at most ${LIMITS.runTimeTypesMax} types`;
  const checked = checkEntityData(name, fields['schema']);
  return checked.ok ? null : String(checked.fault.facts?.['reason'] ?? 'not the schema of an entity');
}
