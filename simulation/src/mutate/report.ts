import { isCaughtBySeeds, isCaughtByTests, type SeedsResult, type TestsResult, type Trial } from './trial.ts';

/** One line per mutation: name, by which test, in how many seeds and by which invariant. Markdown, for docs/PROOF.md. */
export function tableOf(trials: readonly Trial[]): string {
  const rows = [...trials]
    .sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
    .map((trial) => [nameOf(trial), testsText(trial.tests), seedsText(trial.simulation)] as const);
  const head = ['mutation', 'first test that failed', 'seeds'] as const;
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export const nameOf = ({ mutation }: Trial): string => mutation?.name ?? 'nothing changed';

function testsText({ outcome, first }: TestsResult): string {
  if (outcome === 'failed') return (first?.test ?? '').replaceAll('|', '\\|');
  return outcome === 'passed' ? '–' : outcome;
}

function seedsText({ outcome, seeds, caught, invariants }: SeedsResult): string {
  if (caught === null) return outcome;
  if (caught === 0) return `0 of ${seeds}`;
  const by = Object.entries(invariants).sort(([, a], [, b]) => b - a);
  return `${caught} of ${seeds} (${by.map(([id]) => id).join(', ')})`;
}

export interface Totals {
  readonly mutations: number;
  readonly byTests: number;
  readonly bySeeds: number;
  /** Neither a test nor a seed noticed. */
  readonly survivors: readonly string[];
  /** Did not even load: the mutation says nothing until it is mended. */
  readonly unloadable: readonly string[];
}

export const totalsOf = (trials: readonly Trial[]): Totals => ({
  mutations: trials.length,
  byTests: trials.filter(isCaughtByTests).length,
  bySeeds: trials.filter(isCaughtBySeeds).length,
  survivors: trials.filter((trial) => !isCaughtByTests(trial) && !isCaughtBySeeds(trial)).map(nameOf),
  unloadable: trials.filter(({ tests }) => tests.outcome === 'unloadable').map(nameOf),
});

export const isGreen = ({ tests, simulation }: Trial): boolean =>
  (tests.outcome === 'passed' || tests.outcome === 'skipped') && simulation.outcome === 'passed';
