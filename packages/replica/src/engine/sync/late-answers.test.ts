import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bench, type BenchDevice, createBench, isLive, twoLive } from './bench.fixture.ts';
import { allInOnce, deafen, goesOn, headOf, hold, isTold } from './lost-history.fixture.ts';

/**
 * The answer to a push stays on the way while the ledger loses what it says. What it says was true once, and nobody may
 * take it for true now: the commit would be called ordered and be nowhere.
 */
let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;

beforeEach(async () => {
  bench = createBench();
  [ana, ben] = await twoLive(bench);
  ana.create('kept');
  await bench.until('sent', () => isLive(ana) && ben.titles().length === 1);
});
afterEach(() => bench.close());

test.each([
  ['its event had come by the socket', { hasCome: true, as: ['needs-attention', 2] }],
  ['nobody had told of its event', { hasCome: false, as: ['pending', 1] }],
])('[HL1 HL4 PM7] an answer from before the ledger lost its history confirms nothing: %s', async (_, how) => {
  const { release } = hold(ana, '/push');
  if (!how.hasCome) deafen(ana);
  const { action } = ana.create('late');
  const stateOf = () => ana.state.outcome(action)?.state;
  await bench.until('in the log', () => (how.hasCome ? stateOf() === 'ordered' : ben.titles().length === 2));
  bench.replaceLedger();
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await goesOn(bench, ben);
  release();
  await bench.time.advance(1_000);
  expect([stateOf(), ana.state.counts().lost]).toEqual(how.as);
  ana.state.adopt('main');
  await allInOnce(bench, [ana, ben], action);
});

test('[HL1 HL4] an answer whose events go on from where it stands is found out at once, though nobody else writes', async () => {
  const putBack = bench.backUp();
  const { release } = hold(ana, '/push');
  ana.onMessage = (text) => (text.includes('late') ? null : text);
  const { action } = ana.create('late');
  await bench.until('in the log', () => ben.titles().length === 2);
  putBack();
  const before = ana.sent.length;
  await bench.until('asked where it stands', () => ana.paths(before).includes('/handshake'), 15_000);
  await bench.time.advance(100);
  release();
  await bench.until('ana is told', () => isTold(ana), 1_000);
  expect([ana.state.counts().lost, ana.state.outcome(action)?.state]).toEqual([1, 'needs-attention']);
  ana.state.adopt('main');
  await bench.until('in again', () => isLive(ana) && ana.state.outcome(action)?.state === 'ordered', 300_000);
  expect([ana.owed(), ana.titles(), headOf(ana)]).toEqual([[], ['kept', 'late'], 2]);
  const log = await bench.endpoint.current.engine.verify({ workspace: 'acme', log: 'main' });
  expect(log?.chain).toBe(ana.state.log('main')?.chain);
});
