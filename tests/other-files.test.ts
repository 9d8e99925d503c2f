import { copyFileSync, cpSync, existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkQuiet } from '../simulation/src/checkers.ts';
import { removeFile } from '../simulation/src/device.ts';
import { removeFolder } from '../simulation/src/ledger.ts';
import { addDevice, createWorld, type World } from '../simulation/src/world.ts';

/** Files that are not the ones that were known: a ledger's of yesterday, a replica's copy, a replica's of yesterday. */
type Device = World['devices'][0];

const quiet = (world: World): Promise<void> => world.time.advance(60_000);
const end = (world: World): void => {
  for (const device of world.devices) device.crash();
  world.ledger.kill();
  removeFolder(world.folder);
};
const titlesOf = ({ engine }: Device): unknown[] =>
  (engine?.database.prepareQuery('select title from note order by title').statement.all() ?? []).map(
    (row) => row['title'],
  );
const headOf = async (world: World): Promise<number | undefined> =>
  (await world.ledger.current?.engine.verify({ workspace: 'world', log: 'main' }))?.events;

/** The ledger dies, and the backup stands in its place when it starts again. */
function rewind(world: World): void {
  world.ledger.kill();
  removeFolder(world.ledger.folder);
  cpSync(`${world.ledger.folder}-backup`, world.ledger.folder, { recursive: true });
  world.ledger.start();
}

/** Everybody has `kept` and `lost`; a backup of the ledger has only `kept`. Ana has one more commit that never left. */
async function beforeRewind(seed: number): Promise<{ world: World; ana: Device; ben: Device }> {
  const world = createWorld(seed, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [Device, Device];
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'kept' }));
  await quiet(world);
  world.ledger.kill();
  cpSync(world.ledger.folder, `${world.ledger.folder}-backup`, { recursive: true });
  world.ledger.start();
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'lost' }));
  await quiet(world);
  return { world, ana, ben };
}

/** Nothing was taken into the shorter history, nothing here was repaired to it, and own work is all there. */
async function expectStopped(world: World, ana: Device, unsent: number): Promise<void> {
  expect(await headOf(world)).toBe(1);
  for (const device of world.devices) {
    expect(device.engine?.state.log('main')?.blocked?.code).toBe('history-changed');
    expect(device.engine?.examine().findings).toEqual([]);
  }
  expect(titlesOf(ana)).toEqual(['kept', 'lost', 'own']);
  const rows = ana.engine?.database.prepare('SELECT drafts FROM main.hf_outbox').all() ?? [];
  expect(rows.filter((row) => String(row['drafts']).includes('"title":"own"'))).toHaveLength(unsent);
}

describe('a ledger file that was rewound', () => {
  test('[F91 DG5 HL1 I25] at rest: nothing is accepted, nothing repaired away, own work waits', async () => {
    const { world, ana } = await beforeRewind(51);
    ana.network.rules.offline = true;
    ana.network.cut();
    ana.commit((tx) => tx.note.create({ title: 'own' }));
    rewind(world);
    ana.network.rules.offline = false;
    ana.engine?.sync.kick('online');
    await quiet(world);
    await expectStopped(world, ana, 1);
    end(world);
  });

  test('[F91 DG5 LG10 I25] between handshake and push: nothing is accepted, nothing repaired away, own work waits', async () => {
    const { world, ana, ben } = await beforeRewind(52);
    // Proven to stand at the head; the push is what it says next, into the older file.
    ana.network.rules.delayMs = [500, 500];
    ana.commit((tx) => tx.note.create({ title: 'own' }));
    await world.time.advance(10);
    expect(ana.engine?.state.counts().sending).toBe(1);
    rewind(world);
    await quiet(world);
    ana.network.rules.delayMs = [1, 5];
    ben.engine?.sync.kick('online');
    await quiet(world);
    await expectStopped(world, ana, 1);
    end(world);
  });

  test('[F91 F90 DG3 I25] between crash and start: nothing is accepted, nothing repaired away, own work waits', async () => {
    const { world, ana } = await beforeRewind(53);
    // Ledger and device die at once; the push is owed when both come back.
    ana.network.rules.fromLedger = false;
    ana.commit((tx) => tx.note.create({ title: 'own' }));
    await world.time.advance(50);
    expect(await headOf(world)).toBe(3);
    ana.crash();
    rewind(world);
    ana.network.rules.fromLedger = true;
    ana.start();
    await quiet(world);
    await quiet(world);
    await expectStopped(world, ana, 1);
    end(world);
  });
});

