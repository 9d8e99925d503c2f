import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { presenceOf, shownValue, wireName } from './field-facts.ts';
import type { Json, JsonObject } from './json.ts';
import { recordCommit } from './record.ts';
import {
  defineSchema,
  entity,
  integer,
  json,
  leanEntity,
  oneOf,
  rank,
  ref,
  schemaData,
  setOf,
  text,
} from './schema.ts';
import { checkSchema } from './schema-check.ts';
import type { EntityData, FieldData, SchemaData } from './schema-data.ts';
import { schemaProblem } from './schema-problem.ts';
import { nextSnapshot, type SchemaSnapshot } from './schema-snapshot.ts';
import type { Schema } from './schema-types.ts';
import { valueIssue } from './validate.ts';

const dataOf = (schema: Schema): SchemaData => schemaData(defineSchema(schema as never));
const note = (fields: Record<string, unknown>, o: object = {}): SchemaData =>
  dataOf({ other: entity({ a: text({ default: '' }) }), note: entity(fields as never, o as never) });
/** As the command prints it. */
const lines = (before: SchemaData | SchemaSnapshot, after: SchemaData): readonly string[] => {
  const snapshot = 'schema' in before ? before : nextSnapshot(null, before);
  return checkSchema(snapshot, after).map(({ what, change, verdict, why }) =>
    [what, change, verdict === 'safe' ? 'safe' : 'REFUSED', why].filter(Boolean).join(' | '),
  );
};

