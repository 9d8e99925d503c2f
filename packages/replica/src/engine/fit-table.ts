import { type Database, type FieldData, LIMITS } from '@holdfast/core';
import type { EntityModel } from './schema-model.ts';
import { quoted, searchSql, searchTable, tableSql } from './tables.ts';

/** What a table of an entity type is in the file: columns and indexes are only ever added to it (SC1). */

/** A log may define a type again and again, and columns never go: SQLite takes 2,000 in a table. */
const COLUMNS_MAX = 2 * LIMITS.fieldsPerEntityMax;

/** By name, with its SQL type; empty where there is no such table. */
const columnsIn = (database: Database, type: string): ReadonlyMap<string, string> =>
  new Map(
    database
      .prepare(`PRAGMA main.table_info(${quoted(type)})`)
      .all()
      .map((row) => [row['name'] as string, row['type'] as string]),
  );

/**
 * A column keeps its kind for ever: one of another kind would give back other values than it was given (DG2). `before`: the
 * fields that the type has had, by wire name.
 */
export function canHold(database: Database, model: EntityModel, before: Readonly<Record<string, FieldData>>): boolean {
  const present = columnsIn(database, model.type);
  const lowered = new Map([...present].map(([name, sqlType]) => [name.toLowerCase(), { name, sqlType }]));
  const added = model.columns.filter(({ wire }) => !present.has(wire));
  if (present.size + added.length > COLUMNS_MAX) return false;
  return model.columns.every(({ wire, sqlType, data }) => {
    const near = lowered.get(wire.toLowerCase());
    if (near === undefined) return true;
    // Kinds of one SQL type are written in different ways: text as it is, JSON as its text.
    const isSameKind = !Object.hasOwn(before, wire) || before[wire]?.kind === data.kind;
    return near.name === wire && near.sqlType === sqlType && isSameKind;
  });
}

export function fitTable(database: Database, model: EntityModel): void {
  const table = quoted(model.type);
  const present = columnsIn(database, model.type);
  if (present.size === 0) database.exec(tableSql(model));
  else
    for (const { wire, sqlType } of model.columns)
      if (!present.has(wire)) database.exec(`ALTER TABLE main.${table} ADD COLUMN ${quoted(wire)} ${sqlType}`);
  for (const columns of model.data.index ?? []) {
    const physical = columns.map((name) => physicalColumn(model, name));
    const name = quoted(`hf_index_${model.type}_${physical.join('_')}`);
    database.exec(`CREATE INDEX IF NOT EXISTS main.${name} ON ${table} (${physical.map(quoted).join(', ')})`);
  }
  // A row that goes to an end asks for the last key: without an index that costs the whole table (SC10).
  for (const { wire, data } of model.columns)
    if (data.kind === 'rank')
      database.exec(
        `CREATE INDEX IF NOT EXISTS main.${quoted(`hf_rank_${model.type}_${wire}`)} ON ${table} (_log, ${quoted(wire)})`,
      );
  if (!model.hasSearch) return;
  const search = quoted(searchTable(model.type));
  const before = database.prepare('SELECT sql FROM main.sqlite_master WHERE name = ?').get(searchTable(model.type))?.[
    'sql'
  ];
  const wanted = searchSql(model);
  if (before === wanted.replace('CREATE VIRTUAL TABLE main.', 'CREATE VIRTUAL TABLE ')) return;
  if (before !== undefined) database.exec(`DROP TABLE main.${search}`);
  database.exec(wanted);
}

/** Rows moved, and a version without this index may have written: it is made again from what the rows say. */
export function refreshSearch(database: Database, model: EntityModel): void {
  const search = quoted(searchTable(model.type));
  if (model.hasSearch) database.exec(`INSERT INTO main.${search} (${search}) VALUES ('rebuild')`);
}

const META_PHYSICAL: Readonly<Record<string, string>> = {
  id: '_id',
  log: '_log',
  createdBy: '_created_by',
  createdAt: '_created_at',
  updatedBy: '_updated_by',
  updatedAt: '_updated_at',
  arrival: '_arrival',
  sync: '_sync',
};

/** Where a column of a view comes from. */
export const physicalColumn = (model: EntityModel, name: string): string =>
  META_PHYSICAL[name] ?? model.byName.get(name)?.wire ?? name;
export const codeColumn = (model: EntityModel, physical: string): string | undefined =>
  Object.entries(META_PHYSICAL).find(([, column]) => column === physical)?.[0] ?? model.byWire.get(physical)?.name;
