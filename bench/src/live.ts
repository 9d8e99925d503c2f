import { join } from 'node:path';
import { bareIssue, insertIssues, openBareDevice } from './bare/device.ts';
import { bareEdit } from './bare/event.ts';
import { type Benchmark, percentile } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { type Waiting, waiting } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

const ISSUES = scaled(10_000);
const WRITES = scaled(30);

/** From a commit to the live result of a list of 10,000 rows in which one changed. */
export function live(folder: string): Benchmark {
  let shared: Promise<{ readonly world: World; readonly ids: readonly string[] }> | null = null;
  let runs = 0;
  const prepare = async () => {
    const world = await openWorld(folder, 'live');
    const ids = await (await createWriter(world)).create(issues(ISSUES));
    return { world, ids };
  };
  return {
    name: 'live',
    what: 'p50 from a commit to the live list of 10,000 rows, of which one changed',
    unit: 'ms',
    bare: 'the transaction, and the same query again',
    goal: null,
    run: async () => {
      shared ??= prepare();
      const { world, ids } = await shared;
      runs += 1;
      return { value: await oursOf(world, ids), bare: bareOf(join(world.folder, `bare-${runs}.db`), ids) };
    },
    close: async () => {
      await (await shared)?.world.close();
    },
  };
}

async function oursOf(world: World, ids: readonly string[]): Promise<number> {
  await using device = await world.device('device');
  const { replica } = device;
  await settled(replica);
  await replica.pause();
  const times: number[] = [];
  let wanted: { readonly id: string; readonly title: string } | null = null;
  let seen: Waiting = waiting();
  const first = waiting();
  using live = replica.live((db) => db.selectFrom('issue').select(['id', 'title', 'status', 'priority']).orderBy('id'));
  live.subscribe(({ rows }) => {
    if (rows.length === ISSUES) first.done();
    if (wanted !== null && rows.find(({ id }) => id === wanted?.id)?.title === wanted.title) seen.done();
  });
  await first.promise;
  for (let at = 0; at < WRITES; at += 1) {
    const id = ids[(at * 331) % ISSUES] as string;
    const title = `${at} ${performance.now()}`;
    wanted = { id, title };
    seen = waiting();
    const begun = performance.now();
    await replica.commit((tx) => tx.issue.update(id, { title }));
    await seen.promise;
    times.push(performance.now() - begun);
  }
  await replica.resume();
  await settled(replica);
  return percentile(times, 50);
}

function bareOf(file: string, ids: readonly string[]): number {
  const device = openBareDevice(file);
  insertIssues(
    device.db,
    issues(ISSUES).map((issue, at) => bareIssue(issue, ids[at] as string)),
  );
  const list = device.db.prepare('SELECT id, title, status, priority FROM issue ORDER BY id');
  list.all();
  const times: number[] = [];
  for (let at = 0; at < WRITES; at += 1) {
    const begun = performance.now();
    device.commit(bareEdit(at, ids[(at * 331) % ISSUES] as string, `${at} title`));
    list.all();
    times.push(performance.now() - begun);
  }
  device.close();
  return percentile(times, 50);
}
