import { readFileSync, writeFileSync } from 'node:fs';
import type { SeedResult } from './run.ts';

/** Cells that no world takes, each with why. */
export interface Unreachable {
  readonly why: string;
  readonly cells: readonly string[];
}

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../data/${name}`, import.meta.url), 'utf8'));

export const unreachable = (): readonly Unreachable[] => read('unreachable-cells.json') as readonly Unreachable[];
export const unreachableCells = (): ReadonlySet<string> => new Set(unreachable().flatMap(({ cells }) => cells));

/** Of the seeds of a run, how many took each cell: `npm run simulate -- --seeds 500 --write-cells FILE`. */
export interface ReachedSample {
  readonly seeds: number;
  readonly cells: Readonly<Record<string, number>>;
}

export function writeCells(file: string, results: readonly SeedResult[]): void {
  const cells: Record<string, number> = {};
  for (const result of results) for (const cell of result.cells) cells[cell] = (cells[cell] ?? 0) + 1;
  const sorted = Object.fromEntries(Object.entries(cells).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(file, `${JSON.stringify({ seeds: results.length, cells: sorted } satisfies ReachedSample, null, 2)}\n`);
}
