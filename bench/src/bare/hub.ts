import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DatabaseSync } from 'node:sqlite';
import { WebSocketServer } from 'ws';
import type { BareEvent } from './event.ts';
import { openBare } from './sqlite.ts';

/**
 * The least server that does a ledger's work: takes events by POST, appends those of requests that arrive together in one
 * durable transaction, tells every socket, and answers with the number of the last event. A POST with `?after=N`, from a
 * device without a socket, is also answered with what others appended after that number, as a ledger answers a push: or
 * one side would carry every writer's events to every other, and the other side would not. GET gives all issues, or all
 * events with `/events`.
 */
export interface BareHub {
  readonly url: string;
  readonly db: DatabaseSync;
  close(): Promise<void>;
}

interface Asked {
  /** A JSON list of events. */
  readonly text: string;
  /** Null: it has a socket, and is told nothing here. */
  readonly after: number | null;
  readonly answer: (body: string) => void;
}

/** Requests that are remembered for answers: more than any writer here is behind. */
const TOLD_MAX = 256;

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
  // Requests that arrive together are one transaction: group commit. As the ledger does, a group waits for one more turn
  // as long as the last one brought a request, so that both sides pay as many syncs.
  let queue: Asked[] = [];
  const told: { readonly to: number; readonly text: string }[] = [];
  let head = 0;
  const gather = (before: number) =>
    setImmediate(() => {
      if (queue.length > before) gather(queue.length);
      else appendGroup();
    });
  const appendGroup = () => {
    const group = queue;
    queue = [];
    const events = group.map(({ text }) => JSON.parse(text) as BareEvent[]);
    append(events.flat());
    const first = told.length;
    for (const [at, { text }] of group.entries()) {
      head += (events[at] as BareEvent[]).length;
      told.push({ to: head, text: text.slice(1, -1) });
      for (const socket of sockets.clients) socket.send(text);
    }
    for (const [at, { after, answer }] of group.entries())
      answer(`{"through":${head},"events":[${others(after, first + at)}]}`);
    told.splice(0, told.length - TOLD_MAX);
  };
  /** The texts as they came, without the one that asks. */
  const others = (after: number | null, own: number): string => {
    if (after === null) return '';
    return told
      .filter(({ to }, at) => to > after && at !== own)
      .map(({ text }) => text)
      .join(',');
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
      const after = /\?after=(\d+)$/.exec(asked.url ?? '')?.[1];
      queue.push({
        text,
        after: after === undefined ? null : Number(after),
        answer: (body) => {
          response.setHeader('Content-Type', 'application/json');
          response.end(body);
        },
      });
      if (queue.length === 1) gather(1);
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
