import { createServer, type Server } from 'node:http';
import { hexToBytes, type Logger, uuidv7 as newUuid } from '@holdfast/core';
import { getRequestListener } from '@hono/node-server';
import { pino } from 'pino';
import { createNodePlatform } from './adapters/node/platform.ts';
import { admitOf, DEFAULT_PORT, defineLedger, type LedgerConfig, schemaDataOf } from './config.ts';
import { createEngine } from './engine/create-engine.ts';
import type { Engine } from './engine/engine.ts';
import { createApp } from './http/app.ts';
import { createLiveDoor, type LiveDoor } from './http/live.ts';
import { createOrigins } from './http/origins.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { openSqliteStore } from './stores/sqlite/store.ts';

/** A ledger in a process of yours: `fetch` for any server, `attach` for a Node server that also speaks WebSocket. */
export interface Ledger extends AsyncDisposable {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Adds the realtime door to a Node server that serves `fetch`. */
  attach(server: Server): void;
  /** For operators: status, usage, verification. */
  readonly engine: Engine;
  readonly metrics: Metrics;
  /** Ready to take work: its store is open and it is not closing. */
  readonly isReady: boolean;
  /** Takes no new work, says goodbye to sockets, finishes what is in work, closes the store. */
  close(): Promise<void>;
}

/**
 * Opens a ledger. Rejects when the store cannot be opened, or is held open by another ledger process.
 *
 * @example
 * const ledger = await createLedger(defineLedger({ schema, store: { sqlite: './data' }, access }));
 * export default { fetch: ledger.fetch };
 */
export async function createLedger(given: LedgerConfig): Promise<Ledger> {
  const config = defineLedger(given);
  const logger = createLogger(config);
  const platform = createNodePlatform();
  const store = openSqliteStore({ folder: config.store.sqlite, platform, logger });
  const admit = admitOf(config.admit);
  const engine = createEngine({
    store,
    platform,
    logger,
    ...schemaDataOf(config),
    ...(admit === undefined ? {} : { admit }),
    ...(config.quota === undefined ? {} : { quota: config.quota }),
    ...(config.logKey === undefined ? {} : { logKey: hexToBytes(config.logKey) }),
    ...(config.createOnFirstUse === undefined ? {} : { createOnFirstUse: config.createOnFirstUse }),
    ...(config.limits === undefined ? {} : { limits: config.limits }),
  });
  const origins = createOrigins(config.origins ?? []);
  const metrics = createMetrics(engine);
  const now = () => platform.clock.now();
  const app = createApp({
    engine,
    access: config.access,
    origins,
    logger,
    newRequestId: () => newUuid(now(), platform.random),
    observe: metrics.observe,
    now,
  });
  const live: LiveDoor = createLiveDoor({ engine, access: config.access, origins, logger, now });
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    // The engine says goodbye to every session first: on a socket that is closing already nothing can be said.
    closing ??= engine.close();
    live.close();
    return closing;
  };
  return {
    fetch: app.fetch,
    attach: (server) => {
      server.on('upgrade', (request, socket, head) => live.upgrade(request, socket, head));
    },
    engine,
    metrics,
    get isReady() {
      return closing === null;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Structured logs, one JSON object a line, control characters escaped; never a payload, never a token (S19). */
function createLogger(config: LedgerConfig): Logger {
  const log = pino({ level: config.logLevel ?? 'info', base: null, timestamp: pino.stdTimeFunctions.isoTime });
  return (level, message, facts) => log[level](facts ?? {}, message);
}

export interface Served extends AsyncDisposable {
  readonly ledger: Ledger;
  /** `http://127.0.0.1:4800` */
  readonly url: string;
  readonly adminUrl: string;
  close(): Promise<void>;
}

/** Slow and silent peers end here, whatever they send (S35). */
const HEADERS_MS = 10_000;
const REQUEST_MS = 60_000;
/** Longer than clients and proxies keep an idle connection: whoever may send on it is the one to close it (F75). */
const KEEP_ALIVE_MS = 75_000;
const HEADER_BYTES_MAX = 16 * 1024;
/** Open requests get this long at shutdown. */
const DRAIN_MS = 5_000;

/** Runs a ledger: the public listener, and health and metrics on one of their own. Port 0 takes any free one. */
export async function serveLedger(config: LedgerConfig): Promise<Served> {
  const ledger = await createLedger(config);
  const host = config.listen?.host ?? '127.0.0.1';
  const port = config.listen?.port ?? DEFAULT_PORT;
  const adminHost = config.admin?.host ?? '127.0.0.1';
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    getRequestListener(ledger.fetch),
  );
  ledger.attach(server);
  const admin = createServer(getRequestListener((request) => answerAdmin(ledger, new URL(request.url).pathname)));
  try {
    await listen(server, host, port);
    await listen(admin, adminHost, config.admin?.port ?? (port === 0 ? 0 : port + 1));
  } catch (cause) {
    await Promise.all([closed(server), closed(admin), ledger.close()]);
    throw cause;
  }
  let closing: Promise<void> | null = null;
  // Answered while closing: nobody needs its connection any more, however long a client would keep it.
  server.on('request', (_request, response) => {
    response.once('close', () => {
      if (closing !== null) server.closeIdleConnections();
    });
  });
  const close = (): Promise<void> => {
    closing ??= (async () => {
      const serverClosed = closed(server);
      server.closeIdleConnections();
      const drain = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
      await ledger.close();
      server.closeIdleConnections();
      await serverClosed;
      clearTimeout(drain);
      admin.closeAllConnections();
      await closed(admin);
    })();
    return closing;
  };
  return { ledger, url: urlOf(server, host), adminUrl: urlOf(admin, adminHost), close, [Symbol.asyncDispose]: close };
}

async function answerAdmin(ledger: Ledger, path: string): Promise<Response> {
  const text = (status: number, body: string) =>
    new Response(`${body}\n`, { status, headers: { 'Cache-Control': 'no-store' } });
  switch (path) {
    case '/healthz':
      return text(200, 'ok');
    case '/readyz':
      return ledger.isReady ? text(200, 'ready') : text(503, 'closing');
    case '/metrics':
      return new Response(await ledger.metrics.text(), { headers: { 'Content-Type': ledger.metrics.contentType } });
    default:
      return text(404, 'not found');
  }
}

const listen = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });

const closed = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()));

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** An engine that only reads a ledger's folder, beside the ledger that may be running on it: for verification and usage. */
export function openEngineReadOnly(dir: string): Engine {
  const platform = createNodePlatform();
  const logger: Logger = () => undefined;
  return createEngine({
    store: openSqliteStore({ folder: dir, platform, logger, isReadOnly: true }),
    platform,
    logger,
  });
}
