import { checkQuiet } from './check-quiet.ts';
import type { FaultClass } from './fault-classes.ts';
import { type LedgerThrough, removeFolder } from './ledger.ts';
import { createStage, type Stage } from './stage.ts';
import { createWorld } from './world.ts';

/**
 * A play in a world of its own, with two devices at rest and one log: for what would leave a mark on the world that others play
 * in, as a history that was lost, or a repair. What does not hold there, also at rest in the end, is told of the play.
 */
export async function inOwnWorld(
  { random, expect }: Pick<Stage, 'random' | 'expect'>,
  options: { readonly faults?: readonly FaultClass[]; readonly ledgerThrough?: LedgerThrough },
  play: (own: Stage) => Promise<void>,
): Promise<void> {
  const world = createWorld(random.below(1_000_000), { devices: 2, logs: 1, faults: [], ...options });
  const found: string[] = [];
  try {
    const own = createStage(world, random, found);
    await own.rest();
    await play(own);
    if (found.length > 0) return;
    await own.rest();
    for (const { invariant, what } of await checkQuiet(world, { isTampered: true }))
      found.push(`${invariant}: ${what}`);
  } finally {
    for (const what of found) expect(false, what);
    for (const device of world.devices) device.crash();
    world.ledger.kill();
    removeFolder(world.folder);
  }
}
