import { statSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Database, DatabaseFaultCode, SqlRow, SqlValue, Statement } from '@holdfast/core';
import { DatabaseFault } from '../../engine/database-fault.ts';
import { prepareQuery } from './query-authorizer.ts';

/**
 * Core's `Database` port over `node:sqlite`.
 *
 * Owns one connection and its prepared statements; both are bounded. Faults of the driver are translated here, once.
 * Pragmas that make it a replica file are the engine's business; only the waiting time for a lock is set here.
 */
export interface NodeDatabaseOptions {
  /** `:memory:` or a path. */
  readonly file: string;
  /** Statements kept prepared. The one that was prepared first goes first. */
  readonly statementsMax?: number;
  /** Milliseconds that SQLite waits for another process. */
  readonly busyMs?: number;
  /** Whether the file stands under its name is looked at no more often than this, since a look costs a tenth of a commit. */
  readonly lookEveryMs?: number;
}

const STATEMENTS_MAX = 500;
const BUSY_MS = 5_000;
const LOOK_EVERY_MS = 250;

export function openNodeDatabase(options: NodeDatabaseOptions): Database {
  const connection = openConnection(options);
  const prepared = new Map<string, Statement>();
  const statementsMax = options.statementsMax ?? STATEMENTS_MAX;
  const isInPlace = watchPlace(options);

  const prepare = (sql: string): Statement => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const statement = new NodeStatement(guarded(sql, () => connection.prepare(sql)));
    if (prepared.size >= statementsMax) prepared.delete(prepared.keys().next().value as string);
    prepared.set(sql, statement);
    return statement;
  };

  return {
    exec: (sql) => guarded(sql, () => connection.exec(sql)),
    prepare,
    prepareQuery: (sql) => {
      const { statement, reads } = prepareQuery(connection, sql);
      return { statement: new NodeStatement(statement), reads };
    },
    function: (name, run) =>
      connection.function(name, { deterministic: true, varargs: true }, (...values) => run(...(values as SqlValue[]))),
    get inTransaction() {
      return connection.isOpen && connection.isTransaction;
    },
    isInPlace,
    close: () => {
      prepared.clear();
      if (connection.isOpen) connection.close();
    },
  };
}

function openConnection({ file, busyMs = BUSY_MS }: NodeDatabaseOptions): DatabaseSync {
  return guarded(`open ${file}`, () => {
    const opened = new DatabaseSync(file, { allowExtension: false, enableForeignKeyConstraints: true });
    opened.exec(`PRAGMA busy_timeout=${busyMs}`);
    return opened;
  });
}

/** Once it was gone it stays gone: what was written meanwhile is not in the file that may be put back. */
function watchPlace({ file, lookEveryMs = LOOK_EVERY_MS }: NodeDatabaseOptions): () => boolean {
  if (file === ':memory:') return () => true;
  const look = () => statSync(file, { throwIfNoEntry: false });
  const opened = look();
  let isThere = true;
  let lookedAtMs = performance.now();
  return () => {
    const nowMs = performance.now();
    if (!isThere || nowMs - lookedAtMs < lookEveryMs) return isThere;
    lookedAtMs = nowMs;
    const now = look();
    isThere = now !== undefined && now.ino === opened?.ino && now.dev === opened.dev;
    return isThere;
  };
}

/** A class, and no closures: the engine runs several statements in every commit. */
class NodeStatement implements Statement {
  readonly #statement: StatementSync;
  #givesArrays = false;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  run(...parameters: readonly SqlValue[]): { readonly changes: number; readonly lastInsertRowid: number } {
    try {
      return this.#statement.run(...(parameters as SqlValue[])) as { changes: number; lastInsertRowid: number };
    } catch (cause) {
      throw this.#fault(cause);
    }
  }

  get(...parameters: readonly SqlValue[]): SqlRow | undefined {
    try {
      if (this.#givesArrays) this.#giveArrays(false);
      return this.#statement.get(...(parameters as SqlValue[])) as SqlRow | undefined;
    } catch (cause) {
      throw this.#fault(cause);
    }
  }

  all(...parameters: readonly SqlValue[]): readonly SqlRow[] {
    try {
      if (this.#givesArrays) this.#giveArrays(false);
      return this.#statement.all(...(parameters as SqlValue[])) as unknown as SqlRow[];
    } catch (cause) {
      throw this.#fault(cause);
    }
  }

  arrays(...parameters: readonly SqlValue[]): readonly (readonly SqlValue[])[] {
    try {
      if (!this.#givesArrays) this.#giveArrays(true);
      return this.#statement.all(...(parameters as SqlValue[])) as unknown as SqlValue[][];
    } catch (cause) {
      throw this.#fault(cause);
    }
  }

  columns() {
    return this.#statement.columns().map(({ name, table, column }) => ({ name, table, column }));
  }

  #giveArrays(isWanted: boolean): void {
    this.#statement.setReturnArrays(isWanted);
    this.#givesArrays = isWanted;
  }

  #fault(cause: unknown): DatabaseFault {
    let sql = 'a finalised statement';
    try {
      sql = this.#statement.sourceSQL;
    } catch {
      // The connection is closed, and its statements with it.
    }
    return faultOf(cause, sql);
  }
}

const BY_PRIMARY_CODE: Readonly<Record<number, DatabaseFaultCode>> = {
  5: 'busy',
  6: 'busy',
  8: 'io-error',
  10: 'io-error',
  11: 'damaged',
  13: 'storage-full',
  14: 'io-error',
  26: 'damaged',
};

function guarded<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    throw faultOf(cause, what);
  }
}

function faultOf(cause: unknown, what: string): DatabaseFault {
  if (cause instanceof DatabaseFault) return cause;
  const { errcode, code, message } = cause as { errcode?: number; code?: string; message?: string };
  const isClosed = code === 'ERR_INVALID_STATE' || /statement has been finalized/.test(message ?? '');
  if (isClosed) return new DatabaseFault('closed', 'The database is closed.', cause);
  const translated = errcode === undefined ? 'sql-error' : (BY_PRIMARY_CODE[errcode & 0xff] ?? 'sql-error');
  return new DatabaseFault(translated, `${message ?? 'SQLite failed'} (${what.slice(0, 120)})`, cause);
}
