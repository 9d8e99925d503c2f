import { existsSync } from 'node:fs';
import type { Database, Json, JsonObject, SchemaData, SqlValue } from '@holdfast/core';
import { openNodeDatabase } from './adapters/node/database.ts';
import { nodePlatform } from './adapters/node/platform.ts';
import { inFaults } from './engine/database-fault.ts';
import { DeskWriter } from './engine/desk.ts';
import { FaultError } from './engine/fault-error.ts';
import { APPLICATION_ID, FILE_FORMAT } from './engine/file.ts';
import { type Examination, examine } from './engine/inspect.ts';
import { createJournal } from './engine/journal-store.ts';
import { readLog } from './engine/logs.ts';
import { Outbox } from './engine/outbox.ts';
import { indexOutbox } from './engine/outbox-index.ts';
import { packOf } from './engine/pack.ts';
import type { DeskEntry, FollowedLog, OutboxCounts } from './engine/replica-state.ts';
import { ReplicaStore } from './engine/replica-store.ts';

export { type EndedLocalCommit, endLocalCommits, releaseHeld } from './end-local-commits.ts';
export type { Examination, Finding } from './engine/inspect.ts';

/**
 * Looks into a replica file without becoming its host: no lock, no generation, no write. Safe beside a running host; what
 * it reads is one committed moment per call.
 */
export interface Inspection extends Disposable {
  readonly owner: {
    readonly replicaId: string;
    readonly ledger: string;
    readonly account: string;
    readonly workspace: string;
    readonly generation: number;
  };
  readonly schema: SchemaData;
  logs(): readonly FollowedLog[];
  counts(): OutboxCounts;
  desk(): readonly DeskEntry[];
  journal(
    before?: number,
  ): readonly { readonly seq: number; readonly at: string; readonly kind: string; readonly facts: JsonObject }[];
  /** Rows of one SELECT over entity types. Throws `DatabaseFault` `query-refused`. */
  query(sql: string, parameters: readonly Json[]): readonly Readonly<Record<string, unknown>>[];
  examine(): Examination;
  /** Recovery obligations: how many were ever opened here and are kept, and how many are open now. */
  obligations(): { readonly opened: number; readonly open: number };
  /** Action ids of batches that a person discarded, or replaced by a resolution. */
  closedByPeople(): readonly string[];
  /** Everything unsent, sealed. Nothing leaves the outbox by it. Throws `FaultError` `replica-damaged`. */
  pack(): Uint8Array;
}

/** Throws `FaultError`: `not-found`, `replica-damaged`, `replica-too-new`, `replica-in-use`, `engine-fault`. */
export function inspectReplica(file: string): Inspection {
  if (!existsSync(file)) throw new FaultError({ code: 'not-found', facts: { file } });
  const database = openNodeDatabase({ file });
  try {
    return inspectionOf(database, file);
  } catch (cause) {
    database.close();
    throw inFaults(cause);
  }
}

function inspectionOf(database: Database, file: string): Inspection {
  const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  if (pragma('application_id') !== APPLICATION_ID)
    throw new FaultError({ code: 'replica-damaged', facts: { file, reason: 'this is no replica file' } });
  if (Number(pragma('user_version')) > FILE_FORMAT) throw new FaultError({ code: 'replica-too-new', facts: { file } });
  const owner = database.prepare('SELECT * FROM main.hf_coordinator WHERE one = 1').get() ?? {};
  const schemaRow = database
    .prepare(
      "SELECT data FROM main.hf_schema WHERE fingerprint = (SELECT value FROM main.hf_setting WHERE name = 'schema')",
    )
    .get();
  const schema = JSON.parse((schemaRow?.['data'] as string | undefined) ?? '{"format":1,"entities":{}}') as SchemaData;
  const store = new ReplicaStore({
    database,
    platform: nodePlatform,
    schema,
    hostInstance: '',
    account: owner['account'] as string,
  });
  if (schemaRow !== undefined) store.attachTables();
  const desk = new DeskWriter(store);
  const held = (actionId: string) =>
    (database.prepare('SELECT count(*) AS n FROM main.hf_outbox WHERE held_by = ?').get(actionId)?.['n'] as
      | number
      | undefined) ?? 0;
  return {
    owner: {
      replicaId: owner['replica_id'] as string,
      ledger: owner['ledger'] as string,
      account: owner['account'] as string,
      workspace: owner['workspace'] as string,
      generation: owner['generation'] as number,
    },
    schema,
    logs: () => database.prepare('SELECT * FROM main.hf_log WHERE followed = 1 ORDER BY log').all().map(readLog),
    counts: () => {
      // Its owner may be writing.
      indexOutbox(database);
      return new Outbox(store, new DeskWriter(store)).counts();
    },
    desk: () => desk.list(held),
    journal: (before) => createJournal(store).page(before),
    query: (sql, parameters) => {
      const { statement } = database.prepareQuery(sql);
      return statement.all(
        ...parameters.map((value): SqlValue => (typeof value === 'boolean' ? Number(value) : (value as SqlValue))),
      );
    },
    examine: () => examine(store),
    obligations: () => {
      const row = database
        .prepare('SELECT count(*) AS n, sum(closed_at IS NULL) AS open FROM main.hf_obligation')
        .get();
      return {
        opened: (row?.['n'] as number | undefined) ?? 0,
        open: (row?.['open'] as number | null | undefined) ?? 0,
      };
    },
    closedByPeople: () =>
      database
        .prepare(
          "SELECT action_id FROM main.hf_outcome WHERE json_extract(outcome, '$.state') IN ('discarded', 'replaced')",
        )
        .all()
        .map((row) => row['action_id'] as string),
    pack: () => {
      try {
        return packOf(store);
      } catch (cause) {
        throw inFaults(cause);
      }
    },
    [Symbol.dispose]: () => database.close(),
  };
}
