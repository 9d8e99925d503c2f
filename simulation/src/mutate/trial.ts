import { readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type Ended, runNode } from './child.ts';
import type { Copy } from './copy.ts';
import type { Mutation } from './mutation.ts';

export interface TrialOptions {
  readonly seeds: number;
  readonly from: number;
  /** Of the tests, and again of the simulation. A hang counts as caught. */
  readonly timeoutMs: number;
}

export interface TestsResult {
  /** `unloadable`: a file does not even load, which says nothing about the fault. */
  readonly outcome: 'passed' | 'failed' | 'timed-out' | 'unloadable' | 'skipped';
  readonly first: { readonly file: string; readonly test: string; readonly message: string } | null;
  readonly ms: number;
}

export interface SeedsResult {
  readonly outcome: 'passed' | 'failed' | 'timed-out' | 'died';
  readonly seeds: number;
  /** Seeds in which a checker spoke; null where that is not known. */
  readonly caught: number | null;
  /** Invariants that were broken, with the number of seeds in which each was the first. */
  readonly invariants: Readonly<Record<string, number>>;
  readonly firstSeed: number | null;
  readonly message: string | null;
  readonly ms: number;
}

export interface Trial {
  readonly mutation: Mutation | null;
  readonly tests: TestsResult;
  readonly simulation: SeedsResult;
}

export const isCaughtByTests = ({ tests }: Trial): boolean =>
  tests.outcome === 'failed' || tests.outcome === 'timed-out';

/** A ledger or device that dies in every world is caught as well. */
export const isCaughtBySeeds = ({ simulation }: Trial): boolean => simulation.outcome !== 'passed';

/** One mutation in one copy: its test files, then its seeds. Null: nothing is changed. */
export function tryOut(
  copy: Copy,
  mutation: Mutation | null,
  tests: readonly string[],
  options: TrialOptions,
): Promise<Trial> {
  return copy.with(mutation, async () => ({
    mutation,
    tests: await runTests(copy.folder, tests, options),
    simulation: await runSeeds(copy.folder, options),
  }));
}

// ── tests ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

async function runTests(folder: string, files: readonly string[], { timeoutMs }: TrialOptions): Promise<TestsResult> {
  if (files.length === 0) return { outcome: 'skipped', first: null, ms: 0 };
  // In the copy, so that it goes with it.
  const path = join(folder, 'mutate-report.json');
  rmSync(path, { force: true });
  const ended = await runNode(
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--bail=1',
      '--maxWorkers=1',
      '--reporter=json',
      `--outputFile=${path}`,
      ...files,
    ],
    { cwd: folder, timeoutMs },
  );
  const { ms } = ended;
  return ended.isTimedOut ? { outcome: 'timed-out', first: null, ms } : { ...read(folder, path, ended), ms };
}

function read(folder: string, path: string, ended: Ended): Pick<TestsResult, 'outcome' | 'first'> {
  let report: Report;
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as Report;
  } catch {
    return { outcome: 'unloadable', first: { file: '', test: '', message: shortened(ended.stderr) } };
  }
  for (const { name, assertionResults } of report.testResults)
    for (const { fullName, status, failureMessages } of assertionResults)
      if (status === 'failed')
        return {
          outcome: 'failed',
          first: { file: relative(folder, name), test: fullName.trim(), message: shortened(failureMessages[0] ?? '') },
        };
  const broken = report.testResults.find(({ status }) => status === 'failed');
  if (broken !== undefined)
    return {
      outcome: 'unloadable',
      first: { file: relative(folder, broken.name), test: '', message: shortened(broken.message) },
    };
  // An error outside of every test makes the run fail all the same.
  return ended.code === 0
    ? { outcome: 'passed', first: null }
    : { outcome: 'failed', first: { file: '', test: 'outside of every test', message: shortened(ended.stderr) } };
}

// ── seeds ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Summary {
  readonly seeds: number;
  readonly failed: readonly {
    readonly seed: number;
    readonly violations: readonly { readonly invariant: string; readonly what: string }[];
  }[];
}

async function runSeeds(folder: string, { seeds, from, timeoutMs }: TrialOptions): Promise<SeedsResult> {
  const none = { seeds, caught: null, invariants: {}, firstSeed: null, message: null } as const;
  if (seeds === 0) return { ...none, outcome: 'passed', caught: 0, ms: 0 };
  const ended = await runNode(
    [
      'simulation/src/main.ts',
      '--seeds',
      `${seeds}`,
      '--from',
      `${from}`,
      '--workers',
      '1',
      '--once',
      '--all-plays',
      '--no-shrink',
      '--json',
    ],
    { cwd: folder, timeoutMs },
  );
  const { ms } = ended;
  if (ended.isTimedOut) return { ...none, outcome: 'timed-out', ms };
  let summary: Summary;
  try {
    summary = JSON.parse(ended.stdout) as Summary;
  } catch {
    return { ...none, outcome: 'died', message: shortened(ended.stderr), ms };
  }
  const invariants: Record<string, number> = {};
  for (const { violations } of summary.failed) {
    const first = violations[0]?.invariant ?? '?';
    invariants[first] = (invariants[first] ?? 0) + 1;
  }
  const [first] = summary.failed;
  return {
    outcome: summary.failed.length === 0 ? 'passed' : 'failed',
    seeds: summary.seeds,
    caught: summary.failed.length,
    invariants,
    firstSeed: first?.seed ?? null,
    message: first?.violations[0] === undefined ? null : shortened(first.violations[0].what),
    ms,
  };
}

const shortened = (text: string): string => {
  const [line = ''] = text.trim().split('\n');
  return line.length <= 300 ? line : `${line.slice(0, 300)}…`;
};
