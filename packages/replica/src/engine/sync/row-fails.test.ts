import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bench, type BenchDevice, createBench } from './bench.fixture.ts';

let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;
beforeEach(async () => {
  bench = createBench();
  ana = bench.device('ana');
  ben = bench.device('ben', { account: 'ben' });
  for (const { sync } of [ana, ben]) sync.start();
  await bench.until('live', () => isLive(ana) && isLive(ben));
  await bench.time.advance(1_000);
});
afterEach(() => bench.close());

const isLive = ({ sync }: BenchDevice) => sync.status.phase === 'live' && sync.status.unsent === 0;
const database = ({ state }: BenchDevice) => state.store.database;

/** Working out the row of one event throws, as a defect of the code would. */
const poison = (device: BenchDevice, title: string) =>
  database(device).exec(
    `CREATE TEMP TRIGGER poison BEFORE INSERT ON main.note WHEN new.title = '${title}' BEGIN SELECT RAISE(FAIL, 'this row cannot be'); END`,
  );

const COUNT = "SELECT count(*) AS n FROM main.hf_event WHERE log = 'main'";

// Seen to fail with replica-store.ts committing where the work in a transaction threw, and with status.ts saying `live` of a
// log that lacks events of which its ledger told, and with loop.ts ending after an error.
test('[F07 IN1 I08 I30] an event whose row cannot be worked out stops the cursor before its page and is told; with code that can, all goes on by itself', async () => {
  poison(ana, 'poison');
  const said = new Set<string>();
  for (const title of ['one', 'poison', 'three']) {
    ben.create(title);
    await bench.until('in the ledger', () => isLive(ben));
    await bench.until('here', () => ana.state.log('main')?.head === 1, 5_000);
  }
  await bench.until('known', () => ana.sync.status.logs[0]?.ledgerHead === 3, 120_000);
  ana.sync.subscribe(({ phase, reason }) => said.add(`${phase} ${reason?.code ?? ''}`));
  await bench.time.advance(120_000);
  expect([ana.state.log('main')?.head, database(ana).prepare(COUNT).get(), ana.titles()]).toEqual([
    1,
    { n: 1 },
    ['one'],
  ]);
  expect([...said].filter((one) => one.startsWith('live'))).toEqual([]);
  expect(said).toContain('stalled engine-fault');
  // Work goes on here meanwhile.
  ana.create('own');
  await bench.time.advance(60_000);
  expect([ana.state.log('main')?.head, ana.titles()]).toEqual([1, ['one', 'own']]);
  // A version of the code that can.
  ana.crash();
  ana.restart();
  ana.sync.start();
  await bench.until('all there', () => isLive(ana) && ana.titles().length === 4, 60_000);
  expect(ana.titles()).toEqual(['one', 'own', 'poison', 'three']);
  // Or the reason passes, and its loop has not ended for it.
  poison(ana, 'again');
  ben.create('again');
  await bench.time.advance(30_000);
  expect(ana.titles()).not.toContain('again');
  database(ana).exec('DROP TRIGGER temp.poison');
  await bench.until('there', () => isLive(ana) && ana.titles().length === 5, 120_000);
});
