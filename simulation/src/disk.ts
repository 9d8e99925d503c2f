import type { Database, SqlRow, SqlValue, Statement } from '@holdfast/core';
import { DatabaseFault } from '@holdfast/replica/testing/engine';

/** The disk under a device's database. Full: what reads goes on, what writes fails before it changed anything. */
export interface Disk {
  isFull: boolean;
}

const WRITES = /^\s*(?:insert|update|delete|replace|with\b[\s\S]*\b(?:insert|update|delete)\b)/i;

/** By statement: an engine has a few hundred, and asks for them again and again. */
const known = new Map<string, boolean>();
const KNOWN_MAX = 2_000;

function isWrite(sql: string): boolean {
  const before = known.get(sql);
  if (before !== undefined) return before;
  const is = WRITES.test(sql);
  if (known.size < KNOWN_MAX) known.set(sql, is);
  return is;
}
/** A database that fails as SQLite does (`SQLITE_FULL`) while its disk is full. */
export function onDisk(database: Database, disk: Disk): Database {
  const check = (sql: string): void => {
    if (disk.isFull && isWrite(sql)) throw new DatabaseFault('storage-full', 'database or disk is full', null);
  };
  return {
    exec: (sql) => {
      check(sql);
      database.exec(sql);
    },
    prepare: (sql) => {
      const statement = database.prepare(sql);
      return isWrite(sql) ? checked(statement, () => check(sql)) : statement;
    },
    prepareQuery: (sql) => database.prepareQuery(sql),
    isInPlace: () => database.isInPlace(),
    function: (name, run) => database.function(name, run),
    get inTransaction() {
      return database.inTransaction;
    },
    close: () => database.close(),
  };
}

const checked = (statement: Statement, check: () => void): Statement => ({
  run: (...parameters: readonly SqlValue[]) => {
    check();
    return statement.run(...parameters);
  },
  get: (...parameters: readonly SqlValue[]): SqlRow | undefined => {
    check();
    return statement.get(...parameters);
  },
  all: (...parameters: readonly SqlValue[]): readonly SqlRow[] => {
    check();
    return statement.all(...parameters);
  },
  arrays: (...parameters: readonly SqlValue[]) => {
    check();
    return statement.arrays(...parameters);
  },
  columns: () => statement.columns(),
});

/** What a commit on a full disk comes to: undefined, and nothing of it is durable. */
export function unlessFull<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof DatabaseFault && error.code === 'storage-full') return undefined;
    throw error;
  }
}
