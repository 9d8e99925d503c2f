import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeRecordedChanges, decodeSeenValues } from './decode-recorded.ts';
import type { Json } from './json.ts';
import { HARD_VALUES, jsonValue } from './json-values.fixture.ts';
import { recordCommit } from './record.ts';
import type { RecordedChange } from './recorded-change.ts';
import {
  counter,
  defineSchema,
  entity,
  integer,
  json,
  oneOf,
  rank,
  schemaData,
  serial,
  setOf,
  text,
} from './schema.ts';
import type { EntityData } from './schema-data.ts';
import { changeIssues } from './validate-change.ts';

const schema = defineSchema({
  note: entity({
    title: text({ max: 3 }),
    body: text({ default: '' }),
    size: integer({ optional: true }),
    status: oneOf(['a', 'b'], { otherwise: 'a', optional: true }),
    labels: setOf(text()),
    votes: counter(),
    rank: rank(),
    number: serial(),
    extra: json<Json>({ optional: true }),
  }),
  mark: entity({ who: text(), upTo: integer(), hits: counter(), tags: setOf(text()) }, { key: ['who'] }),
});
const data = schemaData(schema);
const about = { entity: 'note', id: 'n1' } as const;
const issuesOf = (change: RecordedChange): readonly string[] =>
  changeIssues(change.entity, data.entities[change.entity] as EntityData, change).map(
    ({ path, code }) => `${path.join('.')}: ${code}`,
  );

