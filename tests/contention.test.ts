import { copyFileSync, existsSync } from 'node:fs';
import { counter, defineSchema, entity, integer, oneOf, text } from '@holdfast/core';
import { createWorld } from '@holdfast/replica/testing';
import { tamper } from '@holdfast/replica/testing/engine';
import { describe, expect, test } from 'vitest';
import { checkQuiet } from '../simulation/src/checkers.ts';
import { REFUSED_TITLE, removeFolder } from '../simulation/src/ledger.ts';
import { addDevice, createWorld as createSimulatedWorld, type World } from '../simulation/src/world.ts';

/** Many at one entity, one that the ledger never takes, a form that was open too long, a vote that nobody answered. */
const schema = defineSchema({
  issue: entity({
    title: text(),
    status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
    level: integer({ default: 0, onClash: 'max' }),
    note: text({ optional: true }),
    votes: counter(),
  }),
});

test('[I12 I16 I29 F96] 8 writers at one hot entity: every vote counts, and nobody waits for a person', async () => {
  await using world = await createWorld({ schema, seed: 21 });
  const writers = await Promise.all(Array.from({ length: 8 }, (_, at) => world.device(`writer-${at}`)));
  const id = await (writers[0] as (typeof writers)[0]).replica.commit((tx) => tx.issue.create({ title: 'hot' }));
  await world.settle();
  const ROUNDS = 6;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [at, writer] of writers.entries()) {
      // Some are away for a while, and come back with work on old bases.
      if ((round + at) % 4 === 0) writer.offline();
      if ((round + at) % 4 === 2) writer.online();
      await writer.replica.commit((tx) =>
        tx.issue.update(id, { votes: { by: 1 }, level: round * 8 + at, status: at % 2 === 0 ? 'todo' : 'done' }),
      );
    }
    await world.advance(7);
  }
  for (const writer of writers) writer.online();
  await world.settle();
  await world.converged();
  for (const { replica } of writers) {
    const row = await replica.first((db) => db.selectFrom('issue').select(['votes', 'level', 'sync']));
    expect(row).toEqual({ votes: ROUNDS * 8, level: ROUNDS * 8 - 1, sync: 'synced' });
    expect((await replica.desk.list()).filter(({ needs }) => needs === 'answer')).toEqual([]);
  }
});

const quiet = (world: World): Promise<void> => world.time.advance(60_000);
const end = (world: World): void => {
  for (const device of world.devices) device.crash();
  world.ledger.kill();
  removeFolder(world.folder);
};

test('[LG1 OB6 I29] a poison operation among 100 independent ones: 99 arrive, the one is refused and named', async () => {
  const world = createSimulatedWorld(31, { devices: 2, faults: [] });
  const [ana, ben] = world.devices as [World['devices'][0], World['devices'][0]];
  await quiet(world);
  ana.network.rules.offline = true;
  ana.network.cut();
  const actions = Array.from({ length: 100 }, (_, at) =>
    ana.commit((tx) => tx.note.create({ title: at === 41 ? REFUSED_TITLE : `${at}` })),
  );
  ana.network.rules.offline = false;
  ana.engine?.sync.kick('online');
  await quiet(world);
  expect(await checkQuiet(world)).toEqual([]);
  const titles = ben.engine?.database.prepareQuery('select title from note').statement.all();
  expect(titles?.length).toBe(99);
  expect(titles?.map((row) => row['title'])).not.toContain(REFUSED_TITLE);
  expect(ana.engine?.state.desk()).toMatchObject([
    { kind: 'refused', needs: 'answer', actionId: actions[41], fault: { code: expect.any(String) } },
  ]);
  expect(ana.engine?.state.counts()).toMatchObject({ unsent: 1, attention: 1 });
  end(world);
});

