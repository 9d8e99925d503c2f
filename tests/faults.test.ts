import { readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { citations, ROOT } from './citations.fixture.ts';

/**
 * docs/FAULTS.md has one row for each fault: `| F01 | the fault | links to tests | what it waits for |`, with `–` for
 * nothing. A test that shows a fault has its id in the brackets at the start of its name.
 */
const ROW = /^\| (F\d+) \|(.*)\|(.*)\|(.*)\|$/gm;
const LINK = /\]\(([^)]+)\)/g;

/** Which numbers are given, first and last of each group. A number is never given again. */
const GROUPS: readonly (readonly [number, number])[] = [
  [1, 13],
  [20, 37],
  [40, 47],
  [50, 65],
  [70, 86],
  [90, 109],
  [110, 118],
  [120, 132],
  [140, 151],
  [160, 171],
  [180, 192],
];

interface Row {
  readonly id: string;
  readonly fault: string;
  /** Files, from the root. */
  readonly tests: readonly string[];
  /** Null: nothing. */
  readonly waitsFor: string | null;
}

export function faultsOf(text: string): Row[] {
  return [...text.matchAll(ROW)].map(([, id, fault, tests, waitsFor]) => ({
    id: id as string,
    fault: (fault as string).trim(),
    tests: [...(tests as string).matchAll(LINK)].map((link) => normalize(join('docs', link[1] as string))),
    waitsFor: waitsFor?.trim() === '–' ? null : (waitsFor as string).trim(),
  }));
}

const rows = (): Row[] => faultsOf(readFileSync(join(ROOT, 'docs/FAULTS.md'), 'utf8'));
const expected = GROUPS.flatMap(([first, last]) =>
  Array.from({ length: last - first + 1 }, (_, at) => `F${String(first + at).padStart(2, '0')}`),
);

test('[AR3] the list of faults has every number once, in order, and each in words', () => {
  expect(rows().map(({ id }) => id)).toEqual(expected);
  expect(rows().filter(({ fault }) => fault === '')).toEqual([]);
});

test('[AR3] every test that the list names has the fault’s id in its name', () => {
  const cited = citations();
  const wrong = rows().flatMap(({ id, tests }) =>
    tests.filter((file) => cited.get(id)?.has(file) !== true).map((file) => [id, file]),
  );
  expect(wrong).toEqual([]);
});

test('[AR3] every fault that a test’s name cites is in the list', () => {
  const known = new Set(rows().map(({ id }) => id));
  expect([...citations()].filter(([id]) => /^F\d+$/.test(id) && !known.has(id))).toEqual([]);
});

test('[AR3] every fault has a test that shows it, or something that it waits for', () => {
  const silent = rows().filter(({ tests, waitsFor }) => tests.length === 0 && (waitsFor ?? '') === '');
  expect(silent.map(({ id }) => id)).toEqual([]);
});

test('[AR3] the reader of the list reads what it is meant to', () => {
  const text =
    '| id | fault | shown by | waits for |\n| F01 | killed | [a](../tests/a.test.ts), [b](b.test.ts) | – |\n| F02 | full | – | a disk |\n';
  expect(faultsOf(text)).toEqual([
    { id: 'F01', fault: 'killed', tests: ['tests/a.test.ts', 'docs/b.test.ts'], waitsFor: null },
    { id: 'F02', fault: 'full', tests: [], waitsFor: 'a disk' },
  ]);
});
