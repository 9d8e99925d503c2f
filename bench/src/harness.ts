import { SCALE } from './scale.ts';

/** One measurement of Holdfast and, right beside it, of the least same work on the raw platform. */
export interface Sample {
  readonly value: number;
  readonly bare: number;
}

export interface Benchmark {
  readonly name: string;
  readonly what: string;
  readonly unit: string;
  /** What `bare` does. */
  readonly bare: string;
  /** The ratio to reach: `value / bare` at least (rates) or at most (times). */
  readonly goal: { readonly atLeast: number } | { readonly atMost: number } | null;
  /** An absolute goal of the value itself, where the ratio is not the point. */
  readonly valueAtMost?: number;
  run(): Promise<Sample>;
  /** Ends what the runs shared. */
  close?(): Promise<void>;
}

export interface Result {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly bare: number;
  readonly ratio: number;
  readonly runs: number;
}

export const median = (numbers: readonly number[]): number => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
};

export const percentile = (numbers: readonly number[], p: number): number => {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((p / 100) * sorted.length))] as number;
};

/** Significant digits that a noisy machine can stand behind. */
const rounded = (value: number): number => Number(value.toPrecision(4));

/**
 * Runs a benchmark `runs` times after one warm-up, which a run that measures nothing leaves out. The ratio is the median of the ratios of each run, so that a noisy
 * moment hits both sides of one sample, not one side of all.
 */
export async function measure(benchmark: Benchmark, runs: number, tell: (line: string) => void): Promise<Result> {
  if (SCALE === 1) {
    tell(`${benchmark.name}: warm-up`);
    await benchmark.run();
  }
  const samples: Sample[] = [];
  for (let run = 1; run <= runs; run += 1) {
    const sample = await benchmark.run();
    samples.push(sample);
    tell(`${benchmark.name}: ${run}/${runs}  ${rounded(sample.value)} ${benchmark.unit}  bare ${rounded(sample.bare)}`);
  }
  return {
    name: benchmark.name,
    unit: benchmark.unit,
    value: rounded(median(samples.map((s) => s.value))),
    bare: rounded(median(samples.map((s) => s.bare))),
    ratio: rounded(median(samples.map((s) => s.value / s.bare))),
    runs,
  };
}

export function reaches(benchmark: Benchmark, result: Result): boolean {
  if (benchmark.valueAtMost !== undefined) return result.value <= benchmark.valueAtMost;
  if (benchmark.goal === null) return true;
  return 'atLeast' in benchmark.goal ? result.ratio >= benchmark.goal.atLeast : result.ratio <= benchmark.goal.atMost;
}
