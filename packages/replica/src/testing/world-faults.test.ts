import { counter, defineSchema, entity, integer, oneOf, text } from '@holdfast/core';
import { expect, test } from 'vitest';
import { CRASH_POINTS, type CrashPoint } from './crash-points.ts';
import { createWorld, type World } from './world.ts';
import type { WorldDevice } from './world-device.ts';
import { WorldError } from './world-error.ts';

const schema = defineSchema({
  issue: entity({
    title: text(),
    status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
    priority: integer({ default: 0, onClash: 'last' }),
    votes: counter(),
  }),
});
type Schema = typeof schema;

const issues = (device: WorldDevice<Schema>) =>
  device.replica.query((db) => db.selectFrom('issue').select(['title', 'votes', 'sync']).orderBy('title'));

async function two(seed: number) {
  const world = await createWorld({ schema, seed });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  const id = await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await world.settle();
  return { world, ana, ben, id };
}

const WHERE = (Object.keys(CRASH_POINTS) as CrashPoint[]).filter((point) => point !== 'inside-rebase');
const inCommit = (point: CrashPoint) => point === 'inside-commit' || point === 'after-commit';

test.each(WHERE)(
  '[F01 F02 F03 F04 I01 I02 I03] a device that dies %s keeps its commit whole or not at all, and it counts once',
  async (point) => {
    const { world, ana, ben, id } = await two(20);
    await using _ = world;
    // So that something is there to be read, too.
    ben.offline();
    await ana.replica.commit((tx) => tx.issue.update(id, { title: 'B', votes: { by: 10 } }));
    await world.settle();
    ben.crashAt(point);
    const write = ben.replica.commit((tx) => tx.issue.update(id, { priority: 3, status: 'done', votes: { by: 1 } }));
    if (inCommit(point)) await expect(write).rejects.toMatchObject({ code: 'no-owner' });
    else await write;
    ben.online();
    await world.run(() => !ben.isRunning, { what: point });
    expect(ben.diedAt).toBe(point);
    await ben.restart();
    await world.settle();
    const votes = point === 'inside-commit' ? 10 : 11;
    for (const device of [ana, ben]) expect(await issues(device)).toEqual([{ title: 'B', votes, sync: 'synced' }]);
    expect(await world.converged()).toBe(true);
  },
);

test('[F05 MG5] a device that dies inside a rebase has its work as it was, and rebases it in the next run', async () => {
  const { world, ana, ben, id } = await two(27);
  await using _ = world;
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.delete(id));
  await world.settle();
  await ben.replica.commit((tx) => tx.issue.update(id, { title: 'kept' }));
  ben.crashAt('inside-rebase');
  ben.online();
  await world.run(() => !ben.isRunning, { what: 'the rebase' });
  await ben.restart();
  await world.settle();
  for (const device of [ana, ben]) expect(await issues(device)).toEqual([{ title: 'kept', votes: 0, sync: 'synced' }]);
  await world.converged();
});

test('[I01] a point can be passed unharmed first, and taken back', async () => {
  const { world, ana, id } = await two(28);
  await using _ = world;
  const vote = () => ana.replica.commit((tx) => tx.issue.update(id, { votes: { by: 1 } }));
  ana.crashAt('after-commit');
  ana.crashAt(null);
  await vote();
  ana.crashAt('after-commit', { after: 2 });
  await vote();
  await vote();
  await expect(vote()).rejects.toMatchObject({ code: 'no-owner' });
  expect([ana.isRunning, ana.diedAt]).toEqual([false, 'after-commit']);
  expect(() => ana.replica).toThrow(/restart/);
  await ana.restart();
  expect(await issues(ana)).toMatchObject([{ votes: 4 }]);
});

test('[OB3 F70 F71] a push whose answer is lost, doubled, late or cut is asked about, and counts once', async () => {
  for (const mishap of ['lost', 'answer-lost', 'doubled', 'answer-late', 'answer-cut'] as const) {
    const { world, ana, ben, id } = await two(21);
    await using _ = world;
    ana.next(mishap, 'push');
    const before = { ...ana.counts };
    await ana.replica.commit((tx) => tx.issue.update(id, { votes: { by: 1 } }));
    await world.settle();
    const counted = {
      lost: ana.counts.lost,
      doubled: ana.counts.doubled,
      late: ana.counts.late,
      cut: ana.counts.truncated,
    };
    expect([mishap, counted]).toEqual([
      mishap,
      {
        lost: before.lost + (mishap === 'lost' || mishap === 'answer-lost' ? 1 : 0),
        doubled: before.doubled + (mishap === 'doubled' ? 1 : 0),
        late: before.late + (mishap === 'answer-late' ? 1 : 0),
        cut: before.truncated + (mishap === 'answer-cut' ? 1 : 0),
      },
    ]);
    expect(await issues(ben)).toEqual([{ title: 'A', votes: 1, sync: 'synced' }]);
    await world.converged();
  }
});

