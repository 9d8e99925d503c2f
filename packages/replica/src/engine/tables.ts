import {
  type Database,
  type FieldData,
  fromColumn,
  type Json,
  type JsonObject,
  RUN_TIME_TYPE,
  type SqlRow,
  type SqlValue,
  type Statement,
  toColumn,
} from '@holdfast/core';
import type { ChangeTracker } from './change-tracker.ts';
import { type ColumnModel, type EntityModel, entityModel } from './schema-model.ts';

/** What a replica holds of one entity, confirmed or local: fields as events set them, by wire name. */
export interface HeldState {
  /** Entity version; 0 for one that the log does not know yet. */
  readonly version: number;
  readonly fields: JsonObject;
  readonly meta: HeldMeta;
}

export interface HeldMeta {
  readonly createdBy: string;
  readonly createdAt: string;
  readonly updatedBy: string;
  readonly updatedAt: string;
  readonly arrival: number;
}

export type RowSync = 'synced' | 'pending' | 'attention';

/** A row as it was read, to be written over: its place and its raw columns. */
export interface HeldRow {
  readonly state: HeldState;
  readonly sync: RowSync;
  /** What is confirmed under pending changes, as `base.ts` writes it; null where the row itself is. */
  readonly base: string | null;
  readonly raw: SqlRow | null;
}

/** What a row says besides its state. */
export interface RowMarks {
  readonly sync: RowSync;
  readonly base: string | null;
}

export const SYNCED: RowMarks = { sync: 'synced', base: null };

export interface EntityKey {
  readonly log: string;
  readonly type: string;
  readonly id: string;
}

/** One entity type's rows, in a table of their own or, for types that the schema lacks, in `hf_entity` (SC6). */
export interface EntityTable {
  readonly model: EntityModel | null;
  read(log: string, id: string): HeldRow | undefined;
  /**
   * Writes the row as it shall be, and gives it as `read` would; `undefined` removes it. `before` is what is there: what
   * `read` or the last `write` gave, and is not to be used any more.
   */
  write(
    key: EntityKey,
    before: HeldRow | undefined,
    after: HeldState | undefined,
    marks: RowMarks,
  ): HeldRow | undefined;
  /** Every row of a log, for checks and repairs. */
  all(log: string): Iterable<{ readonly id: string; readonly row: HeldRow }>;
  removeAll(log: string): void;
}

const META_SQL = '_version, _created_by, _created_at, _updated_by, _updated_at, _arrival, _sync, _base, _shown, _rest';
export const quoted = (name: string): string => `"${name}"`;

/** DDL of an entity's table: typed columns, nothing that could refuse what is in the log (SC5). */
export function tableSql(model: EntityModel): string {
  const columns = model.columns.map(({ wire, sqlType }) => `, ${quoted(wire)} ${sqlType}`).join('');
  return `CREATE TABLE main.${quoted(model.type)} (_row INTEGER PRIMARY KEY, _log TEXT, _id TEXT, _version INTEGER,
    _created_by TEXT, _created_at TEXT, _updated_by TEXT, _updated_at TEXT, _arrival INTEGER, _sync TEXT, _base TEXT,
    _shown TEXT, _rest TEXT${columns}); CREATE UNIQUE INDEX main.${quoted(`hf_id_${model.type}`)} ON ${quoted(model.type)} (_id, _log);`;
}

/**
 * The table of a declared entity. `columns` is the union of every schema that opened the file, so that no version of an
 * app loses what another one wrote (SC1).
 */
