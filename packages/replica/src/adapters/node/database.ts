import { constants, DatabaseSync, type StatementSync } from 'node:sqlite';
import type { ColumnRead, Database, DatabaseFaultCode, SqlRow, SqlValue, Statement } from '@holdfast/core';
import { DatabaseFault } from '../../engine/database-fault.ts';

/**
 * Core's `Database` port over `node:sqlite`.
 *
 * Owns one connection and its prepared statements; both are bounded. Faults of the driver are translated here, once. A
 * statement of an app is prepared under an authorizer that allows reading and nothing else, so that it cannot write by
 * what it is, and cannot see an engine table by name.
 */
export interface NodeDatabaseOptions {
  /** `:memory:` or a path. */
  readonly file: string;
  /** Statements kept prepared. The least recently prepared goes first. */
  readonly statementsMax?: number;
  /** Milliseconds that SQLite waits for another process. */
  readonly busyMs?: number;
}

const STATEMENTS_MAX = 500;
const BUSY_MS = 5_000;
const QUERY_LENGTH_MAX = 100_000;

export function openNodeDatabase(options: NodeDatabaseOptions): Database {
  const connection = translated('open', () => {
    const opened = new DatabaseSync(options.file, { allowExtension: false, enableForeignKeyConstraints: true });
    opened.exec(`PRAGMA busy_timeout=${options.busyMs ?? BUSY_MS}`);
    return opened;
  });
  const prepared = new Map<string, Statement>();
  const statementsMax = options.statementsMax ?? STATEMENTS_MAX;

  const prepare = (sql: string): Statement => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const statement = wrap(
      translated(sql, () => connection.prepare(sql)),
      sql,
    );
    if (prepared.size >= statementsMax) prepared.delete(prepared.keys().next().value as string);
    prepared.set(sql, statement);
    return statement;
  };

  return {
    exec: (sql) => translated(sql, () => connection.exec(sql)),
    prepare,
    prepareQuery: (sql) => prepareQuery(connection, sql),
    function: (name, run) =>
      connection.function(name, { deterministic: true, varargs: true }, (...values) => run(...(values as SqlValue[]))),
    get inTransaction() {
      return connection.isTransaction;
    },
    close: () => {
      prepared.clear();
      if (connection.isOpen) connection.close();
    },
  };
}

function wrap(statement: StatementSync, sql: string): Statement {
  let asArrays: StatementSync | null = null;
  return {
    run: (...parameters) =>
      translated(sql, () => {
        const { changes, lastInsertRowid } = statement.run(...(parameters as SqlValue[]));
        return { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) };
      }),
    get: (...parameters) => translated(sql, () => statement.get(...(parameters as SqlValue[])) as SqlRow | undefined),
    all: (...parameters) => translated(sql, () => statement.all(...(parameters as SqlValue[])) as unknown as SqlRow[]),
    arrays: (...parameters) =>
      translated(sql, () => {
        asArrays = statement;
        asArrays.setReturnArrays(true);
        try {
          return statement.all(...(parameters as SqlValue[])) as unknown as SqlValue[][];
        } finally {
          statement.setReturnArrays(false);
        }
      }),
    columns: () => statement.columns().map(({ name, table, column }) => ({ name, table, column })),
  };
}

const ALLOWED: ReadonlySet<number> = new Set([
  constants.SQLITE_SELECT,
  constants.SQLITE_READ,
  constants.SQLITE_FUNCTION,
  constants.SQLITE_RECURSIVE,
]);
/** Functions that reach outside the database, or change the connection. */
const REFUSED_FUNCTIONS: ReadonlySet<string> = new Set([
  'load_extension',
  'readfile',
  'writefile',
  'edit',
  'fts3_tokenizer',
]);
/** Full-text indexes are the one kind of engine table that a query may name: `matches()` does. */
const isEngineTable = (table: string): boolean => /^(hf_|sqlite_)/i.test(table) && !/^hf_search_/i.test(table);

function prepareQuery(connection: DatabaseSync, sql: string): ReturnType<Database['prepareQuery']> {
  if (sql.length > QUERY_LENGTH_MAX)
    throw new DatabaseFault('query-refused', `A query has at most ${QUERY_LENGTH_MAX} characters.`);
  const reads = new Map<string, ColumnRead>();
  let refusal: string | null = null;
  connection.setAuthorizer((action, first, second, database) => {
    if (!ALLOWED.has(action)) {
      refusal ??= 'A query reads, and does nothing else.';
      return constants.SQLITE_DENY;
    }
    if (action === constants.SQLITE_FUNCTION && REFUSED_FUNCTIONS.has((second ?? '').toLowerCase())) {
      refusal ??= `The function ${second} is not for queries.`;
      return constants.SQLITE_DENY;
    }
    if (action === constants.SQLITE_READ && first !== null) {
      if (isEngineTable(first)) {
        refusal ??= `There is no table ${first} for queries.`;
        return constants.SQLITE_DENY;
      }
      if (database !== 'temp') reads.set(`${first}.${second ?? ''}`, { table: first, column: second ?? '' });
    }
    return constants.SQLITE_OK;
  });
  try {
    const statement = connection.prepare(sql);
    if (hasMoreThanOne(sql, statement)) throw new DatabaseFault('query-refused', 'A query is one statement.');
    return { statement: wrap(statement, sql), reads: [...reads.values()] };
  } catch (cause) {
    if (cause instanceof DatabaseFault) throw cause;
    if (refusal !== null) throw new DatabaseFault('query-refused', refusal, cause);
    throw new DatabaseFault('query-refused', cause instanceof Error ? cause.message : 'SQLite refuses it.', cause);
  } finally {
    connection.setAuthorizer(null);
  }
}

/** SQLite prepares the first statement and passes over the rest: what it read must be all there is. */
const hasMoreThanOne = (sql: string, statement: StatementSync): boolean => {
  const rest = sql.slice(statement.sourceSQL.length);
  return (
    rest
      .replace(/--[^\n]*/g, '')
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/[\s;]/g, '') !== ''
  );
};

const BY_PRIMARY_CODE: Readonly<Record<number, DatabaseFaultCode>> = {
  5: 'busy',
  6: 'busy',
  10: 'io-error',
  11: 'damaged',
  13: 'storage-full',
  26: 'damaged',
};

function translated<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    throw faultOf(cause, what);
  }
}

function faultOf(cause: unknown, what: string): DatabaseFault {
  if (cause instanceof DatabaseFault) return cause;
  const { errcode, code, message } = cause as { errcode?: number; code?: string; message?: string };
  if (code === 'ERR_INVALID_STATE') return new DatabaseFault('closed', 'The database is closed.', cause);
  const translatedCode = errcode === undefined ? 'sql-error' : (BY_PRIMARY_CODE[errcode & 0xff] ?? 'sql-error');
  return new DatabaseFault(translatedCode, `${message ?? 'SQLite failed'} (${what.slice(0, 120)})`, cause);
}
