import {
  canonical,
  type Database,
  type EntityData,
  type FieldData,
  fingerprintOf,
  type Json,
  META_COLUMNS,
  type Platform,
  RUN_TIME_TYPE,
  type SchemaData,
  sameValue,
} from '@holdfast/core';
import type { ChangeTracker } from './change-tracker.ts';
import { canHold, fitTable, refreshSearch } from './fit-table.ts';
import { adopt, dropTable, hasTable, rehome, SILENT, setAside } from './move-rows.ts';
import { runTimeTypes } from './run-time-types.ts';
import { type EntityModel, entityModel, schemaModel } from './schema-model.ts';
import { declaredTable, type EntityTable, undeclaredTable, unionModel } from './tables.ts';

/**
 * Makes the file's tables fit the schema that opens it (SC1): adds tables, columns and indexes by comparison, never takes
 * anything away, in one transaction and in time proportional to state. Rows are looked at again only when the schema is
 * not the one that opened the file last: then every value moves to where this schema keeps it.
 *
 * Types at run time follow their definitions (SC4). Where one is gone, or its table cannot hold the next, its rows go aside
 * whole, and the table is made again or not at all.
 */
export interface OpenedTables {
  /** Types with a table by name: those of the schema, those added at run time, and hidden ones of other app versions. */
  readonly tables: ReadonlyMap<string, EntityTable>;
  tableOf(type: string): EntityTable;
  /** Where entities lie that a log has under this type: what is local here is this device's own, so theirs are aside (SC6, SC10). */
  logTableOf(type: string): EntityTable;
  /** Gives a type that a commit defines its table (SC4). False where the name is taken. */
  declare(type: string, data: EntityData): boolean;
  /** Makes the tables those of the types that local state defines now. False where they are already. */
  refresh(): boolean;
  /** Types at run time that have a table. */
  readonly declared: ReadonlyMap<string, EntityData>;
  /** Those whose names are other types': they have no table, until the name is free (SC7). */
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
  const declared = new Map(settings(database, RUN_TIME) as readonly (readonly [string, EntityData])[]);
  let taken: ReadonlySet<string> = new Set();

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

  const undeclared = new Map<string, EntityTable>();
  const asideOf = (type: string): EntityTable => {
    const table = undeclared.get(type) ?? undeclaredTable(database, tracker, type);
    undeclared.set(type, table);
    return table;
  };
  const isChanged = last !== fingerprint;
  const unionOf = (type: string, data: EntityData) => unionModel(entityModel(type, data), known.get(type) ?? {});
  const isOwn = (type: string): boolean => Object.hasOwn(schema.entities, type);
  const set = (name: string, value: unknown) =>
    database
      .prepare('INSERT OR REPLACE INTO main.hf_setting (name, value) VALUES (?, ?)')
      .run(name, JSON.stringify(value));
  const unset = (name: string) => database.prepare('DELETE FROM main.hf_setting WHERE name = ?').run(name);

  /** Its rows go aside, and the table goes: what comes next makes its own. */
  const dissolve = (type: string, data: EntityData) => {
    if (!hasTable(database, type)) return;
    setAside(database, declaredTable(database, SILENT, unionOf(type, data)), type);
    dropTable(database, type);
    unset(RUN_TIME_FIELDS + type);
    known.delete(type);
    tracker.rows(type);
  };
  const undeclare = (type: string) => {
    const data = declared.get(type);
    if (data === undefined) return;
    declared.delete(type);
    unset(RUN_TIME + type);
    if (isOwn(type)) return;
    tables.delete(type);
    const other = entities.get(type);
    if (other === undefined) dissolve(type, data);
    // The table is also another version's: it stays as that one has it.
    else open({ ...entityModel(type, other), isHidden: true }, false);
  };
  const isReserved = (type: string): boolean =>
    META_COLUMNS.includes(type as 'id') ||
    Object.keys(schema.entities).some((name) => isSameName(name, type)) ||
    [...entities].some(([name, data]) => isSameName(name, type) && (name !== type || data.local === true));
  const declare = (type: string, data: EntityData): boolean => {
    const isTaken = [...tables.keys()].some((name) => name !== type && isSameName(name, type));
    if (isTaken || isReserved(type)) return false;
    const before = declared.get(type);
    if (!canHold(database, unionOf(type, data), known.get(type) ?? {})) {
      if (entities.has(type)) return false;
      undeclare(type);
    }
    const isSame = before !== undefined && declared.has(type) && sameValue(before as never, data as never);
    if (isSame && tables.get(type)?.model?.isHidden === undefined && tables.has(type)) return true;
    if (!isSame) {
      const fields = fieldsByWire(entityModel(type, data), known.get(type));
      known.set(type, fields);
      declared.set(type, data);
      set(RUN_TIME + type, data);
      set(RUN_TIME_FIELDS + type, fields);
    }
    undeclared.delete(type);
    open(entityModel(type, data), isChanged || !isSame);
    return true;
  };
  const refresh = (): boolean => {
    const wanted = runTimeTypes(database, isReserved);
    const withoutTable = new Set(wanted.taken);
    let isMoved = !sameNames(wanted.taken, taken);
    for (const type of [...declared.keys()])
      if (!wanted.types.has(type)) {
        undeclare(type);
        isMoved = true;
      }
    for (const [type, data] of wanted.types) {
      const before = tables.get(type);
      if (!declare(type, data)) withoutTable.add(type);
      isMoved ||= tables.get(type) !== before;
    }
    taken = withoutTable;
    return isMoved;
  };

  // A table at run time that the schema cannot share makes room, before the schema's is made.
  for (const [type, data] of declared) {
    const near = Object.keys(schema.entities).find((name) => isSameName(name, type));
    if (near === undefined || entities.has(type)) continue;
    const own = schema.entities[near] as EntityData;
    if (near === type && own.local !== true && canHold(database, unionOf(type, own), known.get(type) ?? {})) continue;
    declared.delete(type);
    unset(RUN_TIME + type);
    dissolve(type, data);
  }
  for (const model of schemaModel(schema).entities.values()) open(model, isChanged);
  refresh();
  // Another version's types stay where they are; this one passes on what comes for them.
  for (const [type, data] of entities)
    if (![...tables.keys()].some((name) => isSameName(name, type)))
      open({ ...entityModel(type, data), isHidden: true }, false);
  if (isChanged) {
    database
      .prepare('INSERT OR REPLACE INTO main.hf_schema (fingerprint, data, opened_at) VALUES (?, ?, ?)')
      .run(fingerprint, canonical(schema as unknown as Json), parts.now);
    database.prepare("INSERT OR REPLACE INTO main.hf_setting (name, value) VALUES ('schema', ?)").run(fingerprint);
  }

  return {
    tables,
    declared,
    get taken() {
      return taken;
    },
    tableOf: (type) => tables.get(type) ?? asideOf(type),
    logTableOf: (type) => {
      const table = tables.get(type);
      return table === undefined || table.model?.isLocal === true ? asideOf(type) : table;
    },
    declare,
    refresh,
  };
}

const isSameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
const sameNames = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size === b.size && [...a].every((name) => b.has(name));

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
