import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bench, type BenchDevice, createBench } from './bench.fixture.ts';

/**
 * What was on its way comes while, or after, a person adopts the history that the ledger has now (HL4): the answer to a
 * push, a page, a handshake. It speaks of a history that is gone, and nothing that it says may count.
 */
let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;

beforeEach(async () => {
  bench = createBench();
  ana = bench.device('ana');
  ben = bench.device('ben', { account: 'ben' });
  for (const device of [ana, ben]) device.sync.start();
  ana.create('kept');
  await bench.until('sent', () => isLive(ana) && isLive(ben) && ben.titles().length === 1);
});
afterEach(() => bench.close());

const isLive = (device: BenchDevice) => device.sync.status.phase === 'live' && device.sync.status.unsent === 0;
const isTold = (device: BenchDevice) => device.sync.status.phase === 'history-changed';
const headOf = (device: BenchDevice) => device.state.log('main')?.head ?? 0;

/** The answer to the next request of this kind comes when the function that it gives is called. */
function hold(part: string): { release(): void; readonly isHeld: boolean } {
  let release: (() => void) | null = null;
  const others = ana.script;
  ana.script = (url, request, forward) => {
    if (release !== null || !url.includes(part)) return others?.(url, request, forward);
    const answered = forward(url, request);
    answered.catch(() => {});
    return new Promise((resolve) => {
      release = () => resolve(answered);
    });
  };
  return {
    release: () => release?.(),
    get isHeld() {
      return release !== null;
    },
  };
}

/** No socket tells her of anything. */
const deafen = () => {
  ana.onMessage = (text) => (text.includes('"events"') ? null : text);
};

async function benGoesOn(): Promise<void> {
  await bench.until('ben is told', () => isTold(ben), 25_000);
  ben.state.adopt('main');
  for (const title of ['of ben', 'of ben, too']) ben.create(title);
  await bench.until('ben went on', () => isLive(ben) && headOf(ben) === 2);
}

async function allInOnce(action: string): Promise<void> {
  ana.onMessage = null;
  await bench.until('all in', () => ana.state.counts().unsent === 0 && isLive(ana) && headOf(ana) === 4, 300_000);
  expect([ana.titles(), ana.state.outcome(action)?.state, ana.owed(), ana.state.desk()]).toEqual([
    ['kept', 'late', 'of ben', 'of ben, too'],
    'ordered',
    [],
    [],
  ]);
  await bench.until('ben has all', () => headOf(ben) === 4);
  expect(ben.titles()).toEqual(ana.titles());
}

async function lostWhile(held: { readonly isHeld: boolean }): Promise<void> {
  await bench.until('in the log', () => held.isHeld && ben.titles().length === 2);
  await bench.time.advance(100);
  bench.replaceLedger();
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await benGoesOn();
}

test.each([
  ['its event had come by the socket', true],
  ['nobody had told of its event', false],
])('[HL1 HL4 PM7] an answer that comes when its history is adopted away confirms nothing: %s', async (_, hasCome) => {
  const held = hold('/push');
  if (!hasCome) deafen();
  const { action } = ana.create('late');
  await lostWhile(held);
  ana.state.adopt('main');
  held.release();
  await allInOnce(action);
});

test.each([
  ['before a person decides', false],
  ['after a person has decided', true],
])(
  '[HL1 HL4 IN1] a page of the history that was lost, with own work in it, is not applied: %s',
  async (_, isDecided) => {
    deafen();
    ana.script = (url, request, forward) =>
      url.includes('/push') ? forward(url, request).then(() => Promise.reject(new Error('lost'))) : undefined;
    const held = hold('/events?');
    const { action } = ana.create('late');
    await lostWhile(held);
    ana.script = null;
    if (isDecided) ana.state.adopt('main');
    held.release();
    await bench.time.advance(10);
    expect(ana.state.outcome(action)?.state).toBe('pending');
    if (!isDecided) ana.state.adopt('main');
    await allInOnce(action);
  },
);

test('[HL4] a log that is unfollowed and followed again is held up by no request from before', async () => {
  const held = hold('/push');
  deafen();
  const { action } = ana.create('late');
  await bench.until('in the log', () => held.isHeld && ben.titles().length === 2);
  ana.state.unfollow('main');
  await bench.time.advance(100);
  bench.replaceLedger();
  ana.state.follow('main');
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await benGoesOn();
  const reasons = new Set<string | undefined>();
  ana.sync.subscribe(({ reason }) => reasons.add(reason?.code));
  ana.state.adopt('main');
  await bench.until('adopted', () => headOf(ana) >= 2, 5_000);
  expect(reasons).not.toContain('permit-state-conflict');
  held.release();
  await allInOnce(action);
});

test('[HL4] who has adopted a history is not asked again by an answer that was on its way', async () => {
  bench.replaceLedger();
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await benGoesOn();
  const held = hold('/handshake');
  ana.sync.kick('manual');
  await bench.until('asked again', () => held.isHeld);
  await bench.time.advance(100);
  ana.state.adopt('main');
  held.release();
  await bench.until('adopted', () => isLive(ana) && headOf(ana) === 3, 25_000);
  expect(ana.titles()).toEqual(['kept', 'of ben', 'of ben, too']);
});
