import {
  canonical,
  type Database,
  type EntityData,
  type FieldData,
  fingerprintOf,
  type Json,
  LIMITS,
  META_COLUMNS,
  type Platform,
  RUN_TIME_TYPE,
  type SchemaData,
  type SqlValue,
} from '@holdfast/core';
import type { ChangeTracker } from './change-tracker.ts';
import { type EntityModel, entityModel, schemaModel } from './schema-model.ts';
import {
  declaredTable,
  type EntityTable,
  quoted,
  rowOf,
  rowOrder,
  searchSql,
  searchTable,
  tableSql,
  undeclaredTable,
  unionModel,
} from './tables.ts';

/**
 * Makes the file's tables fit the schema that opens it (SC1): adds tables, columns and indexes by comparison, never takes
 * anything away, in one transaction and in time proportional to state. Rows are looked at again only when the schema is
 * not the one that opened the file last: then every value moves to where this schema keeps it.
 */
export interface OpenedTables {
  /** Types with a table by name: those of the schema, those added at run time, and hidden ones of other app versions. */
  readonly tables: ReadonlyMap<string, EntityTable>;
  tableOf(type: string): EntityTable;
  /** Where entities lie that a log has under this type: what is local here is this device's own, so theirs are aside (SC6, SC10). */
  logTableOf(type: string): EntityTable;
  /** Declares a type that an event brought (SC4). False when its name is taken, or the table it has cannot hold it. */
  declare(type: string, data: EntityData): boolean;
  /** Run-time types whose names are the schema's: they have no table, until an app version comes that frees the name (SC7). */
  readonly taken: ReadonlySet<string>;
}

export function openTables(parts: {
  readonly database: Database;
  readonly platform: Platform;
  readonly tracker: ChangeTracker;
  readonly schema: SchemaData;
  readonly now: string;
}): OpenedTables {
  const { database, tracker, schema } = parts;
  const fingerprint = fingerprintOf(schema, parts.platform.digest);
  const { fields: known, entities } = knownTypes(database);
  const last = database.prepare("SELECT value FROM main.hf_setting WHERE name = 'schema'").get()?.['value'];
  const tables = new Map<string, EntityTable>();
  const taken = new Set<string>();

  const open = (model: EntityModel, isChanged: boolean) => {
    const union = unionModel(model, known.get(model.type) ?? {});
    if (isChanged) fitTable(database, union);
    const table = declaredTable(database, tracker, union);
    tables.set(model.type, table);
    if (isChanged) {
      if (!union.isLocal) adopt(database, table, union);
      rehome(database, union);
      refreshSearch(database, union);
    }
  };

  const isChanged = last !== fingerprint;
  for (const model of schemaModel(schema).entities.values()) open(model, isChanged);
  const unionOf = (type: string, data: EntityData) => unionModel(entityModel(type, data), known.get(type) ?? {});
  for (const [type, data] of settings(database, RUN_TIME) as readonly (readonly [string, EntityData])[])
    if (isTaken(tables, type)) taken.add(type);
    else if (canHold(database, unionOf(type, data))) open(entityModel(type, data), isChanged);
  // Another version's types stay where they are; this one passes on what comes for them.
  for (const [type, data] of entities)
    if (!isTaken(tables, type)) open({ ...entityModel(type, data), isHidden: true }, false);
  if (isChanged) {
    database
      .prepare('INSERT OR REPLACE INTO main.hf_schema (fingerprint, data, opened_at) VALUES (?, ?, ?)')
      .run(fingerprint, canonical(schema as unknown as Json), parts.now);
    database.prepare("INSERT OR REPLACE INTO main.hf_setting (name, value) VALUES ('schema', ?)").run(fingerprint);
  }

  const undeclared = new Map<string, EntityTable>();
  const asideOf = (type: string): EntityTable => {
    const table = undeclared.get(type) ?? undeclaredTable(database, tracker, type);
    undeclared.set(type, table);
    return table;
  };
  return {
    tables,
    taken,
    tableOf: (type) => tables.get(type) ?? asideOf(type),
    logTableOf: (type) => {
      const declared = tables.get(type);
      return declared === undefined || declared.model?.isLocal === true ? asideOf(type) : declared;
    },
    declare: (type, data) => {
      const isAgain = tables.has(type) && schema.entities[type] === undefined;
      const set = database.prepare('INSERT OR REPLACE INTO main.hf_setting (name, value) VALUES (?, ?)');
      if (!isAgain && isTaken(tables, type)) {
        taken.add(type);
        set.run(RUN_TIME + type, JSON.stringify(data));
        return false;
      }
      if (!canHold(database, unionOf(type, data))) return false;
      tables.delete(type);
      set.run(RUN_TIME + type, JSON.stringify(data));
      const fields = fieldsByWire(entityModel(type, data), known.get(type));
      known.set(type, fields);
      set.run(RUN_TIME_FIELDS + type, JSON.stringify(fields));
      undeclared.delete(type);
      open(entityModel(type, data), true);
      return true;
    },
  };
}

const RUN_TIME = `${RUN_TIME_TYPE}/`;
/** Every field that the type ever had, by wire name: one that a later definition leaves out keeps its column, hidden. */
const RUN_TIME_FIELDS = `${RUN_TIME_TYPE}-fields/`;

