/** T3 Comments with author. */
import type { Id } from '@holdfast/core';
import { many } from '@holdfast/replica';
import { useCommit, useLiveQuery } from './holdfast.ts';

export function Thread({ issue }: { readonly issue: Id<'issue'> }) {
  const commit = useCommit();
  // The author is the verified actor of the event, not a field that a client fills in.
  const { rows } = useLiveQuery((db) =>
    db
      .selectFrom('comment')
      .leftJoin('person', 'person.account', 'comment.createdBy')
      .select(['comment.id', 'comment.body', 'comment.createdAt', 'comment.sync', 'person.name as author'])
      .where('comment.issue', '=', issue)
      .orderBy('comment.arrival'),
  );
  return (
    <section>
      {rows.map((comment) => (
        <article key={comment.id} data-sync={comment.sync}>
          <b>{comment.author ?? 'Somebody'}</b>
          <p>{comment.body}</p>
        </article>
      ))}
      <form action={(data) => void commit((tx) => tx.comment.create({ issue, body: String(data.get('body')) }))}>
        <textarea name="body" />
      </form>
    </section>
  );
}

export function IssuesWithComments() {
  const { rows } = useLiveQuery((db) =>
    db
      .selectFrom('issue')
      .select((eb) => [
        'issue.id',
        'issue.title',
        many(
          eb.selectFrom('comment').select(['comment.id', 'comment.body']).whereRef('comment.issue', '=', 'issue.id'),
        ).as('comments'),
      ]),
  );
  return (
    <>
      {rows.map((issue) => (
        <p key={issue.id}>
          {issue.title}: {issue.comments.map((comment) => comment.body).join(', ')}
        </p>
      ))}
    </>
  );
}
