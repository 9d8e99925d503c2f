import {
  type ClientFrame,
  decodeServerFrame,
  type Fault,
  type Json,
  LIMITS,
  PROTOCOL,
  parseJson,
  type ServerFrame,
  type Socket,
} from '@holdfast/core';
import { createFollows, type Follows } from './live-follows.ts';
import type { SyncParts } from './parts.ts';
import { urlOf } from './request.ts';
import { type Backoff, clampRetryMs, createBackoff } from './retry.ts';
import { createSocketLife } from './socket-life.ts';

/**
 * The socket of a replica: one for all its logs (5.4). Owns one connection at a time; cached only. Each connection has a
 * number, and whatever an older one still delivers is ignored (RT6). It never connects again by itself: after every end it
 * says so, and a handshake over HTTP comes first.
 */
export interface LiveSocket {
  /** Does nothing while one is open or opening. */
  open(): void;
  /** Follows the log from where it stands now; does nothing where that is so already. */
  follow(log: string): void;
  unfollow(log: string): void;
  /** Every version up to this one is committed here (RT7). */
  held(log: string, version: number): void;
  /** Closed by us: nothing is told, nothing reconnects. */
  close(): void;
  /** The ledger tells us of this log's events as they come, and has proven where we stand. */
  covers(log: string): boolean;
  readonly isOpen: boolean;
  readonly backoff: Backoff;
}

export interface LiveHooks {
  /** What is missing is to be pulled: a gap, a bound, or the ledger says so. */
  behind(log: string, head: number): void;
  /** A handshake is to say where we stand. */
  doubt(log: string, fault: Fault): void;
  /** The ledger proved to be alive and to see us where we are; `isApplied`: something of this log moved. */
  alive(log: string, isApplied: boolean): void;
  /** Not wanted by us. A handshake is due after `inMs`. */
  ended(end: { readonly reason: string; readonly inMs: number }): void;
  /** The credential is another account's (AC2). */
  otherAccount(): void;
}

interface Connection {
  readonly number: number;
  readonly openedAtMs: number;
  socket: Socket | null;
  isWelcome: boolean;
  readonly follows: Follows;
}

export function createLiveSocket(parts: SyncParts, hooks: LiveHooks): LiveSocket {
  const { clock, random } = parts.platform;
  const backoff = createBackoff(random);
  let number = 0;
  let current: Connection | null = null;
  let cancelWelcome = () => {};

  const life = createSocketLife({
    clock,
    random,
    ping: (nonce) => send({ type: 'ping', nonce }),
    dead: (reason) => end(reason),
  });

  const send = (frame: ClientFrame) => {
    try {
      current?.socket?.send(JSON.stringify(frame));
    } catch {
      end('send-failed');
    }
  };

  const open = () => {
    if (current !== null) return;
    number += 1;
    const connection: Connection = {
      number,
      openedAtMs: clock.monotonic(),
      socket: null,
      isWelcome: false,
      follows: createFollows(parts, { ...hooks, send }),
    };
    current = connection;
    cancelWelcome = clock.timer(parts.settings.welcomeMs, () => isCurrent(connection) && end('no-welcome'));
    void connect(connection);
  };

  const connect = async (connection: Connection) => {
    try {
      const token = await parts.token();
      if (!isCurrent(connection)) return;
      const ours = (run: () => void) => () => void (isCurrent(connection) && run());
      connection.socket = parts.openSocket(liveUrl(parts), {
        open: ours(() => send(helloOf(parts, token))),
        message: (text) => void (isCurrent(connection) && receive(connection, text)),
        closed: (reason) => void (isCurrent(connection) && end(reason)),
      });
    } catch {
      if (isCurrent(connection)) end('not-opened');
    }
  };

  const isCurrent = (connection: Connection): boolean => current?.number === connection.number;

  const receive = (connection: Connection, text: string) => {
    if (!life.heard()) return;
    const parsed =
      text.length > LIMITS.bodyBytesMax
        ? null
        : parseJson(text, { bytesMax: LIMITS.bodyBytesMax, depthMax: LIMITS.jsonDepthMax + 16 });
    if (parsed === null || !parsed.ok) return end('malformed');
    const frame = decodeServerFrame(parsed.value);
    if (!frame.ok) return passOver(connection, parsed.value);
    take(connection, frame.value, text.length);
  };

  /** A frame of a later ledger is passed over; events that cannot be read are a gap. */
  const passOver = (connection: Connection, json: Json) => {
    if (typeof json !== 'object' || json === null || !('type' in json) || !('log' in json)) return;
    if (json['type'] === 'events' && typeof json['log'] === 'string') connection.follows.gap(json['log']);
  };

  const take = (connection: Connection, frame: ServerFrame, bytes: number) => {
    switch (frame.type) {
      case 'welcome':
        return welcome(connection, frame);
      case 'ping':
        return send({ type: 'pong', nonce: frame.nonce });
      case 'pong':
        return life.pong(frame.nonce);
      case 'session-ending':
        return end('session-ending');
      case 'going-away':
        return end('going-away', frame.retryMs);
      case 'refused':
        return end(`refused: ${frame.code}`);
      default:
        return connection.follows.take(frame, bytes);
    }
  };

  const welcome = (connection: Connection, frame: Extract<ServerFrame, { type: 'welcome' }>) => {
    cancelWelcome();
    if (frame.account !== parts.state.identity.account) {
      close();
      return hooks.otherAccount();
    }
    connection.isWelcome = true;
    life.begin(frame.pingMs);
    connection.follows.welcome();
  };

  const close = () => {
    const closing = current;
    current = null;
    cancelWelcome();
    life.stop();
    closing?.follows.stop();
    try {
      closing?.socket?.close();
    } catch {
      // It is over for us either way.
    }
  };

  const end = (reason: string, retryMs?: number) => {
    const ending = current;
    if (ending === null) return;
    close();
    const isStable = ending.isWelcome && clock.monotonic() - ending.openedAtMs >= parts.settings.stableMs;
    if (isStable) backoff.reset();
    parts.journal.write('socket', { number: ending.number, reason });
    hooks.ended({ reason, inMs: delayAfter({ reason, retryMs, isStable }) });
  };

  /** RT6: a handshake comes next. Spread, so that all devices of a restarted ledger do not come at once (F80). */
  const delayAfter = (of: { reason: string; retryMs: number | undefined; isStable: boolean }): number => {
    if (of.reason === 'slept') return 0;
    const spreadMs = random.unit() * LIMITS.retryMinMs;
    if (of.retryMs !== undefined) return clampRetryMs(of.retryMs) + spreadMs;
    return of.isStable || of.reason === 'session-ending' ? spreadMs : backoff.next();
  };

  return {
    open,
    follow: (log) => current?.follows.follow(log),
    unfollow: (log) => current?.follows.unfollow(log),
    held: (log, version) => current?.follows.held(log, version),
    close,
    covers: (log) => current?.isWelcome === true && current.follows.covers(log),
    get isOpen() {
      return current?.isWelcome === true;
    },
    backoff,
  };
}

/** The token is in the first message, never in the address (F186). */
const helloOf = (parts: SyncParts, token: string | undefined): ClientFrame => {
  const { replicaId, generation, hostInstance } = parts.state.identity;
  return {
    type: 'hello',
    protocol: PROTOCOL,
    replica: { id: replicaId, generation, instance: hostInstance },
    ...(token === undefined || token === '' ? {} : { token }),
  };
};

const liveUrl = (parts: SyncParts): string => urlOf(parts, '/live').replace(/^http/, 'ws');
