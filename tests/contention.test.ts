import { copyFileSync, existsSync } from 'node:fs';
import { counter, defineSchema, entity, integer, LIMITS, oneOf, type PushRequest, text } from '@holdfast/core';
import { createWorld } from '@holdfast/replica/testing';
import { tamper } from '@holdfast/replica/testing/engine';
import { describe, expect, test } from 'vitest';
import { accountFor, type Commit, readEvents } from '../simulation/src/account.fixture.ts';
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

const ROUNDS = 6;

test('[I12 I29 F96] 8 writers at one hot entity: every vote counts, and nobody waits for a person', async () => {
  await using world = await createWorld({ schema, seed: 21 });
  const writers = await Promise.all(Array.from({ length: 8 }, (_, at) => world.device(`writer-${at}`)));
  const id = await (writers[0] as (typeof writers)[0]).replica.commit((tx) => tx.issue.create({ title: 'hot' }));
  await world.settle();
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

/** Its rule reads what every write writes: no ledger merges it (MG1), so each write that comes second is rebased by its author. */
const ruled = defineSchema({
  task: entity(
    {
      title: text(),
      status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
      assignee: text({ optional: true, onClash: 'last' }),
      votes: counter(),
    },
    { rules: (r) => ({ 'what is done has an assignee': r.when(r.is('status', 'done'), r.present('assignee')) }) },
  ),
});

test('[I13 I16 F145] 8 writers at one hot entity with a rule: none is rebased more than 8 times, and the rest flows meanwhile', async () => {
  await using world = await createWorld({ schema: ruled, seed: 23 });
  const writers = await Promise.all(Array.from({ length: 8 }, (_, at) => world.device(`writer-${at}`)));
  const far = writers[7] as (typeof writers)[number];
  const hot = await far.replica.commit((tx) => tx.task.create({ title: 'hot' }));
  await world.settle();
  // Each time that work is rebased it goes under another request id (OB3).
  const requests = new Map<string, Set<string>>();
  const { engine } = world.ledger.current;
  const push = engine.push.bind(engine);
  engine.push = (actor, ref, request) => {
    for (const { actionId, requestId } of (request as unknown as PushRequest).operations)
      requests.set(actionId, (requests.get(actionId) ?? new Set()).add(requestId));
    return push(actor, ref, request);
  };

  const commits: Commit[] = [];
  const commit = async (device: typeof far, build: Parameters<typeof far.replica.commit>[0]): Promise<string> => {
    const write = device.replica.commit((tx) => void build(tx));
    await write;
    commits.push({ id: write.id, device: device.name });
    return write.id;
  };
  // One is so far away that somebody near is always first.
  far.network.delayMs = [60, 60];
  const always = await commit(far, (tx) => tx.task.update(hot, { votes: { by: 1 }, status: 'done', assignee: 'far' }));
  const cold: string[] = [];
  let flowedMeanwhile = 0;
  for (let round = 0; round < 40; round += 1) {
    for (const [at, writer] of writers.slice(0, 7).entries())
      if ((round + at) % 3 === 0)
        await commit(writer, (tx) =>
          tx.task.update(hot, { votes: { by: 1 }, status: 'done', assignee: `${at} in ${round}` }),
        );
    if (round % 5 === 0) cold.push(await commit(far, (tx) => tx.task.create({ title: `cold ${round}` })));
    await world.advance(40);
    if ((await far.replica.write(always))?.state !== 'pending') continue;
    const states = await Promise.all(cold.map(async (id) => (await far.replica.write(id))?.state));
    flowedMeanwhile = states.filter((state) => state === 'ordered').length;
  }
  await world.settle();
  await world.converged();

  const events = await readEvents(world);
  const { wrong, ...account } = await accountFor(writers, commits, events);
  const rebases = [...requests.values()].map(({ size }) => size - 1);
  expect(wrong).toEqual([]);
  expect(Math.max(...rebases)).toBe(LIMITS.automaticRebasesMax);
  expect(account.asked).toContain(always);
  expect(requests.get(always)?.size).toBe(1 + LIMITS.automaticRebasesMax);
  expect(flowedMeanwhile).toBeGreaterThan(0);
  expect(account.inLog).toEqual(expect.arrayContaining(cold));
  const inLog = new Set(account.inLog);
  const votes = commits.filter(({ id }) => inLog.has(id) && !cold.includes(id)).length;
  for (const { replica } of writers) {
    const row = await replica.first((db) => db.selectFrom('task').select('votes').where('id', '=', hot));
    expect(row).toEqual({ votes });
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

test('[F149 CM2] a form that was opened before somebody else’s edit is told what changed, and writes nothing', async () => {
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

const DAMAGED = '1'.repeat(64);

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
    // The ledger takes it, and its answer does not come.
    ana.network.rules.fromLedger = false;
    ana.commit((tx) => tx.note.update(id as never, { votes: { by: 1 } }));
    await world.time.advance(50);
    const taken = await world.ledger.current?.engine.verify({ workspace: 'world', log: 'main' });
    expect([taken?.events, ana.engine?.state.counts().sending]).toEqual([2, 1]);

    const noted = (): string[] => ana.engine?.state.journal.page().map(({ kind }) => kind) ?? [];
    const bodyOf = (device: typeof ana) =>
      device.engine?.database.prepareQuery('select body from note').statement.get()?.['body'];
    /** Lets it happen, and says when it has. */
    const happens: Readonly<Record<Event, () => () => boolean>> = {
      repair: () => {
        tamper(
          ana.engine?.state,
          `UPDATE main.note SET status = 'closed'; UPDATE main.hf_log SET signature = '${DAMAGED}'`,
        );
        const before = noted().filter((kind) => kind === 'repair').length;
        return () =>
          noted().filter((kind) => kind === 'repair').length > before &&
          ana.engine?.state.log('main')?.signature !== DAMAGED &&
          ana.engine?.state.bootstrapCursor('main') === undefined;
      },
      pull: () => {
        ben.commit((tx) => tx.note.update(id as never, { body: 'somebody else' }));
        return () => bodyOf(ana) === 'somebody else';
      },
      clone: () => {
        ana.crash();
        const copy = addDevice(world, ana.account, 'copy');
        for (const suffix of ['', '-wal'])
          if (existsSync(`${ana.file}${suffix}`)) copyFileSync(`${ana.file}${suffix}`, `${copy.file}${suffix}`);
        copy.start();
        ana.start();
        return () => world.devices.length === 3;
      },
    };
    for (const event of order) {
      const hasHappened = happens[event]();
      // Between any two it hears from the ledger until this one is done, and no longer; what it asks of its push is lost once more.
      ana.network.next('answer-lost', 'push');
      ana.network.rules.fromLedger = true;
      ana.engine?.sync.kick('online');
      expect([event, await world.time.until(hasHappened, 600_000)]).toEqual([event, true]);
      ana.network.rules.fromLedger = false;
    }
    ana.network.rules.fromLedger = true;
    ana.network.cut();
    await quiet(world);
    await quiet(world);
    expect(await checkQuiet(world, { isTampered: true })).toEqual([]);
    expect(world.devices).toHaveLength(3);
    for (const { engine } of world.devices) {
      const row = engine?.database.prepareQuery('select votes, body, status, sync from note').statement.get();
      expect({ ...row }).toEqual({ votes: 1, body: 'somebody else', status: 'open', sync: 'synced' });
    }
    end(world);
  });
});
