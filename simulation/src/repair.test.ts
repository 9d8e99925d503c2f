import { cpSync } from 'node:fs';
import { tamper } from '@holdfast/replica/testing/engine';
import { expect, test } from 'vitest';
import { checkQuiet } from './checkers.ts';
import { removeFolder } from './ledger.ts';
import { createWorld, type World } from './world.ts';

const quiet = async (world: World): Promise<void> => {
  await world.time.advance(60_000);
};
const end = (world: World): void => {
  for (const device of world.devices) device.crash();
  world.ledger.kill();
  removeFolder(world.folder);
};

test('[BS5] before its first state a replica takes creates, and changes of what it created, and nothing else', async () => {
  const world = createWorld(3, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [World['devices'][0], World['devices'][1]];
  await quiet(world);
  let theirs = '';
  ana.commit((tx) => {
    theirs = tx.note.create({ title: 'theirs' });
  });
  await quiet(world);
  ben.crash();
  for (const suffix of ['', '-wal', '-shm']) removeFolder(`${ben.file}${suffix}`);
  ben.forget();
  ben.network.rules.offline = true;
  ben.start();
  expect(ben.engine?.state.log('main')?.stage).toBe('new');
  let own = '';
  const created = ben.commit((tx) => {
    own = tx.note.create({ title: 'own' });
  });
  expect(created).not.toBeNull();
  expect(ben.commit((tx) => tx.note.update(own as never, { title: 'own again' }))).not.toBeNull();
  expect(ben.commit((tx) => tx.note.update(theirs as never, { title: 'unseen' }))).toBeNull();
  ben.network.rules.offline = false;
  ben.engine?.sync.kick('online');
  await quiet(world);
  expect(await checkQuiet(world, { isTampered: true })).toEqual([]);
  const titles = ana.engine?.database.prepareQuery('select title from note order by title').statement.all();
  expect(titles?.map((row) => row['title'])).toEqual(['own again', 'theirs']);
  end(world);
});

test('[RR1 DG2] a replica whose state differs at a position of the log is repaired, its unsent work on top', async () => {
  const world = createWorld(4, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [World['devices'][0], World['devices'][1]];
  await quiet(world);
  let id = '';
  ana.commit((tx) => {
    id = tx.note.create({ title: 'A' });
  });
  await quiet(world);
  ben.network.rules.offline = true;
  ben.network.cut();
  ben.commit((tx) => tx.note.update(id as never, { votes: { by: 1 } }));
  // A fault of the device: its confirmed state is not what the log says.
  tamper(
    ben.engine?.state,
    `UPDATE main.note SET status = 'closed'; UPDATE main.hf_log SET signature = '${'1'.repeat(64)}'`,
  );
  ben.network.rules.offline = false;
  ben.engine?.sync.kick('online');
  await quiet(world);
  await quiet(world);
  expect(await checkQuiet(world, { isTampered: true })).toEqual([]);
  const row = ben.engine?.database.prepareQuery('select status, votes, sync from note').statement.get();
  expect({ ...row }).toEqual({ status: 'open', votes: 1, sync: 'synced' });
  end(world);
});

test('[BS4 F91] the ledger is rewound while a replica fetches its first state: it begins again, and shows one history', async () => {
  const world = createWorld(5, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [World['devices'][0], World['devices'][1]];
  ben.crash();
  for (const suffix of ['', '-wal', '-shm']) removeFolder(`${ben.file}${suffix}`);
  ben.forget();
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'kept' }));
  await quiet(world);
  world.ledger.kill();
  cpSync(world.ledger.folder, `${world.ledger.folder}-backup`, { recursive: true });
  world.ledger.start();
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'lost by the restore' }));
  await quiet(world);
  // Ben has asked where the log stands, and is about to fetch it.
  ben.network.rules.delayMs = [2_000, 2_000];
  ben.start();
  await world.time.advance(5_000);
  expect(ben.engine?.state.log('main')?.stage).not.toBe('visible');
  world.ledger.kill();
  removeFolder(world.ledger.folder);
  cpSync(`${world.ledger.folder}-backup`, world.ledger.folder, { recursive: true });
  world.ledger.start();
  ben.network.rules.delayMs = [1, 5];
  await quiet(world);
  await quiet(world);
  const verified = await world.ledger.current?.engine.verify({ workspace: 'world', log: 'main' });
  const log = ben.engine?.state.log('main');
  expect([log?.stage, log?.chain, log?.signature]).toEqual(['visible', verified?.chain, verified?.signature]);
  expect(ben.engine?.examine().findings).toEqual([]);
  // Ana had it: she keeps it, says so, and nothing of hers is gone (HL1).
  expect(ana.engine?.state.log('main')?.blocked?.code).toBe('history-changed');
  expect(ana.engine?.state.counts()).toMatchObject({ lost: 1 });
  expect(ana.engine?.database.prepareQuery('select count(*) as n from note').statement.get()?.['n']).toBe(2);
  end(world);
});

