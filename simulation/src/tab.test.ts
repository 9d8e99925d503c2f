import { createSeededRandom } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';
import { checkQuiet } from './checkers.ts';
import { removeFolder } from './ledger.ts';
import { runSeed } from './run.ts';
import { replayCommand } from './shrink.ts';
import { createTab } from './tab.ts';
import { createWorld, worldSchema } from './world.ts';

test('[CM5 LK2] a tab that is killed in the middle of a commit finds it decided once, by the host that heard of it first', async () => {
  const options = { faults: ['tab', 'crash', 'take-over'] } as const;
  let repeated = 0;
  for (const seed of [1, 2, 3, 4]) {
    const { violations, counts } = await runSeed(seed, options);
    expect(violations, replayCommand(seed, options)).toEqual([]);
    repeated += counts['commits repeated'] ?? 0;
  }
  expect(repeated).toBeGreaterThan(0);
});

test('[OB6 CM7 LK1] a person in a tab decides what waits, takes back and makes again, and the tab shows what its host has', async () => {
  const options = { faults: ['tab-people', 'partition', 'lateness'], lasting: null, coda: false } as const;
  const done: Record<string, number> = {};
  for (const seed of [1, 2, 3, 4, 5]) {
    const { violations, counts } = await runSeed(seed, options);
    expect(violations, replayCommand(seed, options)).toEqual([]);
    for (const [what, times] of Object.entries(counts)) done[what] = (done[what] ?? 0) + times;
  }
  for (const what of ['undone', 'redone', 'committed', 'given up', 'ordered', 'resolved mine', 'resolved with a value'])
    expect([what, done[`${what} in a tab`]]).toEqual([what, expect.any(Number)]);
});

test('[LK3 F51 F59] a tab that is frozen while its host works on is told little, and shows everything once it is thawed', async () => {
  const world = createWorld(8, { devices: 2, faults: [], logs: 1 });
  const [device] = world.devices as [(typeof world.devices)[number]];
  const tab = createTab({ device, time: world.time, random: createSeededRandom(8), schema: worldSchema });
  tab.open();
  await world.time.advance(5_000);
  tab.freeze();
  expect([tab.commit((tx) => tx.note.create({ title: 'one' }), 'main'), tab.act()]).toEqual([null, null]);
  for (let written = 0; written < 200; written += 1) {
    device.commit((tx) => tx.note.create({ title: `note ${written}` }));
    await world.time.advance(1_000);
  }
  expect(tab.check().map(({ what }) => what.split(' ')[4])).toContain('rows');
  tab.thaw();
  await world.time.advance(30_000);
  expect([tab.isServed, tab.check()]).toEqual([true, []]);
  for (const one of world.devices) one.crash();
  world.ledger.kill();
  removeFolder(world.folder);
});

test('[CM5 I18 I25] a tab that shows something else, or waits for ever, is found', async () => {
  const world = createWorld(7, { devices: 2, faults: [], logs: 1 });
  const [device] = world.devices as [(typeof world.devices)[number]];
  const tab = createTab({ device, time: world.time, random: createSeededRandom(7), schema: worldSchema });
  tab.open();
  const action = tab.commit((tx) => tx.note.create({ title: 'one' }), 'main');
  expect(tab.check().slice(0, 1)).toMatchObject([
    { invariant: 'I25', what: expect.stringContaining(action as string) },
  ]);
  await world.time.advance(30_000);
  expect([tab.unanswered, device.resolved.has(action as string), tab.check()]).toEqual([0, true, []]);
  device.commit((tx) => tx.note.create({ title: 'two' }));
  expect(tab.check().map(({ what }) => what.split(' ')[4])).toEqual(['rows', 'undo', 'status']);
  await world.time.advance(30_000);
  expect([tab.check(), await checkQuiet(world)]).toEqual([[], []]);
  for (const one of world.devices) one.crash();
  world.ledger.kill();
  removeFolder(world.folder);
});
