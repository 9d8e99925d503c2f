import type { DatabaseSync } from 'node:sqlite';
import { isUuidV7 } from '@holdfast/core';
import { StoreFault } from '../../engine/store-port.ts';

/**
 * The file of one workspace. Written for ever: what stands here is only ever added to, with a new `user_version` for what
 * older code could not read.
 *
 * What a commit costs is the pages that it touches, each of them journaled and synced whole. Therefore:
 *
 * - Rows of a log carry its key in the upper part of one integer, `place = key · 2^33 + version`, so that a log's events
 *   lie side by side in the order in which they are read, without a second index.
 * - What an operation's events share stands in the row of its last event. A log's head is its last event: nothing is
 *   written to say so a second time.
 * - Ids of requests, actions and events are made at one moment and begin with it (UUID 7), so that in one index they are
 *   neighbours. An event's own id, prior, type and entity id stand in its draft; after an erasure, in `erased`.
 * - The events of one entity are a list: each names the version of the one before it, and the entity the last one.
 * - Digests are bytes here and lower-case hex everywhere else.
 */
export const APPLICATION_ID = 0x486f6c4c;
export const FORMAT = 1;

const VERSIONS_PER_LOG = 2 ** 33;
export const placeOf = (logKey: number, version: number): number => logKey * VERSIONS_PER_LOG + version;
export const versionAt = (place: number): number => place % VERSIONS_PER_LOG;
/** Above every place of this log. */
export const placeAfterLog = (logKey: number): number => (logKey + 1) * VERSIONS_PER_LOG;

/** What an id names. */
export const NAMES = { request: 1, action: 2, event: 3 } as const;

/** How a name comes to SQLite: of a UUID the digits, beside the text as it is. Half of an index is its keys. */
export const nameOf = (id: string): readonly [hex: string | null, text: string] =>
  isUuidV7(id) ? [id.replaceAll('-', ''), id] : [null, id];

const TABLES = `
  CREATE TABLE workspace (
    one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, created_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE log (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, identity TEXT NOT NULL, chain TEXT NOT NULL,
    signature TEXT NOT NULL, state TEXT NOT NULL, moved_to TEXT, serials TEXT NOT NULL, created_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE epoch (
    log INTEGER NOT NULL, seq INTEGER NOT NULL, epoch TEXT NOT NULL, after INTEGER NOT NULL, why TEXT NOT NULL,
    at TEXT NOT NULL, PRIMARY KEY (log, seq)
  ) STRICT, WITHOUT ROWID;
  -- From count on: of the operation that this event is the last one of, else null. nth counts a log's operations.
  CREATE TABLE event (
    place INTEGER PRIMARY KEY, entity INTEGER NOT NULL, entity_version INTEGER NOT NULL, previous INTEGER NOT NULL,
    chain BLOB NOT NULL, assigned TEXT, erased TEXT,
    count INTEGER, nth INTEGER, request_id TEXT, action_id TEXT, identity BLOB, replica_id TEXT, actor TEXT,
    recorded_at TEXT, origin TEXT, signature BLOB, bytes INTEGER, part_events INTEGER,
    draft TEXT
  ) STRICT;
  -- id: the 16 bytes of a UUID, or the text of another id. place: of the event, or of the last event of the operation.
  CREATE TABLE name (
    id ANY NOT NULL, log INTEGER NOT NULL, kind INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (id, log, kind)
  ) STRICT, WITHOUT ROWID;
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
