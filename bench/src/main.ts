import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { append } from './append.ts';
import { bootstrap } from './bootstrap.ts';
import { commit } from './commit.ts';
import { fanout } from './fanout.ts';
import { type Benchmark, measure, type Result, reaches } from './harness.ts';
import { latency } from './latency.ts';
import { live } from './live.ts';
import { memoryDevice, memorySubscribers } from './memory.ts';
import { pending } from './pending.ts';
import { rebase } from './rebase.ts';
import { reopen, reopenGrowth } from './reopen.ts';
import { SCALE } from './scale.ts';
import { throughput } from './throughput.ts';

/** In the order in which they run. */
const BENCHMARKS: Readonly<Record<string, (folder: string) => Benchmark>> = {
  commit,
  bootstrap,
  latency,
  throughput,
  reopen,
  'reopen-growth': reopenGrowth,
  pending,
  rebase,
  fanout,
  append,
  live,
  'memory-device': memoryDevice,
  'memory-subscribers': memorySubscribers,
};

/** Names that stand for several. */
const GROUPS: Readonly<Record<string, readonly string[]>> = { memory: ['memory-device', 'memory-subscribers'] };

const USAGE = 'npm run bench -- [NAME...] [--json] [--runs 5], or --list for what is measured and its goal.';

/** What was asked wrongly: what, why, what to do next. */
type Refusal = readonly [what: string, why: string, next: string];

interface Asked {
  readonly names: readonly string[];
  readonly json: boolean;
  readonly list: boolean;
  readonly runs: number;
}

async function main(): Promise<number> {
  const asked = read(process.argv.slice(2));
  if ('length' in asked) {
    console.error(asked.join('\n'));
    return 2;
  }
  if (asked.list) {
    console.log(listed(asked.names));
    return 0;
  }
  if (SCALE < 1) console.error(`Sizes are scaled by ${SCALE}: it shows that the benchmarks run, and measures nothing.`);
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const removed = () => rmSync(folder, { recursive: true, force: true });
  process.once('SIGINT', () => {
    removed();
    process.exit(130);
  });
  try {
    const lines: Line[] = [];
    for (const name of asked.names) {
      const benchmark = benchmarkOf(name, folder);
      const result = await run(benchmark, asked.runs);
      if (asked.json) console.log(JSON.stringify(result));
      lines.push({ benchmark, result });
    }
    if (!asked.json) console.log(table(lines));
    return 0;
  } finally {
    removed();
  }
}

function read(args: readonly string[]): Asked | Refusal {
  let parsed: { values: { json?: boolean; list?: boolean; runs?: string }; positionals: string[] };
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { json: { type: 'boolean' }, list: { type: 'boolean' }, runs: { type: 'string' } },
    });
  } catch (cause) {
    return [(cause as Error).message, 'Only --json, --list and --runs are options.', USAGE];
  }
  const { values, positionals } = parsed;
  const known = Object.keys(BENCHMARKS);
  const names = positionals.flatMap((name) => GROUPS[name] ?? [name]);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    return [
      `No benchmark is called ${unknown.join(', ')}.`,
      `There are: ${[...known, ...Object.keys(GROUPS)].join(', ')}.`,
      USAGE,
    ];
  const runs = Number(values.runs ?? 5);
  if (!Number.isInteger(runs) || runs < 1 || runs > 100)
    return [`--runs ${values.runs} is not possible.`, 'It takes a whole number from 1 to 100.', USAGE];
  return {
    names: names.length === 0 ? known : names,
    json: values.json === true,
    list: values.list === true,
    runs,
  };
}

async function run(benchmark: Benchmark, runs: number): Promise<Result> {
  try {
    return await measure(benchmark, runs, (line) => process.stderr.write(`${line}\n`));
  } finally {
    await benchmark.close?.();
  }
}

interface Line {
  readonly benchmark: Benchmark;
  readonly result: Result;
}

function table(lines: readonly Line[]): string {
  const rows = lines.map(({ benchmark, result }) => [
    result.name,
    `${result.value} ${result.unit}`,
    String(result.bare),
    String(result.ratio),
    goalOf(benchmark),
    reaches(benchmark, result) ? 'reached' : 'MISSED',
    benchmark.what,
  ]);
  return aligned([['name', 'value', 'bare', 'ratio', 'goal', '', 'what'], ...rows]);
}

/** Nothing is measured: a benchmark does no work before it runs. */
function listed(names: readonly string[]): string {
  const rows = names
    .map((name) => benchmarkOf(name, ''))
    .map((benchmark) => [benchmark.name, benchmark.unit, goalOf(benchmark), benchmark.what, benchmark.bare]);
  return aligned([['name', 'unit', 'goal', 'what', 'bare'], ...rows]);
}

const benchmarkOf = (name: string, folder: string): Benchmark =>
  (BENCHMARKS[name] as (folder: string) => Benchmark)(folder);

function aligned(all: readonly (readonly string[])[]): string {
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length))) ?? [];
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function goalOf({ goal, valueAtMost, unit }: Benchmark): string {
  if (valueAtMost !== undefined) return `≤ ${valueAtMost} ${unit}`;
  if (goal === null) return 'none';
  return 'atLeast' in goal ? `≥ ${goal.atLeast} of bare` : `≤ ${goal.atMost} × bare`;
}

process.exitCode = await main();