describe('schema check', () => {
  test('[SC2] tells the differences of task T11, each with its verdict and the way out', () => {
    const before = dataOf({
      issue: entity({
        title: text({ max: 200 }),
        status: oneOf(['backlog', 'todo', 'doing', 'done'], { otherwise: 'backlog', onClash: 'last' }),
        points: integer({ default: 0 }),
      }),
    });
    const after = dataOf({
      issue: entity({
        headline: text({ wire: 'title', max: 200 }),
        estimate: integer({ optional: true }),
        status: oneOf(['backlog', 'todo', 'doing', 'review', 'done'], { otherwise: 'backlog', onClash: 'last' }),
        owner: text(),
        points: text({ default: '' }),
      }),
    });
    expect(lines(before, after)).toEqual([
      'issue.headline | renamed in code, wire title | safe',
      'issue.estimate | added, optional | safe',
      'issue.status | value "review" added | safe | apps before this one show "backlog"',
      'issue.owner | added, required, no default | REFUSED | old events cannot have it. Give it a default or make it optional.',
      "issue.points | integer → text | REFUSED | a wire name keeps its kind for ever. Use wire: 'points2' and copy with a commit.",
    ]);
  });

  test('[SC2] a field is known by its wire name, so code may swap names', () => {
    const before = note({ title: text(), body: text() });
    expect(lines(before, note({ body: text({ wire: 'title' }), title: text({ wire: 'body' }) }))).toEqual([
      'note.body | renamed in code, wire title | safe',
      'note.title | renamed in code, wire body | safe',
    ]);
  });

  test('[SC2] what may come and go: what apps and rows can lack', () => {
    const base = { a: text() };
    const added = { b: text({ default: 'x' }), c: setOf(text()), d: rank(), e: json({ optional: true }) };
    expect(lines(note(base), note({ ...base, ...added }))).toEqual([
      'note.b | added, with a default | safe',
      'note.c | added, with a default | safe',
      'note.d | added, with a default | safe',
      'note.e | added, optional | safe',
    ]);
    expect(lines(note({ ...base, ...added }), note(base)).every((line) => / \| removed \| safe/.test(line))).toBe(true);
    expect(lines(note(base), note({ z: integer({ optional: true }) }))).toEqual([
      'note.z | added, optional | safe',
      'note.a | removed, was required | REFUSED | apps before this one need it in every new record. Give it a default first, and remove it a version later.',
    ]);
  });

  test('[SC2] what a field promises of every row may grow weaker only by way of a default', () => {
    const presences = { required: text(), defaulted: text({ default: 'x' }), optional: text({ optional: true }) };
    const verdict = (from: keyof typeof presences, to: keyof typeof presences): string =>
      lines(note({ a: presences[from] }), note({ a: presences[to] }))
        .map((line) => line.split(' | ')[2])
        .join();
    expect(verdict('required', 'defaulted')).toBe('safe');
    expect(verdict('required', 'optional')).toBe('REFUSED');
    expect(verdict('defaulted', 'optional')).toBe('safe');
    expect(verdict('optional', 'defaulted')).toBe('safe');
    expect(verdict('optional', 'required')).toBe('REFUSED');
    expect(verdict('defaulted', 'required')).toBe('REFUSED');
    expect(verdict('required', 'required')).toBe('');
  });

  test('[SC2] what a set holds and where a ref points belong to the kind', () => {
    expect(lines(note({ a: setOf(text()) }), note({ a: setOf(integer()) }))).toMatchObject([
      expect.stringMatching(/^note\.a \| setOf\(text\) → setOf\(integer\) \| REFUSED/),
    ]);
    expect(lines(note({ a: ref('other') }), note({ a: ref('note') }))).toMatchObject([
      expect.stringMatching(/^note\.a \| ref\(other\) → ref\(note\) \| REFUSED/),
    ]);
    expect(lines(note({ a: setOf(ref('other')) }), note({ a: setOf(ref('note')) }))[0]).toMatch(
      'setOf(ref(note)) | REFUSED',
    );
  });

  test('[SC2] names that differ only in case from what devices have are refused', () => {
    expect(lines(note({ upTo: text({ default: '' }) }), note({ upto: text({ default: '' }) }))[0]).toBe(
      'note.upto | added | REFUSED | devices have "upTo", which differs only in case. Use another name.',
    );
    const other = { other: entity({ a: text() }) };
    expect(lines(dataOf({ ...other, readMark: entity({}) }), dataOf({ ...other, readmark: entity({}) }))[0]).toBe(
      'readmark | added | REFUSED | devices have "readMark", which differs only in case. Use another name.',
    );
  });

  test('[SC2] a wire name keeps its kind even after a version without it', () => {
    const first = nextSnapshot(null, note({ a: text(), points: integer({ optional: true }) }));
    const second = nextSnapshot(first, note({ a: text() }));
    const third = nextSnapshot(second, note({ a: text(), b: text({ optional: true }) }));
    for (const snapshot of [second, third]) {
      expect(lines(snapshot, note({ a: text(), points: text({ optional: true }) }))[0]).toBe(
        "note.points | added, was integer | REFUSED | a wire name keeps its kind for ever. Use wire: 'points2' and copy with a commit.",
      );
      expect(lines(snapshot, note({ a: text(), score: integer({ optional: true, wire: 'points' }) }))[0]).toBe(
        'note.score | added, optional | safe | values of before are shown again',
      );
    }
    // Back again, it is no longer retired.
    expect(nextSnapshot(third, note({ a: text(), points: integer({ optional: true }) })).retired).toEqual({
      note: { b: { kind: 'text', optional: true } },
    });
  });

  test('[SC2] an entity that comes back finds its records, and keeps its kinds', () => {
    const first = nextSnapshot(null, note({ a: text(), n: integer() }));
    const without = nextSnapshot(first, dataOf({ other: entity({ a: text({ default: '' }) }) }));
    expect(lines(first, without.schema)).toEqual(['note | removed | safe | its records stay, hidden']);
    expect(lines(without, note({ a: text(), n: integer() }))).toEqual([
      'note | added again | safe | records of before are shown again',
    ]);
    expect(lines(without, note({ a: text(), n: text(), z: text() })).slice(1)).toMatchObject([
      expect.stringMatching(/^note\.n \| added, was integer \| REFUSED/),
      expect.stringMatching(/^note\.z \| added, required, no default \| REFUSED/),
    ]);
  });

  test('[SC2] a key, and whether an entity is local, are for ever', () => {
    const fields = { a: text(), b: text() };
    expect(lines(note(fields, { key: ['a'] }), note(fields, { key: ['a', 'b'] }))[0]).toMatch(
      /^note \| key a → a, b \| REFUSED/,
    );
    expect(lines(note(fields), note(fields, { key: ['a'] }))[0]).toMatch(/^note \| key none → a \| REFUSED/);
    expect(lines(note(fields, { local: true }), note(fields))[0]).toMatch(/^note \| no longer local \| REFUSED/);
    expect(lines(note(fields), note(fields, { local: true }))[0]).toMatch(/^note \| made local \| REFUSED/);
    // Another name in code for a field of the key is the same key.
    expect(lines(note({ a: text() }, { key: ['a'] }), note({ x: text({ wire: 'a' }) }, { key: ['x'] }))).toEqual([
      'note.x | renamed in code, wire a | safe',
    ]);
  });

  test('[SC2] tells every other difference, as safe', () => {
    const before = note(
      {
        a: text({ max: 10 }),
        s: oneOf(['x', 'y'], { otherwise: 'x' }),
        r: ref('other', { optional: true }),
        d: text({ default: '1' }),
      },
      { rules: (r: any) => ({ 'r is there': r.present('r'), 'a is x': r.is('a', 'x') }), index: [['a']] },
    );
    const after = note(
      {
        a: text({ max: 5, onClash: 'last' }),
        s: oneOf(['y', 'z'], { otherwise: 'y' }),
        r: ref('other', { optional: true, onDelete: 'clear' }),
        d: text({ default: '2' }),
      },
      {
        rules: (r: any) => ({ 'r is there': r.not(r.present('r')), 'a is y': r.is('a', 'y') }),
        index: [['a', 'arrival']],
        search: ['a'],
        editedWhileDeleted: 'ask',
      },
    );
    const changes = checkSchema(nextSnapshot(null, before), after);
    expect(changes.map(({ what, change }) => `${what} | ${change}`)).toEqual([
      'note.a | max 10 → 5',
      'note.a | onClash ask → last',
      'note.s | value "z" added',
      'note.s | value "x" removed',
      'note.s | otherwise "x" → "y"',
      'note.r | onDelete keep → clear',
      'note.d | default "1" → "2"',
      'note | editedWhileDeleted keep → ask',
      'note | rule "r is there" changed',
      'note | rule "a is y" added',
      'note | rule "a is x" removed',
      'note | index a, arrival added',
      'note | search none → a',
    ]);
    expect(changes.every(({ verdict }) => verdict === 'safe')).toBe(true);
  });
});

