import { type EntityData, entityProblem, type JsonObject, LIMITS } from '@holdfast/core';
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
  const schema = fields['schema'];
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return 'no entity in "schema"';
  if (!isReadable(schema as JsonObject)) return 'no fields in "schema"';
  if (isNew && (log.typeCount ?? 0) >= LIMITS.runTimeTypesMax) return `at most ${LIMITS.runTimeTypesMax} types`;
  try {
    return entityProblem(name, schema as unknown as EntityData, null);
  } catch {
    // It was written for schemas that TypeScript has seen. What it stumbles over is no schema.
    return 'not of the form of an entity';
  }
}

/** What `entityProblem` relies on: members that are of the right kind of JSON. */
function isReadable(schema: JsonObject): boolean {
  const { fields } = schema;
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return false;
  return Object.values(fields as JsonObject).every(
    (field) => typeof field === 'object' && field !== null && !Array.isArray(field),
  );
}
