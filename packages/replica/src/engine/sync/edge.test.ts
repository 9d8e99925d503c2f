import { LIMITS } from '@holdfast/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createVirtualTime } from '../../testing/virtual-time.ts';
import { type Bench, type BenchDevice, createBench, isLive } from './bench.fixture.ts';
import { createEdge, guardedSocket } from './edge.ts';

let bench: Bench;
let ana: BenchDevice;

beforeEach(() => {
  bench = createBench();
  ana = bench.device('ana');
});
afterEach(() => bench.close());

const fails = () => {
  throw new Error('a page that could not be read');
};

test('[F13] what a timer, a turn or an event of a socket throws reaches the engine, and never the platform', async () => {
  const time = createVirtualTime();
  const failures: unknown[] = [];
  const edge = createEdge(time.clockFor({}), (error) => failures.push(error));
  edge.clock.soon(fails);
  edge.clock.timer(10, fails);
  edge.run(fails);
  await time.advance(20);
  expect(failures).toHaveLength(3);

  const open = guardedSocket((_url, events) => {
    events.open();
    events.message('');
    events.closed('over');
    return { send: () => undefined, close: () => undefined, bufferedBytes: 0 };
  }, edge);
  open('ws://ledger.test', { open: fails, message: fails, closed: fails });
  expect(failures).toHaveLength(6);
});

test('[F13] where one cannot look again, the others do', () => {
  const failures: unknown[] = [];
  const edge = createEdge(createVirtualTime().clockFor({}), (error) => failures.push(error));
  const looked: string[] = [];
  edge.onMend(fails);
  edge.onMend(() => looked.push('second'));
  edge.mend();
  expect(looked).toEqual(['second']);
  expect(failures).toHaveLength(1);
});

test('[F13 I29] an engine of which a turn failed says so, looks at everything again after a while, and works on', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  let mended = 0;
  ana.sync.edge.onMend(() => {
    mended += 1;
  });
  ana.sync.edge.clock.soon(fails);
  ana.sync.edge.clock.soon(fails);
  await bench.time.advance(10);
  expect(ana.sync.status).toMatchObject({
    phase: 'offline',
    reason: { code: 'engine-fault', facts: { error: 'a page that could not be read' } },
  });
  expect(mended).toBe(0);
  await bench.until('live again', () => isLive(ana), 30_000);
  expect(mended).toBe(1);
  ana.create('survives');
  await bench.until('sent', () => isLive(ana), 30_000);
});

test('[F13 I29] a failure that cannot be told does not come back as a failure, and is over with what hindered it', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  await bench.time.advance(1_000);
  const phases: string[] = [];
  ana.sync.subscribe(({ phase }) => phases.push(phase));
  await bench.time.advance(10);
  const { soon } = ana.clock;
  let refused = 0;
  Object.assign(ana.clock, {
    soon: (run: () => void) => {
      refused += 1;
      // Else a test that fails would not end.
      if (refused < 1_000) fails();
      soon(run);
    },
  });
  expect(() => ana.sync.edge.run(fails)).not.toThrow();
  // Once to say what failed, once that nothing is proven any more.
  expect(refused).toBe(2);
  Object.assign(ana.clock, { soon });
  await bench.until('live again', () => isLive(ana), 30_000);
  await bench.time.advance(10);
  expect(phases.at(-1)).toBe('live');
  ana.create('survives');
  await bench.until('sent', () => isLive(ana), 30_000);
});

test('[F13] a file that cannot be read for long is looked at ever more rarely', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  const looked: number[] = [];
  ana.sync.edge.onMend(() => {
    looked.push(bench.time.elapsedMs);
    fails();
  });
  ana.sync.edge.run(fails);
  await bench.time.advance(15 * 60_000);
  const few = (15 * 60_000) / (LIMITS.retryMaxMs / 4);
  expect(looked.length).toBeGreaterThan(3);
  expect(looked.length).toBeLessThan(few);
});

test('[SY2] whoever settles is told that the file cannot be read, and does not wait for ever', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  Object.assign(ana.state, { isFlowing: fails });
  await expect(ana.sync.settle()).resolves.toEqual({
    settled: false,
    attention: 0,
    obstacles: [{ log: null, fault: { code: 'engine-fault', facts: { error: 'a page that could not be read' } } }],
  });
});

test('[SY4] an engine whose file cannot be read any more closes all the same', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  Object.assign(ana.state, { counts: fails });
  let isClosed = false;
  void ana.sync.close().then(() => {
    isClosed = true;
  });
  await bench.until('closed', () => isClosed, 10_000);
});

test('[F13 SY4] an engine that was to look at everything again leaves no timer behind when it closes', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  const open = new Set<object>();
  const { timer } = ana.clock;
  Object.assign(ana.clock, {
    timer: (ms: number, run: () => void) => {
      const one = {};
      open.add(one);
      const cancel = timer(ms, () => {
        open.delete(one);
        run();
      });
      return () => {
        open.delete(one);
        cancel();
      };
    },
  });
  ana.sync.edge.run(fails);
  expect(open.size).toBeGreaterThan(0);
  let isClosed = false;
  void ana.sync.close().then(() => {
    isClosed = true;
  });
  await bench.until('closed', () => isClosed, 500);
  expect(open.size).toBe(0);
});
