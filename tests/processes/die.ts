import http from 'node:http';
import { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * How a program of these tests kills itself at a named point: the platform below the production code is wrapped (statements
 * of SQLite, `node:http`), and the first time that the armed point is reached the process is gone, by SIGKILL.
 */
let armed: string | null = null;

/** From now on. Points are named in `DevicePoint` and `LedgerPoint`. */
export function arm(point: string): void {
  armed = point;
}

/** SIGKILL to oneself takes effect before the call returns: no line after it runs. */
function reach(point: string): void {
  if (point === armed) process.kill(process.pid, 'SIGKILL');
}

// ── SQLite ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface StatementWatch {
  before(sql: string): void;
  after(sql: string): void;
}

function watchStatements(watch: StatementWatch): void {
  for (const name of ['run', 'get', 'all'] as const) {
    const original = StatementSync.prototype[name] as (...values: unknown[]) => unknown;
    const watched = function (this: StatementSync, ...values: unknown[]): unknown {
      const sql = this.sourceSQL;
      watch.before(sql);
      const result = Reflect.apply(original, this, values);
      watch.after(sql);
      return result;
    };
    Object.defineProperty(StatementSync.prototype, name, { value: watched });
  }
  const exec = DatabaseSync.prototype.exec;
  Object.defineProperty(DatabaseSync.prototype, 'exec', {
    value: function (this: DatabaseSync, sql: string): void {
      watch.before(sql);
      Reflect.apply(exec, this, [sql]);
      watch.after(sql);
    },
  });
}

// ── a device ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const DEVICE_POINTS = [
  'before send',
  'after send',
  'after the commit and before the answer',
  'after the answer and before apply',
  'inside a page',
  'inside a rebase',
] as const;
export type DevicePoint = (typeof DEVICE_POINTS)[number];

const reachDevice = (point: DevicePoint): void => reach(point);

export function watchDevice(): void {
  let hasAnswer = false;
  let inserted = 0;
  let rewritten = 0;
  watchStatements({
    before: (sql) => {
      if (sql.startsWith('BEGIN')) {
        if (hasAnswer) reachDevice('after the answer and before apply');
        hasAnswer = false;
        inserted = 0;
        rewritten = 0;
      }
      if (sql.startsWith('INSERT INTO main.hf_event ')) {
        inserted += 1;
        if (inserted === 2) reachDevice('inside a page');
      }
      // A chain of two: the first has new bytes already, the second has not.
      if (sql.startsWith('UPDATE main.hf_outbox SET request_id = ?')) {
        rewritten += 1;
        if (rewritten === 2) reachDevice('inside a rebase');
      }
    },
    after: () => undefined,
  });
  const request = http.request as (...parts: unknown[]) => http.ClientRequest;
  const watched = (...parts: unknown[]): http.ClientRequest => {
    const isPush = String(parts[0]).endsWith('/push');
    if (isPush) reachDevice('before send');
    const sending = Reflect.apply(request, http, parts);
    if (!isPush) return sending;
    // The last byte is with the operating system, which delivers it whatever becomes of this process.
    sending.once('finish', () => reachDevice('after send'));
    sending.once('response', (answer) => {
      // Its first bytes are here: the ledger has committed, and nobody has read what.
      reachDevice('after the commit and before the answer');
      answer.once('end', () => {
        hasAnswer = true;
      });
    });
    return sending;
  };
  Object.assign(http, { request: watched });
}

// ── a ledger ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const LEDGER_POINTS = [
  'before send',
  'after send',
  'inside an append',
  'after the commit and before the answer',
  'after the answer and before apply',
  'inside a page',
  'inside a rebase',
] as const;
export type LedgerPoint = (typeof LEDGER_POINTS)[number];

const reachLedger = (point: LedgerPoint): void => reach(point);

export function watchLedger(): void {
  let pushes = 0;
  let inserted = 0;
  watchStatements({
    before: (sql) => {
      if (sql.startsWith('BEGIN')) {
        inserted = 0;
        if (pushes > 0) reachLedger('after send');
      }
      if (sql.startsWith('INSERT INTO event ')) {
        inserted += 1;
        if (inserted === 2) reachLedger('inside an append');
      }
    },
    after: (sql) => {
      if (sql === 'COMMIT' && pushes > 0) reachLedger('after the commit and before the answer');
    },
  });
  const emit = http.Server.prototype.emit as (...parts: unknown[]) => boolean;
  Object.defineProperty(http.Server.prototype, 'emit', {
    value: function (this: http.Server, event: string, ...parts: unknown[]): boolean {
      if (event === 'request') {
        const [request, response] = parts as [http.IncomingMessage, http.ServerResponse];
        const url = request.url ?? '';
        if (url.endsWith('/handshake')) response.once('finish', () => reachLedger('before send'));
        if (url.endsWith('/push')) watchPush(response, (by) => (pushes += by));
        if (/\/events\?/.test(url)) halvePage(response);
      }
      return Reflect.apply(emit, this, [event, ...parts]);
    },
  });
}

function watchPush(response: http.ServerResponse, count: (by: 1 | -1) => void): void {
  count(1);
  let said = '';
  const end = response.end as (...parts: unknown[]) => http.ServerResponse;
  response.end = (...parts: unknown[]) => {
    if (typeof parts[0] !== 'function') said = String(parts[0] ?? '');
    return Reflect.apply(end, response, parts);
  };
  response.once('finish', () => {
    count(-1);
    reachLedger('after the answer and before apply');
    // Its conflict is known to the device, which rebases while there is no ledger.
    if (said.includes('"version-conflict"')) reachLedger('inside a rebase');
  });
}

/** Half of a page has left when the process ends. */
function halvePage(response: http.ServerResponse): void {
  if (armed !== ('inside a page' satisfies LedgerPoint)) return;
  const end = response.end as (...parts: unknown[]) => http.ServerResponse;
  response.end = (...parts: unknown[]) => {
    const body = Buffer.from(parts[0] as string | Uint8Array);
    if (body.byteLength < 2) return Reflect.apply(end, response, parts);
    response.write(body.subarray(0, body.byteLength >> 1), () => reachLedger('inside a page'));
    return response;
  };
}
