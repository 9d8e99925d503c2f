import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import { type Json, jsonProblem } from './json.ts';
import { jsonValue } from './json-values.fixture.ts';

/** Any JSON at all: keys and texts of every kind. What the profile refuses is left out. */
const wild = fc
  .jsonValue({ maxDepth: 6 })
  .filter((value) => jsonProblem(value) === null)
  .map((value) => value as Json);
const wildText = fc
  .dictionary(fc.string({ unit: 'binary' }), fc.oneof(fc.string({ unit: 'binary' }), fc.double()), { maxKeys: 20 })
  .map((value) => ({ ...value }) as Json)
  .filter((value) => jsonProblem(value) === null);

test.each([
  ['wild values', wild],
  ['wild keys, texts and numbers', wildText],
  ['values that stores treat differently', jsonValue],
] as const)('[JS2] %s have the canonical bytes that a JCS library gives them', (_, arbitrary) => {
  fc.assert(
    fc.property(arbitrary as fc.Arbitrary<Json>, (value) => {
      expect(canonical(value)).toBe(canonicalize(value));
    }),
    { numRuns: 1_000 },
  );
});

test('[JS2 I26] reading canonical bytes and writing them again changes nothing', () => {
  fc.assert(
    fc.property(fc.oneof(wild, wildText, jsonValue), (value) => {
      const text = canonical(value);
      expect(canonical(JSON.parse(text) as Json)).toBe(text);
      expect(jsonProblem(JSON.parse(text))).toBeNull();
    }),
    { numRuns: 1_000 },
  );
});

test('[JS2 F124] the order in which keys were written does not matter', () => {
  const shuffled = fc
    .dictionary(fc.oneof(fc.string({ maxLength: 3 }), fc.nat(20).map(String)), fc.nat(9), { noNullPrototype: true })
    .chain((object) =>
      fc.tuple(
        fc.constant(object),
        fc.shuffledSubarray(Object.keys(object), { minLength: Object.keys(object).length }),
      ),
    );
  fc.assert(
    fc.property(shuffled, ([object, order]) => {
      if (jsonProblem(object) !== null) return;
      const other = Object.fromEntries(order.map((key) => [key, object[key] as number]));
      expect(canonical({ nested: [other] })).toBe(canonical({ nested: [object] }));
    }),
  );
});

test('[JS2] the example of RFC 8785 comes out as the RFC says', () => {
  const value = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  ) as Json;
  expect(canonical(value)).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
});

test('[JS2 F124] keys are sorted by their UTF-16 units, and numbers among them as texts', () => {
  expect(canonical({ '\ufb33': 1, '😀': 2, '€': 3, '\r': 4, '1': 5, '\u0080': 6, ö: 7 })).toBe(
    '{"\\r":4,"1":5,"\u0080":6,"ö":7,"€":3,"😀":2,"\ufb33":1}',
  );
  expect(canonical({ 9: 1, 10: 2, a: { b: 1, 2: 1, 11: 1 } })).toBe('{"10":2,"9":1,"a":{"11":1,"2":1,"b":1}}');
});

test('[JS1] minus zero is written as zero', () => {
  expect(canonical(-0)).toBe('0');
  expect(canonical({ b: [-0], a: -0 })).toBe('{"a":0,"b":[0]}');
});

test('[JS2] a member that is undefined is left out on both ways of writing', () => {
  expect(canonical({ a: 1, b: undefined } as never)).toBe('{"a":1}');
  expect(canonical({ b: undefined, a: { c: undefined } } as never)).toBe('{"a":{}}');
});
