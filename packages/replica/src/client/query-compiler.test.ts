import {
  counter,
  type Database,
  defineSchema,
  entity,
  flag,
  integer,
  json,
  ref,
  schemaData,
  setOf,
  text,
} from '@holdfast/core';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodePlatform } from '../adapters/node/platform.ts';
import { type OpenedState, openReplicaState } from '../engine/state.ts';
import { createObserve } from '../host/observe.ts';
import { createQueryRunner, type QueryRunner } from '../host/query-runner.ts';
import { has, many, matches, one } from './helpers.ts';
import { createQueryCompiler, type Query } from './query-compiler.ts';
import { rowMaker } from './rows.ts';

const schema = defineSchema({
  issue: entity(
    {
      title: text(),
      body: text({ wire: 'text', default: '' }),
      done: flag({ default: false }),
      labels: setOf(text()),
      votes: counter(),
      extra: json<{ deep: boolean }>(),
      size: integer({ optional: true }),
    },
    { search: ['title', 'body'] },
  ),
  comment: entity({ issue: ref('issue'), body: text(), seen: flag({ default: false }), tags: setOf(text()) }),
  person: entity({ name: text(), active: flag({ optional: true }) }),
});
type S = typeof schema;

let state: OpenedState;
let database: Database;
let runner: QueryRunner;
const compile = createQueryCompiler<S>(schemaData(schema));
const run = <O>(query: Query<S, O>): O[] => {
  const { sql: text, parameters } = compile(query);
  const prepared = runner.prepare(text);
  return prepared.run(parameters).map(rowMaker<O>(prepared.columns));
};

beforeEach(() => {
  database = openNodeDatabase({ file: ':memory:' });
  state = openReplicaState({
    database,
    platform: nodePlatform,
    schema: schemaData(schema),
    ledger: 'l',
    account: 'ana',
    workspace: 'w',
    hostInstance: '0'.repeat(32),
  });
  database.exec(`UPDATE main.hf_coordinator SET generation = 1, host_instance = '${'0'.repeat(32)}'`);
  state.takeOver(1);
  runner = createQueryRunner({
    database,
    digest: nodePlatform.digest,
    model: (type) => state.store.tables.get(type)?.model ?? null,
    observe: createObserve(nodePlatform.clock, undefined),
  });
  const outcome = state.commit({
    actionId: 'a1',
    log: 'main',
    seen: [],
    reads: [],
    changes: [
      {
        do: 'create',
        entity: 'issue',
        id: 'i1',
        fields: {
          title: 'Fix the door',
          body: 'it squeaks',
          done: true,
          labels: ['bug', 'ui'],
          votes: 3,
          extra: { deep: true },
        },
      },
      {
        do: 'create',
        entity: 'issue',
        id: 'i2',
        fields: { title: 'Paint', body: '', done: false, labels: [], extra: [1] as never },
      },
      { do: 'create', entity: 'comment', id: 'c1', fields: { issue: 'i1', body: 'first', seen: true, tags: ['x'] } },
      { do: 'create', entity: 'comment', id: 'c2', fields: { issue: 'i1', body: 'second', seen: false, tags: [] } },
      { do: 'create', entity: 'person', id: 'p1', fields: { name: 'Ana' } },
    ],
  });
  expect(outcome.ok).toBe(true);
});
afterEach(() => database.close());

test('[SC3 LQ4] values come back as the schema types them', () => {
  const [row] = run((db) => db.selectFrom('issue').selectAll().where('id', '=', 'i1'));
  expect(row).toMatchObject({
    id: 'i1',
    title: 'Fix the door',
    body: 'it squeaks',
    done: true,
    labels: ['bug', 'ui'],
    votes: 3,
    extra: { deep: true },
    size: null,
    log: 'main',
    createdBy: 'ana',
    sync: 'pending',
  });
});

