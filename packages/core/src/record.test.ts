import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from './canonical.ts';
import { foldChange } from './fold.ts';
import type { Json, JsonObject } from './json.ts';
import { jsonValue } from './json-values.fixture.ts';
import { type Recorded, type RecorderIds, recordCommit, startRecording, type Tx } from './record.ts';
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
import { asSet } from './sets.ts';
import type { Issue } from './validate.ts';

const schema = defineSchema({
  person: entity(
    {
      account: text(),
      name: text({ default: 'Somebody' }),
      likes: counter(),
      tags: setOf(text()),
      rank: rank(),
      left: time({ optional: true }),
    },
    { key: ['account'] },
  ),
  issue: entity(
    {
      number: serial(),
      title: text({ max: 5 }),
      body: text({ default: '' }),
      status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo' }),
      assignee: ref('person', { optional: true }),
      labels: setOf(text()),
      votes: counter(),
      rank: rank(),
      size: integer({ optional: true }),
      urgent: flag({ optional: true }),
      closedAt: time({ optional: true }),
      extra: json<Json>({ optional: true }),
      times: setOf(time()),
      sizes: setOf(integer()),
    },
    {
      events: (e) => ({
        closed: (at: string) => e.set({ status: 'done', closedAt: at }),
        seen: () => e.set({}),
      }),
    },
  ),
});
const data = schemaData(schema);
type S = typeof schema;

const idsFrom = (): RecorderIds => {
  let made = 0;
  return {
    newId: () => {
      made += 1;
      return `new${made}`;
    },
    keyedId: (type, values) => `${type}:${canonical(values)}`,
  };
};
const record = <T>(build: (tx: Tx<S>) => T) => recordCommit(schema, data, idsFrom(), build);
const recorded = (build: (tx: Tx<S>) => unknown): Recorded => {
  const outcome = record(build);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.fault));
  return outcome.value;
};
/** As `field: code`, what was refused. */
const issuesOf = (build: (tx: any) => unknown): readonly string[] => {
  const outcome = record(build);
  if (outcome.ok) return [];
  expect(outcome.fault.code).toBe('invalid-change');
  const { issues } = outcome.fault.facts as { readonly issues: readonly Issue[] };
  return issues.map(({ path, code }) => `${path.join('.')}: ${code}`);
};

const row = {
  id: 'i1',
  number: 7,
  title: 'A',
  body: '',
  status: 'todo',
  assignee: null,
  labels: ['bug', 'ui'],
  votes: 3,
  rank: 'U',
  size: null,
  urgent: false,
  closedAt: null,
  extra: { a: 1, b: [2] },
} as const;

describe('create', () => {
  test('[SC5] writes every default, and leaves out what is only shown', () => {
    expect(recorded((tx) => tx.issue.create({ title: 'A' }))).toMatchObject({
      changes: [
        {
          do: 'create',
          entity: 'issue',
          id: 'new1',
          fields: { title: 'A', body: '', status: 'todo' },
          place: { rank: { at: 'end' } },
        },
      ],
      seen: [],
    });
  });

  test('[SC10] gives ids at once, takes one that the caller has, and hands places on with ids and drawn ranks', () => {
    const { changes, ...rest } = recorded((tx) => {
      const first = tx.issue.create({ title: 'A', id: 'mine', rank: { after: row, before: null } });
      return [first, tx.issue.create({ title: 'B', rank: { at: 'start' } })];
    });
    expect(rest).toMatchObject({ result: ['mine', 'new1'] });
    expect(changes).toMatchObject([
      { id: 'mine', place: { rank: { after: { id: 'i1', rank: 'U' }, before: null } } },
      { id: 'new1', place: { rank: { at: 'start' } } },
    ]);
  });

  test('[EV6] sets stand in their one order, counts begin with what is added', () => {
    const { changes } = recorded((tx) =>
      tx.issue.create({ title: 'A', labels: ['ui', 'bug', 'ui'], votes: { by: 2 }, extra: { b: 1, a: -0 } }),
    );
    expect(changes).toMatchObject([{ fields: { labels: ['bug', 'ui'], votes: 2, extra: { a: 0, b: 1 } } }]);
    expect(recorded((tx) => tx.issue.create({ title: 'A', labels: { add: ['b', 'a'] } })).changes).toMatchObject([
      { fields: { labels: ['a', 'b'] } },
    ]);
  });

  test('[JS4] null is unset: absent for what is optional, refused for what is not', () => {
    expect(recorded((tx) => tx.issue.create({ title: 'A', size: null })).changes[0]).not.toHaveProperty('fields.size');
    expect(issuesOf((tx) => tx.issue.create({ title: null, body: null, labels: null }))).toEqual([
      'issue.title: not-optional',
      'issue.body: not-optional',
      'issue.labels: not-optional',
    ]);
  });

  test('[CM3] refuses with one issue per field, in the order of the schema', () => {
    expect(
      issuesOf((tx) =>
        tx.issue.create({
          id: 'a b',
          number: 1,
          title: 'too long',
          status: 'dnoe',
          assignee: 3,
          labels: [1],
          votes: 3,
          rank: 'U',
          closedAt: 'yesterday',
          titel: 'A',
          toString: 1,
        }),
      ),
    ).toEqual([
      'issue.titel: unknown-field',
      'issue.toString: unknown-field',
      'issue.number: not-settable',
      'issue.title: too-long',
      'issue.status: wrong-type',
      'issue.assignee: wrong-type',
      'issue.labels.0: wrong-type',
      'issue.votes: not-settable',
      'issue.rank: wrong-type',
      'issue.closedAt: wrong-type',
      'issue.id: wrong-type',
    ]);
    expect(issuesOf((tx) => tx.issue.create({}))).toEqual(['issue.title: missing']);
    expect(issuesOf((tx) => tx.issue.create('A'))).toContain('issue: wrong-type');
    // Several changes: everything that is wrong, at once.
    expect(issuesOf((tx) => [tx.issue.create({}), tx.issue.update('i1', { size: 'x' })])).toEqual([
      'issue.title: missing',
      'issue.size: wrong-type',
    ]);
  });

  test('[CM4] what the caller does to its object afterwards is not part of the commit', () => {
    const extra = { a: 1 };
    const labels = ['x'];
    const { changes } = recorded((tx) => tx.issue.create({ title: 'A', extra, labels }));
    extra.a = 2;
    labels.push('y');
    expect(changes).toMatchObject([{ fields: { extra: { a: 1 }, labels: ['x'] } }]);
  });
});

