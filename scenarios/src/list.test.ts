import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { WAITING } from './waiting.ts';

/**
 * docs/SCENARIOS.md is the list. A row's first cell is the scenario's title: the name of its test begins with it, after
 * the invariants in brackets. The last cell says what it waits for, or `–`.
 */
const ROOT = resolve(import.meta.dirname, '../..');
const TEST = /\(\s*(['"`])\[[A-Z0-9 ]+\] (.*?)\1,/g;

interface Row {
  readonly title: string;
  readonly test: string;
  readonly waits: boolean;
}

export function rowsOf(text: string): Row[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| fault') && !line.startsWith('| ---'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map((cells) => ({ title: cells[1] as string, test: cells[3] as string, waits: cells[5] !== '–' }));
}

const rows = (): Row[] => rowsOf(readFileSync(join(ROOT, 'docs/SCENARIOS.md'), 'utf8'));

/** Names of tests without their ids, by file. */
function testNames(): ReadonlyMap<string, readonly string[]> {
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.test.ts') && file !== 'list.test.ts');
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(import.meta.dirname, file), 'utf8');
      return [file, [...text.matchAll(TEST)].map((match) => match[2] as string)];
    }),
  );
}

const isOf = (title: string) => (name: string) => name === title || name.startsWith(`${title}: `);

test('[AR3] every scenario of the list is tested where it says, or waits for something that is named', () => {
  const names = testNames();
  const isWaiting = new Map(WAITING.map((one) => [one.scenario, one]));
  const missing = rows().filter(({ title, test, waits }) => {
    const isTested = names.get(test.replaceAll('`', ''))?.some(isOf(title)) === true;
    const waiting = isWaiting.get(title);
    if (waits !== (waiting !== undefined)) return true;
    return waiting === undefined || waiting.runsAlready !== null ? !isTested : isTested;
  });
  expect(rows().length).toBeGreaterThan(0);
  expect(missing).toEqual([]);
});

test('[AR3] every test of a scenario, and everything that waits, is in the list', () => {
  const titles = rows().map(({ title }) => title);
  expect(titles.filter((title, at) => titles.indexOf(title) !== at)).toEqual([]);
  const names = [...testNames().values()].flat();
  expect(names.filter((name) => !titles.some((title) => isOf(title)(name)))).toEqual([]);
  expect(WAITING.filter(({ scenario }) => !titles.includes(scenario))).toEqual([]);
});