test('[SC3] values keep their types through aliases, joins, nested selects and common tables', () => {
  const rows = run((db) =>
    db
      .with('picked', (one) =>
        one.selectFrom('issue as i').select(['i.id as key', 'i.done as isDone', 'i.labels as marks']),
      )
      .selectFrom(db.selectFrom('comment').select(['issue', 'seen as wasSeen']).as('c'))
      .innerJoin('picked', 'picked.key', 'c.issue')
      .select(['picked.isDone as finished', 'picked.marks', 'c.wasSeen'])
      .orderBy('c.wasSeen', 'desc'),
  );
  expect(rows).toEqual([
    { finished: true, marks: ['bug', 'ui'], wasSeen: true },
    { finished: true, marks: ['bug', 'ui'], wasSeen: false },
  ]);
});

test('[SC3] an expression is what SQLite makes of it', () => {
  expect(
    run((db) => db.selectFrom('issue').select((eb) => [eb.fn.countAll<number>().as('n'), eb.fn.max('done').as('m')])),
  ).toEqual([{ n: 2, m: 1 }]);
});

test('[SC3] many() gives rows inside a row, typed by the schema, in their order', () => {
  const rows = run((db) =>
    db
      .selectFrom('issue')
      .select((eb) => [
        'issue.id',
        many(
          eb
            .selectFrom('comment')
            .select(['comment.body', 'comment.seen', 'comment.tags as t', 'issue.done as parentDone'])
            .whereRef('comment.issue', '=', 'issue.id')
            .orderBy('comment.body', 'desc'),
        ).as('comments'),
      ])
      .orderBy('issue.id'),
  );
  expect(rows).toEqual([
    {
      id: 'i1',
      comments: [
        { body: 'second', seen: false, t: [], parentDone: true },
        { body: 'first', seen: true, t: ['x'], parentDone: true },
      ],
    },
    { id: 'i2', comments: [] },
  ]);
});

test('[SC3] one() gives a row or null, with every column if asked so', () => {
  const rows = run((db) =>
    db
      .selectFrom('issue')
      .select((eb) => [
        'issue.id',
        one(
          eb
            .selectFrom('comment')
            .selectAll('comment')
            .whereRef('comment.issue', '=', 'issue.id')
            .orderBy('comment.id')
            .limit(1),
        ).as('first'),
        one(eb.selectFrom('person').select(['person.name', 'person.active']).where('person.id', '=', 'p1')).as('who'),
      ])
      .orderBy('issue.id'),
  );
  expect(rows[0]?.first).toMatchObject({ id: 'c1', body: 'first', seen: true, tags: ['x'], issue: 'i1', log: 'main' });
  expect(rows[1]?.first).toBeNull();
  expect(rows[0]?.who).toEqual({ name: 'Ana', active: null });
});

test('[SC3] rows inside rows inside rows, and rows that come through a nested select', () => {
  const rows = run((db) =>
    db.selectFrom('person').select((p) => [
      'person.name',
      many(
        p
          .selectFrom('issue')
          .select((i) => [
            'issue.done',
            many(
              i
                .selectFrom('comment')
                .select(['comment.seen'])
                .whereRef('comment.issue', '=', 'issue.id')
                .orderBy('comment.id'),
            ).as('comments'),
          ])
          .orderBy('issue.id'),
      ).as('issues'),
    ]),
  );
  expect(rows).toEqual([
    {
      name: 'Ana',
      issues: [
        { done: true, comments: [{ seen: true }, { seen: false }] },
        { done: false, comments: [] },
      ],
    },
  ]);
  const through = run((db) =>
    db
      .selectFrom(
        db
          .selectFrom('issue')
          .select((eb) => [
            'issue.id',
            many(
              eb
                .selectFrom('comment')
                .select('comment.seen')
                .whereRef('comment.issue', '=', 'issue.id')
                .orderBy('comment.id'),
            ).as('all'),
          ])
          .as('x'),
      )
      .select((eb) => [
        'x.all as renamed',
        many(eb.selectFrom('person').select((e) => [e.ref('x.all').as('again')])).as('deep'),
      ])
      .where('x.id', '=', 'i1'),
  );
  expect(through).toEqual([
    { renamed: [{ seen: true }, { seen: false }], deep: [{ again: [{ seen: true }, { seen: false }] }] },
  ]);
});

