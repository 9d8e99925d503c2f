import { expect, test } from 'vitest';
import { CELLS } from './cells.ts';
import { cellsLike, sample, unreachable, unreachableCells } from './coverage.ts';
import { runSeed } from './run.ts';
import { replayCommand } from './shrink.ts';

/** Where it fails after the engine or the worlds have changed: docs/PROOF.md, cells, says how the sample is drawn again. */
const UNTIL_MS = 240_000;

test(
  '[I20 I29] every cell of the machines is taken by a world of the sample, or listed with why none can',
  async () => {
    const reached = new Set<string>();
    for (const { seed, faults, coda } of sample()) {
      const options = { ...(coda === undefined ? {} : { coda }), ...(faults === undefined ? {} : { faults }) };
      const { violations, cells } = await runSeed(seed, options);
      expect(violations, replayCommand(seed, options)).toEqual([]);
      for (const cell of cells) reached.add(cell);
    }
    const listed = unreachableCells();
    const isOpen = (cell: string): boolean => !reached.has(cell) && !listed.has(cell);
    expect(CELLS.filter(isOpen), 'neither reached nor listed').toEqual([]);
    expect(
      [...listed].filter((cell) => reached.has(cell)),
      'reached, though listed',
    ).toEqual([]);
  },
  UNTIL_MS,
);

test('[I20] each reason is about cells, and no cell has two', () => {
  const cells = unreachable().flatMap(({ why, cells: patterns }) => {
    expect(why.length).toBeGreaterThan(20);
    return patterns.flatMap((pattern) => {
      const like = cellsLike(pattern);
      expect(like, pattern).not.toEqual([]);
      return like;
    });
  });
  expect(cellsLike('permit issued-idle start')).toEqual(['permit issued-idle start']);
  expect(cellsLike('permit nowhere *')).toEqual([]);
  const twice = [...new Set(cells.filter((cell, at) => cells.indexOf(cell) !== at))];
  // Two whole rows, or a row and a column, may cross.
  expect(twice.filter((cell) => !cell.startsWith('session ') && !cell.endsWith(' repair'))).toEqual([]);
});