describe('a recorded change', () => {
  test('[CM3] is checked part by part, one issue per field', () => {
    expect(
      issuesOf({
        ...about,
        do: 'update',
        set: { title: 'long', votes: 3, labels: [1], other: 1, number: 1, rank: 'U' },
        unset: ['body', 'size'],
        inc: { extra: 1 },
        add: { status: ['a'] },
      }),
    ).toEqual([
      'note.title: too-long',
      'note.votes: not-settable',
      'note.labels.0: wrong-type',
      'note.other: unknown-field',
      'note.number: not-settable',
      'note.extra: not-settable',
      'note.status: not-settable',
    ]);
    expect(issuesOf({ ...about, do: 'update', unset: ['title', 'votes', 'number', 'toString'] })).toEqual([
      'note.title: not-optional',
      'note.votes: not-optional',
      'note.number: not-settable',
      'note.toString: unknown-field',
    ]);
    expect(
      issuesOf({ ...about, do: 'update', inc: { votes: 0.5 }, add: { labels: [1] }, place: { rank: { at: 'top' } } }),
    ).toEqual(['note.votes: wrong-type', 'note.labels.0: wrong-type', 'note.rank: wrong-type']);
    expect(issuesOf({ ...about, do: 'update', place: { title: { at: 'end' } } })).toEqual(['note.title: not-settable']);
  });

  test('[CM3] touches a field in one way; a set may gain and lose', () => {
    expect(issuesOf({ ...about, do: 'update', add: { labels: ['a'] }, remove: { labels: ['b'] } })).toEqual([]);
    expect(issuesOf({ ...about, do: 'update', set: { labels: ['a'] }, add: { labels: ['b'] } })).toEqual([
      'note.labels: not-settable',
    ]);
    expect(issuesOf({ ...about, do: 'update', set: { labels: ['a'] }, remove: { labels: ['b'] } })).toEqual([
      'note.labels: not-settable',
    ]);
    expect(issuesOf({ ...about, do: 'update', set: { size: 1 }, unset: ['size'] })).toEqual([
      'note.size: not-settable',
    ]);
  });

  test('[CM3] creates with what is required; puts with its key, and never over a count', () => {
    expect(issuesOf({ ...about, do: 'create', fields: { votes: 3 } })).toEqual(['note.title: missing']);
    expect(issuesOf({ ...about, do: 'create', fields: { title: 'a', votes: 3 } })).toEqual([]);
    const mark = { do: 'put', entity: 'mark', id: 'm1' } as const;
    expect(issuesOf({ ...mark, fields: { upTo: 1 } })).toEqual(['mark.who: missing']);
    expect(issuesOf({ ...mark, fields: { who: 'ana' } })).toEqual([]);
    expect(issuesOf({ ...mark, fields: { who: 'ana', hits: 1 } })).toEqual(['mark.hits: not-settable']);
    expect(issuesOf({ ...mark, do: 'update', set: { who: 'ben' } })).toEqual(['mark.who: not-settable']);
    expect(issuesOf({ ...about, do: 'delete' })).toEqual([]);
    expect(issuesOf({ ...about, do: 'restore', fields: { votes: 1, number: 7, size: 'x' } })).toEqual([
      'note.size: wrong-type',
    ]);
  });

  test('[CM3] whatever the recorder takes, the host takes, over any border', () => {
    const value = fc.oneof(
      jsonValue,
      fc.constantFrom<Json[]>(null, { by: 1 }, { by: -2 }, ['a', 'b'], { add: ['a'], remove: ['b'] }, { at: 'end' }),
      fc.constantFrom<Json[]>('a', 1, { after: { id: 'n2', rank: 'U' }, before: null }),
    );
    const patch = (type: string) =>
      fc.dictionary(fc.constantFrom(...Object.keys(data.entities[type]?.fields ?? {})), value, {
        noNullPrototype: true,
      });
    let taken = 0;
    fc.assert(
      fc.property(patch('note'), patch('note'), patch('mark'), patch('mark'), (create, update, put, over) => {
        const builds: ((tx: any) => unknown)[] = [
          (tx) => tx.note.create({ title: 'a', ...create }),
          (tx) => tx.note.update('n1', update),
          (tx) => tx.mark.put({ who: 'ana', upTo: 1, ...put }),
          (tx) => tx.mark.update({ id: 'm1', tags: ['a'], upTo: 1 }, over),
        ];
        for (const build of builds) {
          const ids = { newId: () => 'n1', keyedId: () => 'k1' };
          const outcome = recordCommit(schema, data, ids, build);
          if (!outcome.ok) continue;
          taken += 1;
          const { changes, seen } = outcome.value;
          expect(changes.flatMap(issuesOf)).toEqual([]);
          expect(decodeRecordedChanges(JSON.parse(JSON.stringify(changes)))).toEqual({ ok: true, value: changes });
          expect(decodeSeenValues(JSON.parse(JSON.stringify(seen)))).toEqual({ ok: true, value: seen });
        }
      }),
      { numRuns: 2_000 },
    );
    expect(taken).toBeGreaterThan(500);
  });

  test('[CM3] of another form is refused with its path, and nothing throws', () => {
    const reasonOf = (json: unknown): string => {
      const outcome = decodeRecordedChanges(json);
      return outcome.ok ? 'read' : `${outcome.fault.facts?.['path']}: ${outcome.fault.facts?.['reason']}`;
    };
    expect(reasonOf([{ ...about, do: 'delete' }])).toBe('read');
    expect(reasonOf([{ ...about, do: 'delete', set: {} }])).toBe('[0].set: this key is not allowed here');
    expect(reasonOf([{ ...about, do: 'erase' }])).toMatch('[0].do: one of create');
    expect(reasonOf([{ ...about, do: 'update', set: { a: null } }])).toMatch('[0].set.a: null is not a value');
    expect(reasonOf([{ ...about, do: 'update', inc: { a: 0.5 } }])).toMatch('[0].inc.a: a whole number');
    expect(reasonOf([{ ...about, id: 'a b', do: 'delete' }])).toMatch('[0].id: an id');
    expect(reasonOf([{ do: 'create', ...about, fields: { a: new Date(0) } }])).toMatch('a Date is not JSON');
    for (const value of [...HARD_VALUES.filter((one) => !Array.isArray(one) || one.length > 0), undefined, () => 0])
      expect([value, decodeRecordedChanges(value).ok, decodeSeenValues(value).ok]).toEqual([value, false, false]);
    expect(decodeSeenValues([{ entity: 'note', id: 'n1', field: 'title', value: null }]).ok).toBe(true);
    expect(decodeSeenValues([{ entity: 'note', id: 'n1', field: 'title' }]).ok).toBe(false);
  });
});
