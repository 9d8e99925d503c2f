import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { LIMITS, type Logger } from '@holdfast/core';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Access, type Caller, roleIn } from '../access/access.ts';
import type { Actor, Engine, LiveAccess, LiveSocket } from '../engine/engine.ts';
import { loggedError } from '../engine/logged-error.ts';
import type { Origins } from './origins.ts';

/**
 * The realtime door (5.4): upgrades `/v1/workspaces/:w/live`, exactly configured origins only, and hands text messages to
 * the engine's session. No data before `hello`; a token never travels in the address (S30–S38).
 */
export interface LiveDoor {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  readonly open: number;
  close(): void;
}

export interface LiveParts {
  readonly engine: Engine;
  readonly access: Access;
  readonly origins: Origins;
  readonly logger: Logger;
  readonly now: () => number;
  /** Sockets of the whole process. Beyond: 503. */
  readonly socketsMax?: number;
}

const PATH = /^\/v1\/workspaces\/([^/?#]{1,400})\/live$/;
const SOCKETS_MAX = 10_000;
/** A peer that does not answer a goodbye is cut after this, so that it holds up no shutdown. */
const GOODBYE_MS = 5_000;

export function createLiveDoor(parts: LiveParts): LiveDoor {
  const { engine, access, origins, logger, now } = parts;
  // No per-message compression: memory per socket stays small, and secrets never share a window (S37).
  const options = {
    noServer: true,
    perMessageDeflate: false,
    maxPayload: LIMITS.socketFrameBytesMax,
    autoPong: false,
    closeTimeout: GOODBYE_MS,
  };
  const server = new WebSocketServer(options);

  const refuse = (socket: Duplex, status: string) => {
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  };

  const actorOf = (caller: Caller | null, workspace: string): Actor | null => {
    if (caller === null || (caller.expiresAtMs !== undefined && caller.expiresAtMs <= now())) return null;
    const role = roleIn(caller, workspace);
    if (role === null) return null;
    return {
      account: caller.account,
      role,
      ...(caller.expiresAtMs === undefined ? {} : { expiresAtMs: caller.expiresAtMs }),
    };
  };

  const accessOf = (workspace: string, cookie: string | null): LiveAccess => {
    let presented: string | null = null;
    const verify = async () => actorOf(await access.verify({ token: presented, cookie }), workspace);
    return {
      admit: (token) => {
        presented = token ?? null;
        return verify();
      },
      stillAdmitted: () => verify(),
    };
  };

  /** A frame for many sockets is one text: it is encoded once. */
  let last = { text: '', bytes: Buffer.alloc(0) };
  const encoded = (text: string): Buffer => {
    if (text !== last.text) last = { text, bytes: Buffer.from(text, 'utf8') };
    return last.bytes;
  };

  const serve = (workspace: string, cookie: string | null, peer: WebSocket) => {
    const socket: LiveSocket = {
      send: (text) => peer.send(encoded(text), { binary: false }),
      close: (code, reason) => peer.close(code, reason.slice(0, 120)),
      terminate: () => peer.terminate(),
      get bufferedBytes() {
        return peer.bufferedAmount;
      },
    };
    const connection = engine.live(workspace, socket, accessOf(workspace, cookie));
    peer.on('message', (data, isBinary) => {
      if (isBinary) peer.close(1003, 'text only');
      else connection.message(String(data));
    });
    peer.on('ping', (data) => {
      if (connection.control()) peer.pong(data);
    });
    peer.on('pong', () => void connection.control());
    peer.on('error', (cause) => logger('debug', 'A socket failed.', { error: loggedError(cause) }));
    peer.on('close', () => connection.closed());
  };

  return {
    upgrade(request, socket, head) {
      const match = PATH.exec(request.url ?? '');
      if (match === null) return refuse(socket, '404 Not Found');
      const origin = request.headers.origin ?? null;
      const cookie = request.headers.cookie ?? null;
      // A cookie without an origin could be any page's; a native client has a token instead (S31).
      if (!origins.allows(origin) || (origin === null && cookie !== null)) return refuse(socket, '403 Forbidden');
      if (server.clients.size >= (parts.socketsMax ?? SOCKETS_MAX)) return refuse(socket, '503 Service Unavailable');
      let workspace: string;
      try {
        workspace = decodeURIComponent(match[1] as string);
      } catch {
        return refuse(socket, '400 Bad Request');
      }
      server.handleUpgrade(request, socket, head, (peer) => serve(workspace, cookie, peer));
    },
    get open() {
      return server.clients.size;
    },
    close() {
      for (const peer of server.clients) peer.close(1001, 'going away');
      server.close();
    },
  };
}