test('[CM2] a form that was opened before somebody else’s edit is told what changed, and writes nothing', async () => {
  await using world = await createWorld({ schema, seed: 22 });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  const id = await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await world.settle();
  const form = await ana.replica.first((db) => db.selectFrom('issue').selectAll().where('id', '=', id));
  if (form === undefined) throw new Error('The issue is not there.');
  await ben.replica.commit((tx) => tx.issue.update(id, { title: 'Ben' }));
  await world.settle();
  const late = ana.replica.commit((tx) => tx.issue.update(form, { title: 'Ana', note: 'both' }));
  await expect(late).rejects.toMatchObject({ code: 'changed-meanwhile' });
  // A field that she left as she saw it is not written, so the other's edit stands under hers.
  await ana.replica.commit((tx) => tx.issue.update(form, { title: 'A', note: 'hers' }));
  await world.settle();
  await world.converged();
  const row = await ben.replica.first((db) => db.selectFrom('issue').select(['title', 'note']));
  expect(row).toEqual({ title: 'Ben', note: 'hers' });
});

// ── +1 with an outcome that nobody knows ────────────────────────────────────────────────────────────────────────────

type Event = 'repair' | 'pull' | 'clone';
const ORDERS: readonly (readonly [Event, Event, Event])[] = [
  ['repair', 'pull', 'clone'],
  ['repair', 'clone', 'pull'],
  ['pull', 'repair', 'clone'],
  ['pull', 'clone', 'repair'],
  ['clone', 'repair', 'pull'],
  ['clone', 'pull', 'repair'],
];

describe('a vote whose outcome is unknown', () => {
  test.each(ORDERS)('[I04 I12 I21 F34 P3] counts once everywhere after %s, %s and %s', async (...order) => {
    const world = createSimulatedWorld(41, { devices: 2, faults: [] });
    const [ana, ben] = world.devices as [World['devices'][0], World['devices'][0]];
    await quiet(world);
    let id = '';
    ben.commit((tx) => {
      id = tx.note.create({ title: 'counted' });
    });
    await quiet(world);
    // The ledger takes it, and its answer does not come; then the device dies.
    ana.network.rules.fromLedger = false;
    ana.commit((tx) => tx.note.update(id as never, { votes: { by: 1 } }));
    await world.time.advance(50);
    const taken = await world.ledger.current?.engine.verify({ workspace: 'world', log: 'main' });
    expect([taken?.events, ana.engine?.state.counts().sending]).toEqual([2, 1]);

    const happens: Readonly<Record<Event, () => Promise<void>>> = {
      repair: async () => {
        tamper(
          ana.engine?.state,
          `UPDATE main.note SET status = 'closed'; UPDATE main.hf_log SET signature = '${'1'.repeat(64)}'`,
        );
      },
      pull: async () => {
        ben.commit((tx) => tx.note.update(id as never, { body: 'somebody else' }));
        await world.time.advance(100);
      },
      clone: async () => {
        ana.crash();
        const copy = addDevice(world, ana.account, 'copy');
        for (const suffix of ['', '-wal'])
          if (existsSync(`${ana.file}${suffix}`)) copyFileSync(`${ana.file}${suffix}`, `${copy.file}${suffix}`);
        copy.start();
        ana.start();
      },
    };
    for (const event of order) {
      await happens[event]();
      // Between any two it hears from the ledger for a moment, and no longer.
      ana.network.rules.fromLedger = true;
      ana.engine?.sync.kick('online');
      await world.time.advance(3);
      ana.network.rules.fromLedger = false;
    }
    ana.network.rules.fromLedger = true;
    ana.network.cut();
    await quiet(world);
    await quiet(world);
    expect(await checkQuiet(world)).toEqual([]);
    expect(world.devices).toHaveLength(3);
    for (const { engine } of world.devices) {
      const row = engine?.database.prepareQuery('select votes, body, status, sync from note').statement.get();
      expect({ ...row }).toEqual({ votes: 1, body: 'somebody else', status: 'open', sync: 'synced' });
    }
    end(world);
  });
});
