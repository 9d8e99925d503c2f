import { CELLS, machineOf } from './cells.ts';
import type { SeedResult } from './run.ts';

/** What a run exercised, all seeds together. */
export interface Summary {
  readonly seeds: number;
  readonly failed: number;
  readonly steps: number;
  readonly simulatedHours: number;
  readonly counts: Readonly<Record<string, number>>;
  /** Per machine how many of its cells were taken, and which were not. */
  readonly machines: Readonly<Record<string, { readonly reached: number; readonly of: number }>>;
  readonly unreached: readonly string[];
  /** Of each cell that was taken, the first seed that did. */
  readonly firstSeeds: Readonly<Record<string, number>>;
  readonly unlisted: readonly string[];
}

export function summaryOf(results: readonly SeedResult[]): Summary {
  const counts: Record<string, number> = {};
  const reached = new Map<string, number>();
  const unlisted = new Set<string>();
  for (const result of results) {
    for (const [what, n] of Object.entries(result.counts)) counts[what] = (counts[what] ?? 0) + n;
    for (const cell of result.cells) reached.set(cell, Math.min(result.seed, reached.get(cell) ?? result.seed));
    for (const move of result.unlisted) unlisted.add(move);
  }
  const machines: Record<string, { reached: number; of: number }> = {};
  for (const cell of CELLS) {
    const machine = machineOf(cell);
    const of = machines[machine] ?? { reached: 0, of: 0 };
    machines[machine] = { reached: of.reached + (reached.has(cell) ? 1 : 0), of: of.of + 1 };
  }
  return {
    seeds: results.length,
    failed: results.filter(({ violations }) => violations.length > 0).length,
    steps: results.reduce((sum, { steps }) => sum + steps, 0),
    simulatedHours: results.reduce((sum, { simulatedMs }) => sum + simulatedMs, 0) / 3_600_000,
    counts: Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))),
    machines,
    unreached: CELLS.filter((cell) => !reached.has(cell)),
    firstSeeds: Object.fromEntries([...reached].sort(([a], [b]) => (a < b ? -1 : 1))),
    unlisted: [...unlisted].sort(),
  };
}

const LISTED_MAX = 20;

/** For people. `listed`: cells of which is known that no world takes them. */
export function summaryLines(summary: Summary, seconds: number, listed: ReadonlySet<string>): readonly string[] {
  const { seeds, failed, steps, simulatedHours, counts, machines, firstSeeds } = summary;
  const unreached = new Set(summary.unreached);
  const stale = [...listed].filter((cell) => !unreached.has(cell)).map((cell) => `${cell} (seed ${firstSeeds[cell]})`);
  const news = summary.unreached.filter((cell) => !listed.has(cell));
  return [
    `${seeds} seeds, ${failed} failed, ${simulatedHours.toFixed(1)} simulated hours, ${steps} steps in ${seconds.toFixed(1)} s (${Math.round(steps / seconds)} steps/s)`,
    Object.entries(counts)
      .map(([what, n]) => `${what} ${n}`)
      .join(', '),
    `cells: ${Object.entries(machines)
      .map(([machine, { reached, of }]) => `${machine} ${reached} of ${of}`)
      .join(', ')}`,
    ...(news.length === 0
      ? []
      : [
          `not reached, and not listed as unreachable: ${news.slice(0, LISTED_MAX).join('; ')}${news.length > LISTED_MAX ? `; and ${news.length - LISTED_MAX} more (--json names all)` : ''}`,
        ]),
    ...(stale.length === 0 ? [] : [`reached, though listed as unreachable: ${stale.join('; ')}`]),
    ...(summary.unlisted.length === 0 ? [] : [`moves that no cell allows: ${summary.unlisted.join('; ')}`]),
  ];
}

/** `40 s`, `3 min`, `2.5 h`. */
export function formatRemaining(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