describe('put', () => {
  test('[SC5] sets the key and what was given, never a default or a place over what may be there', () => {
    for (const how of ['put', 'create'] as const)
      expect(recorded((tx) => tx.person[how]({ account: 'ana' })).changes).toEqual([
        { do: 'put', entity: 'person', id: 'person:["ana"]', fields: { account: 'ana' } },
      ]);
  });

  test('[EV6] adds counts and elements by an update of the same commit, so that no other is lost', () => {
    const { changes } = recorded((tx) =>
      tx.person.put({ account: 'ana', likes: { by: 2 }, tags: { add: ['x'], remove: ['y'] }, left: null }),
    );
    expect(changes).toEqual([
      { do: 'put', entity: 'person', id: 'person:["ana"]', fields: { account: 'ana' } },
      {
        do: 'update',
        entity: 'person',
        id: 'person:["ana"]',
        unset: ['left'],
        inc: { likes: 2 },
        add: { tags: ['x'] },
        remove: { tags: ['y'] },
      },
    ]);
    expect(recorded((tx) => tx.person.put({ account: 'ana', tags: ['b', 'a'] })).changes).toMatchObject([
      { do: 'put', fields: { account: 'ana', tags: ['a', 'b'] } },
    ]);
  });

  test('[CM3] wants a natural key, all of it, and no other id', () => {
    expect(issuesOf((tx) => tx.issue.put({ title: 'A' }))).toEqual(['issue: not-settable']);
    expect(issuesOf((tx) => tx.person.put({}))).toEqual(['person.account: missing']);
    expect(issuesOf((tx) => tx.person.put({ account: 'ana', id: 'p1' }))).toEqual(['person.id: not-settable']);
    expect(issuesOf((tx) => tx.person.put({ account: 'ana', id: 'person:["ana"]' }))).toEqual([]);
    expect(issuesOf((tx) => tx.person.update('p1', { account: 'ben' }))).toEqual(['person.account: not-settable']);
    expect(issuesOf((tx) => tx.person.update({ id: 'p1', account: 'ana' }, { account: 'ana' }))).toEqual([]);
  });
});

