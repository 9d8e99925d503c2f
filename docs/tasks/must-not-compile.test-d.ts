/**
 * Programs that must not compile, and next to them what must. Checked by `tsc`; never run. The type of each query result
 * is stated, so that a type that becomes `any` is noticed.
 */
import { defineSchema, entity, type Id, type Row, ref, text } from '@holdfast/core';
import {
  createClient,
  type HoldfastError,
  has,
  isHoldfastError,
  type Live,
  many,
  matches,
  one,
  type Replica,
} from '@holdfast/replica';
import { type AppSchema, schema } from './schema.ts';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Equal<A, B>): void => undefined;

declare const replica: Replica<AppSchema>;
declare const issue: Row<AppSchema, 'issue'>;
declare const personId: Row<AppSchema, 'person'>['id'];
declare const commentId: Id<'comment'>;

// ── commits ─────────────────────────────────────────────────────────────────────────────────────────────────────────

replica.commit((tx) => {
  tx.issue.closed(issue, '2026-11-30T00:00:00.000Z');
  tx.issue.update(issue, { votes: { by: 1 }, labels: { add: ['bug'] }, closedAt: null, assignee: personId });
  tx.issue.update(issue.id, { closedAt: new Date(), rank: { after: issue, before: null } });
  tx.readMark.put({ person: personId, channel: 'general', upTo: 3 });
  // @ts-expect-error a status that does not exist
  tx.issue.update(issue.id, { status: 'dnoe' });
  // @ts-expect-error a comment id where a person id is wanted
  tx.issue.update(issue.id, { assignee: commentId });
  // @ts-expect-error an issue id where a person id is wanted
  tx.issue.update(issue.id, { assignee: issue.id });
  // @ts-expect-error a counter is not set
  tx.issue.update(issue.id, { votes: 3 });
  // @ts-expect-error assigned by the ledger
  tx.issue.update(issue.id, { number: 3 });
  // @ts-expect-error required field missing
  tx.issue.create({ title: 'no project' });
  // @ts-expect-error title is not optional
  tx.issue.update(issue, { title: null });
  // @ts-expect-error no such entity
  tx.isue.delete(issue.id);
  // @ts-expect-error no such verb
  tx.issue.reclosed(issue);
  // @ts-expect-error the verb takes an instant
  tx.issue.closed(issue, 3);
  // @ts-expect-error a row of another entity
  tx.comment.update(issue, { body: 'x' });
});

// @ts-expect-error the callback is async
replica.commit(async (tx) => {
  tx.issue.delete(issue);
});
// @ts-expect-error the callback returns a promise
replica.commit((tx) => Promise.resolve(tx.issue.create({ project: 'p', title: 'x', status: 'todo' })));

const created = replica.commit((tx) => tx.issue.create({ project: 'p', title: 'x', status: 'todo' }));
created.then((id) => same<typeof id, Id<'issue'>>(true));
created.ordered().then(({ version }) => same<typeof version, number>(true));
// @ts-expect-error a list too large for one commit needs a label
replica.commitAll([1], (tx, at) => void tx.project.create({ name: `${at}` }), {});

// ── queries ─────────────────────────────────────────────────────────────────────────────────────────────────────────

// @ts-expect-error no writes through the query builder
replica.query((db) => db.deleteFrom('issue'));
// @ts-expect-error no writes through the query builder
replica.query((db) => db.updateTable('issue'));
// @ts-expect-error no writes through the query builder
replica.live((db) => db.insertInto('issue'));
// @ts-expect-error no such table
replica.query((db) => db.selectFrom('isue').selectAll());
// @ts-expect-error no such column
replica.query((db) => db.selectFrom('issue').select('titel'));
// @ts-expect-error a flag is no text
replica.query((db) => db.selectFrom('todo').selectAll().where('done', '=', 'yes'));

replica
  .query((db) => db.selectFrom('issue').selectAll())
  .then(([row]) => {
    const whole: Row<AppSchema, 'issue'> | undefined = row;
    if (whole === undefined || row === undefined) return;
    same<typeof row.status, 'backlog' | 'todo' | 'doing' | 'done'>(true);
    same<typeof row.assignee, Id<'person'> | null>(true);
    same<typeof row.number, number | null>(true);
    same<typeof row.sync, 'synced' | 'pending' | 'attention'>(true);
  });
replica
  .first((db) => db.selectFrom('todo').select(['done', 'title as name']))
  .then((row) => same<typeof row, { done: boolean; name: string } | undefined>(true));

const withComments = replica.live((db) =>
  db
    .selectFrom('issue')
    .select((eb) => [
      'issue.labels',
      many(
        eb.selectFrom('comment').select(['comment.id', 'comment.body']).whereRef('comment.issue', '=', 'issue.id'),
      ).as('comments'),
      one(eb.selectFrom('person').select('person.name').whereRef('person.id', '=', 'issue.assignee')).as('who'),
    ]),
);
same<
  typeof withComments,
  Live<{
    labels: readonly string[];
    comments: readonly { id: Id<'comment'>; body: string }[];
    who: { name: string } | null;
  }>
>(true);
replica.query((db) =>
  db.selectFrom('issue').select('id').where(matches('issue', 'what people type')).where(has('issue.labels', 'bug')),
);

replica
  .transact(async (tx) => {
    const row = await tx.get('issue', issue.id);
    same<typeof row, Row<AppSchema, 'issue'> | undefined>(true);
    // @ts-expect-error no such entity
    await tx.get('isue', issue.id);
    // @ts-expect-error a comment id where an issue id is wanted
    await tx.get('issue', commentId);
    // @ts-expect-error a comment id where an issue id is wanted
    await replica.history('issue', commentId);
    // @ts-expect-error no writes through the query builder
    await tx.query((db) => db.deleteFrom('issue'));
    return row?.votes;
  })
  .then((votes) => same<typeof votes, number | undefined>(true));

// ── errors, schema, options ─────────────────────────────────────────────────────────────────────────────────────────

const failure: unknown = null;
if (isHoldfastError(failure, 'changed-meanwhile'))
  same<typeof failure, HoldfastError & { readonly code: 'changed-meanwhile' }>(true);
// @ts-expect-error no such code
isHoldfastError(failure, 'changed-meanwile');

// @ts-expect-error a ref to an entity that is not there
defineSchema({ a: entity({ b: ref('nobody'), t: text() }) });

// @ts-expect-error whose replicas?
createClient({ schema, ledger: 'https://sync.example.com', dir: './replica' });
// @ts-expect-error the choice is the caller's: nothing is done without one
createClient({ schema, ledger: 'x', dir: 'x', account: { id: 'ana' } }).signOut({});
