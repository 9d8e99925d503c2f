import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { compareValues, sameValue } from './order.ts';

const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom<Json>(null, false, true, 0, -1, 0.5, 10, 9, '', 'a', 'b', '\uFF5E', '\u{1F600}'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'toString'), tie('value'), { maxKeys: 2 }),
  ),
}));

test('[EV6] the order of max and min is total: antisymmetric, transitive, and equal only for one value', () => {
  fc.assert(
    fc.property(value, value, value, (a, b, c) => {
      expect(Math.sign(compareValues(a, b))).toBe(-Math.sign(compareValues(b, a)) + 0);
      expect(compareValues(a, b) === 0).toBe(canonical(a) === canonical(b));
      if (compareValues(a, b) <= 0 && compareValues(b, c) <= 0) expect(compareValues(a, c)).toBeLessThanOrEqual(0);
    }),
    { numRuns: 2_000 },
  );
});

test('[EV6] kinds are ordered, numbers go by value, texts by their bytes, arrays by their elements', () => {
  const ascending: Json[] = [null, false, true, -1, 9, 10, '', '10', '9', '\uFF5E', '\u{1F600}', [], [9], [9, 0], [10]];
  ascending.push({ a: 1 }, { b: 0 });
  expect([...ascending].reverse().sort(compareValues)).toEqual(ascending);
});

test('[EV6] two values are the same whatever the order of their keys', () => {
  expect(sameValue({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
  expect(sameValue([1, 2], [2, 1])).toBe(false);
  expect(sameValue(undefined, undefined)).toBe(true);
  expect(sameValue('1', 1)).toBe(false);
  expect(sameValue(null, undefined)).toBe(false);
  expect(sameValue({}, null)).toBe(false);
});
