import type { SimulatedDevice } from './device.ts';
import { unlessFull } from './disk.ts';
import { attendHosts } from './hosts.ts';
import { counted, type World, type WorldSchema } from './world.ts';

/** What people do once the storm is over, as often as there is something to do. */
export function attend(world: World): void {
  adoptWhereStopped(world);
  attendHosts(world);
}

/** What a person answers to a ledger that lost its history: go on with what it has (HL4). */
function adoptWhereStopped(world: World): void {
  for (const { engine } of world.devices)
    for (const log of world.logs) {
      if (engine?.state.log(log)?.blocked?.code !== 'history-changed') continue;
      // A disk that is full does not take the choice: it is offered again.
      const isTaken = unlessFull(() => {
        engine.state.adopt(log);
        return true;
      });
      if (isTaken !== true) continue;
      engine.sync.kick('online');
      counted(world, 'adopted');
    }
}

/** CM7: the newest commit is taken back, also beside what others did since, or what was taken back is made again. */
function changeTheirMind(world: World, device: SimulatedDevice<WorldSchema>): void {
  const { random } = world;
  const { canRedo } = device.engine?.state.undoState('main') ?? {};
  const how = canRedo === true && random.chance(0.5) ? 'redo' : { skipChanged: random.chance(0.5) };
  const label = device.takeBack(how);
  if (label === null) return;
  counted(world, how === 'redo' ? 'redone' : 'undone');
  world.trace.push(`${device.name} ${how === 'redo' ? 'redoes' : 'undoes'} ${label}`);
}

/** What a person does with what waits for one. */
export function decide(world: World, device: SimulatedDevice<WorldSchema>): void {
  const { random } = world;
  const state = device.engine?.state;
  if (state === undefined) return;
  const waiting = state.desk().filter((entry) => entry.needs === 'answer');
  if (waiting.length === 0) return changeTheirMind(world, device);
  const entry = random.pick(waiting);
  const how = random.below(3);
  const outcome = unlessFull(() =>
    how === 2
      ? state.discard([entry.id])
      : state.resolve({ ids: [entry.id], choice: how === 0 ? 'mine' : 'theirs', revision: entry.revision }),
  );
  if (outcome?.ok === true) counted(world, ['resolved mine', 'resolved theirs', 'discarded'][how] as string);
}
