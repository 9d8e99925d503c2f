import { wireName } from './field-facts.ts';
import type { FieldData, SchemaData } from './schema-data.ts';

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
