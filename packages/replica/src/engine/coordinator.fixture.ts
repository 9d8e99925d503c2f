import type { Database, Fault, Json, OwnerMode, SqlRow, Statement } from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { type Coordinator, createCoordinator } from './coordinator.ts';
import type { PermitRequest } from './coordinator-issue.ts';
import type { Permit } from './coordinator-permit.ts';
import { COORDINATOR_SCHEMA } from './coordinator-schema.ts';

/** A replica file with only the coordinator's tables, on real SQLite, and hosts that open it one after the other. */
export interface Workbench {
  readonly database: Database;
  readonly time: { wallMs: number; monotonicMs: number };
  readonly inactive: Set<string>;
  transaction<T>(work: () => T): T;
  /** A new run of the host: raises the generation and settles earlier permits, as a start does (PM8). */
  host(instance: string): Coordinator;
  /** The same without a start: a process that only holds a coordinator. */
  process(instance: string, database?: Database): Coordinator;
  rows(table: Table): readonly SqlRow[];
  /** Everything that is in the file, to compare before with after. */
  dump(): string;
}

export type Table = 'hf_coordinator' | 'hf_permit' | 'hf_permit_operation' | 'hf_obligation';
const TABLES: readonly Table[] = ['hf_coordinator', 'hf_permit', 'hf_permit_operation', 'hf_obligation'];

export function createWorkbench(options: { readonly mode?: OwnerMode } = {}): Workbench {
  const database = openNodeDatabase({ file: ':memory:' });
  database.exec(COORDINATOR_SCHEMA);
  database
    .prepare('INSERT INTO hf_coordinator (one, replica_id, ledger, account, workspace, mode) VALUES (1, ?, ?, ?, ?, ?)')
    .run('replica', 'https://ledger', 'ana', 'acme', options.mode ?? 'host');
  const time = { wallMs: Date.UTC(2026, 10, 30), monotonicMs: 1_000 };
  const inactive = new Set<string>();
  let ids = 0;
  const transaction = transactionOn(database);
  const process = (instance: string, over: Database = database): Coordinator =>
    createCoordinator({
      database: over,
      clock: { now: () => time.wallMs, monotonic: () => time.monotonicMs },
      newId: () => {
        ids += 1;
        return `permit-${ids}`;
      },
      hostInstance: instance,
      isActive: (log) => !inactive.has(log),
    });
  const rows = (table: Table): readonly SqlRow[] => database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all();
  return {
    database,
    time,
    inactive,
    transaction,
    process,
    host: (instance) => {
      const coordinator = process(instance);
      transaction(() => {
        coordinator.raiseGeneration();
        coordinator.settleEarlierInstances();
      });
      return coordinator;
    },
    rows,
    dump: () => JSON.stringify(TABLES.map(rows)),
  };
}

/** As the replica's `write`: BEGIN IMMEDIATE, work, COMMIT; whatever is thrown undoes all. */
export function transactionOn(database: Database): <T>(work: () => T) => T {
  return (work) => {
    database.prepare('BEGIN IMMEDIATE').run();
    try {
      const result = work();
      database.prepare('COMMIT').run();
      return result;
    } catch (cause) {
      if (database.inTransaction) database.exec('ROLLBACK');
      throw cause;
    }
  };
}

type Around = <T>(run: () => T) => T;

/** The same database, with something around every statement that runs. */
export function around(database: Database, wrap: Around): Database {
  const guard = (statement: Statement): Statement => ({
    run: (...parameters) => wrap(() => statement.run(...parameters)),
    get: (...parameters) => wrap(() => statement.get(...parameters)),
    all: (...parameters) => wrap(() => statement.all(...parameters)),
    arrays: (...parameters) => wrap(() => statement.arrays(...parameters)),
    columns: () => statement.columns(),
  });
  return {
    exec: (sql) => database.exec(sql),
    prepare: (sql) => guard(database.prepare(sql)),
    prepareQuery: (sql) => database.prepareQuery(sql),
    isInPlace: () => database.isInPlace(),
    function: (name, run) => database.function(name, run),
    get inTransaction() {
      return database.inTransaction;
    },
    close: () => database.close(),
  };
}

/** Throws instead of running the n-th statement; `kill`: nothing runs afterwards either, as in a killed process. */
export function failingAt(database: Database, n: number, how: 'once' | 'kill') {
  const count = { ran: 0 };
  const failing = around(database, (run) => {
    count.ran += 1;
    if (count.ran === n || (how === 'kill' && count.ran > n)) throw new Error(`statement ${count.ran} fails`);
    return run();
  });
  return { database: failing, count };
}

export const at = (version: number): { epoch: string; version: number; chain: string } => ({
  epoch: 'e1',
  version,
  chain: `chain-${version}`,
});

export const pushOf = (operations: readonly string[], more: Partial<PermitRequest> = {}): PermitRequest => ({
  log: 'main',
  class: 'push',
  boundary: at(5),
  operations,
  ...more,
});

export const pullFrom = (boundary: Json, more: Partial<PermitRequest> = {}): PermitRequest => ({
  log: 'main',
  class: 'pull',
  boundary,
  ...more,
});

export const accepted = (...operations: readonly string[]) => ({
  disposition: 'accepted' as const,
  outcomes: operations.map((requestId) => ({ requestId, outcome: { status: 'accepted' } })),
});

/** The value, or an error that shows the fault. */
export function must<T>(outcome: { readonly ok: true; readonly value: T } | { readonly ok: false; fault: Fault }): T {
  if (outcome.ok) return outcome.value;
  throw new Error(`unexpected fault: ${JSON.stringify(outcome.fault)}`);
}

export const codeOf = (outcome: { readonly ok: boolean; readonly fault?: Fault }): string =>
  outcome.fault?.code ?? 'ok';

/** What other code would have to write, since this one never does (PM10). */
export function writeLocalCommitEntered(bench: Workbench, permit: Permit): void {
  bench.database
    .prepare(`UPDATE hf_permit SET state = 'local-commit-entered' WHERE permit_id = ?`)
    .run(permit.permitId);
}
