import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { fingerprintOf } from './fingerprint.ts';
import type { Digest } from './ports.ts';
import {
  counter,
  defineSchema,
  entity,
  flag,
  integer,
  json,
  oneOf,
  rank,
  ref,
  schemaData,
  serial,
  setOf,
  text,
  time,
} from './schema.ts';
import { META_COLUMNS } from './schema-data.ts';
import type { Schema } from './schema-types.ts';

const digest: Digest = {
  sha256: (...parts) => {
    const hash = createHash('sha256');
    for (const part of parts) hash.update(part);
    return hash.digest();
  },
  hmacSha256: () => new Uint8Array(32),
};

/** What `defineSchema` says against a schema, types aside. */
const refusal = (schema: Schema): string => {
  try {
    defineSchema(schema as never);
    return 'taken';
  } catch (cause) {
    return (cause as Error).message;
  }
};
const withField = (name: string, field: unknown): string => refusal({ note: entity({ [name]: field as never }) });

describe('defineSchema', () => {
  test('[SC2] gives plain data: no closure, nothing that JSON would change', () => {
    const schema = defineSchema({
      person: entity({ account: text(), joined: time({ optional: true }) }, { key: ['account'] }),
      issue: entity(
        {
          number: serial(),
          title: text({ max: 200, wire: 'headline' }),
          status: oneOf(['todo', 'done'], { otherwise: 'todo', onClash: 'last' }),
          assignee: ref('person', { optional: true, onDelete: 'clear' }),
          labels: setOf(text()),
          votes: counter(),
          rank: rank(),
          layout: json<{ a: number }>({ default: { a: 1 } }),
        },
        {
          index: [['status', 'arrival']],
          search: ['title'],
          editedWhileDeleted: 'ask',
          events: (e) => ({ closed: () => e.set({ status: 'done' }) }),
          rules: (r) => ({ 'done is assigned': r.when(r.is('status', 'done'), r.present('assignee')) }),
        },
      ),
      draft: entity({ body: text({ default: '' }) }, { local: true }),
    });
    const data = schemaData(schema);
    expect(JSON.parse(JSON.stringify(data))).toEqual(data);
    expect([schema.draft.local, schema.issue.local]).toEqual([true, false]);
    expect(data).toEqual({
      format: 1,
      entities: {
        person: { fields: { account: { kind: 'text' }, joined: { kind: 'time', optional: true } }, key: ['account'] },
        issue: {
          fields: {
            number: { kind: 'serial' },
            title: { kind: 'text', max: 200, wire: 'headline' },
            status: { kind: 'oneOf', values: ['todo', 'done'], otherwise: 'todo', onClash: 'last' },
            assignee: { kind: 'ref', to: 'person', optional: true, onDelete: 'clear' },
            labels: { kind: 'setOf', of: { kind: 'text' } },
            votes: { kind: 'counter' },
            rank: { kind: 'rank', onClash: 'last' },
            layout: { kind: 'json', default: { a: 1 } },
          },
          index: [['status', 'arrival']],
          search: ['title'],
          editedWhileDeleted: 'ask',
          rules: {
            'done is assigned': {
              rule: 'when',
              condition: { rule: 'is', field: 'status', values: ['done'] },
              must: { rule: 'present', fields: ['assignee'] },
            },
          },
        },
        draft: { fields: { body: { kind: 'text', default: '' } }, local: true },
      },
    });
  });

  test('[SC2] onClash of the whole schema is written into every field that can clash and does not say its own', () => {
    const fields = {
      title: text(),
      body: text({ onClash: 'ask' }),
      size: integer({ onClash: 'max' }),
      labels: setOf(text()),
      votes: counter(),
      number: serial(),
    };
    const given = { note: entity(fields) };
    const data = schemaData(defineSchema(given, { onClash: 'last' })).entities['note']?.fields;
    expect(data).toEqual({
      title: { kind: 'text', onClash: 'last' },
      body: { kind: 'text' },
      size: { kind: 'integer', onClash: 'max' },
      labels: { kind: 'setOf', of: { kind: 'text' } },
      votes: { kind: 'counter' },
      number: { kind: 'serial' },
    });
    // What was handed in is as it was.
    expect(given.note.fields.title.data).toEqual({ kind: 'text' });
  });

  test('[SC2] the fingerprint is the same for the same meaning, and another for another', () => {
    const named = (schema: Schema) => fingerprintOf(schemaData(schema), digest);
    const first = named(defineSchema({ a: entity({ x: text(), y: integer() }), b: entity({ z: flag() }) }));
    const other = defineSchema({
      b: entity({ z: flag() }, { search: [], index: [], local: false, editedWhileDeleted: 'keep', rules: () => ({}) }),
      a: entity({ y: integer({ onClash: 'ask', wire: 'y' }), x: text({}) }),
    });
    expect(named(other)).toBe(first);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(
      named(defineSchema({ a: entity({ x: text(), y: integer({ optional: true }) }), b: entity({ z: flag() }) })),
    ).not.toBe(first);
  });

  test('[SC2] the fingerprint of a schema never changes: devices in the field are named by it', () => {
    const schema = defineSchema({
      issue: entity({ title: text({ max: 200 }), votes: counter() }, { search: ['title'] }),
    });
    expect(fingerprintOf(schemaData(schema), digest)).toBe('d48fe65c97d064fd83661d4d2d206051');
  });

  test('[SC7] names are letters and digits, at most 63, distinct without regard to case', () => {
    expect(withField('a'.repeat(63), text())).toBe('taken');
    for (const name of ['', 'A', '1a', 'a_b', 'a-b', 'hf_a', 'é', 'a b', 'a'.repeat(64), 'constructor', 'prototype']) {
      expect(withField(name, text())).toMatch(`Schema, note.${name}: a name is`);
      expect(refusal({ [name]: entity({ a: text() }) })).toMatch(`Schema, ${name}: a name is`);
      expect(withField('a', text({ wire: name }))).toMatch(`Schema, note.a: wire "${name}": a name is`);
    }
    expect(refusal({ note: entity({ upTo: text(), upto: text() }) })).toBe(
      'Schema, note.upto: two fields have this name, without regard to case',
    );
    expect(refusal({ note: entity({ upto: text(), upTo: text() }) })).toMatch('note.upTo: two fields have this name');
    expect(refusal({ note: entity({ a: text({ wire: 'B' as 'b' }), b: text() }) })).toMatch('wire "B"');
    expect(refusal({ note: entity({ a: text({ wire: 'bC' }), bc: text() }) })).toBe(
      'Schema, note: two fields have the wire name bc, without regard to case',
    );
    expect(refusal({ readMark: entity({}), readmark: entity({}) })).toBe(
      'Schema, readmark: two entities have this name, without regard to case',
    );
    // Names that every object has are names like others.
    expect(refusal({ toString: entity({ valueOf: text(), hasOwnProperty: text() }) })).toBe('taken');
    // A name that another field has on the wire is free in code.
    expect(refusal({ note: entity({ headline: text({ wire: 'title' }), title: text({ wire: 'title2' }) }) })).toBe(
      'taken',
    );
  });

  test('[SC8] what every row carries is no field, in code or on the wire, in any case', () => {
    for (const name of META_COLUMNS) {
      expect(withField(name, text())).toBe(`Schema, note.${name}: every row has this column already`);
      expect(withField('a', text({ wire: name }))).toBe(
        `Schema, note.a: wire "${name}": every row has this column already`,
      );
    }
    expect(withField('createdat', text())).toMatch('every row has this column already');
  });

  test('[SC9] a ref points to an entity that others get too', () => {
    expect(withField('a', ref('nobody'))).toBe('Schema, note.a: a ref points to nobody, which is not in the schema');
    expect(withField('a', setOf(ref('nobody')))).toMatch('a ref points to nobody');
    expect(withField('a', ref('toString'))).toMatch('a ref points to toString');
    const draft = entity({ a: text() }, { local: true });
    expect(refusal({ note: entity({ a: ref('draft') }), draft })).toBe(
      'Schema, note.a: a ref points to draft, which is local: others never get it',
    );
    expect(refusal({ note: entity({ a: ref('draft') }, { local: true }), draft })).toBe('taken');
    expect(withField('a', ref('note', { onDelete: 'clear' }))).toMatch('onDelete "clear" needs optional');
  });

  test('[SC10] only the ledger numbers, and it never sees a local entity', () => {
    expect(refusal({ note: entity({ number: serial() }, { local: true }) })).toMatch('the ledger cannot number it');
  });

  test('[SC5] a default fits its field, since it is written by create', () => {
    expect(withField('a', text({ default: 'long', max: 3 }))).toMatch('note.a: the default does not fit: at most 3');
    expect(withField('a', integer({ default: 0.5 }))).toMatch('the default does not fit: a whole number');
    expect(withField('a', time({ default: '2026-02-30T00:00:00.000Z' }))).toMatch('the default does not fit');
    expect(withField('a', text({ default: 'a\u0000b' }))).toMatch('the default does not fit');
    expect(withField('a', json({ default: null }))).toMatch('the default does not fit');
    expect(withField('a', oneOf(['x'], { otherwise: 'x', default: 'y' as 'x' }))).toMatch('the default does not fit');
    expect(withField('a', text({ default: 'x', optional: true }))).toMatch('optional or with a default, not both');
  });

  test('[SC5] oneOf says what it shows for a value that it does not know', () => {
    expect(withField('a', oneOf([], { otherwise: 'x' as never }))).toMatch('oneOf needs values');
    expect(withField('a', oneOf(['x'], { otherwise: 'y' as never }))).toMatch('otherwise is one of the values');
    expect(withField('a', oneOf(['x', 'x'], { otherwise: 'x' }))).toMatch('stands there twice');
    expect(withField('a', oneOf(['x', '\ud800'], { otherwise: 'x' }))).toMatch('not well-formed');
  });

  test('[SC2] a set holds what has an order and no options of its own', () => {
    for (const of of [json(), setOf(text()), counter(), rank(), serial()])
      expect(withField('a', setOf(of))).toMatch('a set holds text, integers');
    expect(withField('a', setOf(text({ optional: true })))).toMatch('has no optional');
    expect(withField('a', setOf(text({ wire: 'b' })))).toMatch('has no optional');
    expect(withField('a', setOf(oneOf(['x'], { otherwise: 'x' })))).toBe('taken');
    expect(withField('a', setOf(oneOf(['x'], { otherwise: 'y' as never })))).toMatch('otherwise is one of the values');
  });

  test('[SC2] key, index and search name fields that can serve there', () => {
    const fields = { a: text(), b: text({ optional: true }), c: flag(), d: text({ default: '' }), e: integer() };
    const options = (o: object): string => refusal({ note: entity(fields, o as never) });
    expect(options({ key: ['a', 'e'] })).toBe('taken');
    expect(options({ key: [] })).toMatch('a key names at least one field');
    expect(options({ key: ['x'] })).toBe('Schema, note: the key names x, which is not there');
    expect(options({ key: ['a', 'a'] })).toMatch('the key names a twice');
    for (const name of ['b', 'c', 'd']) expect(options({ key: [name] })).toMatch(`note.${name}: a key is of required`);
    expect(options({ index: [['a', 'arrival'], ['sync']] })).toBe('taken');
    expect(options({ index: [['a', 'x']] })).toMatch('an index names x');
    expect(options({ index: [[]] })).toMatch('an index names at least one column');
    expect(options({ index: [['a', 'a']] })).toMatch('an index names a twice');
    expect(options({ search: ['a', 'b'] })).toBe('taken');
    expect(options({ search: ['x'] })).toMatch('search names x');
    expect(options({ search: ['c'] })).toMatch('note.c: search is over text');
    for (const name of ['rank', 'rowId'])
      expect(refusal({ note: entity({ [name]: text() }, { search: [name] }) })).toMatch('the full-text index has');
  });

  test('[MG1] a rule has a sentence, and reads fields that are there for values they can have', () => {
    const rule = (rules: object, fields: object = { a: text(), n: integer(), s: setOf(text()) }): string =>
      refusal({ note: entity(fields as never, { rules: () => rules as never }) });
    const of = (data: object) => ({ 'it holds': { rule: data } });
    expect(rule(of({ rule: 'is', field: 'a', values: ['x'] }))).toBe('taken');
    expect(rule({ ' ': { rule: { rule: 'present', fields: ['a'] } } })).toMatch('needs a sentence');
    expect(rule(of({ rule: 'not', of: { rule: 'is', field: 'x', values: [1] } }))).toMatch(
      'reads x, which is not there',
    );
    expect(rule(of({ rule: 'all', of: [{ rule: 'is', field: 'n', values: ['1'] }] }))).toMatch(
      'n is compared with "1", but a whole number',
    );
    expect(rule(of({ rule: 'is', field: 's', values: [['b', 'a']] }))).toMatch('not a set');
    expect(rule(of({ rule: 'is', field: 'a', values: [] }))).toMatch('compared with no value');
    expect(rule(of({ rule: 'any', of: [{ rule: 'present', fields: [] }] }))).toMatch('present names no field');
  });

  test('[SC3] verbs are names of their own', () => {
    const verb = (name: string, type = 'note'): string =>
      refusal({ [type]: entity({ a: text() }, { events: (e) => ({ [name]: () => e.set({}) }) }) });
    expect(verb('closed')).toBe('taken');
    for (const name of ['create', 'put', 'update', 'delete', 'restore', 'updated', 'created'])
      expect(verb(name)).toMatch(`note.${name}: every entity has an event of this name already`);
    expect(verb('Closed')).toMatch('note.Closed: a name is');
    expect(verb('c'.repeat(63), 'n'.repeat(63))).toBe('taken');
  });
});
