import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RawRow } from './messages.ts';
import { applyPatch, diffRows, sameRow } from './row-patch.ts';

interface Made {
  readonly row: RawRow;
}
const made = (rows: readonly RawRow[]): readonly Made[] => rows.map((row) => ({ row }));
const numbered = (count: number): RawRow[] => Array.from({ length: count }, (_, at) => [`id${at}`, at, 'text']);

const rowArb = fc.tuple(fc.integer({ min: 0, max: 12 }), fc.constantFrom('a', 'b', null));
const rowsArb = fc.array(rowArb, { maxLength: 14 });

test.each([[-1], [0]])('[LQ3] a patch leads from any result to any other, by key column %s', (keyAt) => {
  fc.assert(
    fc.property(rowsArb, rowsArb, (before, after) => {
      const patch = diffRows(before, after, keyAt);
      const result = patch === null ? made(before) : applyPatch(made(before), patch, (row) => ({ row }));
      expect(result.map(({ row }) => row)).toEqual(after);
      expect(patch === null).toBe(
        before.length === after.length && before.every((row, at) => sameRow(row, after[at] as RawRow)),
      );
    }),
    { numRuns: 3_000 },
  );
});

test.each([[-1], [0]])('[LQ3] rows that were there keep their identity, by key column %s', (keyAt) => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { maxLength: 20 }),
      fc.array(fc.integer()),
      (ids, shuffle) => {
        const before = ids.map((id): RawRow => [id, 'x']);
        const after = before.toSorted((a, b) => (shuffle[a[0] as number] ?? 0) - (shuffle[b[0] as number] ?? 0));
        const patch = diffRows(before, after, keyAt);
        expect(patch?.set ?? []).toEqual([]);
      },
    ),
  );
});

test('[LQ3] one changed row of many is one row in the patch, and the only new object', () => {
  const before = numbered(1_000);
  const after = before.map((row, at) => (at === 500 ? ['id500', 500, 'other'] : [...row]));
  const patch = diffRows(before, after, 0);
  expect(patch).toEqual({ length: 1_000, set: [[500, ['id500', 500, 'other']]] });
  const objects = made(before);
  const result = applyPatch(objects, patch as NonNullable<typeof patch>, (row) => ({ row }));
  expect(result.filter((one, at) => one !== objects[at])).toHaveLength(1);
});

test.each([[-1], [0]])(
  '[LQ3] a row that comes first, leaves or moves costs a run and not the list, by key column %s',
  (keyAt) => {
    const before = numbered(1_000);
    const added: RawRow = ['new', -1, 'text'];
    expect(diffRows(before, [added, ...before], keyAt)).toEqual({
      length: 1_001,
      set: [[0, added]],
      moved: [1, 0, 1_000],
    });
    expect(diffRows(before, before.slice(1), keyAt)).toEqual({ length: 999, set: [], moved: [0, 1, 999] });
    const toTheEnd = [...before.slice(1), before[0] as RawRow];
    expect(diffRows(before, toTheEnd, keyAt)).toEqual({ length: 1_000, set: [], moved: [0, 1, 999, 999, 0, 1] });
    const changedAndMoved = [['id999', 999, 'other'] as RawRow, ...before.slice(0, 999)];
    expect(diffRows(before, changedAndMoved, keyAt)?.set).toHaveLength(1);
  },
);

test('[LQ3] bytes are compared by content', () => {
  expect(diffRows([[new Uint8Array([1, 2])]], [[new Uint8Array([1, 2])]])).toBeNull();
  expect(diffRows([[new Uint8Array([1, 2])]], [[new Uint8Array([1, 3])]])?.set).toHaveLength(1);
});
