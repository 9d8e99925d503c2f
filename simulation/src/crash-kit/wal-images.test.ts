import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contentsOf, openNodeDatabase } from '@holdfast/replica/testing/engine';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Bench } from './bench.ts';
import { brokenPromises } from './end-state.ts';
import { offline, settled, withLog } from './scenario.ts';
import { cutAt, frameEnds, halfCheckpointed, type Image, readImage, spoiledFrom, writeImage } from './wal.ts';

/** Below SQLite: files as a disk without power, or a careless restore, leaves them. */
const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-wal-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Taken {
  readonly walBytes: number;
  readonly contents: string;
}
/** Every state that was committed, with the length of the journal then; and the files at the end. */
let states: Taken[] = [];
let acknowledged: { readonly walBytes: number; readonly head: number }[] = [];
let replica: Image;
let ledger: Image;
let ledgerFile = '';
let yesterday: Image;
const world = join(folder, 'world');

const walBytes = (file: string): number => statSync(`${file}-wal`).size;

beforeAll(async () => {
  const bench = new Bench(world, { side: 'replica', seed: 1 });
  await bench.begin(0);
  await withLog(bench);
  const { ana } = bench;
  const name = readdirSync(join(world, 'ledger')).find((one) => one.endsWith('.db')) as string;
  ledgerFile = join(world, 'ledger', name);
  const database = ana.engine?.database;
  database?.exec('PRAGMA wal_autocheckpoint=0; PRAGMA wal_checkpoint(TRUNCATE)');
  bench.commit(ana, 'yesterday', [{ do: 'update', entity: 'issue', id: 'i2', set: { title: 'Y' } }]);
  await settled(bench);
  yesterday = readImage(ana.file);
  database?.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  states = [{ walBytes: 0, contents: contentsOf(ana.file) }];
  acknowledged = [];
  bench.onCommitted = () => {
    const [last, now] = [states.at(-1), { walBytes: walBytes(ana.file), contents: contentsOf(ana.file) }];
    if (last?.walBytes !== now.walBytes) states.push(now);
  };
  for (let at = 0; at < 4; at += 1) {
    bench.commit(ana, `work ${at}`, [
      { do: 'update', entity: 'issue', id: 'i1', set: { title: `T${at}` }, inc: { votes: 1 } },
      { do: 'create', entity: 'issue', id: `n${at}`, fields: { title: `N${at}`, status: 'todo' } },
    ]);
    await settled(bench);
    acknowledged.push({ walBytes: walBytes(ledgerFile), head: ana.engine?.state.log('main')?.head ?? 0 });
  }
  bench.onCommitted = null;
  replica = readImage(ana.file);
  ledger = readImage(ledgerFile);
  bench.kill();
});

/** The last state that was whole within the first `length` bytes of the journal. */
const stateWithin = (length: number): string =>
  states.filter((state) => state.walBytes <= length).at(-1)?.contents as string;

const file = join(folder, 'image.sqlite');
function contentsOfImage(image: Image): string {
  writeImage(file, image);
  rmSync(`${file}-shm`, { force: true });
  return contentsOf(file);
}

test('[I02 RP2 F29 F10] a journal cut at every frame and within every frame: the replica holds the last whole transaction', () => {
  const ends = frameEnds(replica);
  expect(ends.length).toBeGreaterThan(40);
  expect(states.length).toBeGreaterThan(8);
  for (const end of ends)
    for (const length of [end, end - 2_000])
      expect([length, contentsOfImage(cutAt(replica, length)) === stateWithin(length)]).toEqual([length, true]);
});

test('[I02 F29 F10] frames of zeros or of garbage at the end of the journal: they and what follows never were', () => {
  const ends = [0, ...frameEnds(replica)];
  for (const from of ends.slice(0, -1))
    for (const byte of from % 3 === 0 ? [() => 0] : [(at: number) => (at * 131 + 7) & 0xff])
      expect([from, contentsOfImage(spoiledFrom(replica, Math.max(32, from), byte)) === stateWithin(from)]).toEqual([
        from,
        true,
      ]);
});

test('[I02 F10] a checkpoint that was cut: the journal has every page that the main file has half', () => {
  const whole = checkpointed(replica);
  for (const n of [1, 2, 3, 5, 7])
    expect(contentsOfImage(halfCheckpointed(replica, whole, n)) === states.at(-1)?.contents).toBe(true);
});

