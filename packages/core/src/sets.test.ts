import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { addToSet, asSet, isSet, removeFromSet } from './sets.ts';

const element: fc.Arbitrary<Json> = fc.oneof(
  fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
  fc.integer({ min: -3, max: 12 }),
  fc.boolean(),
  fc.record({ a: fc.integer({ min: 0, max: 2 }) }) as fc.Arbitrary<Json>,
);
const elements = fc.array(element, { maxLength: 8 });
const bytesOf = (value: Json): Buffer => Buffer.from(canonical(value), 'utf8');

test('[EV6] a set is sorted by the UTF-8 bytes of its elements and holds each once', () => {
  fc.assert(
    fc.property(elements, (given) => {
      const set = asSet(given);
      for (let at = 1; at < set.length; at += 1)
        expect(Buffer.compare(bytesOf(set[at - 1] as Json), bytesOf(set[at] as Json))).toBe(-1);
      expect(new Set(set.map(canonical))).toEqual(new Set(given.map(canonical)));
      expect(isSet(set)).toBe(true);
    }),
  );
});

test('[EV6] a set is ordered by bytes, not by UTF-16 units or by value', () => {
  expect(asSet(['\u{1F600}', '\uFF5E', 'b', 'a'])).toEqual(['a', 'b', '\uFF5E', '\u{1F600}']);
  expect(asSet([10, 9, 'x', true, 9])).toEqual(['x', 10, 9, true]);
});

test('[EV6] an array in another order, with doubles, or another value is not a set', () => {
  expect([[], ['a'], ['a', 'b']].map(isSet)).toEqual([true, true, true]);
  expect([['b', 'a'], ['a', 'a'], 'a', null, { 0: 'a' }, undefined].map((value) => isSet(value as Json))).toEqual(
    Array(6).fill(false),
  );
});

test('[EV6] adding and removing are those of sets, in any order of the elements', () => {
  fc.assert(
    fc.property(elements, elements, (had, given) => {
      const set = asSet(had);
      const texts = (values: readonly Json[]) => new Set(values.map(canonical));
      expect(addToSet(set, given)).toEqual(asSet([...had, ...given]));
      expect(texts(removeFromSet(set, given))).toEqual(texts(had).difference(texts(given)));
      expect(isSet(removeFromSet(set, given))).toBe(true);
    }),
  );
});

test('[EV6] what changes nothing gives back the same array', () => {
  const set = asSet(['a', 'b']);
  expect(addToSet(set, ['a'])).toBe(set);
  expect(removeFromSet(set, ['c'])).toBe(set);
});
