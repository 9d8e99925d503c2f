import { join } from 'node:path';
import { bareIssue, followHub, insertIssues, openBareDevice } from './bare/device.ts';
import { type BareEvent, bareEdit } from './bare/event.ts';
import { openBareHub, openSender } from './bare/hub.ts';
import type { Benchmark } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { timed, waiting } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

const ISSUES = 300;
const COMMITS = scaled(10_000);
/** The bare device sends this many commits at once, about as many as ours. */
const BATCH = 500;

/** Single commits of one device, until the last one is shown by another. */
export function throughput(folder: string): Benchmark {
  let runs = 0;
  return {
    name: 'throughput',
    what: '10,000 single commits on one device until another shows the last',
    unit: 'commits/s',
    bare: 'the same transactions, POSTs of 500, durable appends, socket, one insert transaction per 500',
    goal: { atLeast: 0.5 },
    run: async () => {
      runs += 1;
      const world = await openWorld(folder, `throughput-${runs}`);
      try {
        const ours = await oursOf(world);
        return { value: (COMMITS / ours) * 1000, bare: (COMMITS / (await bareOf(world.folder))) * 1000 };
      } finally {
        await world.close();
      }
    },
  };
}

async function oursOf(world: World): Promise<number> {
  const texts = issues(COMMITS);
  const ids = await (await createWriter(world)).create(texts.slice(0, ISSUES));
  const { replica: from } = await world.device('from');
  const { replica: to } = await world.device('to');
  await settled(from);
  await settled(to);
  const last = ids[(COMMITS - 1) % ISSUES] as string;
  const all = waiting();
  using live = to.live((db) => db.selectFrom('issue').select(['id', 'title']).where('id', '=', last));
  live.subscribe(({ rows }) => {
    if (rows[0]?.title === 'the last') all.done();
  });
  return await timed(async () => {
    for (let at = 0; at < COMMITS; at += 1) {
      const title = at === COMMITS - 1 ? 'the last' : (texts[at]?.title ?? '');
      await from.commit((tx) => tx.issue.update(ids[at % ISSUES] as string, { title }));
    }
    await all.promise;
  });
}

async function bareOf(folder: string): Promise<number> {
  const texts = issues(COMMITS);
  const hub = await openBareHub(join(folder, 'hub.db'));
  const from = openBareDevice(join(folder, 'bare-from.db'));
  const to = openBareDevice(join(folder, 'bare-to.db'));
  const rows = texts.slice(0, ISSUES).map((issue, at) => bareIssue(issue, `issue-${at}`));
  for (const { db } of [hub, from, to]) insertIssues(db, rows);
  let arrived = 0;
  const all = waiting();
  const leave = await followHub(hub.url, (events) => {
    to.apply(events);
    arrived += events.length;
    if (arrived === COMMITS) all.done();
  });
  const sender = openSender(hub.url);
  const ms = await timed(async () => {
    let batch: BareEvent[] = [];
    let sent = Promise.resolve();
    for (let at = 0; at < COMMITS; at += 1) {
      const event = bareEdit(at, `issue-${at % ISSUES}`, texts[at]?.title ?? '');
      from.commit(event);
      batch.push(event);
      if (batch.length < BATCH) continue;
      await sent;
      sent = sender.send(batch);
      batch = [];
    }
    await sent;
    await all.promise;
  });
  leave();
  sender.close();
  for (const device of [from, to]) device.close();
  await hub.close();
  return ms;
}