let runs = 0;
/** Ana wakes up with these files, beside a ledger that knows more. */
async function wakesUpWith(image: Image) {
  runs += 1;
  const here = join(folder, `run-${runs}`);
  cpSync(world, here, { recursive: true });
  const bench = new Bench(here, { side: 'replica', seed: 2 });
  writeImage(bench.ana.file, image);
  await bench.begin(3_600_000);
  bench.ana.network.rules.offline = true;
  bench.open();
  const findings = bench.ana.engine?.examine().findings ?? [];
  const atStart = findings.map(({ check }) => check);
  offline(bench, false);
  const isAtRest = await bench.rest();
  const broken = await brokenPromises(bench);
  const head = bench.ana.engine?.state.log('main')?.head;
  bench.dispose();
  return { atStart, isAtRest, broken, head };
}

test('[RP1 RP2 I04 I12 F33] a replica that lost its last transactions goes on: nothing the ledger holds is lost, nothing doubled', async () => {
  for (const { walBytes: length } of states) {
    const woke = await wakesUpWith(cutAt(replica, length));
    expect([length, woke]).toEqual([
      length,
      { atStart: [], isAtRest: true, broken: [], head: acknowledged.at(-1)?.head },
    ]);
  }
});

test('[F95 LG9 I03] the ledger’s journal cut anywhere: what was acknowledged within it is there, whole', async () => {
  for (const end of frameEnds(ledger, acknowledged[0]?.walBytes))
    for (const length of [end, end - 2_000]) {
      const promised = acknowledged.filter((one) => one.walBytes <= length).at(-1)?.head ?? 0;
      const here = join(folder, 'ledger-image');
      rmSync(here, { recursive: true, force: true });
      cpSync(world, here, { recursive: true });
      writeImage(ledgerFile.replace(world, here), cutAt(ledger, length));
      const bench = new Bench(here, { side: 'replica', seed: 2 });
      await bench.begin(3_600_000);
      const verified = await bench.ledger.current?.engine.verify({ workspace: 'world', log: 'main' });
      bench.dispose();
      expect([length, verified?.problems, (verified?.events ?? 0) >= promised]).toEqual([length, [], true]);
    }
});

const checkpointed = (image: Image): Buffer => {
  writeImage(file, image);
  const database = openNodeDatabase({ file });
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  return readFileSync(file);
};
const NO_JOURNAL = Buffer.alloc(0);

/** Half a restore. SQLite cannot tell one journal of a file from another; what each half comes to is in docs/PROOF.md. */
test('[F33 F29 F35] half of a file is yesterday’s: refused or seen by the checks, or as harmless as yesterday’s file', async () => {
  const today = checkpointed(replica);
  const halves = {
    'yesterday’s main file, today’s journal': { main: yesterday.main, wal: replica.wal },
    'today’s main file, yesterday’s journal': { main: today, wal: yesterday.wal },
    'yesterday’s main file, no journal': { main: yesterday.main, wal: NO_JOURNAL },
    'today’s main file, no journal': { main: today, wal: NO_JOURNAL },
  };
  const came: Record<string, string> = {};
  for (const [name, image] of Object.entries(halves)) came[name] = await cameTo(image);
  expect(came).toEqual({
    'yesterday’s main file, today’s journal': 'harmless',
    'today’s main file, yesterday’s journal': 'refused: damaged',
    'yesterday’s main file, no journal': 'harmless',
    'today’s main file, no journal': 'harmless',
  });
  for (const { walBytes: length } of states) {
    const mixed = await cameTo({ main: yesterday.main, wal: replica.wal.subarray(0, length) });
    expect([length, mixed]).toEqual([length, expect.stringMatching(/^(harmless|seen|refused)/)]);
  }
});

async function cameTo(image: Image): Promise<string> {
  try {
    const { atStart, isAtRest, broken } = await wakesUpWith(image);
    if (atStart.length > 0) return `seen: ${[...new Set(atStart)].sort().join(', ')}`;
    return isAtRest && broken.length === 0 ? 'harmless' : `not seen: ${broken.join('; ')}`;
  } catch (cause) {
    return `refused: ${(cause as { code?: string }).code ?? String(cause)}`;
  }
}