export function declaredTable(database: Database, tracker: ChangeTracker, model: EntityModel): EntityTable {
  const table = `main.${quoted(model.type)}`;
  const columns = [...model.columns].sort((a, b) => (a.wire < b.wire ? -1 : 1));
  const names = columns.map(({ wire }) => quoted(wire));
  const order = rowOrder(columns);
  const assignment = order.map((column) => `${quoted(column)} = ?`);
  const selectSql = `SELECT _row, ${[META_SQL, ...names].join(', ')} FROM ${table} WHERE _id = ? AND _log = ?`;
  const insertSql = `INSERT INTO ${table} (_log, _id, ${[META_SQL, ...names].join(', ')}) VALUES (${Array(
    12 + names.length,
  )
    .fill('?')
    .join(', ')})`;
  const search = model.hasSearch ? searchIndex(database, model) : null;
  // The statements that every commit runs are looked up once.
  let selectOne: Statement | null = null;
  let insertOne: Statement | null = null;

  const read = (raw: SqlRow): HeldRow => ({
    state: stateOf(raw, columns),
    sync: raw['_sync'] as RowSync,
    base: raw['_base'] as string | null,
    raw,
  });

  return {
    model,
    read: (log, id) => {
      selectOne ??= database.prepare(selectSql);
      const raw = selectOne.get(id, log);
      return raw === undefined ? undefined : read(raw);
    },
    write: ({ log, id }, before, after, marks) => {
      if (after === undefined) {
        if (before === undefined) return undefined;
        const raw = before.raw as SqlRow;
        search?.remove(raw);
        database.prepare(`DELETE FROM ${table} WHERE _row = ?`).run(raw['_row'] as number);
        tracker.rows(model.type);
        return undefined;
      }
      const values = rowOf(after, marks, columns);
      if (before === undefined) {
        insertOne ??= database.prepare(insertSql);
        const { lastInsertRowid } = insertOne.run(log, id, ...values);
        search?.add(lastInsertRowid, (column) => values[order.indexOf(column)]);
        tracker.rows(model.type);
        const made: Record<string, SqlValue> = { _row: lastInsertRowid };
        for (const [at, column] of order.entries()) made[column] = values[at] as SqlValue;
        return { state: after, ...marks, raw: made };
      }
      const raw = before.raw as Record<string, SqlValue>;
      const changed: string[] = [];
      const given: SqlValue[] = [];
      let assignments = '';
      for (let at = 0; at < values.length; at += 1) {
        const column = order[at] as string;
        const value = values[at] as SqlValue;
        if (raw[column] === value) continue;
        changed.push(column);
        given.push(value);
        assignments += `${assignments === '' ? '' : ', '}${assignment[at]}`;
      }
      const written = { state: after, sync: marks.sync, base: marks.base, raw };
      if (changed.length === 0) return written;
      given.push(raw['_row'] as number);
      const isFound = search?.isTouched(changed) === true;
      if (isFound) search?.remove(raw);
      database.prepare(`UPDATE ${table} SET ${assignments} WHERE _row = ?`).run(...given);
      if (isFound) search?.add(raw['_row'] as number, (column) => values[order.indexOf(column)]);
      for (const [at, column] of changed.entries()) raw[column] = given[at] as SqlValue;
      tracker.columns(model.type, changed);
      return written;
    },
    *all(log) {
      const rows = database
        .prepare(`SELECT _row, _id, ${[META_SQL, ...names].join(', ')} FROM ${table} WHERE _log = ? ORDER BY _id`)
        .all(log);
      for (const raw of rows) yield { id: raw['_id'] as string, row: read(raw) };
    },
    removeAll: (log) => {
      if (search !== null)
        for (const raw of database.prepare(`SELECT * FROM ${table} WHERE _log = ?`).all(log)) search.remove(raw);
      database.prepare(`DELETE FROM ${table} WHERE _log = ?`).run(log);
      tracker.rows(model.type);
    },
  };
}

const META_ORDER = META_SQL.split(', ');
/** The columns that `rowOf` gives values for, in its order. */
export const rowOrder = (columns: readonly ColumnModel[]): readonly string[] => [
  ...META_ORDER,
  ...columns.map(({ wire }) => wire),
];

/** What the columns hold for a state: SC5's one rule, in one place. In the order of `rowOrder`. */
export function rowOf(state: HeldState, { sync, base }: RowMarks, columns: readonly ColumnModel[]): SqlValue[] {
  const { fields, meta } = state;
  const shown: string[] = [];
  const rest: Record<string, Json> = {};
  const values: SqlValue[] = [
    state.version,
    meta.createdBy,
    meta.createdAt,
    meta.updatedBy,
    meta.updatedAt,
    meta.arrival,
    sync,
    base,
    null,
    null,
  ];
  let known = 0;
  for (const { wire, data, fallback } of columns) {
    const isSet = Object.hasOwn(fields, wire);
    if (isSet) known += 1;
    const value = isSet ? (fields[wire] as Json) : fallback;
    const column = value === undefined ? null : toColumn(value, data);
    if (isSet && column === undefined) rest[wire] = value as Json;
    if (!isSet && value !== undefined) shown.push(wire);
    values.push(column === undefined ? (data.kind === 'oneOf' ? (data.otherwise ?? null) : null) : column);
  }
  if (known < Object.keys(fields).length) {
    const wires = new Set(columns.map(({ wire }) => wire));
    for (const field in fields) if (!wires.has(field)) rest[field] = fields[field] as Json;
  }
  if (shown.length > 0) values[SHOWN_AT] = JSON.stringify(shown);
  if (isAny(rest)) values[REST_AT] = JSON.stringify(rest);
  return values;
}

const SHOWN_AT = META_ORDER.indexOf('_shown');
const REST_AT = META_ORDER.indexOf('_rest');

function isAny(object: Readonly<Record<string, unknown>>): boolean {
  for (const _ in object) return true;
  return false;
}

function stateOf(raw: SqlRow, columns: readonly ColumnModel[]): HeldState {
  const shown = raw['_shown'] === null ? NONE : new Set(JSON.parse(raw['_shown'] as string) as string[]);
  const rest = raw['_rest'] === null ? null : (JSON.parse(raw['_rest'] as string) as JsonObject);
  let fields: Record<string, Json> = {};
  for (const { wire, data } of columns) {
    const column = raw[wire];
    if (column === null || column === undefined || shown.has(wire)) continue;
    if (rest !== null && Object.hasOwn(rest, wire)) continue;
    fields[wire] = fromColumn(column, data);
  }
  if (rest !== null) fields = sorted({ ...fields, ...rest });
  return {
    version: raw['_version'] as number,
    fields,
    meta: {
      createdBy: raw['_created_by'] as string,
      createdAt: raw['_created_at'] as string,
      updatedBy: raw['_updated_by'] as string,
      updatedAt: raw['_updated_at'] as string,
      arrival: raw['_arrival'] as number,
    },
  };
}

