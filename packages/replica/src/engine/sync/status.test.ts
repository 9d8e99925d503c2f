import { afterEach, beforeEach, expect, test } from 'vitest';
import { answer, type Bench, type BenchDevice, createBench, isLive, never } from './bench.fixture.ts';
import { createCancel } from './cancel.ts';
import { createLogFacts } from './facts.ts';
import { statusOf } from './status.ts';

let bench: Bench;
let ana: BenchDevice;

beforeEach(() => {
  bench = createBench();
  ana = bench.device('ana');
});
afterEach(() => bench.close());

test('[I30] before the first contact nothing is claimed: no head of the ledger, no time of sync', async () => {
  ana.network.rules.offline = true;
  ana.sync.start();
  ana.create('local');
  await bench.time.advance(10_000);
  expect(ana.sync.status).toMatchObject({ phase: 'offline', unsent: 1, lastSyncedAt: null });
  expect(ana.sync.status.logs[0]).toMatchObject({ head: 0, ledgerHead: null, lastSyncedAt: null });
  expect(ana.sync.status.retryInMs).not.toBeNull();
});

test('[I30] a socket that failed is not called live while nobody has answered since', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  await bench.time.advance(1_000);
  ana.network.rules.toLedger = false;
  ana.network.cut();
  await bench.time.advance(2_000);
  expect(ana.sync.status.phase).not.toBe('live');
});

test('[SY3] work that does not move is kicked, then said to be stalled with what it waits for', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  ana.script = (url) => (url.includes('/push') ? never() : undefined);
  ana.create('stuck');
  const phases = new Set<string>();
  ana.sync.subscribe(({ phase, reason }) => phases.add(`${phase} ${reason?.code ?? ''}`));
  // The handshake works, every push is swallowed: the ledger can be reached, and nothing moves.
  await bench.until('stalled', () => phases.has('stalled request-timeout'), 600_000);
  const kinds = ana.state.journal.page().filter(({ kind }) => kind === 'watchdog');
  expect(kinds.map(({ facts }) => facts['did'])).toContain('kick');
  ana.script = null;
  await bench.until('moves again', () => isLive(ana), 600_000);
});

test('[SY2] settle resolves when all that was committed is in the log and applied here', async () => {
  ana.sync.start();
  ana.create('settled');
  let report: unknown = null;
  void ana.sync.settle().then((given) => {
    report = given;
  });
  await bench.until('settled', () => report !== null, 5_000);
  expect(report).toEqual({ settled: true, attention: 0, obstacles: [] });
  expect(ana.state.log('main')?.head).toBe(1);
});

test('[SY2] settle asks the ledger anew: what another device committed before it is here when it resolves', async () => {
  const ben = bench.device('ben', { account: 'ben', settings: { live: false, pollMs: 3_600_000 } });
  ana.sync.start();
  ben.sync.start();
  await bench.until('both live', () => isLive(ana) && isLive(ben));
  ana.create('news');
  await bench.until('sent', () => isLive(ana));
  let isSettled = false;
  void ben.sync.settle().then(() => {
    isSettled = true;
  });
  await bench.until('settled', () => isSettled, 1_000);
  expect(ben.titles()).toEqual(['news']);
});

test('[SY2] settle does not reject because the ledger cannot be reached, and says so when the caller gives up', async () => {
  ana.network.rules.offline = true;
  ana.sync.start();
  ana.create('unsent');
  const cancel = createCancel();
  let report: unknown = null;
  void ana.sync.settle(cancel.signal).then((given) => {
    report = given;
  });
  await bench.time.advance(120_000);
  expect(report).toBe(null);
  cancel.cancel();
  await bench.time.advance(0);
  expect(report).toMatchObject({ settled: false, obstacles: [{ log: 'main', fault: { code: 'ledger-unreachable' } }] });
});

test('[SY2] settle says what stands in the way when waiting would not help', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  ana.sync.pause();
  ana.token = () => '';
  ana.create('signed out');
  ana.sync.resume();
  let report: unknown = null;
  void ana.sync.settle().then((given) => {
    report = given;
  });
  await bench.until('said', () => report !== null, 5_000);
  expect(report).toMatchObject({ settled: false, obstacles: [{ log: null, fault: { code: 'unauthenticated' } }] });
});

test('[F13] an unexpected error in a lane is counted, told and tried again, and another log goes on', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  const { state } = ana;
  const takePush = state.takePush;
  let failures = 0;
  Object.assign(state, {
    takePush: (request: Parameters<typeof takePush>[0]) => {
      if (failures >= 3) return takePush(request);
      failures += 1;
      throw new Error('a row that nobody expected');
    },
  });
  ana.create('survives');
  await bench.until('sent after all', () => isLive(ana), 60_000);
  expect(failures).toBe(3);
  const faults = state.journal.page().filter(({ kind }) => kind === 'fault');
  expect(faults.length).toBe(3);
  expect(faults[0]?.facts).toMatchObject({ log: 'main', code: 'engine-fault' });
});

test('[TM1] the journal tells kinds, counts, versions and codes, never payloads', async () => {
  ana.sync.start();
  ana.create('a secret title');
  await bench.until('sent', () => isLive(ana));
  ana.script = () => answer(500, 'oops');
  ana.create('another secret');
  await bench.time.advance(30_000);
  const text = JSON.stringify(ana.state.journal.page());
  expect(text).not.toContain('secret');
  expect(ana.state.journal.page().map(({ kind }) => kind)).toEqual(expect.arrayContaining(['handshake', 'push']));
});

test('[SY1] whatever asks for a cycle while one runs gets exactly one more', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  await bench.time.advance(1_000);
  const before = ana.sent.length;
  ana.sync.kick('manual');
  await bench.until('on its way', () => ana.sent.length === before + 1);
  for (let at = 0; at < 10; at += 1) ana.sync.kick('manual');
  await bench.time.advance(5_000);
  expect(ana.paths(before)).toEqual(['/handshake', '/handshake']);
});

test('[I30] a log that lacks events of which its ledger told is catching up, however alive its socket is', async () => {
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
  const log = ana.state.log('main');
  if (log === undefined) throw new Error('no log');
  const phaseAt = (ledgerHead: number) =>
    statusOf({
      phase: 'live',
      reason: null,
      isPaused: false,
      counts: ana.state.counts(),
      logs: [
        {
          log,
          facts: { ...createLogFacts('main'), isProven: true, provenAtMs: 0, ledgerHead },
          progress: undefined,
          isCovered: true,
        },
      ],
      nowMs: 0,
      proofMs: 1,
      retryInMs: null,
    }).phase;
  expect([phaseAt(log.head), phaseAt(log.head + 1)]).toEqual(['live', 'catching-up']);
});

test('[I30] [F20] a disk that is full while the first state is fetched is said of the whole replica, and then forgotten', async () => {
  const { state } = ana;
  const { bootstrapPage, finishBootstrap } = state;
  const full = Object.assign(new Error('the disk is full'), { code: 'storage-full' });
  Object.assign(state, {
    bootstrapPage: () => {
      throw full;
    },
    finishBootstrap: () => {
      throw full;
    },
  });
  ana.sync.start();
  await bench.time.advance(5_000);
  expect(ana.sync.status.reason?.code).toBe('storage-full');
  Object.assign(state, { bootstrapPage, finishBootstrap });
  await bench.until('live', () => isLive(ana), 120_000);
  expect(ana.sync.status.reason).toBe(null);
});
