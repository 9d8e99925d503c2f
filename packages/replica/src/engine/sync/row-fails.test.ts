import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bench, type BenchDevice, createBench, isLive, twoLive } from './bench.fixture.ts';

let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;
beforeEach(async () => {
  bench = createBench();
  [ana, ben] = await twoLive(bench);
  await bench.time.advance(1_000);
});
afterEach(() => bench.close());

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
  const made: string[] = [];
  for (const title of ['one', 'poison', 'three']) {
    made.push(ben.create(title).id);
    await bench.until('in the ledger', () => isLive(ben));
    await bench.until('here', () => ana.state.log('main')?.head === 1, 5_000);
  }
  await bench.until('known', () => ana.sync.status.logs[0]?.ledgerHead === 3, 120_000);
  const stalled: unknown[] = [];
  ana.sync.subscribe(({ phase, reason, logs }) => {
    said.add(`${phase} ${reason?.code ?? ''}`);
    if (phase === 'stalled') stalled.push(reason?.facts, { ...logs[0]?.reason?.facts, activity: logs[0]?.activity });
  });
  await bench.time.advance(120_000);
  expect([ana.state.log('main')?.head, database(ana).prepare(COUNT).get(), ana.titles()]).toEqual([
    1,
    { n: 1 },
    ['one'],
  ]);
  expect([...said].filter((one) => one.startsWith('live'))).toEqual([]);
  expect(said).toContain('stalled engine-fault');
  const event = { log: 'main', entity: 'note', id: made[1], version: 1 };
  const error = expect.stringContaining('this row cannot be');
  expect(stalled).toEqual(stalled.map(() => ({ ...event, error, activity: expect.any(String) })));
  expect(ana.state.journal.page().find(({ kind }) => kind === 'fault')?.facts).toEqual({
    ...event,
    code: 'engine-fault',
  });
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

test('[F07 BS1] so is an entity of a first state whose row cannot be worked out', async () => {
  const { id } = ben.create('poison');
  await bench.until('in the ledger', () => isLive(ben));
  const eve = bench.device('eve');
  poison(eve, 'poison');
  eve.sync.start();
  await bench.until('told', () => eve.sync.status.reason?.code === 'engine-fault', 120_000);
  expect(eve.sync.status.reason?.facts).toMatchObject({ log: 'main', entity: 'note', id, version: 1 });
  expect(eve.titles()).toEqual([]);
  database(eve).exec('DROP TRIGGER temp.poison');
  await bench.until('all there', () => isLive(eve) && eve.titles().length === 1, 120_000);
});
