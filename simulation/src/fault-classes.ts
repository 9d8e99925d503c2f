import type { SeededRandom } from '@holdfast/replica/testing';

/** The classes of faults that a seed may draw. */
export const FAULTS = [
  'crash',
  'partition',
  'one-way',
  'loss',
  'doubling',
  'lateness',
  'truncation',
  'portal',
  'ledger-restart',
  'clock-jump',
  'skew',
  'clone',
  'yesterday',
  'people',
  'sign-out',
  'take-over',
  'transfer',
  'revoke',
  'tab',
  'tab-people',
  'kill',
  'power-cut',
  'disk-full',
  'rewind',
] as const;
export type FaultClass = (typeof FAULTS)[number];

/** Only worlds that are asked for it have these. A backup that is put back ends most of what else could happen. */
const ON_REQUEST: ReadonlySet<FaultClass> = new Set(['rewind']);

export const drawFaults = (random: SeededRandom): readonly FaultClass[] =>
  FAULTS.filter((fault) => !ON_REQUEST.has(fault) && random.chance(0.45));
