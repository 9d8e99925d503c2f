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
  'freeze',
  'rewind',
] as const;
export type FaultClass = (typeof FAULTS)[number];

/** How likely a world has it. A backup that is put back ends much of what else could happen, and of what can be checked. */
const chanceOf = (fault: FaultClass): number => (fault === 'rewind' ? 1 / 16 : 0.45);

export const drawFaults = (random: SeededRandom): readonly FaultClass[] =>
  FAULTS.filter((fault) => random.chance(chanceOf(fault)));
