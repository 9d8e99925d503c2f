import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type BareIssue, bareIssue, insertIssues, openBareDevice } from './bare/device.ts';
import { type BareHub, openBareHub } from './bare/hub.ts';
import type { Benchmark } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { timed } from './waiting.ts';
import { openWorld, settled, type World } from './world.ts';
import { createWriter } from './writer.ts';

const ISSUES = scaled(10_000);
const EDITS = scaled(50_000);

/** A new device of a workspace with a past: until it has everything and shows it. */
export function bootstrap(folder: string): Benchmark {
  let shared: Promise<{ readonly world: World; readonly hub: BareHub }> | null = null;
  let runs = 0;
  const prepare = async () => {
    const world = await openWorld(folder, 'bootstrap');
    const texts = issues(ISSUES);
    const writer = await createWriter(world);
    const ids = await writer.create(texts);
    await writer.edit(ids, EDITS, (at) => ({ title: `${texts[(at * 7) % ISSUES]?.title}`, priority: at % 7 }));
    const hub = await openBareHub(join(world.folder, 'hub.db'));
    insertIssues(
      hub.db,
      texts.map((issue, at) => bareIssue(issue, ids[at] as string)),
    );
    return { world, hub };
  };
  return {
    name: 'bootstrap',
    what: 'a new device gets 10,000 issues with 50,000 edits of history',
    unit: 'ms',
    bare: 'the 10,000 issues as JSON over HTTP, inserted in one transaction',
    goal: { atMost: 2.5 },
    run: async () => {
      shared ??= prepare();
      const { world, hub } = await shared;
      runs += 1;
      const name = `device-${runs}`;
      let close: () => PromiseLike<void> = async () => {};
      const value = await timed(async () => {
        const device = await world.device(name);
        close = () => device[Symbol.asyncDispose]();
        await settled(device.replica);
        const rows = await device.replica.query((db) =>
          db.selectFrom('issue').select((eb) => eb.fn.countAll<number>().as('n')),
        );
        if (rows[0]?.n !== ISSUES) throw new Error(`${rows[0]?.n} issues arrived`);
      });
      await close();
      rmSync(join(world.folder, name), { recursive: true });

      const file = join(world.folder, `bare-${runs}.db`);
      const bare = await timed(async () => {
        const device = openBareDevice(file);
        const rows = (await (await fetch(hub.url)).json()) as readonly BareIssue[];
        insertIssues(device.db, rows);
        device.db.prepare('SELECT count(*) FROM issue').get();
        device.close();
      });
      rmSync(file);
      return { value, bare };
    },
    close: async () => {
      const opened = await shared;
      await opened?.hub.close();
      await opened?.world.close();
    },
  };
}
