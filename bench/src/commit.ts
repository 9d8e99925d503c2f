import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bareIssue, insertIssues, openBareDevice } from './bare/device.ts';
import { bareEdit } from './bare/event.ts';
import type { Benchmark } from './harness.ts';
import { issues } from './issues.ts';
import { scaled } from './scale.ts';
import { timed } from './waiting.ts';
import { openWorld, settled } from './world.ts';
import { createWriter } from './writer.ts';

const ISSUES = 300;
const COMMITS = scaled(3_000);

/** Commits of a device that is offline: one edit each, awaited one after the other through the public client. */
export function commit(folder: string): Benchmark {
  let runs = 0;
  return {
    name: 'commit',
    what: 'edits committed one by one through the client, nothing sent',
    unit: 'commits/s',
    bare: 'one transaction that inserts an event row and updates an issue row, WAL NORMAL',
    goal: { atLeast: 0.4 },
    run: async () => {
      runs += 1;
      const name = `commit-${runs}`;
      const texts = issues(ISSUES + COMMITS);
      const world = await openWorld(folder, name);
      const ids = await (await createWriter(world)).create(texts.slice(0, ISSUES));
      const { replica } = await world.device('device');
      await settled(replica);
      await replica.pause();
      const ours = await timed(async () => {
        for (let at = 0; at < COMMITS; at += 1)
          await replica.commit((tx) =>
            tx.issue.update(ids[at % ISSUES] as string, { title: texts[ISSUES + at]?.title ?? '' }),
          );
      });
      const bareDevice = openBareDevice(join(world.folder, 'bare.db'));
      insertIssues(
        bareDevice.db,
        texts.slice(0, ISSUES).map((issue, at) => bareIssue(issue, ids[at] as string)),
      );
      const bare = await timed(() => {
        for (let at = 0; at < COMMITS; at += 1)
          bareDevice.commit(bareEdit(at, ids[at % ISSUES] as string, texts[ISSUES + at]?.title ?? ''));
      });
      bareDevice.close();
      await world.close();
      rmSync(world.folder, { recursive: true });
      return { value: (COMMITS / ours) * 1000, bare: (COMMITS / bare) * 1000 };
    },
  };
}
