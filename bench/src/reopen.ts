import { join } from 'node:path';
import { bareIssue, insertIssues, openBareDevice } from './bare/device.ts';
import { bareEdit } from './bare/event.ts';
import { openBare } from './bare/sqlite.ts';
import type { Benchmark } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { timed } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

export const ISSUES = scaled(10_000);
export const EVENTS = scaled(60_000);

/** A device that was there from the first event on, and is closed. */
export async function deviceWithHistory(world: World, events: number): Promise<void> {
  const texts = issues(ISSUES);
  await using device = await world.device('device');
  const writer = await createWriter(world);
  await settled(device.replica);
  const ids = await writer.create(texts);
  await writer.edit(ids, events - ISSUES, (at) => ({ title: texts[(at * 7) % ISSUES]?.title ?? '' }));
  await device.replica.sync();
  await settled(device.replica);
}

/** Opens the device and asks for its first screen: the 50 open issues that changed last. */
export async function reopened(world: World): Promise<number> {
  let close: () => PromiseLike<void> = async () => {};
  const ms = await timed(async () => {
    const device = await world.device('device');
    close = () => device[Symbol.asyncDispose]();
    const rows = await device.replica.query((db) =>
      db
        .selectFrom('issue')
        .select(['id', 'title', 'status'])
        .where('status', '=', 'todo')
        .orderBy('updatedAt', 'desc')
        .limit(50),
    );
    if (rows.length !== 50) throw new Error(`${rows.length} rows`);
  });
  await close();
  return ms;
}

export function bareWithHistory(file: string, events: number): void {
  const texts = issues(ISSUES);
  const device = openBareDevice(file);
  insertIssues(
    device.db,
    texts.map((issue, at) => bareIssue(issue, `issue-${at}`)),
  );
  device.apply(
    Array.from({ length: events }, (_, at) =>
      bareEdit(at, `issue-${at % ISSUES}`, texts[(at * 7) % ISSUES]?.title ?? ''),
    ),
  );
  device.close();
}

export const bareReopened = (file: string): Promise<number> =>
  timed(() => {
    const db = openBare(file, { durability: 'normal' });
    db.prepare("SELECT id, title, status FROM issue WHERE status = 'todo' ORDER BY updated_at DESC LIMIT 50").all();
    db.close();
  });

export function reopen(folder: string): Benchmark {
  let shared: Promise<World> | null = null;
  const prepare = async () => {
    const world = await openWorld(folder, 'reopen');
    await deviceWithHistory(world, EVENTS);
    bareWithHistory(join(world.folder, 'bare.db'), EVENTS);
    return world;
  };
  return {
    name: 'reopen',
    what: 'open a device with 10,000 issues and 60,000 events of history, first screen',
    unit: 'ms',
    bare: 'open a file with the same rows, the same query',
    goal: { atMost: 2 },
    run: async () => {
      shared ??= prepare();
      const world = await shared;
      return { value: await reopened(world), bare: await bareReopened(join(world.folder, 'bare.db')) };
    },
    close: async () => {
      await (await shared)?.close();
    },
  };
}

export function reopenGrowth(folder: string): Benchmark {
  let shared: Promise<readonly [long: World, short: World]> | null = null;
  const prepare = async () => {
    const long = await openWorld(folder, 'reopen-long');
    const short = await openWorld(folder, 'reopen-short');
    await deviceWithHistory(long, EVENTS);
    await deviceWithHistory(short, ISSUES);
    return [long, short] as const;
  };
  return {
    name: 'reopen-growth',
    what: 'reopen with 60,000 events of history beside the same issues with none but their creation',
    unit: 'ms',
    bare: 'our own reopen with the short history',
    goal: { atMost: 1.25 },
    run: async () => {
      shared ??= prepare();
      const [long, short] = await shared;
      return { value: await reopened(long), bare: await reopened(short) };
    },
    close: async () => {
      for (const world of (await shared) ?? []) await world.close();
    },
  };
}
