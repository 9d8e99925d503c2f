import { type EntityData, entityProblem, type FieldKind, isPlainObject, type Json } from '@holdfast/core';

const KINDS: ReadonlySet<string> = new Set<FieldKind>([
  'text',
  'integer',
  'number',
  'flag',
  'time',
  'json',
  'counter',
  'setOf',
  'oneOf',
  'ref',
  'rank',
  'serial',
]);

/** An entity type as an event brings it (SC4), or null for what is none: it is then kept as the value that it is. */
export function checkSchemaEntity(type: string, json: Json): EntityData | null {
  if (!isPlainObject(json) || !isPlainObject(json['fields'])) return null;
  for (const field of Object.values(json['fields']))
    if (!isPlainObject(field) || !KINDS.has(String(field['kind']))) return null;
  const data = json as unknown as EntityData;
  return entityProblem(type, data, null) === null ? data : null;
}
