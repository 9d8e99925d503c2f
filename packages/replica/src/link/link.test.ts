import { MessageChannel, Worker } from 'node:worker_threads';
import { type Clock, type FaultCode, LIMITS, schemaData } from '@holdfast/core';
import { expect, test } from 'vitest';
import { carried, linkContract } from '../../../../contract/src/link.ts';
import { nodeClock } from '../adapters/node/platform.ts';
import type { FaultError } from '../engine/fault-error.ts';
import { testSchema } from '../host/host.fixture.ts';
import { openWorkerHost } from '../node/worker-client.ts';
import { Link } from './link.ts';
import type { ChannelEvents, OpenChannel, Tell } from './messages.ts';
import { openPortChannel, type Port, servePort } from './port.ts';

linkContract({ name: 'a function call', open: carried((host) => host) });

linkContract({
  name: 'a message port',
  open: carried((host) => (events) => {
    const { port1, port2 } = new MessageChannel();
    servePort(port2 as unknown as Port, host);
    return openPortChannel(port1 as unknown as Port)(events);
  }),
});

linkContract({
  name: 'a worker that hosts the replica',
  isOutOfSight: true,
  open: async (file, app) => {
    const host = await openWorkerHost(() => new Worker(new URL('../worker.ts', import.meta.url)), {
      schema: schemaData(testSchema),
      dir: file ?? ':memory:',
      // Nobody listens there.
      ledger: 'http://127.0.0.1:9',
      account: 'ana',
      workspace: 'acme',
      token: () => Promise.resolve('ana'),
      ...app,
    });
    return { openChannel: host.openChannel, close: () => host.close(), runs: null };
  },
});

// ── when hosts come and go ──────────────────────────────────────────────────────────────────────────────────────────

/** A link whose hosts and whose time a test moves: `events` are the newest host's, `timers` what is waited for. */
function moved(reopenMs: readonly number[]) {
  let nowMs = 0;
  const timers = new Map<() => void, number>();
  const hosts: { readonly events: ChannelEvents; readonly asked: string[] }[] = [];
  const clock: Clock = {
    ...nodeClock,
    monotonic: () => nowMs,
    timer: (ms, run) => {
      timers.set(run, ms);
      return () => void timers.delete(run);
    },
  };
  const open: OpenChannel = (events) => {
    const asked: string[] = [];
    hosts.push({ events, asked });
    return { send: ({ ask }) => void asked.push(ask), close: () => undefined };
  };
  const link = new Link({ open, clock, reopenMs });
  const ends: string[] = [];
  link.listen({ ended: ({ code }) => ends.push(code) });
  link.start();
  return {
    link,
    hosts,
    ends,
    waits: () => [...timers.values()],
    fire: (ms: number) => {
      for (const [run, of] of [...timers]) if (of === ms && timers.delete(run)) run();
    },
    welcome: () => hosts.at(-1)?.events.tell({ tell: 'welcome' } as Tell),
    dieAfter: (ms: number, code: FaultCode = 'no-owner') => {
      nowMs += ms;
      hosts.at(-1)?.events.tell({ tell: 'end', fault: { code } });
    },
  };
}

test('[LK3] a page says what it has heard, by so many messages, and begins anew with every host', () => {
  const { hosts, welcome, dieAfter, fire } = moved([1]);
  const heard = () => hosts.at(-1)?.asked.filter((ask) => ask === 'heard').length;
  const hear = (times: number) => {
    for (let told = 0; told < times; told += 1) welcome();
  };
  hear(LIMITS.linkHeardEvery - 1);
  expect(heard()).toBe(0);
  welcome();
  expect(heard()).toBe(1);
  hear(LIMITS.linkHeardEvery - 1);
  dieAfter(1);
  fire(1);
  hear(LIMITS.linkHeardEvery - 1);
  expect(heard()).toBe(0);
  welcome();
  expect(heard()).toBe(1);
});

test('[LK2] each host has the whole bound to answer; between two hosts none runs', async () => {
  const { link, hosts, waits, fire, dieAfter } = moved([7]);
  const asking = codeOf(link.request('desk', {}));
  expect(waits()).toEqual([LIMITS.linkAnswerMs]);
  dieAfter(1);
  expect(waits()).toEqual([7]);
  const meanwhile = codeOf(link.request('journal', {}));
  expect(waits()).toEqual([7]);
  fire(7);
  expect(hosts.map(({ asked }) => asked)).toEqual([['desk'], ['desk', 'journal']]);
  expect(waits()).toEqual([LIMITS.linkAnswerMs, LIMITS.linkAnswerMs]);
  fire(LIMITS.linkAnswerMs);
  expect(await Promise.all([asking, meanwhile])).toEqual(['no-owner', 'no-owner']);
});

test('[LK2 OW2] a host that was outranked is the last one: nothing is asked of another', async () => {
  const { link, hosts, ends, waits, welcome, dieAfter } = moved([1, 1, 1]);
  welcome();
  const asking = codeOf(link.request('desk', {}));
  dieAfter(0, 'outranked');
  expect(await asking).toBe('outranked');
  expect([ends, hosts.length, waits()]).toEqual([['outranked'], 1, []]);
});

test('[LK2] a host that lived begins the tries anew; hosts that die at once use them up', () => {
  const { hosts, ends, fire, welcome, dieAfter } = moved([1, 2]);
  for (const lived of [0, 10_000, 0]) {
    welcome();
    dieAfter(lived);
    fire(1);
    fire(2);
  }
  expect([hosts.length, ends]).toEqual([4, []]);
  welcome();
  dieAfter(0);
  expect([hosts.length, ends]).toEqual([4, ['no-owner']]);
});

test('[LK2] what no host answers, though each lives for a while, is given up after as many hosts as there are tries', async () => {
  const { link, hosts, ends, fire, welcome, dieAfter } = moved([1]);
  const asking = codeOf(link.request('desk', {}));
  for (let host = 0; host < 2; host += 1) {
    welcome();
    dieAfter(10_000);
    fire(1);
  }
  expect(await asking).toBe('no-owner');
  expect(hosts.map(({ asked }) => asked)).toEqual([['desk'], ['desk'], []]);
  expect(ends).toEqual([]);
});

test('[LK1] a link that is closed between two hosts looks for no other', () => {
  const { link, hosts, waits, dieAfter } = moved([1]);
  dieAfter(0);
  link.close();
  expect([waits(), hosts.length]).toEqual([[], 1]);
});

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'answered',
    (cause: FaultError) => cause.fault.code,
  );
