import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bench, type BenchDevice, createBench, isLive, twoLive } from './bench.fixture.ts';
import { allInOnce, deafen, goesOn, headOf, hold, isTold } from './lost-history.fixture.ts';

/**
 * What was on its way comes while, or after, a person adopts the history that the ledger has now (HL4): the answer to a
 * push, a page, a handshake. It speaks of a history that is gone, and nothing that it says may count.
 */
let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;

beforeEach(async () => {
  bench = createBench();
  [ana, ben] = await twoLive(bench);
  ana.create('kept');
  await bench.until('sent', () => isLive(ana) && isLive(ben) && ben.titles().length === 1);
});
afterEach(() => bench.close());

async function lostWhile(held: { readonly isHeld: boolean }): Promise<void> {
  await bench.until('in the log', () => held.isHeld && ben.titles().length === 2);
  await bench.time.advance(100);
  bench.replaceLedger();
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await goesOn(bench, ben);
}

test.each([
  ['its event had come by the socket', true],
  ['nobody had told of its event', false],
])('[HL1 HL4 PM7] an answer that comes when its history is adopted away confirms nothing: %s', async (_, hasCome) => {
  const held = hold(ana, '/push');
  if (!hasCome) deafen(ana);
  const { action } = ana.create('late');
  await lostWhile(held);
  ana.state.adopt('main');
  held.release();
  await allInOnce(bench, [ana, ben], action);
});

test.each([
  ['before a person decides', false],
  ['after a person has decided', true],
])(
  '[HL1 HL4 IN1] a page of the history that was lost, with own work in it, is not applied: %s',
  async (_, isDecided) => {
    deafen(ana);
    ana.script = (url, request, forward) =>
      url.includes('/push') ? forward(url, request).then(() => Promise.reject(new Error('lost'))) : undefined;
    const held = hold(ana, '/events?');
    const { action } = ana.create('late');
    await lostWhile(held);
    ana.script = null;
    if (isDecided) ana.state.adopt('main');
    held.release();
    await bench.time.advance(10);
    expect(ana.state.outcome(action)?.state).toBe('pending');
    if (!isDecided) ana.state.adopt('main');
    await allInOnce(bench, [ana, ben], action);
  },
);

test('[HL4] a log that is unfollowed and followed again is held up by no request from before', async () => {
  const held = hold(ana, '/push');
  deafen(ana);
  const { action } = ana.create('late');
  await bench.until('in the log', () => held.isHeld && ben.titles().length === 2);
  ana.state.unfollow('main');
  await bench.time.advance(100);
  bench.replaceLedger();
  ana.state.follow('main');
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await goesOn(bench, ben);
  const reasons = new Set<string | undefined>();
  ana.sync.subscribe(({ reason }) => reasons.add(reason?.code));
  ana.state.adopt('main');
  await bench.until('adopted', () => headOf(ana) >= 2, 5_000);
  expect(reasons).not.toContain('permit-state-conflict');
  held.release();
  await allInOnce(bench, [ana, ben], action);
});

test('[HL4] who has adopted a history is not asked again by an answer that was on its way', async () => {
  bench.replaceLedger();
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await goesOn(bench, ben);
  const held = hold(ana, '/handshake');
  ana.sync.kick('manual');
  await bench.until('asked again', () => held.isHeld);
  await bench.time.advance(100);
  ana.state.adopt('main');
  held.release();
  await bench.until('adopted', () => isLive(ana) && headOf(ana) === 3, 25_000);
  expect(ana.titles()).toEqual(['kept', 'of ben', 'of ben, too']);
});
