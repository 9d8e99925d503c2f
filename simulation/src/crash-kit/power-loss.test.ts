import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { schemaData } from '@holdfast/core';
import { createSeededRandom, createVirtualTime } from '@holdfast/replica/testing';
import { contentsOf, createEngineDevice } from '@holdfast/replica/testing/engine';
import { afterAll, expect, test } from 'vitest';
import { worldDigest } from '../digest.ts';
import { Bench } from './bench.ts';
import { Disk, stepsBetween } from './power-loss.ts';
import { settled, withLog } from './scenario.ts';
import { crashSchema } from './schema.ts';
import { type Image, readImage, saltsOf, writeImage } from './wal.ts';

const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-power-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** So small that most transactions set a checkpoint off, and the next one begins the journal anew. */
const CHECKPOINT_PAGES = 12;

interface Committed {
  readonly image: Image;
  readonly contents: string;
}

/** Every transaction of work that goes to the ledger and comes back, with both files after it. */
async function workWithCheckpoints(): Promise<readonly Committed[]> {
  const bench = new Bench(join(folder, 'world'), { side: 'replica', seed: 1 });
  await bench.begin(0);
  await withLog(bench);
  const { ana } = bench;
  ana.engine?.database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  bench.commit(ana, 'first frames', [{ do: 'update', entity: 'issue', id: 'i2', set: { title: 'Y' } }]);
  await settled(bench);
  ana.engine?.database.exec(`PRAGMA wal_autocheckpoint=${CHECKPOINT_PAGES}`);
  // The syncs that `stepsBetween` believes in are those of NORMAL.
  expect(ana.engine?.database.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 1 });
  const taken: Committed[] = [{ image: readImage(ana.file), contents: contentsOf(ana.file) }];
  bench.onCommitted = () => {
    const image = readImage(ana.file);
    const last = taken.at(-1)?.image;
    if (last?.main.equals(image.main) && last.wal.equals(image.wal)) return;
    taken.push({ image, contents: contentsOf(ana.file) });
  };
  for (const title of ['one', 'two']) {
    bench.commit(ana, title, [
      { do: 'update', entity: 'issue', id: 'i1', set: { title }, inc: { votes: 1 } },
      { do: 'create', entity: 'issue', id: `n-${title}`, fields: { title, status: 'todo' } },
    ]);
    await settled(bench);
  }
  bench.onCommitted = null;
  bench.kill();
  return taken;
}

/** Every loss at every point; else one of them at each, in turn. */
const isThorough = process.env['CRASH_KIT'] === 'all';

const file = join(folder, 'image.sqlite');
const time = createVirtualTime();

/** Opens what the disk holds, as the next host does. */
function opened(image: Image): { readonly contents: string; readonly findings: readonly string[] } {
  rmSync(`${file}-shm`, { force: true });
  writeImage(file, image);
  const contents = contentsOf(file);
  const engine = createEngineDevice({
    file,
    schema: schemaData(crashSchema),
    account: 'ana',
    platform: { clock: time.clockFor({}), random: createSeededRandom(1), digest: worldDigest },
    fetch: () => Promise.reject(new Error('no network')),
    openSocket: () => ({ send: () => undefined, close: () => undefined, bufferedBytes: 0 }),
  });
  const findings = engine.examine().findings.map(({ check, what }) => `${check}: ${what}`);
  engine.abandon();
  return { contents, findings };
}

test('[I02 RP2 F29 F10] power goes between any two writes of a checkpoint and of the journal that begins anew: what was committed until some moment is there, whole', async () => {
  const taken = await workWithCheckpoints();
  const [first] = taken as [Committed];
  const disk = new Disk(first.image);
  /** What nothing may take back: its frames were synced, as a checkpoint does first. */
  let durable = 0;
  let checkpoints = 0;
  let points = 0;
  for (let at = 1; at < taken.length; at += 1) {
    const { image } = taken[at] as Committed;
    let hasFrames = false;
    for (const step of stepsBetween((taken[at - 1] as Committed).image, image)) {
      disk.take(step);
      if (!('bytes' in step)) {
        if (hasFrames) durable = at;
        if (step.file === 'main') checkpoints += 1;
        continue;
      }
      if (step.file === 'wal' && step.offset > 0) hasFrames = true;
      points += 1;
      const images = disk.images();
      for (const held of isThorough ? images : [images[points % images.length] as Image]) {
        const { contents, findings } = opened(held);
        const place = taken.findLastIndex((one) => one.contents === contents);
        expect([at, step, findings, place >= durable, place <= at]).toEqual([at, step, [], true, true]);
      }
    }
    // The writes are all that SQLite made.
    expect([disk.whole.main.equals(image.main), disk.whole.wal.equals(image.wal)]).toEqual([true, true]);
  }
  expect([checkpoints > 2, new Set(taken.map((one) => saltsOf(one.image))).size > 2]).toEqual([true, true]);
});