describe('update', () => {
  test('[CM2] over a row drops what reads the same and says what was seen of the rest', () => {
    const patch = { title: 'B', body: '', size: 3, urgent: null, closedAt: null, extra: { b: [2], a: 1 } };
    expect(recorded((tx) => tx.issue.update(row, patch))).toMatchObject({
      changes: [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'B', size: 3 }, unset: ['urgent'] }],
      seen: [
        { entity: 'issue', id: 'i1', field: 'title', value: 'A' },
        { entity: 'issue', id: 'i1', field: 'size', value: null },
        { entity: 'issue', id: 'i1', field: 'urgent', value: false },
      ],
    });
    expect(recorded((tx) => tx.issue.update(row, { ...row } as never))).toMatchObject({ changes: [], seen: [] });
  });

  test('[CM2] over an id, or a field that was not selected, is on purpose', () => {
    expect(recorded((tx) => tx.issue.update('i1', { title: 'A', size: null }))).toMatchObject({
      changes: [{ set: { title: 'A' }, unset: ['size'] }],
      seen: [],
    });
    expect(recorded((tx) => tx.issue.update({ id: 'i1', title: 'A' }, { title: 'A', body: '' }))).toMatchObject({
      changes: [{ set: { body: '' } }],
      seen: [],
    });
  });

  test('[CM2] what merges by itself is not compared with what was seen', () => {
    const { changes, seen } = recorded((tx) =>
      tx.issue.update(row, { votes: { by: -1 }, labels: { add: ['x'], remove: ['bug'] }, rank: { at: 'end' } }),
    );
    expect(changes).toEqual([
      {
        do: 'update',
        entity: 'issue',
        id: 'i1',
        inc: { votes: -1 },
        add: { labels: ['x'] },
        remove: { labels: ['bug'] },
        place: { rank: { at: 'end' } },
      },
    ]);
    expect(seen).toEqual([]);
  });

  test('[CM2] adding nothing is no change', () => {
    const nothing = { votes: { by: 0 }, labels: { add: [], remove: [] } };
    expect(recorded((tx) => tx.issue.update('i1', nothing)).changes).toEqual([]);
    expect(recorded((tx) => tx.issue.update('i1', {})).changes).toEqual([]);
  });

  test('[CM2] a whole list over a row says what was added and removed; over an id it replaces the set', () => {
    expect(recorded((tx) => tx.issue.update(row, { labels: ['ui', 'x'] }))).toMatchObject({
      changes: [{ add: { labels: ['x'] }, remove: { labels: ['bug'] } }],
      seen: [],
    });
    expect(recorded((tx) => tx.issue.update(row, { labels: ['ui', 'bug'] })).changes).toEqual([]);
    expect(recorded((tx) => tx.issue.update('i1', { labels: ['ui', 'x'] })).changes).toMatchObject([
      { set: { labels: ['ui', 'x'] } },
    ]);
  });

  test('[CM2] a second change of one field is compared with the first, not with the row', () => {
    const { changes, seen } = recorded((tx) => {
      tx.issue.update(row, { title: 'B', labels: ['bug'] });
      tx.issue.update(row, { title: 'A', labels: ['bug', 'ui'] });
      tx.issue.update(row, { title: 'A' });
    });
    expect(changes).toMatchObject([
      { set: { title: 'B' }, remove: { labels: ['ui'] } },
      { set: { title: 'A' }, add: { labels: ['ui'] } },
    ]);
    expect(seen).toEqual([{ entity: 'issue', id: 'i1', field: 'title', value: 'A' }]);
  });

  test('[CM2] after elements were added unseen, a whole list replaces the set', () => {
    const { changes } = recorded((tx) => {
      tx.issue.update('i1', { labels: { add: ['x'] } });
      tx.issue.update(row, { labels: ['bug', 'ui'] });
    });
    expect(changes).toMatchObject([{ add: { labels: ['x'] } }, { set: { labels: ['bug', 'ui'] } }]);
  });

  test('[CM3] refuses what cannot be written', () => {
    expect(issuesOf((tx) => tx.issue.update('i1', { title: null, votes: null, labels: null, number: 3 }))).toEqual([
      'issue.title: not-optional',
      'issue.votes: not-optional',
      'issue.labels: not-optional',
      'issue.number: not-settable',
    ]);
    expect(issuesOf((tx) => tx.issue.update('i1', { votes: { by: 0.5 } }))).toEqual(['issue.votes: not-settable']);
    expect(issuesOf((tx) => tx.issue.update('i1', { votes: { by: 1, of: 2 } }))).toEqual(['issue.votes: not-settable']);
    expect(issuesOf((tx) => tx.issue.update('i1', { labels: { ad: ['x'] } }))).toEqual(['issue.labels: not-settable']);
    expect(issuesOf((tx) => tx.issue.update('i1', { labels: { add: ['x'], remove: ['x'] } }))).toEqual([
      'issue.labels: not-settable',
    ]);
    expect(issuesOf((tx) => tx.issue.update('i1', { rank: { after: {}, before: null } }))).toEqual([
      'issue.rank: wrong-type',
    ]);
    expect(issuesOf((tx) => tx.issue.update('i1', { labels: { add: [1] } }))).toEqual(['issue.labels.0: wrong-type']);
    expect(issuesOf((tx) => tx.issue.update('i1', { labels: { remove: ['a', 1] } }))).toEqual([
      'issue.labels.1: wrong-type',
    ]);
    for (const rank of [{ after: 'i2', before: null }, { after: null }, { at: 'top' }, {}, 'U', 1])
      expect([rank, issuesOf((tx) => tx.issue.update('i1', { rank }))]).toEqual([rank, ['issue.rank: wrong-type']]);
    expect(issuesOf((tx) => tx.issue.update('i1', { id: 'i2', createdBy: 'ana', titel: 'x' }))).toEqual([
      'issue.id: not-settable',
      'issue.createdBy: not-settable',
      'issue.titel: unknown-field',
    ]);
    for (const at of [undefined, null, 3, '', {}, { title: 'A' }, [], 'a b'])
      expect(issuesOf((tx) => tx.issue.update(at, { title: 'B' }))).toEqual(['issue.id: wrong-type']);
    expect(issuesOf((tx) => tx.issue.delete({}))).toEqual(['issue.id: wrong-type']);
  });

  test('[JS1] instants have one form: a Date, any zone, any precision; a date alone or a local time is refused', () => {
    const closedAt = (at: unknown): unknown =>
      issuesOf((tx) => tx.issue.update('i1', { closedAt: at })).length > 0
        ? 'refused'
        : (recorded((tx) => tx.issue.update('i1', { closedAt: at as string })).changes[0] as { set: JsonObject }).set[
            'closedAt'
          ];
    expect(closedAt(new Date(Date.UTC(2026, 10, 30)))).toBe('2026-11-30T00:00:00.000Z');
    expect(closedAt('2026-11-30T00:00Z')).toBe('2026-11-30T00:00:00.000Z');
    expect(closedAt('2026-11-30T02:00:00.123456+02:00')).toBe('2026-11-30T00:00:00.123Z');
    for (const odd of ['2026-11-30', '2026-11-30T00:00:00', '2026-02-30T00:00:00Z', '2026-13-01T00:00Z', 0, 'now'])
      expect([odd, closedAt(odd)]).toEqual([odd, 'refused']);
    expect(closedAt(new Date(Number.NaN))).toBe('refused');
    // In a set as well, where two forms of one instant are one element.
    const { changes } = recorded((tx) =>
      tx.issue.update('i1', { times: ['2026-11-30T00:00Z', '2026-11-30T01:00:00.000+01:00'], sizes: [-0, 0, 1] }),
    );
    expect(changes).toEqual([
      { do: 'update', entity: 'issue', id: 'i1', set: { times: ['2026-11-30T00:00:00.000Z'], sizes: [0, 1] } },
    ]);
    expect(recorded((tx) => tx.issue.update('i1', { size: -0 })).changes).toEqual([
      { do: 'update', entity: 'issue', id: 'i1', set: { size: 0 } },
    ]);
    expect(closedAt(new Date(8.64e15))).toBe('refused');
    expect(
      recorded((tx) =>
        tx.issue.update({ ...row, closedAt: '2026-11-30T00:00:00.000Z' }, { closedAt: new Date('2026-11-30') }),
      ).changes,
    ).toEqual([]);
  });
});

