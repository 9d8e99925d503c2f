import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

/** The benchmarks as people run them: a process, its lines, its exit code. */
const ROOT = resolve(import.meta.dirname, '..');
const bench = (...args: string[]) => benchAt(1, ...args);
const benchAt = (scale: number, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'bench/src/main.ts'), ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, BENCH_SCALE: String(scale) },
    timeout: 170_000,
  });
  return { status, stdout, stderr };
};
const linesOf = (text: string): readonly string[] => text.trimEnd().split('\n');

test('[AR5] a benchmark prints one line of JSON: its name, unit, value, the bare work beside it, ratio and runs', () => {
  const { status, stdout, stderr } = bench('commit', '--runs', '1', '--json');
  expect([status, linesOf(stdout).length]).toEqual([0, 1]);
  const result = JSON.parse(stdout) as Record<string, unknown>;
  expect(Object.keys(result)).toEqual(['name', 'unit', 'value', 'bare', 'ratio', 'runs']);
  expect(result).toMatchObject({ name: 'commit', unit: 'commits/s', runs: 1 });
  const { value, bare, ratio } = result as { value: number; bare: number; ratio: number };
  expect(value).toBeGreaterThan(0);
  expect(bare).toBeGreaterThan(0);
  // One run: the ratio is that of its two numbers, each rounded to four digits.
  expect(ratio / (value / bare)).toBeCloseTo(1, 2);
  expect(stderr).toContain('commit: 1/1');
});

test('[AR5] the list names every benchmark with its goal, and an unknown name is refused in three lines that name them', () => {
  const { status, stdout } = bench('--list');
  const [head, ...rows] = linesOf(stdout);
  expect([status, head?.split(/\s{2,}/)]).toEqual([0, ['name', 'unit', 'goal', 'what', 'bare']]);
  const names = rows.map((row) => row.split(/\s{2,}/)[0]);
  expect(names).toContain('commit');
  for (const row of rows) expect(row.split(/\s{2,}/)[2]).toMatch(/^(≥ [\d.]+ of bare|≤ [\d.]+ \S+.*|none)$/);

  const refused = bench('nothing', '--json');
  expect([refused.status, refused.stdout, linesOf(refused.stderr).length]).toEqual([2, '', 3]);
  expect(linesOf(refused.stderr)[0]).toContain('nothing');
  for (const name of names) expect(linesOf(refused.stderr)[1]).toContain(name);
});

test('[AR5] every benchmark of the list runs to its end, small, and gives two numbers', () => {
  const names = linesOf(bench('--list').stdout)
    .slice(1)
    .map((row) => row.split(/\s{2,}/)[0]);
  const { status, stdout, stderr } = benchAt(0.05, '--runs', '1', '--json');
  expect([status, stderr.includes('measures nothing')], stderr).toEqual([0, true]);
  const results = linesOf(stdout).map((line) => JSON.parse(line) as { name: string; value: number; bare: number });
  expect(results.map(({ name }) => name)).toEqual(names);
  // What a process grows by may well be nothing, where so little is kept.
  for (const { name, value, bare } of results)
    expect(Math.min(value, bare), name).toBeGreaterThan(name.startsWith('memory') ? Number.NEGATIVE_INFINITY : 0);
});
