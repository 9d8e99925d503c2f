import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkJson, jsonProblem, pathText } from './json.ts';
import { LIMITS } from './limits.ts';

/** `depth` arrays around nothing. */
const nested = (depth: number): unknown => {
  let value: unknown = [];
  for (let level = 1; level < depth; level += 1) value = [value];
  return value;
};

class Money {
  readonly cents = 1;
}

test.each([
  ['NaN', Number.NaN],
  ['infinity', Number.POSITIVE_INFINITY],
  ['minus infinity', Number.NEGATIVE_INFINITY],
  ['1e400', JSON.parse('1e400')],
  ['2^53', 2 ** 53],
  ['-2^53', -(2 ** 53)],
  ['1e300, an integer in another notation', 1e300],
  ['a lone high surrogate', 'a\ud83db'],
  ['a lone low surrogate', '\ude00'],
  ['surrogates in the wrong order', '\ude00\ud83d'],
  ['a lone surrogate from an escape', JSON.parse('"\\ud83d"')],
  ['NUL', 'a\0b'],
  ['undefined', undefined],
  ['a date', new Date(0)],
  ['a BigInt', 1n],
  ['a function', () => 1],
  ['a symbol', Symbol('s')],
  ['a map', new Map()],
  ['a set', new Set()],
  ['bytes', new Uint8Array(1)],
  ['an instance of a class', new Money()],
  ['an object with a made prototype', Object.create({ inherited: 1 })],
  ['a hole', Array(1)],
  ['a lone surrogate as a key', { '\ud800': 1 }],
  ['the key __proto__', JSON.parse('{"__proto__":1}')],
  ['the key constructor', { constructor: 1 }],
  ['the key prototype', { prototype: 1 }],
])('[JS1 F120 F121 F125] %s is refused, with the path', (_, value) => {
  const checked = checkJson({ fields: { list: [0, value] } }, 'change');
  expect(checked.ok).toBe(false);
  if (checked.ok) return;
  expect(checked.fault.code).toBe('invalid-change');
  expect(checked.fault.facts?.['path']).toMatch(/^change\.fields\.list\[1\]/);
  expect(checked.fault.facts?.['reason']).not.toBe('');
});

test.each([
  ['the largest safe integer', Number.MAX_SAFE_INTEGER],
  ['the smallest safe integer', Number.MIN_SAFE_INTEGER],
  ['the largest number that is no integer', 4503599627370495.5],
  ['the smallest number', 5e-324],
  ['minus zero', -0],
  ['a surrogate pair', '😀'],
  ['a byte order mark inside a text', '\ufeffa'],
  ['non-characters', '\ufffe\uffff'],
  ['marks of direction', '\u202eabc\u202c'],
  ['both normal forms', ['é', 'e\u0301']],
  ['keys that every object inherits', { toString: 1, valueOf: 2, hasOwnProperty: 3 }],
  ['keys like numbers', { 10: 1, 9: 2, '-1': 3 }],
  ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
  ['the empty key', { '': 1 }],
])('[JS1 F120 F124] %s is allowed', (_, value) => {
  expect(jsonProblem(value)).toBeNull();
});

test('[JS1 F123] sixty-four levels are allowed and sixty-five are refused', () => {
  expect(jsonProblem(nested(LIMITS.jsonDepthMax))).toBeNull();
  expect(jsonProblem(nested(LIMITS.jsonDepthMax + 1))).toEqual({
    path: '[0]'.repeat(LIMITS.jsonDepthMax),
    reason: 'nested deeper than 64',
  });
  expect(jsonProblem(nested(LIMITS.jsonDepthMax - 2), '', 2)).toBeNull();
  expect(jsonProblem(nested(LIMITS.jsonDepthMax - 1), '', 2)).not.toBeNull();
  expect(jsonProblem(nested(LIMITS.jsonDepthMax + 8), '', -8)).toBeNull();
});

test('[JS1 F123] what is nested without an end is refused, not followed', () => {
  const endless: unknown[] = [];
  endless.push(endless);
  expect(jsonProblem(endless)?.reason).toBe('nested deeper than 64');
  expect(jsonProblem(nested(10_000))?.reason).toBe('nested deeper than 64');
});

test('[JS1] the reason names what is wrong and where in a text it stands', () => {
  expect(jsonProblem('ab\ud800')?.reason).toBe('a lone surrogate at 2');
  expect(jsonProblem('😀\0')?.reason).toBe('NUL at 2');
  expect(jsonProblem(new Money())?.reason).toBe('a Money is not JSON');
  expect(jsonProblem(Object.create({}))?.reason).toBe('an object of a class is not JSON');
});

test('[F126] a path stays small whatever the keys are', () => {
  expect(pathText(['a b', 'x'.repeat(1_000_000)]).length).toBeLessThan(120);
  expect(pathText(Array.from({ length: 1_000 }, () => 'level')).length).toBeLessThan(450);
  expect(pathText(['set', 'a.b', 'c d', '', 3])).toBe('set.a.b."c d".""[3]');
});

test('[JS1] whatever is handed in, it is found to be JSON only if writing and reading keeps it, and nothing throws', () => {
  const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withSparseArray: true });
  fc.assert(
    fc.property(anything, (value) => {
      if (jsonProblem(value) !== null) return;
      const copy: unknown = JSON.parse(JSON.stringify(value));
      expect(copy).toEqual(JSON.parse(JSON.stringify(copy)));
      expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
    }),
    { numRuns: 2_000 },
  );
});

test('[JS1] of what JSON can say, only numbers beyond the bounds, NUL, three keys and depth are refused', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 10 }), (value) => {
      const isBeyond = (one: unknown) => typeof one === 'number' && Number.isInteger(one) && !Number.isSafeInteger(one);
      const text = JSON.stringify(value, (_, one: unknown) => (isBeyond(one) ? 'beyond' : one));
      const isRefused = /"(__proto__|constructor|prototype)":/.test(text) || /beyond|\\u0000/.test(text);
      if (!isRefused) expect(jsonProblem(value)).toBeNull();
    }),
    { numRuns: 500 },
  );
});

test('[S16] checking hostile keys leaves every prototype as it was', () => {
  const before = Object.getOwnPropertyNames(Object.prototype).sort();
  for (const text of ['{"__proto__":{"polluted":1}}', '{"constructor":{"prototype":{"polluted":1}}}'])
    expect(jsonProblem(JSON.parse(text))).not.toBeNull();
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});
