import type { Database, SqlValue } from '@holdfast/core';
import type { ChangeTracker } from './change-tracker.ts';
import type { EntityModel } from './schema-model.ts';
import { declaredTable, type EntityTable, quoted, rowOf, rowOrder, searchTable, undeclaredTable } from './tables.ts';

/** Rows that change their place: into a type's table, out of it, and within it. */

/** Nobody is told of rows that only move. */
export const SILENT = { columns: () => undefined, rows: () => undefined } as unknown as ChangeTracker;

/** Entities of this type that were kept aside move into their table (SC6). */
export function adopt(database: Database, table: EntityTable, model: EntityModel): void {
  const aside = undeclaredTable(database, SILENT, model.type);
  for (const log of logsIn(database, 'SELECT DISTINCT log FROM main.hf_entity WHERE type = ?', model.type)) {
    for (const { id, row } of aside.all(log))
      table.write({ log, type: model.type, id }, table.read(log, id), row.state, row);
    aside.removeAll(log);
  }
}

/** The other way: a type is not defined any more, or in a way that its table cannot hold. Also what is being fetched. */
export function setAside(database: Database, table: EntityTable, type: string): void {
  const aside = undeclaredTable(database, SILENT, type);
  for (const log of logsIn(database, `SELECT DISTINCT _log AS log FROM main.${quoted(type)}`))
    for (const { id, row } of table.all(log)) aside.write({ log, type, id }, undefined, row.state, row);
}

const logsIn = (database: Database, sql: string, ...values: readonly string[]): readonly string[] =>
  database
    .prepare(sql)
    .all(...values)
    .map(({ log }) => log as string);

/** With its indexes, and the view of this connection. */
export function dropTable(database: Database, type: string): void {
  database.exec(
    `DROP VIEW IF EXISTS temp.${quoted(type)}; DROP TABLE IF EXISTS main.${quoted(searchTable(type))}; DROP TABLE main.${quoted(type)}`,
  );
}

/** SQLite looks tables up without regard to case; this asks for exactly this one. */
export const hasTable = (database: Database, type: string): boolean =>
  database.prepare("SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?").get(type) !== undefined;

/**
 * Moves each value to where this schema keeps it: out of `_rest` into a column that is new, a value of `oneOf` that this
 * app does not know out of its column, a default into a column that no event set (SC5). Rows that are right cost a read.
 */
export function rehome(database: Database, model: EntityModel): void {
  const table = `main.${quoted(model.type)}`;
  if (database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() === undefined) return;
  const isOddSql = model.columns.flatMap(({ wire, data, fallback }) => {
    const checks: string[] = [];
    if (fallback !== undefined) checks.push(`${quoted(wire)} IS NULL`);
    if (data.kind === 'oneOf') checks.push(`${quoted(wire)} NOT IN (${(data.values ?? []).map(sqlText).join(', ')})`);
    return checks;
  });
  const rows = database
    .prepare(`SELECT * FROM ${table} WHERE ${anyOf(['_rest IS NOT NULL', '_shown IS NOT NULL', ...isOddSql])}`)
    .all();
  const raws = declaredTable(database, SILENT, model);
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

/** In groups: SQLite takes an expression 1,000 levels deep, and each OR of a plain list is one. */
function anyOf(checks: readonly string[]): string {
  const groups: string[] = [];
  for (let at = 0; at < checks.length; at += 50) groups.push(`(${checks.slice(at, at + 50).join(' OR ')})`);
  return groups.join(' OR ');
}

const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
