import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createOutput, type Streams } from './output.ts';
import { formatFacts, formatTable } from './table.ts';
import { widthOf, wrapped } from './text-layout.ts';

/** P8 on the command line: what is known is shown, all of it, whatever the width. */
const bare = (text: string): string => text.replace(/\s+/g, '');
const HASH = '362723f8f31f608afa34c121e27445be2b10bfb772a0bf3f15ec6331dccb183a';
const PROSE = 'If a title is long enough, it needs several lines, and none of its words may be lost or broken in two.';

const word = fc.string({ unit: fc.constantFrom(...'abcxyz,'), minLength: 1, maxLength: 18 });
const cell = fc.oneof(
  fc.array(word, { maxLength: 30 }).map((words) => words.join(' ')),
  fc.constantFrom(HASH, '漢字の題名', '😀 e\u0301', null),
  fc.integer(),
);
const rows = fc.array(fc.record({ id: cell, title: cell, 'a longer name': cell }), { minLength: 1, maxLength: 4 });

test('[P8] a table holds every character of every cell, at every width, and only a word that is wider than a line breaks', () => {
  fc.assert(
    fc.property(rows, fc.constantFrom(40, 80, 140), (table, width) => {
      const text = formatTable(table, width);
      // Each cell by itself: what stands beside it in one line is no part of it.
      for (const row of table) {
        const facts = formatFacts(row, width);
        for (const [name, value] of Object.entries(row)) expect(bare(facts)).toContain(bare(`${name}${value ?? ''}`));
      }
      const letters = (from: string) => [...from.replace(/[─\s]|\d+ of \d+/g, '')].sort().join('');
      const said = table.flatMap((row) => Object.values(row).map((value) => String(value ?? '')));
      const heads = Object.keys(table[0] as object).join('');
      const isTable = /^─+( {2}─+)*$/.test(text.split('\n')[1] as string);
      if (isTable) expect(letters(text)).toBe(letters(heads + said.join('')));
      else expect(letters(text)).toBe(letters(table.map(() => heads).join('') + said.join('')));
      for (const line of text.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(width);
    }),
    { numRuns: 300 },
  );
});

test('[P8] one row a line where nobody looks; cells of several lines, or a list of facts, where the terminal is narrow', () => {
  const row = { number: 7, title: PROSE, log: HASH };
  expect(formatTable([row], null).split('\n')[2]).toBe(`     7  ${PROSE}  ${HASH}`);
  const inCells = formatTable([{ number: 7, title: PROSE }], 60);
  expect(inCells.split('\n').map((line) => line.slice(0, 8))).toEqual([
    'number  ',
    '──────  ',
    '     7  ',
    '        ',
    '',
  ]);
  const listed = formatTable([row, row], 80);
  expect(listed).toContain(`\nlog     ${HASH}\n── 2 of 2 ─`);
  expect(formatTable([], 80)).toBe('(no rows)\n');
});

test('[P8] lines go on under their first word; commands and JSON are never broken, and --json is what it always was', () => {
  expect(wrapped(`unsent     ${PROSE}`, 60)[1]).toMatch(/^ {11}\S/);
  expect(wrapped(`   ${PROSE}`, 60)[1]).toMatch(/^ {3}\S/);
  const said = (isJson: boolean): string => {
    let text = '';
    const stream = { write: (part: string) => (text += part), isTTY: true, columns: 40 };
    const output = createOutput({ json: isJson, streams: { out: stream, err: stream } satisfies Streams });
    output.table([{ title: `${PROSE}\n${PROSE}`, log: HASH }]);
    output.value({ title: PROSE });
    output.facts({ title: PROSE });
    output.line(PROSE);
    output.asIs(PROSE);
    return text;
  };
  const json = said(true).trim().split('\n');
  expect(json.map((line) => JSON.parse(line))).toEqual([{ title: `${PROSE}\n${PROSE}`, log: HASH }, { title: PROSE }]);
  const lines = said(false).trimEnd().split('\n');
  expect(lines.at(-1)).toBe(PROSE);
  // A hash is wider than this terminal, and is there all the same.
  expect(lines.slice(0, -1).filter((line) => widthOf(line) > 40)).toEqual([]);
  expect(bare(lines.join(''))).toContain(HASH);
});
