import { createHash } from 'node:crypto';
import { createClient, type Replica } from '@holdfast/replica';
import { readGithubIssues, recordIssue } from '../github-issues.ts';
import { type TrackerSchema, trackerSchema } from '../tracker-schema.ts';
import { serveParent } from './child.ts';

/** One device of the demonstration, in a process of its own. Arguments: name, folder, ledger. */
export type DeviceAsks = {
  readonly import: {
    send: { file: string; count: number };
    answer: { issues: number; comments: number; actions: readonly string[] };
  };
  readonly issues: { send: { limit: number }; answer: readonly DemoIssue[] };
  readonly issue: { send: string; answer: DemoIssue | null };
  readonly edit: { send: { id: string; patch: Record<string, unknown>; label: string }; answer: string };
  readonly comment: { send: { id: string; body: string }; answer: string };
  /** Many votes, one commit each: work to be in the middle of. */
  readonly votes: { send: { ids: readonly string[] }; answer: readonly string[] };
  readonly offline: { send: null; answer: null };
  readonly online: { send: null; answer: null };
  readonly settle: { send: null; answer: { attention: number } };
  readonly desk: { send: null; answer: readonly DemoConflict[] };
  readonly resolve: { send: { id: string; choice: 'mine' | 'theirs' }; answer: null };
  readonly status: { send: null; answer: { phase: string; unsent: number; attention: number } };
};

export interface DemoIssue {
  readonly id: string;
  readonly number: number | null;
  readonly title: string;
  readonly status: string;
  readonly assignee: string | null;
  readonly labels: readonly string[];
  readonly votes: number;
  readonly sync: string;
}

export interface DemoConflict {
  readonly id: string;
  readonly kind: string;
  readonly needs: string;
  readonly label?: string;
  readonly entity: { readonly type: string; readonly id: string };
  readonly fields: readonly {
    readonly field: string;
    readonly base: unknown;
    readonly mine: unknown;
    readonly theirs: unknown;
    readonly by: string;
  }[];
}

const [name, folder, ledger] = process.argv.slice(2) as [string, string, string];
const client = createClient({
  schema: trackerSchema,
  dir: folder,
  ledger,
  account: { id: name, token: () => `${name}-token` },
});
const replica: Replica<TrackerSchema> = await client.open('demo');

/** Ids from where an issue came from: the same on every device. */
const idOf = (...key: (string | number)[]): string =>
  createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 32);

serveParent<DeviceAsks>(
  {
    import: async ({ file, count }) => {
      let issues = 0;
      let comments = 0;
      const actions: string[] = [];
      for await (const issue of readGithubIssues(file)) {
        if (issues >= count) break;
        const label = `Import #${issue.number}`;
        const write = replica.commit((tx) => recordIssue(tx, issue, idOf), { label, undo: false });
        comments += (await write).comments.length;
        actions.push(write.id);
        issues += 1;
      }
      return { issues, comments, actions };
    },
    issues: ({ limit }) =>
      replica.query((db) =>
        db
          .selectFrom('issue')
          .select(['id', 'number', 'title', 'status', 'assignee', 'labels', 'votes', 'sync'])
          .orderBy('arrival')
          .limit(limit),
      ),
    issue: async (id) =>
      (await replica.first((db) =>
        db
          .selectFrom('issue')
          .select(['id', 'number', 'title', 'status', 'assignee', 'labels', 'votes', 'sync'])
          .where('id', '=', id),
      )) ?? null,
    edit: async ({ id, patch, label }) => {
      const write = replica.commit((tx) => tx.issue.update(id, patch as never), { label });
      await write;
      return write.id;
    },
    comment: async ({ id, body }) => {
      const write = replica.commit(
        (tx) => tx.comment.create({ issue: id, author: name, body, writtenAt: new Date() }),
        { label: 'Comment' },
      );
      await write;
      return write.id;
    },
    votes: async ({ ids }) => {
      const actions: string[] = [];
      for (const id of ids) {
        const write = replica.commit((tx) => tx.issue.update(id, { votes: { by: 1 } }), { undo: false });
        await write;
        actions.push(write.id);
      }
      return actions;
    },
    offline: async () => {
      await replica.pause();
      return null;
    },
    online: async () => {
      await replica.resume();
      return null;
    },
    settle: async () => {
      const { attention } = await replica.settle({ signal: AbortSignal.timeout(60_000) });
      return { attention };
    },
    desk: async () => structuredClone(await replica.desk.list()) as readonly DemoConflict[],
    resolve: async ({ id, choice }) => {
      await replica.desk.resolve(id, choice);
      return null;
    },
    status: () => {
      const { phase, unsent, attention } = replica.status.current;
      return { phase, unsent, attention };
    },
  },
  async () => {
    await client[Symbol.asyncDispose]();
  },
);
process.send?.({ event: 'ready', facts: {} });