test('[SC3] a text that looks like rows stays a text', () => {
  state.commit({
    actionId: 'a2',
    log: 'main',
    seen: [],
    reads: [],
    changes: [{ do: 'create', entity: 'person', id: 'p2', fields: { name: '[{"seen":1}]' } }],
  });
  expect(run((db) => db.selectFrom('person').select((eb) => eb.fn.max('name').as('m')))).toEqual([
    { m: '[{"seen":1}]' },
  ]);
});

test('[SC10] matches() finds every word, the last as a beginning, and takes anything that people type', () => {
  const found = (words: string) =>
    run((db) => db.selectFrom('issue').select('id').where(matches('issue', words)).orderBy('id')).map(({ id }) => id);
  expect(found('door fix')).toEqual(['i1']);
  expect(found('squea')).toEqual(['i1']);
  expect(found('door paint')).toEqual([]);
  expect(found('"door" AND -*')).toEqual([]);
  expect(found('door" OR (')).toEqual([]);
  expect(found("it's")).toEqual(['i1']);
  expect(found('  ')).toEqual(['i1', 'i2']);
  expect(run((db) => db.selectFrom('issue as i').select('i.id').where(matches('issue as i', 'door')))).toEqual([
    { id: 'i1' },
  ]);
  const { reads } = runner.prepare(
    compile((db) => db.selectFrom('issue').select('id').where(matches('issue', 'x'))).sql,
  );
  expect([...(reads.get('issue') ?? [])]).toEqual(expect.arrayContaining(['title', 'text']));
});

test('[SC3] has() looks into a set, and flags and instants may be compared', () => {
  expect(run((db) => db.selectFrom('issue').select('id').where(has('issue.labels', 'bug')))).toEqual([{ id: 'i1' }]);
  expect(run((db) => db.selectFrom('issue').select('id').where('done', '=', false))).toEqual([{ id: 'i2' }]);
  expect(
    run((db) =>
      db
        .selectFrom('issue')
        .select('id')
        .where('createdAt', '<', new Date(0) as never),
    ),
  ).toEqual([]);
});

test('[LQ6] a query looks at the columns of the file, also where a field has another wire name', () => {
  const { reads } = runner.prepare(compile((db) => db.selectFrom('issue').select(['body', 'sync'])).sql);
  expect([...(reads.get('issue') ?? [])].sort()).toEqual(['_sync', 'text']);
});

test('[LQ5] a query that SQLite refuses or cannot run says so', () => {
  const code = (run: () => unknown) => {
    try {
      run();
      return 'fine';
    } catch (cause) {
      return (cause as { fault?: { code: string } }).fault?.code;
    }
  };
  expect(code(() => run((db) => db.selectFrom('nobody' as 'issue').selectAll()))).toBe('query-refused');
  expect(code(() => run((db) => db.selectFrom('issue').select(sql<number>`hf_no(1)`.as('x'))))).toBe('query-refused');
  // By its full name it would show the engine's columns.
  expect(code(() => run((db) => db.selectFrom('main.issue' as 'issue').selectAll()))).toBe('query-refused');
  expect(code(() => run((db) => db.withSchema('main').selectFrom('issue').select('id')))).toBe('query-refused');
  expect(code(() => run((db) => db.selectFrom('issue').select(sql<number>`json('{')`.as('x'))))).toBe('query-failed');
  expect(
    code(() =>
      run((db) =>
        db
          .selectFrom('issue')
          .selectAll()
          .where('id', '=', undefined as never),
      ),
    ),
  ).toBe('query-refused');
});
