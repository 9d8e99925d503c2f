import { checkEntityData, checkSchemaData } from './check-schema-data.ts';
import { fail, type Outcome, ok } from './faults.ts';
import { wireName } from './field-facts.ts';
import { isPlainObject } from './json.ts';
import type { EntityData, FieldData, SchemaData } from './schema-data.ts';

/**
 * What `schema.lock.json` holds: the schema that was shipped last, and every wire name that one before it had and it
 * lacks. Devices keep the columns of those, and logs their values, so their kinds are taken for ever (SC2).
 */
export interface SchemaSnapshot {
  readonly format: 1;
  readonly schema: SchemaData;
  /** By entity type and wire name. */
  readonly retired: Readonly<Record<string, Readonly<Record<string, FieldData>>>>;
}

/** The snapshot to commit with a schema. What the one before knew is not forgotten. */
export function nextSnapshot(before: SchemaSnapshot | null, schema: SchemaData): SchemaSnapshot {
  const retired: Record<string, Record<string, FieldData>> = {};
  const retire = (type: string, wire: string, { wire: _, ...data }: FieldData): void => {
    const fields = Object.hasOwn(schema.entities, type) ? (schema.entities[type]?.fields ?? {}) : {};
    if (Object.entries(fields).some(([name, now]) => wireName(name, now) === wire)) return;
    retired[type] = { ...retired[type], [wire]: data };
  };
  for (const [type, fields] of Object.entries(before?.retired ?? {}))
    for (const [wire, data] of Object.entries(fields)) retire(type, wire, data);
  for (const [type, entity] of Object.entries(before?.schema.entities ?? {}))
    for (const [name, data] of Object.entries(entity.fields)) retire(type, wireName(name, data), data);
  return { format: 1, schema, retired };
}

/** Reads a snapshot from its file's JSON. */
export function checkSnapshot(json: unknown): Outcome<SchemaSnapshot, 'invalid-change'> {
  if (!isPlainObject(json) || json['format'] !== 1)
    return fail('invalid-change', { path: 'format', reason: 'a schema snapshot of format 1 is expected' });
  const schema = checkSchemaData(json['schema']);
  if (!schema.ok) return schema;
  const { retired = {} } = json;
  if (!isPlainObject(retired)) return fail('invalid-change', { path: 'retired', reason: 'an object is expected' });
  const kept: Record<string, EntityData['fields']> = {};
  for (const [type, fields] of Object.entries(retired)) {
    const entity = checkEntityData(type, { fields });
    if (!entity.ok) return entity;
    kept[type] = entity.value.fields;
  }
  return ok({ format: 1, schema: schema.value, retired: kept });
}
