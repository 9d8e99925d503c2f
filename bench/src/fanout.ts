import { join } from 'node:path';
import { bareIssue, followHub, insertIssues, openBareDevice } from './bare/device.ts';
import { bareEdit } from './bare/event.ts';
import { openBareHub, openSender } from './bare/hub.ts';
import { type Benchmark, percentile } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { headOf, subscribe } from './subscriber.ts';
import { type Waiting, waiting } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

const SUBSCRIBERS = scaled(50);
const WRITES = scaled(100);

/** From an event's send-off until each of 50 sockets has it. */
export function fanout(folder: string): Benchmark {
  let runs = 0;
  return {
    name: 'fanout',
    what: 'p50 from a commit to each of 50 subscribed sockets',
    unit: 'ms',
    bare: 'insert, POST, durable append, 50 sockets',
    goal: { atMost: 1.2 },
    run: async () => {
      runs += 1;
      const world = await openWorld(folder, `fanout-${runs}`);
      try {
        return { value: await oursOf(world), bare: await bareOf(world.folder) };
      } finally {
        await world.close();
      }
    },
  };
}

async function oursOf(world: World): Promise<number> {
  const texts = issues(WRITES + 1);
  const [id] = await (await createWriter(world)).create(texts.slice(0, 1));
  const { replica } = await world.device('device', { settings: { live: false } });
  await settled(replica);
  const head = await headOf(world.ledger.url);
  const round = createRound();
  const subscribers = await Promise.all(
    Array.from({ length: SUBSCRIBERS }, () => subscribe(world.ledger.url, head, () => round.arrived())),
  );
  for (let at = 0; at < WRITES; at += 1) {
    round.begin();
    const title = texts[at + 1]?.title ?? '';
    await replica.commit((tx) => tx.issue.update(id as string, { title: `${at} ${title}` }));
    await round.all();
    await settled(replica);
  }
  for (const subscriber of subscribers) subscriber.close();
  return round.p50();
}

async function bareOf(folder: string): Promise<number> {
  const texts = issues(WRITES + 1);
  const hub = await openBareHub(join(folder, 'hub.db'));
  const device = openBareDevice(join(folder, 'bare.db'));
  for (const { db } of [hub, device]) insertIssues(db, [bareIssue(texts[0] as never, 'issue')]);
  const round = createRound();
  const leave = await Promise.all(Array.from({ length: SUBSCRIBERS }, () => followHub(hub.url, () => round.arrived())));
  const sender = openSender(hub.url);
  for (let at = 0; at < WRITES; at += 1) {
    round.begin();
    const event = bareEdit(at, 'issue', `${at} ${texts[at + 1]?.title}`);
    device.commit(event);
    const sent = sender.send([event]);
    await round.all();
    await sent;
  }
  for (const go of leave) go();
  sender.close();
  device.close();
  await hub.close();
  return round.p50();
}

/** Arrivals of one event at every subscriber, event after event. */
function createRound() {
  const times: number[] = [];
  let begun = 0;
  let missing = 0;
  let all: Waiting = waiting();
  return {
    begin: () => {
      missing = SUBSCRIBERS;
      all = waiting();
      begun = performance.now();
    },
    arrived: () => {
      times.push(performance.now() - begun);
      missing -= 1;
      if (missing === 0) all.done();
    },
    all: () => all.promise,
    p50: () => percentile(times, 50),
  };
}
