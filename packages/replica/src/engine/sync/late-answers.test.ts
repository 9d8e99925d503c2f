import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bench, type BenchDevice, createBench, isLive, twoLive } from './bench.fixture.ts';

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

const isTold = (device: BenchDevice) => device.sync.status.phase === 'history-changed';
const headOf = (device: BenchDevice) => device.state.log('main')?.head ?? 0;

/** The next push is answered when the function that it gives is called. */
function holdAnswer(): () => void {
  let release = () => {};
  ana.script = (url, request, forward) => {
    if (!url.includes('/push')) return undefined;
    ana.script = null;
    const answered = forward(url, request);
    return new Promise((resolve) => {
      release = () => resolve(answered);
    });
  };
  return () => release();
}

/** Two notes of his, on whatever history the ledger has now. */
async function benGoesOn(): Promise<void> {
  await bench.until('ben is told', () => isTold(ben), 25_000);
  ben.state.adopt('main');
  for (const title of ['of ben', 'of ben, too']) ben.create(title);
  await bench.until('ben went on', () => isLive(ben) && headOf(ben) === 2);
}

async function allInOnce(action: string): Promise<void> {
  await bench.until('all in', () => ana.state.counts().unsent === 0 && isLive(ana) && headOf(ana) === 4, 300_000);
  expect([ana.titles(), ana.state.outcome(action)?.state, ana.owed(), ana.state.desk()]).toEqual([
    ['answered late', 'kept', 'of ben', 'of ben, too'],
    'ordered',
    [],
    [],
  ]);
  await bench.until('ben has all', () => headOf(ben) === 4);
  expect(ben.titles()).toEqual(ana.titles());
}

test.each([
  ['its event had come by the socket', { hasCome: true, as: ['needs-attention', 2] }],
  ['nobody had told of its event', { hasCome: false, as: ['pending', 1] }],
])('[HL1 HL4 PM7] an answer from before the ledger lost its history confirms nothing: %s', async (_, how) => {
  const release = holdAnswer();
  ana.onMessage = how.hasCome ? null : (text) => (text.includes('"events"') ? null : text);
  const { action } = ana.create('answered late');
  const stateOf = () => ana.state.outcome(action)?.state;
  await bench.until('in the log', () => (how.hasCome ? stateOf() === 'ordered' : ben.titles().length === 2));
  bench.replaceLedger();
  await bench.until('ana is told', () => isTold(ana), 25_000);
  await benGoesOn();
  release();
  await bench.time.advance(1_000);
  expect([stateOf(), ana.state.counts().lost]).toEqual(how.as);
  ana.state.adopt('main');
  await allInOnce(action);
});

test('[HL1 HL4] an answer whose events go on from where it stands is found out at once, though nobody else writes', async () => {
  const putBack = bench.backUp();
  const release = holdAnswer();
  ana.onMessage = (text) => (text.includes('answered late') ? null : text);
  const { action } = ana.create('answered late');
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
  expect([ana.owed(), ana.titles(), headOf(ana)]).toEqual([[], ['answered late', 'kept'], 2]);
  const log = await bench.endpoint.current.engine.verify({ workspace: 'acme', log: 'main' });
  expect(log?.chain).toBe(ana.state.log('main')?.chain);
});
