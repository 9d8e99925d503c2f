import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { WebSocket } from 'ws';
import type { Benchmark } from './harness.ts';
import { bareWithHistory, deviceWithHistory, EVENTS } from './reopen.ts';
import { scaled } from './scale.ts';
import { headOf, subscribe } from './subscriber.ts';
import { openWorld, type World } from './world.ts';

const MEGABYTE = 1024 * 1024;
const SOCKETS = scaled(1_000);

/** By how much a process grows that opens a device. */
export function memoryDevice(folder: string): Benchmark {
  let shared: Promise<World> | null = null;
  const prepare = async () => {
    const world = await openWorld(folder, 'memory');
    await deviceWithHistory(world, EVENTS);
    bareWithHistory(join(world.folder, 'bare.db'), EVENTS);
    return world;
  };
  const child = join(import.meta.dirname, 'memory-child.ts');
  const grownMegabytes = async (...args: string[]) => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', child, ...args]);
    return Number(stdout) / MEGABYTE;
  };
  return {
    name: 'memory-device',
    what: 'growth of a process that opens 10,000 issues with 60,000 events of history and shows a live list',
    unit: 'MB',
    bare: 'a process that opens a file with the same rows and asks the same query',
    goal: null,
    valueAtMost: 40,
    run: async () => {
      shared ??= prepare();
      const { folder: at, ledger } = await shared;
      return {
        value: await grownMegabytes('device', join(at, 'device'), ledger.url),
        bare: await grownMegabytes('bare', join(at, 'bare.db')),
      };
    },
    close: async () => {
      await (await shared)?.close();
    },
  };
}

/** What 1,000 sockets that wait cost the process of the ledger, each. */
export function memorySubscribers(folder: string): Benchmark {
  let runs = 0;
  return {
    name: 'memory-subscribers',
    what: 'what the ledger holds for each of 1,000 idle subscribers',
    unit: 'KB',
    bare: 'what a bare ws server holds for each',
    goal: null,
    valueAtMost: 20,
    run: async () => {
      runs += 1;
      const at = join(folder, `subscribers-${runs}`);
      mkdirSync(at);
      const value = await heldKilobytes(['ledger', at], async (url) => {
        const head = await headOf(url);
        return await inTurns(() => subscribe(url, head, () => undefined));
      });
      const bare = await heldKilobytes(['bare', at], (url) => inTurns(() => bareSocket(url)));
      return { value, bare };
    },
  };
}

interface Closable {
  close(): void;
}

const bareSocket = (url: string): Promise<Closable> => {
  const socket = new WebSocket(url.replace('http', 'ws'));
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('open', () => {
      socket.send('{"type":"hello"}');
      resolve({ close: () => socket.terminate() });
    });
  });
};

/** Fifty at a time, so that no accept queue overflows. */
async function inTurns(open: () => Promise<Closable>): Promise<readonly Closable[]> {
  const opened: Closable[] = [];
  while (opened.length < SOCKETS) opened.push(...(await Promise.all(Array.from({ length: 50 }, open))));
  return opened;
}

async function heldKilobytes(
  args: readonly string[],
  connect: (url: string) => Promise<readonly Closable[]>,
): Promise<number> {
  const file = join(import.meta.dirname, 'memory-ledger-child.ts');
  const child = spawn(process.execPath, ['--expose-gc', file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const url = String((await lines.next()).value);
    // A first round warms the code up; what it leaves is not the sockets' cost.
    for (const socket of await connect(url)) socket.close();
    await ask(child, lines);
    const before = await ask(child, lines);
    const open = await connect(url);
    const held = (await ask(child, lines)) - before;
    for (const socket of open) socket.close();
    return held / 1024 / SOCKETS;
  } finally {
    child.kill();
  }
}

async function ask(child: ChildProcess, lines: AsyncIterator<string>): Promise<number> {
  child.stdin?.write('held\n');
  return Number((await lines.next()).value);
}
