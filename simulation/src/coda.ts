import type { SeededRandom } from '@holdfast/replica/testing';
import { checkStep } from './check-step.ts';
import { BELIEF } from './plays-belief.ts';
import { HOSTS } from './plays-hosts.ts';
import { LEDGER } from './plays-ledger.ts';
import { NETWORK, STALE_ANSWERS } from './plays-network.ts';
import { OWN } from './plays-own.ts';
import { PROMISES } from './plays-promises.ts';
import { QUARRELS } from './plays-quarrels.ts';
import { SENDING } from './plays-sending.ts';
import { STALLS } from './plays-stalls.ts';
import { probeLedger } from './probes.ts';
import { readLog } from './read-log.ts';
import type { SentPush } from './repeat.ts';
import { createStage, PlayEnded, type Stage } from './stage.ts';
import type { Violation } from './violation.ts';
import type { World } from './world.ts';

/**
 * After the storm, in some worlds: short plays, whose end follows from the schema alone. Where a device and the ledger are
 * wrong alike, they agree, and only somebody who knows how it must end can say so. Each is played on a world at rest, with
 * the devices and the log that the storm has left.
 */
export interface Play {
  readonly name: string;
  /** What is broken if it ends in another way. */
  readonly invariant: string;
  play(stage: Stage): Promise<void>;
}

export const PLAYS: readonly Play[] = [
  ...QUARRELS,
  ...NETWORK,
  ...STALE_ANSWERS,
  ...STALLS,
  ...HOSTS,
  ...PROMISES,
  ...BELIEF,
  ...SENDING,
  ...OWN,
  ...LEDGER,
];

/** One seed in four; never where something is not healed, or history may be cut. Drawn apart from the storm. */
export function hasCoda(world: World): boolean {
  return world.lasting === null && !world.faults.has('rewind') && world.random.fork('coda').chance(0.25);
}

/** Some of the plays, unless all are asked for: how one ends does not depend on the others, and many seeds see them all. */
const PLAYS_DRAWN = 3;

export async function playCoda(world: World, isWhole = false): Promise<Violation[]> {
  const random = world.random.fork('plays');
  const found: Violation[] = [];
  const drawn = new Set(Array.from({ length: PLAYS_DRAWN }, () => random.pick(PLAYS)));
  for (const play of isWhole ? PLAYS : drawn) {
    found.push(...(await playOne(world, play, random)));
    if (found.length > 0) return found;
  }
  const stage = createStage(world, random, []);
  const { actions } = await readLog(world, 'main');
  // Work of a copied file may be in the log under its twin's request, and not under this one (LG3).
  const isInLog = ({ body }: SentPush): boolean =>
    (JSON.parse(body) as SentOperations).operations.every(
      ({ actionId, requestId }) => actions.get(actionId)?.requests.has(requestId) === true,
    );
  found.push(...(await probeLedger(world, world.devices.flatMap(({ pushes }) => pushes).filter(isInLog), random)));
  // The good request grew the log: the news must have time to come.
  await world.time.advance(2_000);
  await stage.rest();
  return found;
}

interface SentOperations {
  readonly operations: readonly { readonly actionId: string; readonly requestId: string }[];
}

/** One play on a world at rest, and what any moment must hold after it. */
export async function playOne(world: World, play: Play, random: SeededRandom): Promise<Violation[]> {
  const whats: string[] = [];
  try {
    await play.play(createStage(world, random, whats));
  } catch (cause) {
    if (!(cause instanceof PlayEnded)) throw cause;
    whats.push(cause.message);
  }
  return [...whats.map((what) => ({ invariant: play.invariant, what: `${play.name}: ${what}` })), ...checkStep(world)];
}
