import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { jsonValue } from './json-values.fixture.ts';
import { LIMITS } from './limits.ts';
import { parseJson, parseWire } from './parse.ts';

const limits = { bytesMax: 1_000_000, depthMax: LIMITS.jsonDepthMax };
const factsOf = (text: string, parse = parseJson) => {
  const parsed = parse(text, limits);
  return parsed.ok ? 'ok' : { code: parsed.fault.code, ...parsed.fault.facts };
};
const malformed = (path: string, reason: unknown = expect.any(String)) => ({ code: 'malformed', path, reason });

test.each([
  ['at the top', '{"a":1,"a":2}', 'a'],
  ['of equal values', '{"a":1,"a":1}', 'a'],
  ['inside', '{"x":[{"b":1},{"b":1,"c":{"d":1,"e":2,"d":3}}]}', 'x[1].c.d'],
  ['written with an escape', '{"a":1,"\\u0061":2}', 'a'],
  ['with spaces before the colon', '{"a" :1, "a"\n:2}', 'a'],
  ['that holds a quote', '{"\\"":1,"\\"":2}', '"\\""'],
  ['that ends in a backslash', '{"\\\\":1,"\\\\":2}', '"\\\\"'],
  ['that is empty', '{"":1,"":2}', '""'],
  ['after a text that looks like a key', '{"a":"\\"b\\":","b":1,"b":2}', 'b'],
  ['like a number', '{"1":1,"1":2}', '"1"'],
  ['that reaches a prototype', '{"__proto__":1,"__proto__":2}', '__proto__'],
])('[JS3 F122] a duplicate key %s is refused, with the path', (_, text, path) => {
  expect(factsOf(text)).toEqual(malformed(path, 'this key stands twice'));
  expect(factsOf(text, parseWire)).toEqual(malformed(path, 'this key stands twice'));
});

test('[JS3 F122] the same key in two objects, or as a value, is no duplicate', () => {
  for (const text of ['[{"a":1}, {"a":1}]', '{"a":{"a":{"a":1}} }', '{"a":"a" }', '[["a","a"] ]', '{"b":1,"1":"b"}'])
    expect(factsOf(text)).toBe('ok');
});

