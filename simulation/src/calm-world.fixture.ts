import { removeFolder } from './ledger.ts';
import { createWorld, type World } from './world.ts';

/** Two devices at rest, with two notes and no faults. `end` takes it away. */
export async function calmWorld(): Promise<{ world: World; end: () => void }> {
  const world = createWorld(3, { devices: 2, faults: [] });
  await world.time.advance(30_000);
  for (const title of ['one', 'two']) world.devices[0]?.commit((tx) => tx.note.create({ title }));
  await world.time.advance(30_000);
  const end = () => {
    for (const device of world.devices) device.crash();
    world.ledger.kill();
    removeFolder(world.folder);
  };
  return { world, end };
}

export const invariants = (found: readonly { readonly invariant: string }[]) => [
  ...new Set(found.map((one) => one.invariant)),
];
