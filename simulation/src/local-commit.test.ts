import { DatabaseSync } from 'node:sqlite';
import { endLocalCommits, inspectReplica } from '@holdfast/replica/inspect';

import { expect, test } from 'vitest';
import { checkQuiet } from './checkers.ts';
import { removeFolder } from './ledger.ts';
import { createWorld } from './world.ts';

test('[PM10] a local commit that other code left in the file blocks its log, and the doctor’s repair lets it go on', async () => {
  const world = createWorld(9, { devices: 2, faults: [] });
  const [ana] = world.devices as [(typeof world.devices)[0], (typeof world.devices)[0]];
  await world.time.advance(60_000);
  // A push leaves, and its device dies before the answer: a permit is under way in the file.
  ana.network.rules.delayMs = [5_000, 5_000];
  const action = ana.commit((tx) => tx.note.create({ title: 'on its way' }));
  await world.time.advance(1_000);
  ana.crash();
  const database = new DatabaseSync(ana.file);
  const { changes } = database
    .prepare(
      "UPDATE main.hf_permit SET state = 'local-commit-entered', disposition = 'accepted' WHERE ended_at IS NULL AND class = 'push'",
    )
    .run();
  database.close();
  expect(Number(changes)).toBe(1);

  ana.network.rules.delayMs = [1, 5];
  ana.start();
  await world.time.advance(60_000);
  expect(ana.engine?.state.log('main')?.blocked?.code).toBe('local-commit-invariant');
  await ana.close();
  const before = inspectReplica(ana.file);
  expect(before.examine().findings.map(({ check }) => check)).toContain('permits');
  const ended = endLocalCommits(ana.file, before);
  before[Symbol.dispose]();
  using after = inspectReplica(ana.file);
  expect(after.counts()).toMatchObject({ unsent: 1, sending: 0 });
  expect(ended).toMatchObject([{ log: 'main', class: 'push', operations: [action] }]);

  ana.start();
  await world.time.advance(60_000);
  expect(await checkQuiet(world)).toEqual([]);
  expect(ana.engine?.state.outcome(action as string)).toMatchObject({ state: 'ordered' });
  for (const device of world.devices) device.crash();
  world.ledger.kill();
  removeFolder(world.folder);
});