const NONE: ReadonlySet<string> = new Set();
const sorted = (fields: JsonObject): Record<string, Json> =>
  Object.fromEntries(
    Object.keys(fields)
      .sort()
      .map((name) => [name, fields[name] as Json]),
  );

// ── full text (SC10) ────────────────────────────────────────────────────────────────────────────────────────────────

interface SearchIndex {
  isTouched(changed: readonly string[]): boolean;
  add(row: number, columnOf: (column: string) => SqlValue | undefined): void;
  remove(raw: SqlRow): void;
}

export const searchTable = (type: string): string => `hf_search_${type}`;
export const searchColumns = (model: EntityModel): readonly string[] =>
  (model.data.search ?? []).flatMap((name) => model.byName.get(name)?.wire ?? []);

export function searchSql(model: EntityModel): string {
  const columns = searchColumns(model).map(quoted);
  return `CREATE VIRTUAL TABLE main.${quoted(searchTable(model.type))} USING fts5(${columns.join(', ')}, content=${quoted(model.type)}, content_rowid='_row', tokenize='unicode61')`;
}

function searchIndex(database: Database, model: EntityModel): SearchIndex {
  const columns = searchColumns(model);
  const index = quoted(searchTable(model.type));
  const list = columns.map(quoted).join(', ');
  const marks = columns.map(() => '?').join(', ');
  const addSql = `INSERT INTO main.${index} (rowid, ${list}) VALUES (?, ${marks})`;
  const removeSql = `INSERT INTO main.${index} (${index}, rowid, ${list}) VALUES ('delete', ?, ${marks})`;
  return {
    isTouched: (changed) => changed.some((column) => columns.includes(column)),
    add: (row, columnOf) =>
      void database.prepare(addSql).run(row, ...columns.map((column) => columnOf(column) ?? null)),
    remove: (raw) =>
      void database.prepare(removeSql).run(raw['_row'] as number, ...columns.map((column) => raw[column] ?? null)),
  };
}

// ── types that the schema lacks (SC6) ───────────────────────────────────────────────────────────────────────────────

export function undeclaredTable(database: Database, tracker: ChangeTracker, type: string): EntityTable {
  const read = (raw: SqlRow): HeldRow => ({
    state: {
      version: raw['version'] as number,
      fields: JSON.parse(raw['fields'] as string) as JsonObject,
      meta: JSON.parse(raw['meta'] as string) as HeldMeta,
    },
    sync: raw['sync'] as RowSync,
    base: raw['base'] as string | null,
    raw,
  });
  return {
    model: null,
    read: (log, id) => {
      const raw = database
        .prepare('SELECT version, fields, meta, sync, base FROM main.hf_entity WHERE log = ? AND type = ? AND id = ?')
        .get(log, type, id);
      return raw === undefined ? undefined : read(raw);
    },
    write: ({ log, id }, before, after, { sync, base }) => {
      tracker.rows('hf_entity');
      tracker.definitions ||= type === RUN_TIME_TYPE;
      if (after === undefined) {
        if (before !== undefined)
          database.prepare('DELETE FROM main.hf_entity WHERE log = ? AND type = ? AND id = ?').run(log, type, id);
        return undefined;
      }
      const [fields, meta] = [JSON.stringify(after.fields), JSON.stringify(after.meta)];
      database
        .prepare(
          'INSERT OR REPLACE INTO main.hf_entity (log, type, id, version, fields, meta, sync, base) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        )
        .run(log, type, id, after.version, fields, meta, sync, base);
      // What is kept of a row is bounded by what it says of its size.
      return { state: after, sync, base, raw: { fields, meta, base } };
    },
    *all(log) {
      for (const raw of database
        .prepare(
          'SELECT id, version, fields, meta, sync, base FROM main.hf_entity WHERE log = ? AND type = ? ORDER BY id',
        )
        .all(log, type))
        yield { id: raw['id'] as string, row: read(raw) };
    },
    removeAll: (log) => {
      tracker.definitions ||= type === RUN_TIME_TYPE;
      database.prepare('DELETE FROM main.hf_entity WHERE log = ? AND type = ?').run(log, type);
    },
  };
}

/** The model that a table is kept by: the fields of this schema, and every other column that the file has. */
export const unionModel = (model: EntityModel, others: Readonly<Record<string, FieldData>>): EntityModel => {
  const hidden = Object.entries(others).filter(([wire]) => !model.byWire.has(wire));
  if (hidden.length === 0) return model;
  const columns = entityModel(model.type, {
    fields: Object.fromEntries(hidden.map(([wire, data]) => [wire, { ...data, wire }])),
  }).columns;
  return { ...model, columns: [...model.columns, ...columns] };
};