test('[F73 OB3] with only the way down blocked the ledger has the work, and its author learns it when it opens', async () => {
  const { world, ana, ben, id } = await two(22);
  await using _ = world;
  ana.block('down');
  await ana.replica.commit((tx) => tx.issue.update(id, { votes: { by: 1 } }));
  await world.advance(1_000);
  expect(await issues(ben)).toEqual([{ title: 'A', votes: 1, sync: 'synced' }]);
  expect(await issues(ana)).toEqual([{ title: 'A', votes: 1, sync: 'pending' }]);
  ana.unblock('down');
  await world.settle();
  expect(await issues(ana)).toEqual([{ title: 'A', votes: 1, sync: 'synced' }]);
  await world.converged();
});

test('[F73] with only the way up blocked nothing arrives, and what others do still comes', async () => {
  const { world, ana, ben, id } = await two(23);
  await using _ = world;
  ana.block('up');
  await ana.replica.commit((tx) => tx.issue.update(id, { votes: { by: 1 } }));
  await ben.replica.commit((tx) => tx.issue.create({ title: 'B' }));
  await world.advance(1_000);
  expect(await issues(ben)).toEqual([
    { title: 'A', votes: 0, sync: 'synced' },
    { title: 'B', votes: 0, sync: 'synced' },
  ]);
  expect(await issues(ana)).toHaveLength(2);
  ana.unblock();
  await world.settle();
  await world.converged();
});

test('[I12] what has not converged is named: the device, the entity, the field and both sides', async () => {
  const { world, ben, ana, id } = await two(24);
  await using _ = world;
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.update(id, { title: 'B' }));
  await world.settle();
  await ben.replica.commit((tx) => tx.issue.update(id, { priority: 1 }));
  const error = await world.converged().then(
    () => null,
    (cause: unknown) => cause as WorldError,
  );
  expect(error).toBeInstanceOf(WorldError);
  expect(error?.code).toBe('world-differs');
  const found = error?.differences.map(({ line: _line, ...rest }) => rest);
  const at = { device: 'ben', versus: 'ledger', log: 'main' };
  const entity = { type: 'issue', id };
  expect(found).toEqual([
    { ...at, what: 'unsent', here: 1 },
    { ...at, what: 'head', here: 1, there: 2 },
    { ...at, what: 'signature', here: expect.any(String), there: expect.any(String) },
    { ...at, what: 'entity', entity, here: 1, there: 2 },
    { ...at, what: 'field', entity, field: 'title', here: 'A', there: 'B' },
  ]);
  expect(error?.message).toContain(`ben: issue/${id} title is "A", at the ledger "B"`);
});

test('[SY2] virtual time that runs out says who waits for what', async () => {
  const { world, ana, id } = await two(25);
  await using _ = world;
  world.ledger.stop();
  expect(world.ledger.isRunning).toBe(false);
  await ana.replica.commit((tx) => tx.issue.update(id, { title: 'B' }));
  await expect(world.settle({ limitMs: 5_000 })).rejects.toMatchObject({
    code: 'world-timeout',
    facts: {
      limitMs: 5_000,
      standing: [
        expect.stringContaining('main at 1, 1 batches on their way'),
        expect.anything(),
        'the ledger is stopped',
      ],
    },
  });
  await expect(world.run(() => false, { limitMs: 5_000, what: 'rain' })).rejects.toThrow(/rain has not come/);
  world.ledger.start();
  await world.settle();
  await world.converged();
});

const wallClock = async (world: World<Schema>, device: WorldDevice<Schema>) => {
  const made = await device.replica.commit((tx) => tx.issue.create({ title: 'now' }));
  const row = await device.replica.first((db) => db.selectFrom('issue').select('createdAt').where('id', '=', made));
  return Date.parse(row?.createdAt ?? '') - (Date.UTC(2026, 10, 30) + world.elapsedMs);
};

test('[I11 F40] clocks that are wrong, are set and sleep, also over a restart, change nothing but what they say', async () => {
  await using world = await createWorld({ schema, seed: 26 });
  const hour = 3_600_000;
  const [ana, ben] = [await world.device('ana', { skewMs: -5 * hour }), await world.device('ben')];
  await world.settle();
  ben.offline();
  expect(await wallClock(world, ana)).toBe(-5 * hour);
  expect(await wallClock(world, ben)).toBe(0);
  ben.skew(2 * hour);
  ben.jump(hour);
  await ben.restart();
  expect(await wallClock(world, ben)).toBe(3 * hour);
  expect(() => ben.jump(-1)).toThrow(RangeError);
  ben.online();
  await world.settle();
  await world.converged();
});