function copyReplica(from: string, to: string): void {
  for (const suffix of ['', '-wal'])
    if (existsSync(`${from}${suffix}`)) copyFileSync(`${from}${suffix}`, `${to}${suffix}`);
}

test('[F34 RP1 I04] a copied replica file: one goes on under a new id, and unsent work that both hold is accepted once', async () => {
  const world = createWorld(54, { devices: 2, faults: [] });
  const [ana] = world.devices as [Device, Device];
  await quiet(world);
  ana.network.rules.offline = true;
  ana.network.cut();
  const actions = ['a', 'b', 'c'].map((title) => ana.commit((tx) => tx.note.create({ title })));
  ana.crash();
  const copy = addDevice(world, ana.account, 'copy');
  copyReplica(ana.file, copy.file);
  ana.network.rules.offline = false;
  ana.start();
  copy.start();
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'of the first' }));
  copy.commit((tx) => tx.note.create({ title: 'of the copy' }));
  await quiet(world);
  expect(await checkQuiet(world)).toEqual([]);
  expect(new Set(actions).size).toBe(3);
  for (const device of world.devices) expect(titlesOf(device)).toEqual(['a', 'b', 'c', 'of the copy', 'of the first']);
  const ids = [ana, copy].map(({ engine }) => engine?.state.identity.replicaId);
  expect(new Set(ids).size).toBe(2);
  end(world);
});

// Seen to fail with the id of a replica worked out from whose it is: then the ledger refuses what the new file sends.
test('[F22 RP1 I04 I12] a replica file that is gone between two starts: the next one is another replica, and gets all that the ledger has', async () => {
  const world = createWorld(56, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [Device, Device];
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'before' }));
  await quiet(world);
  const id = ana.engine?.state.identity.replicaId;
  ana.crash();
  removeFile(ana.file);
  ana.forget();
  ben.commit((tx) => tx.note.create({ title: 'meanwhile' }));
  ana.start();
  expect(ana.engine?.state.identity.replicaId).not.toBe(id);
  // Written before it has seen anything of what it once had.
  ana.commit((tx) => tx.note.create({ title: 'after' }));
  await quiet(world);
  expect(await checkQuiet(world)).toEqual([]);
  for (const device of world.devices) expect(titlesOf(device)).toEqual(['after', 'before', 'meanwhile']);
  end(world);
});

test('[F33 RP1 I04] a replica file from yesterday: what it had sent is not sent as new, and what it had not is', async () => {
  const world = createWorld(55, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [Device, Device];
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'before' }));
  await quiet(world);
  ana.network.rules.offline = true;
  ana.network.cut();
  ana.commit((tx) => tx.note.create({ title: 'unsent yesterday' }));
  ana.crash();
  copyReplica(ana.file, `${ana.file}.yesterday`);
  ana.keep();
  ana.network.rules.offline = false;
  ana.start();
  await quiet(world);
  ana.commit((tx) => tx.note.create({ title: 'of today' }));
  await quiet(world);
  expect(titlesOf(ben)).toEqual(['before', 'of today', 'unsent yesterday']);
  ana.crash();
  removeFile(ana.file);
  copyReplica(`${ana.file}.yesterday`, ana.file);
  ana.forget();
  ana.start();
  ana.commit((tx) => tx.note.create({ title: 'after' }));
  await quiet(world);
  await quiet(world);
  expect(await checkQuiet(world)).toEqual([]);
  for (const device of world.devices)
    expect(titlesOf(device)).toEqual(['after', 'before', 'of today', 'unsent yesterday']);
  end(world);
});
