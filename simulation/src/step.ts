import type { Tx } from '@holdfast/core';
import type { SimulatedDevice } from './device.ts';
import { disturb } from './faults.ts';
import type { Tab } from './tab.ts';
import { counted, type World, type WorldSchema } from './world.ts';

/** One thing that somebody does, or that happens (never in a calm world), drawn from the seed; then a little time passes. */
export async function step(world: World, isCalm = false): Promise<void> {
  const { random } = world;
  const device = random.pick(world.devices);
  if (isCalm || random.chance(0.6)) work(world, device);
  else disturb(world, device);
  await world.time.advance(random.pick([0, 1, 5, 20, 100, 500, 2_000]));
  // Who looks at the file from here on is no part of the process that was to die.
  for (const one of world.devices) one.calmDown();
}

const TITLES = ['one', 'two', 'three'];
const TAGS = ['a', 'b', 'c'];

function work(world: World, device: SimulatedDevice<WorldSchema>): void {
  const { random } = world;
  const { engine } = device;
  const tab = world.tabs.find((one) => one.device === device);
  if (tab !== undefined) return workInTab(world, tab);
  if (engine === null) return;
  const log = world.logs.length === 1 ? 'main' : random.pick(world.logs);
  const ids = engine.database
    .prepare('SELECT _id AS id FROM main.note WHERE _log = ? ORDER BY _id')
    .all(log)
    .map((row) => row['id'] as string);
  const id = ids.length === 0 ? null : random.pick(ids);
  const kind = random.below(12);
  const build = (tx: Tx<WorldSchema>): void => {
    const note = tx.note;
    if (id === null || (kind === 0 && ids.length < 5)) {
      note.create({ title: random.pick(TITLES) });
      return;
    }
    switch (kind) {
      case 1:
      case 2:
        return note.update(id as never, { title: random.pick(TITLES) });
      case 3:
        return note.update(id as never, { status: random.pick(['open', 'doing', 'closed'] as const) });
      case 4:
        return note.update(id as never, { votes: { by: 1 } });
      case 5:
        return note.update(id as never, { tags: { add: [random.pick(TAGS)] } });
      case 6:
        return note.update(id as never, { tags: { remove: [random.pick(TAGS)] } });
      case 7:
        return note.update(id as never, { body: random.chance(0.5) ? random.pick(TITLES) : null });
      case 8:
        return note.update(id as never, { level: random.below(5) });
      case 9:
        return note.delete(id as never);
      case 10:
        tx.mark.put({ name: random.pick(TAGS), upTo: random.below(9) });
        return;
      default:
        note.update(id as never, { title: random.pick(TITLES), votes: { by: 1 } });
        if (ids.length > 1) note.update(random.pick(ids) as never, { votes: { by: 1 } });
        tx.draft.create({ body: 'not sent' });
    }
  };
  const action = device.commit(build, log);
  counted(world, action === null ? 'commits refused' : 'commits');
  world.trace.push(
    `${device.name} commit ${log === 'main' ? '' : `${log} `}${kind} ${action === null ? 'refused' : 'durable'}`,
  );
}

/** What nobody can have done before, so that an answer always means a commit. It goes to a host that may be gone. */
function workInTab(world: World, tab: Tab): void {
  const { random } = world;
  const { engine, name } = tab.device;
  const log = random.pick(world.logs);
  const ids = engine?.database.prepare('SELECT _id AS id FROM main.note WHERE _log = ? ORDER BY _id').all(log) ?? [];
  const isNew = ids.length === 0 || (ids.length < 5 && random.chance(0.1));
  const id = isNew ? null : (random.pick(ids)['id'] as string);
  const action = tab.commit((tx) => {
    if (id === null) tx.note.create({ title: random.pick(TITLES) });
    else
      tx.note.update(id as never, { votes: { by: 1 }, ...(random.chance(0.5) ? { title: random.pick(TITLES) } : {}) });
  }, log);
  counted(world, action === null ? 'commits without a tab' : 'commits of a tab');
  world.trace.push(`${name} tab ${action === null ? 'is closed' : `commit, ${tab.unanswered} unanswered`}`);
}
