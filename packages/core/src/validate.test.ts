import { describe, expect, test } from 'vitest';
import type { Json } from './json.ts';
import { LIMITS } from './limits.ts';
import type { EntityData, FieldData } from './schema-data.ts';
import { validateFields, valueIssue } from './validate.ts';

const codeOf = (value: unknown, data: FieldData): string => valueIssue(value, data, [])?.code ?? 'fits';

const FITTING: readonly (readonly [FieldData, readonly unknown[], readonly unknown[]])[] = [
  [{ kind: 'text' }, ['', 'a', 'é'], [1, true, [], {}, null]],
  [{ kind: 'integer' }, [0, -1, 2 ** 53 - 1], [0.5, '1', true, null]],
  [{ kind: 'number' }, [0, 0.5, -1e-300], ['1', true, null, []]],
  [{ kind: 'flag' }, [true, false], [0, 1, 'true', null]],
  [
    { kind: 'time' },
    ['2026-11-30T00:00:00.000Z', '2024-02-29T23:59:59.999Z', '0000-01-01T00:00:00.000Z'],
    ['2026-11-30T00:00:00Z', '2026-02-30T00:00:00.000Z', '2026-11-30', '2025-02-29T00:00:00.000Z', 0, null],
  ],
  [{ kind: 'json' }, [0, 'a', [null], { a: null }, false], [null]],
  [{ kind: 'counter' }, [0, 5], [0.5, '1', { by: 1 }]],
  [{ kind: 'oneOf', values: ['a', 'b'], otherwise: 'a' }, ['a', 'b'], ['c', '', 1, null]],
  [{ kind: 'ref', to: 'x' }, ['p1', '!~'], ['', 'a b', 'é', 'a'.repeat(129), 1, null]],
  [{ kind: 'rank' }, ['U'], [1, null]],
  [{ kind: 'setOf', of: { kind: 'integer' } }, [[], [1, 2]], [1, 'a', { add: [1] }, null, [0.5], [null], [[1]]]],
];

describe('validation', () => {
  test.each(FITTING)('[CM3] takes what $kind holds and refuses the rest', (data, fits, refused) => {
    for (const value of fits) expect([value, codeOf(value, data)]).toEqual([value, 'fits']);
    for (const value of refused) expect([value, codeOf(value, data)]).toEqual([value, 'wrong-type']);
  });

  test.each(FITTING)('[JS1] $kind refuses what is outside the profile', (data) => {
    const outside = [
      Number.NaN,
      Infinity,
      2 ** 53,
      'a\ud800',
      'a\u0000',
      undefined,
      new Date(0),
      1n,
      [undefined],
      () => 0,
    ];
    for (const value of outside) expect([value, codeOf(value, data)]).toEqual([value, 'not-json']);
  });

  test('[CM3] says what is expected, in words for a form', () => {
    const message = (value: Json, data: FieldData) => valueIssue(value, data, [])?.message;
    expect(message('yes', { kind: 'flag' })).toBe('true or false is expected');
    expect(message('c', { kind: 'oneOf', values: ['a', 'b'] })).toBe('one of a, b is expected');
    expect(message(0.5, { kind: 'integer' })).toBe('a whole number within ±(2^53−1) is expected');
  });

  test('[CM3] says where inside a value the profile is broken', () => {
    const value = { a: [{ b: Number.NaN }] };
    expect(valueIssue(value, { kind: 'json' }, ['note', 'x'])).toEqual({
      path: ['note', 'x'],
      code: 'not-json',
      message: 'a[0].b: NaN is not JSON',
    });
  });

  test('[JS1] depth counts from the draft that the value will stand in', () => {
    const nested = (depth: number): Json => (depth === 0 ? 1 : [nested(depth - 1)]);
    expect(codeOf(nested(LIMITS.jsonDepthMax - 3), { kind: 'json' })).toBe('fits');
    expect(codeOf(nested(LIMITS.jsonDepthMax - 2), { kind: 'json' })).toBe('not-json');
  });

  test('[CM3] text has at most as many characters as its field says', () => {
    expect(codeOf('abc', { kind: 'text', max: 3 })).toBe('fits');
    expect(valueIssue('abcd', { kind: 'text', max: 3 }, ['x'])).toEqual({
      path: ['x'],
      code: 'too-long',
      message: 'at most 3 characters are allowed, this has 4',
    });
    expect(valueIssue(['ab', 'abcd'], { kind: 'setOf', of: { kind: 'text', max: 3 } }, ['x'])?.path).toEqual(['x', 1]);
  });

  test('[CM3] gives one issue per field, in the order of the fields given', () => {
    const entity: EntityData = {
      fields: { title: { kind: 'text', max: 3 }, size: { kind: 'integer' }, number: { kind: 'serial' } },
    };
    expect(validateFields(entity, { size: 1, title: 'abc' })).toEqual([]);
    const fields = { title: 'abcd', size: 'x', number: 1, toString: 'a' } as unknown as Record<string, Json>;
    expect(validateFields(entity, fields, ['note']).map(({ path, code }) => [path.join('.'), code])).toEqual([
      ['note.title', 'too-long'],
      ['note.size', 'wrong-type'],
      ['note.number', 'not-settable'],
      ['note.toString', 'unknown-field'],
    ]);
  });
});