describe('verbs and the rest', () => {
  test('[CM4] a verb is an update with a name, also when its fields read the same', () => {
    expect(recorded((tx) => tx.issue.closed(row, '2026-11-30T00:00:00Z'))).toMatchObject({
      changes: [{ do: 'update', verb: 'closed', set: { status: 'done', closedAt: '2026-11-30T00:00:00.000Z' } }],
      seen: [
        { field: 'status', value: 'todo' },
        { field: 'closedAt', value: null },
      ],
    });
    expect(recorded((tx) => tx.issue.seen('i1')).changes).toEqual([
      { do: 'update', entity: 'issue', id: 'i1', verb: 'seen' },
    ]);
  });

  test('[CM4] deletes and restores by id or row', () => {
    const { changes } = recorded((tx) => {
      tx.issue.delete(row);
      tx.issue.delete('i2');
      tx.issue.restore('i1');
    });
    expect(changes).toEqual([
      { do: 'delete', entity: 'issue', id: 'i1' },
      { do: 'delete', entity: 'issue', id: 'i2' },
      { do: 'restore', entity: 'issue', id: 'i1' },
    ]);
  });

  test('[CM4] an async callback is refused, and what it does later fails without anybody hearing of it', async () => {
    let late: unknown;
    const outcome = record(async (tx) => {
      tx.issue.delete('i1');
      await Promise.resolve();
      try {
        tx.issue.delete('i2');
      } catch (cause) {
        late = cause;
        throw cause;
      }
    });
    expect(outcome).toEqual({ ok: false, fault: { code: 'async-callback' } });
    // vitest fails a run with an unhandled rejection.
    await new Promise((resolve) => setImmediate(resolve));
    expect(late).toBeInstanceOf(TypeError);
  });

  test('[CM4] a transaction that was kept takes nothing after its callback, however that ended', () => {
    const kept: Tx<S>[] = [];
    const recordedOne = recorded((tx) => kept.push(tx));
    expect(() =>
      record((tx) => {
        kept.push(tx);
        throw new Error('mine');
      }),
    ).toThrow('mine');
    for (const tx of kept) {
      expect(() => tx.issue.delete('i1')).toThrow('This commit is over');
      expect(() => tx.issue.create({ title: 'A' })).toThrow('This commit is over');
      expect(() => tx.issue.seen('i1')).toThrow('This commit is over');
    }
    expect(recordedOne.changes).toEqual([]);
  });

  test('[CM4] a recording can stay open over awaits, for the callback of transact', async () => {
    const { tx, end } = startRecording(schema, data, idsFrom());
    tx.issue.delete('i1');
    await Promise.resolve();
    tx.issue.delete('i2');
    expect(end()).toMatchObject({ ok: true, value: { changes: [{ id: 'i1' }, { id: 'i2' }] } });
    expect(() => tx.issue.delete('i3')).toThrow('This commit is over');
  });

  test('[SC4] a type that was added at run time is recorded like any other', () => {
    const wider = { ...data, entities: { ...data.entities, tag: { fields: { name: { kind: 'text' as const } } } } };
    const outcome = recordCommit(schema, wider, idsFrom(), (tx) => (tx as any).tag.create({ name: 'x' }));
    expect(outcome).toMatchObject({ ok: true, value: { changes: [{ entity: 'tag', fields: { name: 'x' } }] } });
  });
});

