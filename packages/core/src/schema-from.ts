import type { SchemaData } from './schema-data.ts';
import type { Field, Schema } from './schema-types.ts';

/** A schema made again from its data, for tools that open a replica without the app's code: everything but its verbs. */
export function schemaFrom(data: SchemaData): Schema {
  const entities = Object.entries(data.entities).map(([type, { fields, ...rest }]) => {
    const made = Object.entries(fields).map(([name, field]): [string, Field] => [name, { data: field }]);
    return [type, { fields: Object.fromEntries(made), verbs: {}, local: rest.local === true, data: rest }] as const;
  });
  return Object.fromEntries(entities);
}
