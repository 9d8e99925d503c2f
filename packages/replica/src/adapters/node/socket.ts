import type { OpenSocket } from '@holdfast/core';
import { WebSocket } from 'ws';

/** The engine's WebSocket over `ws`: text frames only, no compression, bounded frames, silence after `closed`. */
export interface NodeSocketOptions {
  /** Bytes of one frame. Beyond: the connection is closed, and the engine pulls. */
  readonly frameBytesMax?: number;
  /** Milliseconds for the connection to be there. */
  readonly connectMs?: number;
}

const FRAME_BYTES_MAX = 8 * 1024 * 1024;
const CONNECT_MS = 15_000;

export function createNodeOpenSocket(options: NodeSocketOptions = {}): OpenSocket {
  return (url, events) => {
    let isOver = false;
    const over = (reason: string) => {
      if (isOver) return;
      isOver = true;
      events.closed(reason);
    };
    const socket = new WebSocket(url, {
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: options.frameBytesMax ?? FRAME_BYTES_MAX,
      handshakeTimeout: options.connectMs ?? CONNECT_MS,
    });
    socket.on('open', () => {
      if (!isOver) events.open();
    });
    socket.on('message', (data, isBinary) => {
      if (isOver) return;
      if (isBinary) socket.close(1003, 'text only');
      else events.message((data as Buffer).toString('utf8'));
    });
    socket.on('error', (cause) => over(cause.message));
    socket.on('close', (code, reason) => over(`${code} ${reason.toString('utf8')}`.trim()));
    return {
      send: (text) => {
        if (socket.readyState === WebSocket.OPEN) socket.send(text);
      },
      close: () => {
        socket.close();
        // A peer that does not answer the closing handshake is not waited for (F42).
        if (socket.readyState !== WebSocket.CLOSED) setTimeout(() => socket.terminate(), 1_000).unref();
      },
      get bufferedBytes() {
        return socket.bufferedAmount;
      },
    };
  };
}