describe('laws', () => {
  const leaf: fc.Arbitrary<FieldData> = fc
    .tuple(
      fc.constantFrom<FieldData[]>(
        { kind: 'text' },
        { kind: 'integer' },
        { kind: 'flag' },
        { kind: 'json' },
        { kind: 'oneOf', values: ['a', 'b'], otherwise: 'a' },
        { kind: 'oneOf', values: ['b', 'c'], otherwise: 'b' },
        { kind: 'ref', to: 'note' },
        { kind: 'setOf', of: { kind: 'text' } },
        { kind: 'setOf', of: { kind: 'integer' } },
        { kind: 'counter' },
      ),
      fc.constantFrom('required', 'optional', 'defaulted'),
      fc.option(fc.constantFrom('w1', 'w2', 'w3'), { nil: undefined }),
    )
    .map(([field, presence, wire]) => ({
      ...field,
      ...(['setOf', 'counter'].includes(field.kind) || presence === 'required'
        ? {}
        : presence === 'optional'
          ? { optional: true as const }
          : { default: SAMPLE[field.kind]?.(field) as Json }),
      ...(wire === undefined ? {} : { wire }),
    }));
  const SAMPLE: Readonly<Record<string, (field: FieldData) => Json>> = {
    text: () => 'x',
    integer: () => 1,
    flag: () => true,
    json: () => ({ a: 1 }),
    oneOf: ({ otherwise }) => otherwise as string,
    ref: () => 'n1',
    setOf: ({ of }) => (of?.kind === 'text' ? ['x'] : [1]),
    counter: () => ({ by: 1 }),
  };
  const schemas: fc.Arbitrary<SchemaData> = fc
    .dictionary(fc.constantFrom('a', 'b', 'c', 'w1'), leaf, { noNullPrototype: true, minKeys: 1 })
    .map((fields): SchemaData => ({ format: 1, entities: { note: leanEntity({ fields }) } }))
    .filter((data) => schemaProblem(data) === null);

  /** Fields, by wire name, of a record that an app of this schema makes with as little, or as much, as it may. */
  const madeBy = (data: SchemaData, isFull: boolean): JsonObject => {
    const { fields } = data.entities['note'] as EntityData;
    const given = Object.fromEntries(
      Object.entries(fields).flatMap(([name, field]) =>
        isFull || presenceOf(field) === 'required' ? [[name, SAMPLE[field.kind]?.(field)]] : [],
      ),
    );
    const ids = { newId: () => 'n1', keyedId: () => '' };
    const outcome = recordCommit({} as Schema, data, ids, (tx) => (tx as any).note.create(given));
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.fault));
    const [change] = outcome.value.changes;
    if (change?.do !== 'create') throw new Error('no create');
    return Object.fromEntries(
      Object.entries(change.fields).map(([name, value]) => [wireName(name, fields[name] as FieldData), value]),
    );
  };

  /** A reader's row must hold what its types promise. */
  const brokenPromises = (reader: SchemaData, fields: JsonObject): readonly string[] =>
    Object.entries((reader.entities['note'] as EntityData).fields).flatMap(([name, field]) => {
      const value = shownValue(fields[wireName(name, field)], field);
      const mayBeNull = presenceOf(field) === 'optional';
      return (value === null && mayBeNull) || valueIssue(value, field, []) === null ? [] : [name];
    });

  test('[SC2] a schema compared with itself has not changed', () => {
    fc.assert(fc.property(schemas, (data) => void expect(checkSchema(nextSnapshot(null, data), data)).toEqual([])));
  });

  test('[SC2] if nothing is refused, the app before and the app after can read what the other makes', () => {
    let compared = 0;
    fc.assert(
      fc.property(schemas, schemas, fc.boolean(), (before, after, isFull) => {
        const isRefused = checkSchema(nextSnapshot(null, before), after).some(({ verdict }) => verdict === 'refused');
        if (isRefused) return;
        compared += 1;
        expect(brokenPromises(after, madeBy(before, isFull))).toEqual([]);
        expect(brokenPromises(before, madeBy(after, isFull))).toEqual([]);
      }),
      { numRuns: 6_000 },
    );
    expect(compared).toBeGreaterThan(300);
  });

  test('[SC2] what was refused once is refused after any number of versions that leave it out', () => {
    fc.assert(
      fc.property(schemas, schemas, schemas, (first, between, last) => {
        const direct = checkSchema(nextSnapshot(null, first), last);
        const kinds = direct.filter(({ why }) => why.startsWith('a wire name keeps its kind')).map(({ what }) => what);
        const later = checkSchema(nextSnapshot(nextSnapshot(null, first), between), last);
        const isKept = (what: string) => {
          const field = (last.entities['note'] as EntityData).fields[what.slice('note.'.length)] as FieldData;
          const wire = wireName(what.slice('note.'.length), field);
          return !Object.entries((between.entities['note'] as EntityData).fields).some(
            ([n, f]) => wireName(n, f) === wire,
          );
        };
        for (const what of kinds.filter(isKept))
          expect(later.find((one) => one.what === what)?.why).toMatch('a wire name keeps its kind');
      }),
      { numRuns: 2_000 },
    );
  });
});
