import type { DatabaseSync } from 'node:sqlite';
import { StoreFault } from '../../engine/store-port.ts';

/**
 * The file of one workspace. Written for ever: what stands here is only ever added to, with a new `user_version` for what
 * older code could not read.
 *
 * Rows of a log carry its key in the upper part of one integer, `place = key · 2^33 + version`, so that a log's events lie
 * side by side in the order in which they are read, without a second index. The events of one entity are a list: each
 * names the version of the one before it, and the entity the last one. An index would touch one page per entity and group.
 */
export const APPLICATION_ID = 0x486f6c4c;
export const FORMAT = 1;

const VERSIONS_PER_LOG = 2 ** 33;
export const placeOf = (logKey: number, version: number): number => logKey * VERSIONS_PER_LOG + version;
export const versionAt = (place: number): number => place % VERSIONS_PER_LOG;
/** Above every place of this log. */
export const placeAfterLog = (logKey: number): number => (logKey + 1) * VERSIONS_PER_LOG;

const TABLES = `
  CREATE TABLE workspace (
    one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, created_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE log (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, identity TEXT NOT NULL,
    head INTEGER NOT NULL, chain TEXT NOT NULL, signature TEXT NOT NULL,
    state TEXT NOT NULL, moved_to TEXT, serials TEXT NOT NULL, created_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE epoch (
    log INTEGER NOT NULL, seq INTEGER NOT NULL, epoch TEXT NOT NULL, after INTEGER NOT NULL, why TEXT NOT NULL,
    at TEXT NOT NULL, PRIMARY KEY (log, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE operation (
    last_place INTEGER PRIMARY KEY, log INTEGER NOT NULL, count INTEGER NOT NULL,
    request_id TEXT NOT NULL, action_id TEXT NOT NULL, identity TEXT NOT NULL,
    replica_id TEXT NOT NULL, actor TEXT NOT NULL, recorded_at TEXT NOT NULL, origin TEXT,
    signature TEXT NOT NULL, bytes INTEGER NOT NULL, part_events INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX operation_request ON operation (request_id, log);
  CREATE UNIQUE INDEX operation_action ON operation (action_id, log);
  CREATE TABLE event (
    place INTEGER PRIMARY KEY, log INTEGER NOT NULL, id TEXT NOT NULL,
    entity INTEGER NOT NULL, entity_version INTEGER NOT NULL, previous INTEGER NOT NULL, prior TEXT,
    assigned TEXT, chain TEXT NOT NULL, leaf TEXT, draft TEXT
  ) STRICT;
  CREATE UNIQUE INDEX event_id ON event (id, log);
  CREATE TABLE entity (
    key INTEGER PRIMARY KEY, log INTEGER NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL,
    version INTEGER NOT NULL, last_version INTEGER NOT NULL, fields TEXT,
    created_by TEXT NOT NULL, created_at TEXT NOT NULL, updated_by TEXT NOT NULL, updated_at TEXT NOT NULL,
    arrival INTEGER NOT NULL, assigned TEXT
  ) STRICT;
  CREATE UNIQUE INDEX entity_name ON entity (log, type, id);
  CREATE TABLE replica (
    id TEXT PRIMARY KEY, account TEXT NOT NULL, generation INTEGER NOT NULL, instance TEXT NOT NULL,
    first_seen_at TEXT NOT NULL, last_seen_at TEXT NOT NULL, app TEXT, health TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE permit (
    log INTEGER NOT NULL, replica TEXT NOT NULL, generation INTEGER NOT NULL, number INTEGER NOT NULL,
    proven INTEGER NOT NULL, seen_at TEXT NOT NULL, PRIMARY KEY (log, replica)
  ) STRICT, WITHOUT ROWID;
`;

/** Durability first (LG9): the journal is synced, past the drive's cache where the system can, before a commit returns. */
const DURABLE = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA checkpoint_fullfsync = ON;
  PRAGMA wal_autocheckpoint = 4000;
`;
const BOUNDED = `
  PRAGMA cache_size = -8192;
  PRAGMA temp_store = MEMORY;
  PRAGMA journal_size_limit = 16777216;
  PRAGMA trusted_schema = OFF;
`;

/** The file of a workspace whose creation did not come to its end: it is as if it were not there. */
export class UnbornFile extends Error {
  override readonly name = 'UnbornFile';
}

/**
 * Prepares a connection. `create` fills a new file; tables and first rows come in one transaction, so a file has all of
 * them or is not there. One of a newer format, or of another program, is refused unread.
 */
export function prepareFile(db: DatabaseSync, { isReadOnly, create }: PrepareOptions): void {
  const applicationId = pragma(db, 'application_id');
  const format = Number(pragma(db, 'user_version'));
  const isNew = applicationId === 0 && format === 0 && pragma(db, 'schema_version') === 0;
  if (isNew && create === null) throw new UnbornFile();
  if (!isNew && (applicationId !== APPLICATION_ID || create !== null))
    throw new StoreFault('damaged', { isRolledBack: true });
  if (format > FORMAT) throw new StoreFault('too-new', { isRolledBack: true });
  db.exec(BOUNDED);
  if (isReadOnly) return;
  if (pragma(db, 'journal_mode = WAL') !== 'wal') throw new StoreFault('failed', { isRolledBack: true });
  db.exec(DURABLE);
  if (create === null) return;
  db.exec(`BEGIN IMMEDIATE; ${TABLES}`);
  create(db);
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT}; COMMIT`);
}

export interface PrepareOptions {
  readonly isReadOnly: boolean;
  /** Writes the first rows of a new file. */
  readonly create: ((db: DatabaseSync) => void) | null;
}

const pragma = (db: DatabaseSync, what: string): unknown => {
  const row = db.prepare(`PRAGMA ${what}`).get();
  return row === undefined ? undefined : Object.values(row)[0];
};