test('[JS3 F122] a key written once more anywhere is found', () => {
  fc.assert(
    fc.property(jsonValue, fc.nat(), fc.boolean(), (value, pick, isSpaced) => {
      const text = JSON.stringify(value, null, isSpaced ? 1 : undefined);
      const members = [...text.matchAll(/[{,]\s*("(?:[^"\\]|\\.)*"):/g)].filter((match) => isKeyAt(text, match.index));
      const member = members[pick % Math.max(1, members.length)];
      if (member === undefined) return;
      const at = member.index + 1;
      expect(parseWire(text, limits).ok).toBe(true);
      expect(parseWire(`${text.slice(0, at)}${member[1]}:null,${text.slice(at)}`, limits)).toMatchObject({
        ok: false,
        fault: { facts: { reason: 'this key stands twice' } },
      });
    }),
    { numRuns: 500 },
  );
});

/** Whether the character at `at` stands outside of texts. */
function isKeyAt(text: string, at: number): boolean {
  let isInside = false;
  for (let scan = 0; scan < at; scan += 1) {
    if (text[scan] === '\\' && isInside) scan += 1;
    else if (text[scan] === '"') isInside = !isInside;
  }
  return !isInside;
}

test.each([
  ['a lone surrogate', '{"a":["\\ud83d"]}', 'a[0]', 'a lone surrogate at 0'],
  ['NUL', '{"a":"x\\u0000"}', 'a', 'NUL at 1'],
  ['1e400', '{"a":1e400}', 'a', 'Infinity is not JSON'],
  ['-1e400', '{"a":[[-1e400]]}', 'a[0][0]', '-Infinity is not JSON'],
  ['2^53', '{"a":9007199254740992}', 'a', 'an integer beyond ±(2^53−1) is not exact; write it as text'],
  ['2^53 in another notation', '{"a":9.007199254740992e15}', 'a', expect.stringContaining('not exact')],
  ['a long integer', '{"a":12345678901234567890}', 'a', expect.stringContaining('not exact')],
  ['__proto__', '{"a":{"__proto__":{}}}', 'a.__proto__', 'this key is not allowed'],
  ['constructor', '{"constructor":1}', 'constructor', 'this key is not allowed'],
])('[JS1 JS3 S06] %s is refused, with the path', (_, text, path, reason) => {
  expect(factsOf(text)).toEqual(malformed(path, reason));
  expect(factsOf(text, parseWire)).toBe('ok');
});

test.each([
  ['nothing', ''],
  ['a byte order mark', '\ufeff{}'],
  ['two values', '{} {}'],
  ['a comma at the end', '[1,]'],
  ['a comment', '{/**/}'],
  ['NaN', 'NaN'],
  ['single quotes', "{'a':1}"],
  ['an open text', '{"a'],
  ['an open object', '{"a":1'],
  ['a raw control character', '"\n"'],
  ['a bad escape', '"\\x"'],
  ['a leading zero', '01'],
  ['a closing bracket too many', '[]]'],
])('[JS3 S06] %s is not JSON', (_, text) => {
  expect(factsOf(text)).toEqual(malformed('', 'not JSON'));
});

test('[JS3 F123] depth is refused before an object is made, with the path', () => {
  const lists = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  expect(factsOf(lists(64))).toBe('ok');
  expect(factsOf(lists(65))).toEqual(malformed('[0]'.repeat(64), 'nested deeper than 64'));
  expect(factsOf(`{"a":[1,${'{"b":'.repeat(63)}1${'}'.repeat(63)}]}`)).toMatchObject(
    malformed(`a[1]${'.b'.repeat(62)}`, 'nested deeper than 64'),
  );
  expect(factsOf(lists(200_000))).toMatchObject({ reason: 'nested deeper than 64' });
  expect(factsOf('['.repeat(200_000))).toMatchObject({ reason: 'nested deeper than 64' });
  expect(factsOf(JSON.stringify({ a: '[[['.repeat(100), b: '"['.repeat(100) }))).toBe('ok');
});

test('[JS3] the limit of depth is for the whole text, so a message may have levels around its values', () => {
  const text = '['.repeat(70) + ']'.repeat(70);
  expect(parseJson(text, { ...limits, depthMax: 70 }).ok).toBe(true);
  expect(parseJson(text, { ...limits, depthMax: 69 }).ok).toBe(false);
});

test('[JS3 F126] bytes are counted as UTF-8, and refused before anything is read', () => {
  const parse = (text: string, bytesMax: number) => parseJson(text, { ...limits, bytesMax });
  expect(parse('"€€"', 8).ok).toBe(true);
  expect(parse('"€€"', 7)).toEqual({ ok: false, fault: { code: 'too-large', facts: { limit: 7 } } });
  expect(parse('"😀"', 6).ok).toBe(true);
  expect(parse('"😀"', 5).ok).toBe(false);
  expect(parse('{"a":'.repeat(10), 5)).toMatchObject({ fault: { code: 'too-large' } });
});

test('[JS3] what is read is what JSON.parse reads, however it was written', () => {
  fc.assert(
    fc.property(jsonValue, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
      const text = JSON.stringify(value, null, space);
      const parsed = parseJson(text, limits);
      expect(parsed.ok && canonical(parsed.value)).toBe(canonical(value));
    }),
    { numRuns: 500 },
  );
});

test('[JS3] no text makes the parser throw, and it takes no text that JSON.parse refuses', () => {
  const pieces = fc.constantFrom('{', '}', '[', ']', ',', ':', '"', '\\', '"a"', '1', 'null', ' ', '\ud800', '\\u00');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(pieces).map((all) => all.join('')),
      ),
      (text) => {
        const parsed = parseJson(text, limits);
        const wire = parseWire(text, { ...limits, depthMax: 3 });
        if (parsed.ok) expect(() => JSON.parse(text) as Json).not.toThrow();
        if (wire.ok) expect(() => JSON.parse(text) as Json).not.toThrow();
      },
    ),
    { numRuns: 3_000 },
  );
});

test('[S16] parsing hostile keys leaves every prototype as it was', () => {
  const before = Object.getOwnPropertyNames(Object.prototype).sort();
  parseJson('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}', limits);
  parseWire('{"__proto__":{"polluted":1},"__proto__":{"polluted":2}}', limits);
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});
