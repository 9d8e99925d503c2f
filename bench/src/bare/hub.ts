import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DatabaseSync } from 'node:sqlite';
import { WebSocketServer } from 'ws';
import type { BareEvent } from './event.ts';
import { openBare } from './sqlite.ts';

/**
 * The least server: takes events by POST, appends those of requests that arrive together in one durable transaction, tells every socket. GET gives
 * all issues, or all events with `/events`.
 */
export interface BareHub {
  readonly url: string;
  readonly db: DatabaseSync;
  close(): Promise<void>;
}

export async function openBareHub(file: string): Promise<BareHub> {
  const db = openBare(file, { durability: 'full' });
  const insert = db.prepare('INSERT INTO event (version, id, entity, body) VALUES (NULL, ?, ?, ?)');
  const update = db.prepare('UPDATE issue SET title = ?, version = version + 1, updated_at = ? WHERE id = ?');
  const allIssues = db.prepare('SELECT id, title, body, status, labels, priority FROM issue');
  const allEvents = db.prepare('SELECT id, entity, body FROM event ORDER BY version');
  const append = (events: readonly BareEvent[]) => {
    db.exec('BEGIN IMMEDIATE');
    for (const { id, entity, title, body } of events) {
      insert.run(id, entity, body);
      update.run(title, '2026-11-30T00:00:00.000Z', entity);
    }
    db.exec('COMMIT');
  };
  // Requests that arrive together are one transaction: group commit.
  let queue: { readonly text: string; readonly answer: () => void }[] = [];
  const appendGroup = () => {
    const group = queue;
    queue = [];
    append(group.flatMap(({ text }) => JSON.parse(text) as BareEvent[]));
    for (const { text, answer } of group) {
      for (const socket of sockets.clients) socket.send(text);
      answer();
    }
  };
  const server = createServer((asked, response) => {
    if (asked.method === 'GET') {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify(asked.url === '/events' ? allEvents.all() : allIssues.all()));
      return;
    }
    const parts: Buffer[] = [];
    asked.on('data', (part: Buffer) => parts.push(part));
    asked.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8');
      queue.push({ text, answer: () => response.end('{}') });
      if (queue.length === 1) setImmediate(appendGroup);
    });
  });
  const sockets = new WebSocketServer({ server });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    db,
    close: async () => {
      for (const socket of sockets.clients) socket.terminate();
      sockets.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      db.close();
    },
  };
}

/** A sender that keeps its connection. */
export interface Sender {
  send(events: readonly BareEvent[]): Promise<void>;
  close(): void;
}

export function openSender(url: string): Sender {
  const agent = new Agent({ keepAlive: true });
  return {
    send: (events) =>
      new Promise((resolve, reject) => {
        const asked = request(url, { agent, method: 'POST' }, (answer) => {
          answer.resume();
          answer.once('end', () => resolve());
        });
        asked.once('error', reject);
        asked.end(JSON.stringify(events));
      }),
    close: () => agent.destroy(),
  };
}
