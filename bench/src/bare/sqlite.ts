import { DatabaseSync } from 'node:sqlite';

/** The least schema that can hold an event log and an issue table: what every bare measurement writes to. */
const BARE_SCHEMA = `
  CREATE TABLE IF NOT EXISTS event (version INTEGER PRIMARY KEY, id TEXT NOT NULL, entity TEXT NOT NULL, body TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS issue (id TEXT PRIMARY KEY, title TEXT, body TEXT, status TEXT, assignee TEXT, labels TEXT, priority INTEGER,
    version INTEGER, updated_at TEXT) WITHOUT ROWID;
`;

export interface BareOptions {
  /** `full` is what a ledger needs, `normal` what a device does. */
  readonly durability: 'normal' | 'full';
}

export function openBare(file: string, { durability }: BareOptions): DatabaseSync {
  const db = new DatabaseSync(file);
  db.exec(
    `PRAGMA journal_mode=WAL; PRAGMA synchronous=${durability === 'full' ? 'FULL' : 'NORMAL'}; PRAGMA fullfsync=ON; PRAGMA wal_autocheckpoint=4000`,
  );
  db.exec(BARE_SCHEMA);
  return db;
}

/** An event row in, an issue row updated: one transaction. */
export function bareCommitter(db: DatabaseSync): (version: number, issue: string, body: string, title: string) => void {
  const insert = db.prepare('INSERT INTO event (version, id, entity, body) VALUES (?, ?, ?, ?)');
  const update = db.prepare('UPDATE issue SET title = ?, version = version + 1, updated_at = ? WHERE id = ?');
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  return (version, issue, body, title) => {
    begin.run();
    insert.run(version, `event-${version}`, issue, body);
    update.run(title, '2026-11-30T00:00:00.000Z', issue);
    commit.run();
  };
}
