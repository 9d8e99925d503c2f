/** T13: read, decide, write; and follow one write to the ledger. */
import type { Id } from '@holdfast/core';
import type { Replica } from '@holdfast/replica';
import type { AppSchema } from './schema.ts';

/** Runs in a page, a command or a job alike; the host runs the reads again inside the commit. */
export const claimNext = (replica: Replica<AppSchema>, me: Id<'person'>) =>
  replica.transact(
    async (tx) => {
      const next = await tx.first((db) =>
        db.selectFrom('issue').selectAll().where('status', '=', 'todo').orderBy('rank').limit(1),
      );
      if (next === undefined) return null;
      tx.write.issue.update(next, { status: 'doing', assignee: me });
      return next.id;
    },
    { label: 'Take the next issue' },
  );

export async function createAndWait(replica: Replica<AppSchema>, title: string, project: Id<'project'>) {
  const write = replica.commit((tx) => tx.issue.create({ project, title, status: 'todo' }));
  const id = await write; // durable here, usable offline
  await write.shown(); // on screen in this page
  const { version } = await write.ordered({ signal: AbortSignal.timeout(5_000) });
  return { id, version };
}