/** Settings whose names begin with `prefix`, which ends in a slash, by what follows it. */
function settings(database: Database, prefix: string): readonly (readonly [string, unknown])[] {
  return database
    .prepare('SELECT name, value FROM main.hf_setting WHERE name >= ? AND name < ? ORDER BY name')
    .all(prefix, `${prefix.slice(0, -1)}0`)
    .map((row) => [(row['name'] as string).slice(prefix.length), JSON.parse(row['value'] as string)] as const);
}

type FieldsByWire = Readonly<Record<string, FieldData>>;

/** The fields of a model, and those that its type had before. */
const fieldsByWire = (model: EntityModel, before: FieldsByWire = {}): FieldsByWire => ({
  ...before,
  ...Object.fromEntries(model.columns.map(({ wire, data }) => [wire, data])),
});

const isTaken = (tables: ReadonlyMap<string, unknown>, type: string): boolean =>
  [...tables.keys()].some((known) => known.toLowerCase() === type.toLowerCase()) || META_COLUMNS.includes(type as 'id');

/** What the schemas of this file named: by wire name every field, since it keeps its kind for ever; by type the newest. */
function knownTypes(database: Database): {
  readonly fields: Map<string, FieldsByWire>;
  readonly entities: ReadonlyMap<string, EntityData>;
} {
  const fields = new Map(settings(database, RUN_TIME_FIELDS) as readonly (readonly [string, FieldsByWire])[]);
  const entities = new Map<string, EntityData>();
  for (const row of database.prepare('SELECT data FROM main.hf_schema ORDER BY opened_at').all()) {
    const schema = JSON.parse(row['data'] as string) as SchemaData;
    for (const model of schemaModel(schema).entities.values()) {
      fields.set(model.type, fieldsByWire(model, fields.get(model.type)));
      entities.set(model.type, model.data);
    }
  }
  return { fields, entities };
}

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

/** A column keeps its kind for ever: one of another kind would give back other values than it was given (DG2). */
function canHold(database: Database, model: EntityModel): boolean {
  const present = columnsIn(database, model.type);
  const lowered = new Map([...present].map(([name, sqlType]) => [name.toLowerCase(), { name, sqlType }]));
  const added = model.columns.filter(({ wire }) => !present.has(wire));
  if (present.size + added.length > COLUMNS_MAX) return false;
  return model.columns.every(({ wire, sqlType }) => {
    const near = lowered.get(wire.toLowerCase());
    return near === undefined || (near.name === wire && near.sqlType === sqlType);
  });
}

function fitTable(database: Database, model: EntityModel): void {
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
function refreshSearch(database: Database, model: EntityModel): void {
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

/** Entities of this type that were kept aside move into their table (SC6). */
function adopt(database: Database, table: EntityTable, model: EntityModel): void {
  const aside = undeclaredTable(
    database,
    { columns: () => undefined, rows: () => undefined } as unknown as ChangeTracker,
    model.type,
  );
  for (const { log } of database
    .prepare('SELECT DISTINCT log FROM main.hf_entity WHERE type = ?')
    .all(model.type) as readonly { readonly log: string }[]) {
    for (const { id, row } of aside.all(log))
      table.write({ log, type: model.type, id }, table.read(log, id), row.state, row);
    aside.removeAll(log);
  }
}

/**
 * Moves each value to where this schema keeps it: out of `_rest` into a column that is new, a value of `oneOf` that this
 * app does not know out of its column, a default into a column that no event set (SC5). Rows that are right cost a read.
 */
function rehome(database: Database, model: EntityModel): void {
  const table = `main.${quoted(model.type)}`;
  if (database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() === undefined) return;
  const isOddSql = model.columns.flatMap(({ wire, data, fallback }) => {
    const checks: string[] = [];
    if (fallback !== undefined) checks.push(`${quoted(wire)} IS NULL`);
    if (data.kind === 'oneOf') checks.push(`${quoted(wire)} NOT IN (${(data.values ?? []).map(sqlText).join(', ')})`);
    return checks;
  });
  const rows = database
    .prepare(`SELECT * FROM ${table} WHERE ${['_rest IS NOT NULL', '_shown IS NOT NULL', ...isOddSql].join(' OR ')}`)
    .all();
  const raws = declaredTable(
    database,
    { columns: () => undefined, rows: () => undefined } as unknown as ChangeTracker,
    model,
  );
  for (const raw of rows) {
    const held = raws.read(raw['_log'] as string, raw['_id'] as string);
    if (held === undefined) continue;
    const wanted = rowOf(held.state, held, model.columns);
    const changed = rowOrder(model.columns)
      .map((column, at) => [column, wanted[at] as SqlValue] as const)
      .filter(([column, value]) => raw[column] !== value);
    if (changed.length === 0) continue;
    database
      .prepare(`UPDATE ${table} SET ${changed.map(([column]) => `${quoted(column)} = ?`).join(', ')} WHERE _row = ?`)
      .run(...changed.map(([, value]) => value), raw['_row'] as number);
  }
}

const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
