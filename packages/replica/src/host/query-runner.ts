import {
  bytesToHex,
  canonical,
  type Database,
  type Digest,
  type Fault,
  type Json,
  LIMITS,
  type SqlValue,
  type Statement,
} from '@holdfast/core';
import { DatabaseFault } from '../engine/database-fault.ts';
import { FaultError } from '../engine/fault-error.ts';
import { codeColumn } from '../engine/fit-table.ts';
import type { EntityModel } from '../engine/schema-model.ts';
import type { Origin, RawRow } from '../link/messages.ts';
import type { Observe } from './observe.ts';

/**
 * Queries of apps: prepared once, read-only by the connection (LQ5), with what their columns are (SC3) and what they look
 * at (LQ6). Cached only: whatever is forgotten is prepared again.
 *
 * Throws `FaultError`: `query-refused` (not one read of entity tables), `query-failed` (SQLite could not run it),
 * `closed`, `replica-damaged`.
 */
export interface QueryRunner {
  prepare(sql: string): PreparedQuery;
  /** CM4: what a read gave, in 64 hex digits. Inside the commit it is asked for again. */
  digestOf(sql: string, parameters: readonly Json[]): string;
  digestRows(rows: readonly RawRow[]): string;
  /** Tables or views became others: prepare again. */
  forget(): void;
}

export interface PreparedQuery {
  readonly columns: readonly Origin[];
  /** A column that tells rows apart, or -1. */
  readonly keyAt: number;
  /** Table → columns as the file has them; empty where only its rows count. */
  readonly reads: ReadonlyMap<string, ReadonlySet<string>>;
  run(parameters: readonly Json[]): readonly RawRow[];
}

export interface QueryRunnerParts {
  readonly database: Database;
  readonly digest: Digest;
  readonly model: (type: string) => EntityModel | null;
  readonly observe: Observe;
}

export function createQueryRunner(parts: QueryRunnerParts): QueryRunner {
  const prepared = new Map<string, PreparedQuery>();
  const digestRows = (rows: readonly RawRow[]) => bytesToHex(parts.digest.sha256(JSON.stringify(rows, withBytes)));
  const prepare = (sql: string): PreparedQuery => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const made = prepareQuery(parts, sql);
    if (prepared.size >= LIMITS.preparedQueriesMax) prepared.delete(prepared.keys().next().value as string);
    prepared.set(sql, made);
    return made;
  };
  return {
    prepare,
    digestOf: (sql, parameters) => digestRows(prepare(sql).run(parameters)),
    digestRows,
    forget: () => prepared.clear(),
  };
}

const withBytes = (_: string, value: unknown) => (value instanceof Uint8Array ? bytesToHex(value) : value);

function prepareQuery({ database, model, observe }: QueryRunnerParts, sql: string): PreparedQuery {
  const { statement, reads } = faulty('query-refused', () => database.prepareQuery(sql));
  const columns = statement.columns().map((column): Origin => originOf(column, model));
  return {
    columns,
    keyAt: columns.findIndex(({ field }) => field === 'id'),
    reads: lookedAt(reads, model),
    run: (parameters) => {
      const values = parameters.map(sqlValue);
      return observe.timed(
        'query',
        () => runQuery(statement, values),
        (rows) => ({ rows: rows.length }),
      );
    },
  };
}

const runQuery = (statement: Statement, values: readonly SqlValue[]): readonly RawRow[] =>
  faulty('query-failed', () => statement.arrays(...values));

/** What a caller gives for a `?`: flags as the columns hold them, sets and JSON as their canonical text. */
export function sqlValue(value: Json | undefined): SqlValue {
  if (value === null || typeof value === 'number' || typeof value === 'string') return value;
  if (typeof value === 'boolean') return Number(value);
  if (value === undefined)
    throw new FaultError({ code: 'query-refused', facts: { reason: 'a parameter is undefined' } });
  return canonical(value);
}

function originOf(
  { name, table, column }: { readonly name: string; readonly table: string | null; readonly column: string | null },
  model: QueryRunnerParts['model'],
): Origin {
  const entity = table === null ? null : model(table);
  const field = entity === null || column === null ? undefined : codeColumn(entity, column);
  if (entity === null || field === undefined) return { name };
  const kind = entity.byName.get(field)?.data.kind;
  const isDecoded = kind === 'flag' || kind === 'setOf' || kind === 'json';
  return { name, entity: entity.type, field, ...(isDecoded ? { kind } : {}) };
}

/** Full text reads its entity's search fields. */
const SEARCH = /^hf_search_([A-Za-z0-9]+)/;

function lookedAt(
  reads: readonly { readonly table: string; readonly column: string }[],
  model: QueryRunnerParts['model'],
): ReadonlyMap<string, ReadonlySet<string>> {
  const byTable = new Map<string, Set<string>>();
  for (const { table, column } of reads) {
    const searched = SEARCH.exec(table)?.[1];
    const columns = byTable.get(searched ?? table) ?? new Set();
    byTable.set(searched ?? table, columns);
    if (searched === undefined) {
      if (column !== '') columns.add(column);
      continue;
    }
    const entity = model(searched);
    for (const field of entity?.data.search ?? []) columns.add(entity?.byName.get(field)?.wire ?? field);
  }
  return byTable;
}

/** Faults of the database in the words of a query. */
function faulty<T>(code: 'query-refused' | 'query-failed', run: () => T): T {
  try {
    return run();
  } catch (cause) {
    if (cause instanceof DatabaseFault) throw new FaultError(queryFault(code, cause));
    throw cause;
  }
}

const queryFault = (code: 'query-refused' | 'query-failed', cause: DatabaseFault): Fault => {
  if (cause.code === 'closed') return { code: 'closed' };
  if (cause.code === 'damaged') return { code: 'replica-damaged', facts: { reason: cause.message } };
  return { code, facts: { reason: cause.message } };
};
