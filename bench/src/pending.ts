import { join } from 'node:path';
import { openBare } from './bare/sqlite.ts';
import type { Benchmark } from './harness.ts';
import { issues } from './issues.ts';
import { bareWithHistory, ISSUES } from './reopen.ts';
import { scaled } from './scale.ts';
import { timed } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

const PENDING = scaled(20_000);

/** Boot of a device that worked offline for long: until its first query is answered. */
export function pending(folder: string): Benchmark {
  let shared: Promise<World> | null = null;
  const prepare = async () => {
    const world = await openWorld(folder, 'pending');
    const texts = issues(ISSUES);
    const ids = await (await createWriter(world)).create(texts);
    {
      await using device = await world.device('device');
      await settled(device.replica);
      await device.replica.pause();
      for (let at = 0; at < PENDING; at += 1)
        await device.replica.commit((tx) =>
          tx.issue.update(ids[at % ISSUES] as string, { title: `${at} ${texts[at % ISSUES]?.title}` }),
        );
    }
    // Offline from here on: nothing of it is sent between runs.
    await world.ledger.close();
    bareWithHistory(join(world.folder, 'bare.db'), PENDING);
    return world;
  };
  return {
    name: 'pending',
    what: 'boot with 20,000 pending commits, first query',
    unit: 'ms',
    bare: 'open a file with 20,000 event rows, the same query',
    goal: null,
    valueAtMost: 300,
    run: async () => {
      shared ??= prepare();
      const world = await shared;
      let close: () => PromiseLike<void> = async () => {};
      const value = await timed(async () => {
        const device = await world.device('device');
        close = () => device[Symbol.asyncDispose]();
        const rows = await device.replica.query((db) =>
          db.selectFrom('issue').select(['id', 'title', 'sync']).where('sync', '=', 'pending').limit(50),
        );
        if (rows.length !== 50) throw new Error(`${rows.length} rows are pending`);
        if (device.replica.status.current.unsent !== PENDING)
          throw new Error(`${device.replica.status.current.unsent} are unsent`);
      });
      await close();
      const bare = await timed(() => {
        const db = openBare(join(world.folder, 'bare.db'), { durability: 'normal' });
        db.prepare('SELECT id, title, version FROM issue LIMIT 50').all();
        db.prepare('SELECT count(*) FROM event').get();
        db.close();
      });
      return { value, bare };
    },
    close: async () => {
      await (await shared)?.close();
    },
  };
}
