import { join } from 'node:path';
import { bareIssue, insertIssues, openBareDevice } from './bare/device.ts';
import { type BareEvent, bareEdit } from './bare/event.ts';
import { openBareHub, openSender } from './bare/hub.ts';
import type { Benchmark } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { timed } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

/** An operation of the writer edits a hundred different ones. */
const ISSUES = scaled(1_000, 100);
const PENDING = scaled(1_000, 100);
const FOREIGN = scaled(10_000);
const PAGE = 500;

/** A device comes back with its own work, to a ledger that went on: until all is merged, ordered and applied. */
export function rebase(folder: string): Benchmark {
  let runs = 0;
  return {
    name: 'rebase',
    what: '1,000 pending edits meet 10,000 foreign ones of the same issues; all survive',
    unit: 'ms',
    bare: 'GET the 10,000, insert and update, update again by the 1,000, POST them, durable append, confirm',
    goal: { atMost: 1.2 },
    run: async () => {
      runs += 1;
      const world = await openWorld(folder, `rebase-${runs}`);
      try {
        return { value: await oursOf(world), bare: await bareOf(world.folder) };
      } finally {
        await world.close();
      }
    },
  };
}

async function oursOf(world: World): Promise<number> {
  const texts = issues(ISSUES);
  const writer = await createWriter(world);
  const ids = await writer.create(texts);
  const { replica } = await world.device('device');
  await settled(replica);
  await replica.pause();
  const mine = (at: number) => `mine ${at} ${texts[at]?.title}`;
  for (let at = 0; at < PENDING; at += 1)
    await replica.commit((tx) => tx.issue.update(ids[at % ISSUES] as string, { title: mine(at) }));
  await writer.edit(ids, FOREIGN, (at) => ({ assignee: texts[(at * 7) % ISSUES]?.author ?? '', priority: at % 9 }));
  const ms = await timed(async () => {
    await replica.resume();
    await settled(replica);
  });
  const rows = await replica.query((db) => db.selectFrom('issue').select(['id', 'title', 'assignee', 'sync']));
  const survived = new Map(rows.map((row) => [row.id, row]));
  for (let at = 0; at < ISSUES; at += 1) {
    const row = survived.get(ids[at] as string);
    if (row?.title !== mine(at) || row.assignee === null || row.sync !== 'synced')
      throw new Error(`An edit did not survive: ${JSON.stringify(row)}`);
  }
  return ms;
}

async function bareOf(folder: string): Promise<number> {
  const texts = issues(ISSUES);
  const hub = await openBareHub(join(folder, 'hub.db'));
  const device = openBareDevice(join(folder, 'bare.db'));
  const rows = texts.map((issue, at) => bareIssue(issue, `issue-${at}`));
  for (const { db } of [hub, device]) insertIssues(db, rows);
  const sender = openSender(hub.url);
  const foreign = Array.from({ length: FOREIGN }, (_, at) =>
    bareEdit(at, `issue-${at % ISSUES}`, texts[(at * 7) % ISSUES]?.author ?? ''),
  );
  await sender.send(foreign);
  const mine = Array.from({ length: PENDING }, (_, at) =>
    bareEdit(FOREIGN + at, `issue-${at % ISSUES}`, texts[at % ISSUES]?.title ?? ''),
  );
  device.apply(mine);
  const again = device.db.prepare('UPDATE issue SET title = ?, version = version + 1 WHERE id = ?');
  const confirm = device.db.prepare('UPDATE event SET body = ? WHERE version = ?');
  const ms = await timed(async () => {
    const events = (await (await fetch(`${hub.url}/events`)).json()) as BareEvent[];
    for (let at = 0; at < events.length; at += PAGE)
      device.apply(
        events.slice(at, at + PAGE).map((event) => {
          const title = JSON.parse(event.body).change.set.title as string;
          return { ...event, title, id: `theirs ${event.id}` };
        }),
      );
    for (let at = 0; at < mine.length; at += PAGE) {
      const part = mine.slice(at, at + PAGE);
      device.db.exec('BEGIN IMMEDIATE');
      for (const { entity, title } of part) again.run(title, entity);
      device.db.exec('COMMIT');
      await sender.send(part);
      device.db.exec('BEGIN IMMEDIATE');
      // They were the first rows of this file.
      for (const [n, { body }] of part.entries()) confirm.run(body, at + n + 1);
      device.db.exec('COMMIT');
    }
  });
  sender.close();
  device.close();
  await hub.close();
  return ms;
}
