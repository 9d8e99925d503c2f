import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';
import { openWorld } from './world.ts';

/**
 * A ledger, or a bare socket server, in a process of its own. Prints its address, then for every line that it reads the
 * bytes that it holds. `node --expose-gc memory-ledger-child.ts ledger|bare FOLDER`.
 */
const [what, folder = ''] = process.argv.slice(2);

/** The least of some readings after collections: what is really held. */
async function heldBytes(): Promise<number> {
  const readings: number[] = [];
  for (let at = 0; at < 5; at += 1) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
    readings.push(process.memoryUsage.rss());
  }
  return Math.min(...readings);
}

if (what === 'ledger') {
  const world = await openWorld(folder, 'ledger');
  console.log(world.ledger.url);
} else {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.on('message', () => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'end') break;
  console.log(await heldBytes());
}
process.exit(0);
