/** T2 Issue board with drag and drop. */
import type { Row } from '@holdfast/core';
import type { ReactNode } from 'react';
import type { AppSchema } from '../schema.ts';
import { useCommit, useLiveQuery } from './holdfast.ts';

type Issue = Row<AppSchema, 'issue'>;

/** Of any drag-and-drop library: calls `onDrop` with the place among the other cards of this column. */
export function Column({ title, cards }: ColumnProps): ReactNode {
  return (
    <section aria-label={title}>
      {cards.map((card) => (
        <article key={card.id}>{card.title}</article>
      ))}
    </section>
  );
}
interface ColumnProps {
  readonly title: string;
  readonly cards: readonly Issue[];
  onDrop(card: Issue, at: number): void;
}

const STATUSES = ['backlog', 'todo', 'doing', 'done'] as const;
const byRank = (a: Issue, b: Issue) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0);

export function Board() {
  const commit = useCommit();
  const { rows } = useLiveQuery((db) => db.selectFrom('issue').selectAll());
  // Grouping and sorting happen here, so the echo of a drop moves the card in the same render.
  const columns = Object.groupBy(rows.toSorted(byRank), (row) => row.status);
  return STATUSES.map((status) => {
    const cards = columns[status] ?? [];
    return (
      <Column
        key={status}
        title={status}
        cards={cards}
        onDrop={(card, at) => {
          const rest = cards.filter((one) => one.id !== card.id);
          void commit(
            (tx) => {
              if (status === 'done' && card.status !== 'done') tx.issue.closed(card, new Date().toISOString());
              else if (card.status !== status) tx.issue.update(card, { status, closedAt: null });
              tx.issue.update(card, { rank: { after: rest[at - 1] ?? null, before: rest[at] ?? null } });
            },
            { label: `Move to ${status}` },
          );
        }}
      />
    );
  });
}
