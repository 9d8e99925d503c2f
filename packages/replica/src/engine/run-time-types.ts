import {
  checkEntityData,
  type Database,
  type EntityData,
  type Json,
  type JsonObject,
  RUN_TIME_TYPE,
} from '@holdfast/core';

/**
 * An entity type as an event brings it (SC4), or null for what is none: it is then kept as the value that it is. Whatever a
 * log holds, nothing throws. Nor can a log say that what it holds is local.
 */
export function checkSchemaEntity(type: string, json: Json): EntityData | null {
  const read = checkEntityData(type, json);
  return read.ok && read.value.local !== true ? read.value : null;
}

export interface RunTimeTypes {
  readonly types: ReadonlyMap<string, EntityData>;
  /** Defined, and without a table: the name is another type's (SC7). */
  readonly taken: ReadonlySet<string>;
}

/**
 * The types that local state defines: what the log says, and own definitions on their way on top of it. Decided by the
 * definitions alone, not by the order in which they came, so that every device with the same state has the same tables. Of
 * two names that differ only in case the older one has the table; of two logs that define one name, `main`.
 */
export function runTimeTypes(database: Database, isReserved: (type: string) => boolean): RunTimeTypes {
  const types = new Map<string, EntityData>();
  const taken = new Set<string>();
  const names = new Map<string, string>();
  for (const { id, fields } of definitions(database)) {
    const schema = (JSON.parse(fields) as JsonObject)['schema'];
    const data = schema === undefined ? null : checkSchemaEntity(id, schema);
    if (data === null || types.has(id)) continue;
    const name = names.get(id.toLowerCase()) ?? id;
    if (isReserved(id) || name !== id) taken.add(id);
    else {
      names.set(id.toLowerCase(), id);
      types.set(id, data);
    }
  }
  return { types, taken };
}

/** The names of logs that are being fetched begin with `~`. */
const definitions = (database: Database): readonly { readonly id: string; readonly fields: string }[] =>
  database
    .prepare(
      `SELECT id, fields FROM main.hf_entity WHERE type = ? AND log < '~'
       ORDER BY log <> 'main', json_extract(meta, '$.arrival'), log, id`,
    )
    .all(RUN_TIME_TYPE) as never;
