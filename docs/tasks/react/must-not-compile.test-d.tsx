/** What the hooks refuse by type, and next to it what they take. Checked by `tsc -p tsconfig/react.json`; never run. */
import type { Id, Row } from '@holdfast/core';
import type { Client, LiveResult, Write } from '@holdfast/replica';
import type { AppSchema } from '../schema.ts';
import {
  ReplicaProvider,
  useCommit,
  useDesk,
  useDraft,
  useEntity,
  useLiveQuery,
  useReplica,
  useStatus,
  useSuspenseLiveQuery,
  useUndo,
} from './holdfast.ts';
import { Thread } from './t03-comments.tsx';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Equal<A, B>): void => undefined;
declare const issueId: Id<'issue'>;
declare const commentId: Id<'comment'>;
declare const client: Client<AppSchema>;
declare const otherClient: Client<{}>;

export function Queries() {
  const todos = useLiveQuery((db) => db.selectFrom('todo').select(['done', 'title as name']));
  same<typeof todos, LiveResult<{ done: boolean; name: string }>>(true);
  const rows = useSuspenseLiveQuery((db) => db.selectFrom('comment').select('body'));
  // @ts-expect-error rows are read only
  rows.push({ body: 'x' });
  // @ts-expect-error no such table
  useLiveQuery((db) => db.selectFrom('isue').selectAll());
  // @ts-expect-error no such column
  useSuspenseLiveQuery((db) => db.selectFrom('issue').select('titel'));
  // @ts-expect-error no writes through the query builder
  useLiveQuery((db) => db.deleteFrom('issue'));
  const authors = useLiveQuery((db) =>
    db
      .selectFrom('comment')
      .leftJoin('person', 'person.account', 'comment.createdBy')
      .select(['comment.body', 'person.name as author']),
  );
  same<typeof authors, LiveResult<{ body: string; author: string | null }>>(true);
  // @ts-expect-error a left join may find nobody
  authors.rows[0]?.author.length;
  const issue = useEntity('issue', issueId);
  same<typeof issue, Row<AppSchema, 'issue'> | undefined>(true);
  // @ts-expect-error a comment id where an issue id is wanted
  useEntity('issue', commentId);
  // @ts-expect-error no such entity
  useEntity('isue', issueId);
}

export function Writes() {
  const commit = useCommit();
  const write = commit((tx) => tx.todo.create({ title: 'Milk', rank: { at: 'end' } }));
  same<typeof write, Write<Id<'todo'>>>(true);
  commit((tx) => {
    // @ts-expect-error there is no third end of a list
    tx.todo.create({ title: 'Milk', rank: { at: 'middle' } });
    // @ts-expect-error a rank is a place, made by the host
    tx.todo.update('t' as Id<'todo'>, { rank: 'V' });
    // @ts-expect-error an instant or a Date closes it
    tx.issue.closed(issueId, true);
    // @ts-expect-error required field missing
    tx.comment.create({ body: 'to what?' });
    // @ts-expect-error the natural key is whole
    tx.readMark.put({ channel: 'general', upTo: 1 });
  });
  // @ts-expect-error the callback is async
  commit(async (tx) => {
    tx.todo.create({ title: 'Milk' });
  });
  // @ts-expect-error a label is text
  commit((tx) => tx.todo.create({ title: 'Milk' }), { label: 1 });
}

export function Drafts() {
  const draft = useDraft('issue', issueId);
  same<typeof draft.values, Row<AppSchema, 'issue'>>(true);
  draft.set({ title: 'x', assignee: null });
  // @ts-expect-error a status that does not exist
  draft.set({ status: 'dnoe' });
  // @ts-expect-error assigned by the ledger
  draft.set({ number: 1 });
  // @ts-expect-error title is not optional
  draft.set({ title: null });
  // @ts-expect-error no such field
  draft.problems.titel;
  // @ts-expect-error it is set through set()
  draft.values.title = 'x';
  // @ts-expect-error mine or theirs
  draft.save({ take: 'both' });
  // @ts-expect-error an issue id where a comment id is wanted
  useDraft('comment', issueId);
}

export function Rest() {
  const unsent = useStatus((status) => status.unsent);
  same<typeof unsent, number>(true);
  // @ts-expect-error no such phase
  if (useStatus().phase === 'onlien') return null;
  // @ts-expect-error it is the host's to say
  useUndo().can = true;
  // @ts-expect-error nothing is decided without a choice
  useDesk().resolve('one');
  // @ts-expect-error a log has a name
  useReplica().follow(3);
  return (
    <>
      <ReplicaProvider client={client} workspace="acme">
        <Thread issue={issueId} />
        {/* @ts-expect-error a comment id where an issue id is wanted */}
        <Thread issue={commentId} />
      </ReplicaProvider>
      {/* @ts-expect-error which workspace? */}
      <ReplicaProvider client={client}>x</ReplicaProvider>
      {/* @ts-expect-error a client of another schema */}
      <ReplicaProvider client={otherClient} workspace="acme">
        x
      </ReplicaProvider>
    </>
  );
}
