import { createClient, type HoldfastError } from '@holdfast/replica';
import { serveParent } from '../../packages/cli/src/demo/child.ts';
import { trackerSchema } from '../../packages/cli/src/tracker-schema.ts';
import { arm, type DevicePoint, watchDevice } from './die.ts';

/**
 * One device in a process of its own: the production client on a wrapped platform. Arguments: name, folder, ledger, and
 * `take-over` to fence another host off. A device that cannot open its replica answers every question with the reason.
 */
export type DeviceAsks = {
  readonly arm: { send: DevicePoint; answer: null };
  /** Issues of these titles, in one commit. */
  readonly create: { send: readonly string[]; answer: { action: string; ids: readonly string[] } };
  /** One commit that changes all of these issues. */
  readonly edit: { send: { ids: readonly string[]; patch: Record<string, unknown> }; answer: string };
  readonly remove: { send: string; answer: string };
  readonly issues: { send: null; answer: readonly Issue[] };
  readonly offline: { send: null; answer: null };
  /** Does not wait for anything. */
  readonly online: { send: null; answer: null };
  readonly settle: { send: null; answer: { settled: boolean; attention: number } };
  readonly desk: { send: null; answer: readonly { needs: string; kind: string; code?: string }[] };
  readonly journal: { send: null; answer: readonly { kind: string; facts: Record<string, unknown> }[] };
};

export interface Issue {
  readonly id: string;
  readonly title: string;
  readonly votes: number;
  readonly sync: string;
}

watchDevice();
const [name, folder, ledger, mode] = process.argv.slice(2) as [string, string, string, string?];
const client = createClient({
  schema: trackerSchema,
  dir: folder,
  ledger,
  account: { id: name, token: () => `${name}-token` },
  takeOver: mode === 'take-over',
});
const replica = await client.open('demo').catch(refuse);

function refuse(cause: unknown): Promise<never> {
  const { code, message } = cause as HoldfastError;
  process.on('message', ({ id }: { id: number }) => process.send?.({ id, error: `${code}: ${message}` }));
  process.on('disconnect', () => process.exit(0));
  return new Promise<never>(() => undefined);
}

serveParent<DeviceAsks>(
  {
    arm: (point) => {
      arm(point);
      return null;
    },
    create: async (titles) => {
      const write = replica.commit((tx) => {
        const project = tx.project.put({ name: 'P' });
        return titles.map((title) => tx.issue.create({ project, title }));
      });
      return { ids: await write, action: write.id };
    },
    edit: async ({ ids, patch }) => {
      const write = replica.commit((tx) => {
        for (const id of ids) tx.issue.update(id, patch as never);
      });
      await write;
      return write.id;
    },
    remove: async (id) => {
      const write = replica.commit((tx) => tx.issue.delete(id));
      await write;
      return write.id;
    },
    issues: () => replica.query((db) => db.selectFrom('issue').select(['id', 'title', 'votes', 'sync']).orderBy('id')),
    offline: async () => {
      await replica.pause();
      return null;
    },
    online: async () => {
      await replica.resume();
      await replica.sync('online');
      return null;
    },
    settle: async () => {
      const { settled, attention } = await replica.settle({ signal: AbortSignal.timeout(60_000) });
      return { settled, attention };
    },
    desk: async () =>
      (await replica.desk.list()).map(({ needs, kind, code }) => ({
        needs,
        kind,
        ...(code === undefined ? {} : { code }),
      })),
    journal: async () => (await replica.journal()).map(({ kind, facts }) => ({ kind, facts: { ...facts } })),
  },
  () => client.close(),
);