describe('laws', () => {
  const value = fc.oneof(
    jsonValue,
    fc.constant(null),
    fc.constantFrom({ by: 1 }, { add: ['x'] }, { at: 'end' }, ['bug']),
  );
  const patch = fc.dictionary(
    fc.constantFrom(...Object.keys(data.entities['issue']?.fields ?? {}), 'id', 'other'),
    value,
    {
      noNullPrototype: true,
    },
  );

  test('[CM3] any patch is recorded as JSON of the profile, or refused with at least one issue', () => {
    fc.assert(
      fc.property(patch, fc.boolean(), (given, overRow) => {
        const outcome = record((tx) => tx.issue.update(overRow ? row : 'i1', given as never));
        if (!outcome.ok) return void expect(outcome.fault.facts?.['issues']).not.toEqual([]);
        const { changes, seen } = outcome.value;
        expect(JSON.parse(canonical(changes as unknown as Json))).toEqual(changes);
        expect(JSON.parse(canonical(seen as unknown as Json))).toEqual(seen);
      }),
      { numRuns: 3_000 },
    );
  });

  test('[CM2] what is recorded, folded over the row that was seen, gives what the author wanted', () => {
    const seenFields: JsonObject = Object.fromEntries(
      Object.entries(row).filter(([name, one]) => one !== null && !['id', 'number', 'rank'].includes(name)),
    ) as JsonObject;
    const wanted = fc.record(
      {
        title: fc.constantFrom('A', 'B', 'C'),
        body: fc.constantFrom('', 'x'),
        size: fc.constantFrom(null, 0, 1),
        urgent: fc.constantFrom(null, true, false),
        labels: fc.subarray(['bug', 'ui', 'x', 'y']),
        extra: fc.constantFrom<Json[]>(null, { b: [2], a: 1 }, []),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(wanted, { minLength: 1, maxLength: 4 }), (patches) => {
        const { changes } = recorded((tx) => {
          for (const one of patches) tx.issue.update(row, one as never);
        });
        let fields: JsonObject = seenFields;
        for (const { do: _, entity: __, id: ___, ...change } of changes as readonly any[]) {
          const folded = foldChange(fields, { op: 'update', ...change });
          if (!folded.ok) throw new Error(JSON.stringify(folded.fault));
          fields = folded.value as JsonObject;
        }
        const expected: Record<string, Json> = { ...seenFields };
        for (const one of patches)
          for (const [name, to] of Object.entries(one))
            if (to === null) delete expected[name];
            else expected[name] = (name === 'labels' ? asSet(to as Json[]) : to) as Json;
        expect(fields).toEqual(expected);
      }),
      { numRuns: 3_000 },
    );
  });
});
