import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Engine } from '../engine/engine.ts';
import { createLiveDoor } from './live.ts';
import { createOrigins } from './origins.ts';

test('[F183 S35] of all accounts and addresses together only so many sockets get in, and a place that is left is free', async () => {
  const engine = { live: () => ({ message: () => undefined, control: () => false, closed: () => undefined }) };
  const door = createLiveDoor({
    engine: engine as unknown as Engine,
    access: { name: 'test', verify: () => Promise.resolve(null) },
    origins: createOrigins([]),
    logger: () => undefined,
    now: () => 0,
    socketsMax: 2,
  });
  const server = createServer().on('upgrade', (request, socket, head) => door.upgrade(request, socket, head));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const open = async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/workspaces/acme/live`);
    await once(socket, 'open');
    return socket;
  };
  try {
    const first = await open();
    await open();
    await expect(open()).rejects.toThrow('503');
    expect(door.open).toBe(2);
    first.close();
    await once(first, 'close');
    await open();
    expect(door.open).toBe(2);
  } finally {
    door.close();
    server.closeAllConnections();
    server.close();
  }
});
