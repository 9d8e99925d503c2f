import { type Database, type Platform, randomHex } from '@holdfast/core';
import { COORDINATOR_SCHEMA } from './coordinator-schema.ts';
import { stop } from './fault-error.ts';
import { damageOf } from './whole-file.ts';

/**
 * The replica file: its format, its tables, and who owns it.
 *
 * Owns the SQLite file. Durable: everything in it. Worst outcome: a transaction of a host that was outranked takes effect;
 * therefore every write transaction compares generation and host instance (I22). Invariants: one row in `hf_coordinator`;
 * the file belongs to one (ledger, account, workspace) for ever (AC2); a newer format is refused untouched.
 */
export const APPLICATION_ID = 0x486f6c64;
export const FILE_FORMAT = 1;

const ENGINE_SCHEMA = `
CREATE TABLE hf_log (
  log TEXT PRIMARY KEY,
  identity TEXT,
  epoch TEXT,
  head INTEGER NOT NULL DEFAULT 0,
  chain TEXT NOT NULL DEFAULT '',
  signature TEXT NOT NULL,
  attest TEXT,
  ledger_head INTEGER,
  stage TEXT NOT NULL DEFAULT 'new',
  followed INTEGER NOT NULL DEFAULT 1,
  blocked TEXT,
  bootstrap TEXT,
  whole_at INTEGER NOT NULL DEFAULT 0,
  synced_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_event (
  log TEXT NOT NULL,
  version INTEGER NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  entity TEXT NOT NULL,
  entity_version INTEGER NOT NULL,
  action_id TEXT NOT NULL,
  own INTEGER NOT NULL,
  draft TEXT,
  leaf TEXT,
  envelope TEXT NOT NULL,
  chain TEXT NOT NULL,
  PRIMARY KEY (log, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX hf_event_entity ON hf_event (log, type, entity, entity_version);

CREATE TABLE hf_base (
  log TEXT NOT NULL,
  type TEXT NOT NULL,
  id TEXT NOT NULL,
  base TEXT NOT NULL,
  PRIMARY KEY (log, type, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_deleted (
  log TEXT NOT NULL,
  type TEXT NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  fields TEXT,
  at INTEGER NOT NULL,
  PRIMARY KEY (log, type, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_seen (
  log TEXT NOT NULL,
  type TEXT NOT NULL,
  id TEXT NOT NULL,
  fields TEXT NOT NULL,
  PRIMARY KEY (log, type, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_entity (
  log TEXT NOT NULL,
  type TEXT NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  fields TEXT NOT NULL,
  meta TEXT NOT NULL,
  sync TEXT NOT NULL,
  base TEXT,
  PRIMARY KEY (log, type, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_outbox (
  seq INTEGER PRIMARY KEY,
  log TEXT NOT NULL,
  action_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  state TEXT NOT NULL,
  drafts TEXT NOT NULL,
  events INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  frame TEXT NOT NULL,
  identity TEXT NOT NULL,
  label TEXT,
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  retry_at INTEGER,
  judge_at INTEGER,
  held_by TEXT,
  rebases INTEGER NOT NULL DEFAULT 0,
  fault TEXT,
  answer TEXT,
  replaces TEXT,
  wish TEXT
) STRICT;
CREATE INDEX hf_outbox_not_queued ON hf_outbox (log, state, seq) WHERE state <> 'queued';

CREATE INDEX hf_outbox_wish ON hf_outbox (log) WHERE wish IS NOT NULL;

CREATE TABLE hf_aside (
  seq INTEGER NOT NULL,
  log TEXT NOT NULL,
  type TEXT NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (log, type, id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX hf_aside_seq ON hf_aside (seq);

CREATE TABLE hf_request (request_id TEXT PRIMARY KEY, action_id TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE hf_outcome (
  action_id TEXT PRIMARY KEY,
  identity TEXT NOT NULL,
  outcome TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hf_outcome_at ON hf_outcome (at);

CREATE TABLE hf_desk (
  id TEXT PRIMARY KEY,
  revision INTEGER NOT NULL,
  kind TEXT NOT NULL,
  needs TEXT NOT NULL,
  action_id TEXT NOT NULL,
  log TEXT NOT NULL,
  label TEXT,
  entity_type TEXT NOT NULL,
  entity_id TEXT NOT NULL,
  facts TEXT NOT NULL,
  fault TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX hf_desk_action ON hf_desk (action_id);

CREATE TABLE hf_undo (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL,
  state TEXT NOT NULL,
  action_id TEXT NOT NULL,
  log TEXT NOT NULL,
  label TEXT NOT NULL,
  part_of TEXT,
  inverse TEXT NOT NULL,
  seen TEXT NOT NULL
) STRICT;
CREATE INDEX hf_undo_scope ON hf_undo (scope, state, seq);

CREATE TABLE hf_journal (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL) STRICT;
CREATE TABLE hf_schema (fingerprint TEXT PRIMARY KEY, data TEXT NOT NULL, opened_at TEXT NOT NULL) STRICT;
CREATE TABLE hf_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

export interface FileOwner {
  readonly ledger: string;
  readonly account: string;
  readonly workspace: string;
  /** F10: it was open when its machine went down, so that pages may be torn or missing. The whole file is looked at then. */
  readonly isAfterPowerLoss?: boolean;
}

export interface OpenedFile {
  readonly replicaId: string;
  readonly isNew: boolean;
}

/**
 * Opens or creates the file's engine tables. Sets and verifies the pragmas (F30): WAL where the file can, `synchronous`
 * NORMAL between the moments that RP2 names, and untrusted schema.
 *
 * Stops with: `replica-too-new`, `replica-damaged` (no replica file, or one that cannot be read or is not whole), `other-account` (the file
 * belongs to somebody else).
 */
export function openFile(database: Database, platform: Platform, owner: FileOwner): OpenedFile {
  const format = pragma(database, 'user_version');
  const application = pragma(database, 'application_id');
  const isNew = format === 0 && application === 0;
  if (!isNew && application !== APPLICATION_ID) stop('replica-damaged', { reason: 'this is no replica file' });
  if (Number(format) > FILE_FORMAT) stop('replica-too-new', { format: Number(format), known: FILE_FORMAT });
  database.exec(
    'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA trusted_schema=OFF; PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=4000; PRAGMA temp_store=MEMORY',
  );
  const mode = pragma(database, 'journal_mode');
  if (mode !== 'wal' && mode !== 'memory') stop('replica-damaged', { reason: `journal mode is ${mode}` });
  const damage = owner.isAfterPowerLoss === true ? damageOf(database) : null;
  if (damage !== null) stop('replica-damaged', { reason: damage });
  const created = isNew ? create(database, platform, owner) : null;
  if (created !== null) return created;
  const row = database
    .prepare('SELECT replica_id, ledger, account, workspace FROM main.hf_coordinator WHERE one = 1')
    .get();
  if (row === undefined) return stop('replica-damaged', { reason: 'it does not say whose it is' });
  if (row['ledger'] !== owner.ledger || row['account'] !== owner.account || row['workspace'] !== owner.workspace)
    stop('other-account', { account: row['account'], workspace: row['workspace'] });
  return { replicaId: row['replica_id'] as string, isNew: false };
}

/** Null where somebody else made the file since it was looked at: whoever takes over needs no lock, so two may begin. */
function create(database: Database, platform: Platform, owner: FileOwner): OpenedFile | null {
  const replicaId = randomHex(platform.random, 16);
  database.exec('BEGIN IMMEDIATE');
  try {
    const isMade = pragma(database, 'application_id') === APPLICATION_ID;
    if (!isMade) {
      database.exec(ENGINE_SCHEMA);
      database.exec(COORDINATOR_SCHEMA);
      database
        .prepare('INSERT INTO main.hf_coordinator (one, replica_id, ledger, account, workspace) VALUES (1, ?, ?, ?, ?)')
        .run(replicaId, owner.ledger, owner.account, owner.workspace);
      database.exec(`PRAGMA application_id=${APPLICATION_ID}; PRAGMA user_version=${FILE_FORMAT}`);
    }
    database.exec('COMMIT');
    return isMade ? null : { replicaId, isNew: true };
  } catch (cause) {
    if (database.inTransaction) database.exec('ROLLBACK');
    throw cause;
  }
}

const pragma = (database: Database, name: string): unknown => database.prepare(`PRAGMA ${name}`).get()?.[name];

/** RP2: what must not be forgotten by a power cut is synced to the medium before anything leaves. */
export function syncedToMedium<T>(database: Database, work: () => T): T {
  database.exec('PRAGMA synchronous=FULL');
  try {
    return work();
  } finally {
    database.exec('PRAGMA synchronous=NORMAL');
  }
}

/** PM8, RP2: a new generation, in a transaction of its own, on the medium before anything may leave under it. */
export function raisedOnMedium(database: Database, raise: () => number): number {
  return syncedToMedium(database, () => {
    database.exec('BEGIN IMMEDIATE');
    try {
      const generation = raise();
      database.exec('COMMIT');
      return generation;
    } catch (cause) {
      if (database.inTransaction) database.exec('ROLLBACK');
      throw cause;
    }
  });
}
