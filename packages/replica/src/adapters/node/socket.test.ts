import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createNodeOpenSocket } from './socket.ts';

let server: WebSocketServer | null = null;
afterEach(() => {
  for (const client of server?.clients ?? []) client.terminate();
  server?.close();
  server = null;
});

/** What a device hears of a server that offers to compress, and does `talk`. */
async function heard(talk: (socket: WebSocket) => void) {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: true });
  await once(server, 'listening');
  let extensions = '';
  server.on('connection', (socket) => {
    extensions = socket.extensions;
    talk(socket);
    // Whoever hears all of it comes to an end, too.
    socket.close();
  });
  const messages: string[] = [];
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  createNodeOpenSocket({ frameBytesMax: 1_000 })(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    open: () => undefined,
    message: (text) => messages.push(text),
    closed: resolve,
  });
  return { reason: await closed, messages, extensions };
}

// Seen to fail with socket.ts giving `ws` no greatest frame, and with compression left on.
test('[F85] a frame over the bound ends the socket, in one piece or in many, and nothing after it is heard; nothing is compressed', async () => {
  const whole = await heard((socket) => {
    for (const bytes of [1_000, 1_001, 10]) socket.send('x'.repeat(bytes));
  });
  expect(whole).toMatchObject({ messages: ['x'.repeat(1_000)], extensions: '' });
  expect(whole.reason).toMatch(/max payload|1009/i);
  const pieces = await heard((socket) => {
    for (let at = 0; at < 20; at += 1) socket.send('x'.repeat(100), { fin: false });
  });
  expect(pieces.messages).toEqual([]);
  expect(pieces.reason).toMatch(/max payload|1009/i);
});

// Seen to fail with socket.ts handing over what is no text.
test('[F85] bytes where text belongs are not heard', async () => {
  expect((await heard((socket) => socket.send(Buffer.from([0xff, 0x00])))).messages).toEqual([]);
});