test('[HL4 I13] a person adopts the rewound ledger: its state is taken, and the lost work is offered again', async () => {
  const world = createWorld(6, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [World['devices'][0], World['devices'][1]];
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'kept' }));
  await quiet(world);
  world.ledger.kill();
  cpSync(world.ledger.folder, `${world.ledger.folder}-backup`, { recursive: true });
  world.ledger.start();
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'lost by the restore' }));
  await quiet(world);
  world.ledger.kill();
  removeFolder(world.ledger.folder);
  cpSync(`${world.ledger.folder}-backup`, world.ledger.folder, { recursive: true });
  world.ledger.start();
  await quiet(world);
  for (const device of [ana, ben]) {
    expect(device.engine?.state.log('main')?.blocked?.code).toBe('history-changed');
    device.engine?.state.adopt('main');
    device.engine?.sync.kick('manual');
    await quiet(world);
  }
  await quiet(world);
  expect(await checkQuiet(world, { isTampered: true })).toEqual([]);
  const titles = ben.engine?.database.prepareQuery('select title from note order by title').statement.all();
  expect(titles?.map((row) => row['title'])).toEqual(['kept', 'lost by the restore']);
  end(world);
});

test('[HL4 P3] a ledger that is put back twice is adopted twice in one run of the host, and is not called suspect for it', async () => {
  const world = createWorld(7, { devices: 1, faults: [] });
  const [ana] = world.devices as [World['devices'][0]];
  const { folder } = world.ledger;
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'kept' }));
  await quiet(world);
  const swapFiles = (from: string, to: string): void => {
    world.ledger.kill();
    removeFolder(to);
    cpSync(from, to, { recursive: true });
    world.ledger.start();
  };
  swapFiles(folder, `${folder}-backup`);
  await quiet(world);
  for (const title of ['lost once', 'lost twice']) {
    ana.commit((tx) => tx.note.create({ title }));
    await quiet(world);
    swapFiles(`${folder}-backup`, folder);
    await quiet(world);
    expect(ana.engine?.state.log('main')?.blocked?.code).toBe('history-changed');
    ana.engine?.state.adopt('main');
    ana.engine?.sync.kick('manual');
    await quiet(world);
    expect(ana.engine?.state.log('main')?.blocked).toBeNull();
  }
  expect(await checkQuiet(world, { isTampered: true })).toEqual([]);
  const titles = ana.engine?.database.prepareQuery('select title from note order by title').statement.all();
  expect(titles?.map((row) => row['title'])).toEqual(['kept', 'lost once', 'lost twice']);
  end(world);
});

test('[HL1 DG5] of a changed history the last version that is in both is found, and only work above it counts as lost', async () => {
  const world = createWorld(8, { devices: 1, faults: [] });
  const [ana] = world.devices as [World['devices'][0]];
  const { folder } = world.ledger;
  await quiet(world);
  const commit = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1) {
      ana.commit((tx) => tx.note.create({ title: 'one' }));
      await quiet(world);
    }
  };
  await commit(7);
  world.ledger.kill();
  cpSync(folder, `${folder}-backup`, { recursive: true });
  world.ledger.start();
  await quiet(world);
  await commit(5);
  world.ledger.kill();
  removeFolder(folder);
  cpSync(`${folder}-backup`, folder, { recursive: true });
  world.ledger.start();
  await quiet(world);
  // Of 12 versions a handshake names 12, 11, 10, 8, 4 and the beginning.
  expect(ana.engine?.state.log('main')?.blocked).toMatchObject({
    code: 'history-changed',
    facts: { commonVersion: 7, head: 12, ledgerHead: 7 },
  });
  expect(ana.engine?.state.counts().lost).toBe(5);
  // Found once, it is named from then on, and asks for no second question.
  const before = ana.network.counts.requests;
  ana.engine?.sync.kick('manual');
  await world.time.advance(1_000);
  expect(ana.network.counts.requests - before).toBe(1);
  end(world);
});
