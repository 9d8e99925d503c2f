import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import { columnType, fromColumn, toColumn } from './columns.ts';
import { presenceOf, shownValue } from './field-facts.ts';
import type { Json } from './json.ts';
import { HARD_VALUES, jsonValue } from './json-values.fixture.ts';
import type { FieldData, FieldKind } from './schema-data.ts';
import { asSet } from './sets.ts';
import { valueIssue } from './validate.ts';

const FIELDS: Readonly<Record<FieldKind, FieldData>> = {
  text: { kind: 'text' },
  integer: { kind: 'integer' },
  number: { kind: 'number' },
  flag: { kind: 'flag' },
  time: { kind: 'time' },
  json: { kind: 'json' },
  counter: { kind: 'counter' },
  setOf: { kind: 'setOf', of: { kind: 'text' } },
  oneOf: { kind: 'oneOf', values: ['backlog', 'todo', 'true', '1'], otherwise: 'backlog' },
  ref: { kind: 'ref', to: 'issue' },
  rank: { kind: 'rank' },
  serial: { kind: 'serial' },
};
const KINDS = Object.keys(FIELDS) as FieldKind[];

/** A real column of each kind: SQLite's affinities are part of what must read back. */
const database = new DatabaseSync(':memory:');
database.exec(`CREATE TABLE t (${KINDS.map((kind) => `"${kind}" ${columnType(FIELDS[kind])}`).join(', ')})`);
const through = Object.fromEntries(
  KINDS.map((kind) => {
    const insert = database.prepare(`INSERT INTO t ("${kind}") VALUES (?) RETURNING "${kind}" AS v`);
    return [kind, (value: string | number): string | number => (insert.get(value) as { v: string | number }).v];
  }),
) as Record<FieldKind, (value: string | number) => string | number>;

/** The law: what SQLite gives back is the value, or it goes beside the columns. */
function check(kind: FieldKind, value: Json): 'column' | 'rest' {
  const column = toColumn(value, FIELDS[kind]);
  if (column === undefined) return 'rest';
  if (column === null || column instanceof Uint8Array) throw new Error(`no column holds ${String(column)}`);
  expect(canonical(fromColumn(through[kind](column), FIELDS[kind]))).toBe(canonical(value));
  return 'column';
}

describe('columns', () => {
  test.each(KINDS)('[SC5] whatever a %s column holds reads back the same from SQLite, for every JSON value', (kind) => {
    const places = HARD_VALUES.map((value) => check(kind, value));
    expect(places).toContain('column');
    if (kind !== 'json') expect(places).toContain('rest');
    fc.assert(
      fc.property(jsonValue, (value) => {
        check(kind, value);
      }),
      { numRuns: 2_000 },
    );
  });

  test('[SC5] column types are what sorting and comparing in SQL need', () => {
    const typeOf = (kind: FieldKind) => columnType(FIELDS[kind]);
    expect(KINDS.filter((kind) => typeOf(kind) === 'INTEGER')).toEqual(['integer', 'flag', 'counter', 'serial']);
    expect(KINDS.filter((kind) => typeOf(kind) === 'REAL')).toEqual(['number']);
    expect(KINDS.filter((kind) => typeOf(kind) === 'TEXT')).toHaveLength(KINDS.length - 5);
  });

  test('[SC5] every value that a commit may write has a place in its column', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), jsonValue, (kind, value) => {
        const field = FIELDS[kind];
        const asCommitted = kind === 'setOf' && Array.isArray(value) ? asSet(value) : value;
        if (valueIssue(asCommitted, field, []) !== null) return;
        expect(check(kind, asCommitted)).toBe('column');
      }),
      { numRuns: 10_000 },
    );
  });

  test('[SC5] a value that its column cannot hold is shown as null, and one that oneOf does not know as it says', () => {
    expect(shownValue('text', FIELDS.integer)).toBeNull();
    expect(shownValue(1.5, FIELDS.integer)).toBeNull();
    expect(shownValue(1, FIELDS.flag)).toBeNull();
    expect(shownValue('2026-11-30T00:00:00Z', FIELDS.time)).toBeNull();
    expect(shownValue(['b', 'a'], FIELDS.setOf)).toBeNull();
    expect(shownValue('review', FIELDS.oneOf)).toBe('backlog');
    expect(shownValue(7, FIELDS.oneOf)).toBe('backlog');
    expect(shownValue('todo', FIELDS.oneOf)).toBe('todo');
    expect(shownValue(false, FIELDS.flag)).toBe(false);
  });

  test('[SC5] what no event set is shown as its default, an empty set, a count of 0, or null', () => {
    expect(shownValue(undefined, { kind: 'text', default: 'x' })).toBe('x');
    expect(shownValue(undefined, { kind: 'flag', default: false })).toBe(false);
    expect(shownValue(undefined, FIELDS.setOf)).toEqual([]);
    expect(shownValue(undefined, FIELDS.counter)).toBe(0);
    expect(shownValue(undefined, FIELDS.rank)).toBe('U');
    expect(shownValue(undefined, FIELDS.text)).toBeNull();
    expect(shownValue(undefined, FIELDS.serial)).toBeNull();
    // Not what is shown for a value that it does not know: here there is none.
    expect(shownValue(undefined, { ...FIELDS.oneOf, optional: true })).toBeNull();
  });

  test('[SC5] a field is required only where nothing is shown for it', () => {
    const by = (presence: string) => KINDS.filter((kind) => presenceOf(FIELDS[kind]) === presence);
    expect(by('assigned')).toEqual(['serial']);
    expect(by('defaulted')).toEqual(['counter', 'setOf', 'rank']);
    expect(presenceOf({ kind: 'text', optional: true })).toBe('optional');
    expect(presenceOf({ kind: 'text', default: '' })).toBe('defaulted');
    expect(presenceOf({ kind: 'flag', default: false })).toBe('defaulted');
  });
});
