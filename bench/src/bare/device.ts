import type { DatabaseSync } from 'node:sqlite';
import { WebSocket } from 'ws';
import type { RealIssue } from '../issues.ts';
import type { BareEvent } from './event.ts';
import { openBare } from './sqlite.ts';

/** The least device: a file with events and issues, and a socket. It trusts everything that it is told. */
export interface BareDevice {
  readonly db: DatabaseSync;
  /** One transaction: event in, issue updated. */
  commit(event: BareEvent): void;
  /** One transaction for all of them. */
  apply(events: readonly BareEvent[]): void;
  close(): void;
}

export function openBareDevice(file: string): BareDevice {
  const db = openBare(file, { durability: 'normal' });
  const insert = db.prepare('INSERT INTO event (version, id, entity, body) VALUES (NULL, ?, ?, ?)');
  const update = db.prepare('UPDATE issue SET title = ?, version = version + 1, updated_at = ? WHERE id = ?');
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const apply = (events: readonly BareEvent[]) => {
    begin.run();
    for (const { id, entity, title, body } of events) {
      insert.run(id, entity, body);
      update.run(title, '2026-11-30T00:00:00.000Z', entity);
    }
    commit.run();
  };
  return { db, commit: (event) => apply([event]), apply, close: () => db.close() };
}

export interface BareIssue {
  readonly id: string;
  readonly title: string;
  readonly body: string;
  readonly status: string;
  readonly labels: string;
  readonly priority: number;
}

export const bareIssue = (issue: RealIssue, id: string): BareIssue => ({
  id,
  title: issue.title,
  body: issue.body,
  status: issue.state === 'open' ? 'todo' : 'done',
  labels: JSON.stringify(issue.labels),
  priority: issue.number % 5,
});

/** In one transaction. */
export function insertIssues(db: DatabaseSync, issues: readonly BareIssue[]): void {
  const insert = db.prepare(
    'INSERT INTO issue (id, title, body, status, labels, priority, version, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, ?)',
  );
  db.exec('BEGIN IMMEDIATE');
  for (const { id, title, body, status, labels, priority } of issues)
    insert.run(id, title, body, status, labels, priority, '2026-11-30T00:00:00.000Z');
  db.exec('COMMIT');
}

/** A socket to the hub that hands over every list of events that comes in. */
export function followHub(url: string, run: (events: readonly BareEvent[]) => void): Promise<() => void> {
  const socket = new WebSocket(url.replace('http', 'ws'));
  socket.on('message', (data) => run(JSON.parse(String(data)) as BareEvent[]));
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(() => socket.terminate()));
    socket.once('error', reject);
  });
}
