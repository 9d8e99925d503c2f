import fc from 'fast-check';
import type { Json, JsonObject } from './json.ts';

/** Values of the JSON profile that stores and runtimes are known to treat differently, and generated ones around them. */
export const HARD_VALUES: readonly Json[] = [
  ...[true, false, 0, -0, 1, -1, 42, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1, -(2 ** 53) + 1],
  ...[0.1, -0.5, 1.5, 1e-7, 5e-324, -1.5e-300, 4503599627370495.5, 0.30000000000000004, 1234567.125],
  ...['', ' ', '0', '1', 'true', 'null', '1e3', '0x10', '007', 'é', 'e\u0301', '😀', '\ufeffBOM', '\uffff', '\u0001'],
  ...['U', 'backlog', 'review', 'issue/7', 'a b', '2026-11-30T00:00:00.000Z', '2026-11-30T00:00:00Z', '2026-11-30'],
  ...['2026-02-30T00:00:00.000Z', '+010000-01-01T00:00:00.000Z', "'; DROP TABLE t; --", '"', '\\', '\u2028'],
  ...([[], [1], [1, 2], [2, 1], [1, 1], ['a', 'b'], ['b', 'a'], ['a', 'a'], [1, 'a'], ['10', '9'], [10, 9]] as Json[]),
  ...([['\uffff', '😀'], ['😀', '\uffff'], [[1], [2]], [{}], [true, false], [false, true]] as Json[]),
  ...([{}, { a: 1 }, { b: 1, a: 2 }, { 2: 1, b: 1, 10: 1 }, { a: { c: [], b: null } }, { toString: 1 }] as Json[]),
];

const leaf = fc.oneof(
  fc.constantFrom(...HARD_VALUES),
  fc.boolean(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n) || Number.isSafeInteger(n)),
  fc.maxSafeInteger(),
  fc.string({ unit: 'binary', maxLength: 8 }).filter((text) => text.isWellFormed() && !text.includes('\0')),
);

/** Any value of the profile but null, which is no value of a field (JS4). */
export const jsonValue: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { weight: 3, arbitrary: leaf as fc.Arbitrary<Json> },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 4 }) },
    {
      weight: 1,
      arbitrary: fc.dictionary(fc.constantFrom('a', 'b', '1', 'é', 'toString'), tie('value'), {
        maxKeys: 3,
        noNullPrototype: true,
      }) as fc.Arbitrary<JsonObject>,
    },
  ),
})).value;
