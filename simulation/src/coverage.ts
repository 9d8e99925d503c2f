import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { CELLS } from './cells.ts';
import type { FaultClass } from './fault-classes.ts';
import type { SeedResult } from './run.ts';

/** Cells that no world takes, each with why. A cell is `machine place signal`; `*` is any word, `a|b` one of these. */
export interface Unreachable {
  readonly why: string;
  readonly cells: readonly string[];
}

/** A world of the committed sample: together they take every cell that is not listed. */
export interface SampleWorld {
  readonly seed: number;
  /** Drawn from the seed unless given. */
  readonly faults?: readonly FaultClass[];
  /** True: all plays. Drawn from the seed, as three of them, unless given. */
  readonly coda?: boolean;
  /** What it was chosen for. */
  readonly cells: readonly string[];
}

const fileOf = (name: string): URL => new URL(`../data/${name}`, import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(fileOf(name), 'utf8'));

export const unreachable = (): readonly Unreachable[] => read('unreachable-cells.json') as readonly Unreachable[];
export const sample = (): readonly SampleWorld[] => read('cell-sample.json') as readonly SampleWorld[];
export const unreachableCells = (): ReadonlySet<string> =>
  new Set(unreachable().flatMap(({ cells }) => cells.flatMap((pattern) => cellsLike(pattern))));

/** The cells that a pattern names, in the order of the grids. */
export function cellsLike(pattern: string): readonly string[] {
  const words = pattern.split(' ').map((word) => (word === '*' ? null : new Set(word.split('|'))));
  return CELLS.filter((cell) => cell.split(' ').every((word, at) => words[at]?.has(word) ?? words[at] === null));
}

/**
 * Adds worlds to the sample until it takes every cell that these took: of those left, always the one with the most new
 * ones. What was drawn for a sample that is stale is thrown away by deleting the file first.
 */
export function writeSample(results: readonly SeedResult[], faults: readonly FaultClass[] | undefined): void {
  const worlds = existsSync(fileOf('cell-sample.json')) ? [...sample()] : [];
  const taken = new Set(worlds.flatMap(({ cells }) => cells));
  for (;;) {
    const news = results.map((result) => ({ result, cells: result.cells.filter((cell) => !taken.has(cell)) }));
    const best = news.reduce((one, other) => (other.cells.length > one.cells.length ? other : one));
    if (best.cells.length === 0) break;
    const { seed, hasCoda } = best.result;
    worlds.push({ seed, ...(faults === undefined ? {} : { faults }), coda: hasCoda, cells: best.cells });
    for (const cell of best.cells) taken.add(cell);
  }
  writeFileSync(fileOf('cell-sample.json'), `${JSON.stringify(worlds, null, 2)}\n`);
}

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
