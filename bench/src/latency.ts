import { join } from 'node:path';
import { bareIssue, followHub, insertIssues, openBareDevice } from './bare/device.ts';
import { bareEdit } from './bare/event.ts';
import { openBareHub, openSender } from './bare/hub.ts';
import { type Benchmark, percentile } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { type Waiting, waiting } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

const WRITES = scaled(200);

/** From the call of `commit` on one device until a live query on another shows it. */
export function latency(folder: string): Benchmark {
  let runs = 0;
  return {
    name: 'latency',
    what: 'p50 from a commit on one device to the live query of another',
    unit: 'ms',
    bare: 'insert, POST, durable append, socket, insert',
    goal: { atMost: 2 },
    run: async () => {
      runs += 1;
      const world = await openWorld(folder, `latency-${runs}`);
      try {
        return { value: await ours(world), bare: await bareOf(world.folder) };
      } finally {
        await world.close();
      }
    },
  };
}

async function ours(world: World): Promise<number> {
  const texts = issues(WRITES + 1);
  const [id] = await (await createWriter(world)).create(texts.slice(0, 1));
  if (id === undefined) throw new Error('no issue');
  const { replica: from } = await world.device('from');
  const { replica: to } = await world.device('to');
  await settled(from);
  await settled(to);
  let expected = '';
  let seen: Waiting = waiting();
  using live = to.live((db) => db.selectFrom('issue').select(['id', 'title']).where('id', '=', id));
  live.subscribe(({ rows }) => {
    if (rows[0]?.title === expected) seen.done();
  });
  const times: number[] = [];
  for (let at = 0; at < WRITES; at += 1) {
    expected = `${at} ${texts[at + 1]?.title}`;
    seen = waiting();
    const begun = performance.now();
    await from.commit((tx) => tx.issue.update(id, { title: expected }));
    await seen.promise;
    times.push(performance.now() - begun);
  }
  return percentile(times, 50);
}

async function bareOf(folder: string): Promise<number> {
  const texts = issues(WRITES + 1);
  const hub = await openBareHub(join(folder, 'hub.db'));
  const [from, to] = ['from', 'to'].map((name) => openBareDevice(join(folder, `bare-${name}.db`)));
  if (from === undefined || to === undefined) throw new Error('no device');
  for (const { db } of [hub, from, to]) insertIssues(db, [bareIssue(texts[0] as never, 'issue')]);
  let seen: Waiting = waiting();
  const leave = await followHub(hub.url, (events) => {
    to.apply(events);
    seen.done();
  });
  const sender = openSender(hub.url);
  const times: number[] = [];
  for (let at = 0; at < WRITES; at += 1) {
    seen = waiting();
    const begun = performance.now();
    const event = bareEdit(at, 'issue', texts[at + 1]?.title ?? '');
    from.commit(event);
    const sent = sender.send([event]);
    await seen.promise;
    times.push(performance.now() - begun);
    await sent;
  }
  leave();
  sender.close();
  for (const device of [from, to]) device.close();
  await hub.close();
  return percentile(times, 50);
}
