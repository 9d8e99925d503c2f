import { defineSchema, entity, ref, setOf, text } from '@holdfast/core';
import { createWorld, type WorldDevice } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';
import { accountFor, type Commit, mergedOver, readEvents } from './account.fixture.ts';
import { realData } from './real-data.fixture.ts';

/** The operations of a tracker that is itself distributed, on devices that do not see each other's at once. */
interface Operation {
  readonly bug: string;
  readonly op: string;
  readonly type: 'create' | 'add_comment' | 'edit_comment' | 'set_title' | 'set_status' | 'label_change';
  readonly title?: string;
  readonly message?: string;
  readonly target?: string;
  readonly status?: string;
  readonly added?: readonly string[];
  readonly removed?: readonly string[];
}

const schema = defineSchema({
  issue: entity({
    title: text(),
    body: text({ default: '' }),
    status: text({ default: 'open', onClash: 'last' }),
    labels: setOf(text()),
  }),
  comment: entity({ issue: ref('issue', { onDelete: 'delete-too' }), body: text() }),
});
type Device = WorldDevice<typeof schema>;

interface Issue {
  title: string;
  body: string;
  status: string;
  labels: Set<string>;
}

/** By hand: `operations` one after the other, each on what those before it left. */
function foldByHand(operations: Iterable<Operation>) {
  const issues = new Map<string, Issue>();
  const comments = new Map<string, { readonly issue: string; body: string }>();
  for (const { bug, op, type, title = '', message = '', target = '', status = '', added, removed } of operations) {
    const issue = issues.get(bug) as Issue;
    if (type === 'create') issues.set(bug, { title, body: message, status: 'open', labels: new Set() });
    else if (type === 'set_title') issue.title = title;
    else if (type === 'set_status') issue.status = status;
    else if (type === 'add_comment') comments.set(op, { issue: bug, body: message });
    else if (type === 'edit_comment') (comments.get(target) ?? issue).body = message;
    else {
      for (const label of removed ?? []) issue.labels.delete(label);
      for (const label of added ?? []) issue.labels.add(label);
    }
  }
  return {
    issues: [...issues].map(([id, issue]) => ({ id, ...issue, labels: [...issue.labels].sort() })).sort(byId),
    comments: [...comments].map(([id, comment]) => ({ id, ...comment })).sort(byId),
  };
}

const byId = (one: { readonly id: string }, other: { readonly id: string }): number => (one.id < other.id ? -1 : 1);

async function rowsOf({ replica }: Device) {
  const issues = await replica.query((db) =>
    db.selectFrom('issue').select(['id', 'title', 'body', 'status', 'labels']),
  );
  const comments = await replica.query((db) => db.selectFrom('comment').select(['id', 'issue', 'body']));
  return {
    issues: issues.map((row) => ({ ...row, labels: [...row.labels].sort() })).sort(byId),
    comments: comments.sort(byId),
  };
}

const WAVE = 100;
const operations = realData<Operation>('issue_ops_gitbug');

test.skipIf(operations === null)(
  '[I11 I12 I13] the 4,805 operations of a distributed tracker, through three devices that come and go, fold to what they say',
  { timeout: 300_000 },
  async () => {
    const all = operations ?? [];
    expect(all).toHaveLength(4_805);
    await using world = await createWorld({ schema, seed: 12 });
    const devices = [await world.device('one'), await world.device('two'), await world.device('three')] as const;
    await world.settle();
    const created = new Set(all.filter(({ type }) => type === 'create').map(({ op }) => op));
    const commits: Commit[] = [];
    const operationOf = new Map<string, Operation>();

    /** Each in turn, as by people with several devices; where what it is about has not come there yet, one where it has. */
    const deviceFor = async (at: number, one: Operation): Promise<Device> => {
      const candidates = [0, 1, 2].map((by) => devices[(at + by) % 3] as Device);
      if (one.type === 'create') return candidates[0] as Device;
      const isOfComment = one.type === 'edit_comment' && !created.has(one.target ?? '');
      for (const device of candidates) {
        const found = await device.replica.first((db) =>
          isOfComment
            ? db
                .selectFrom('comment')
                .select('id')
                .where('id', '=', one.target as never)
            : db
                .selectFrom('issue')
                .select('id')
                .where('id', '=', one.bug as never),
        );
        if (found !== undefined) return device;
      }
      throw new Error(`Nobody has what ${one.op} is about.`);
    };

    for (const [at, one] of all.entries()) {
      const { replica, name } = await deviceFor(at, one);
      const id = one.bug as never;
      const write = replica.commit(
        (tx) => {
          switch (one.type) {
            case 'create':
              tx.issue.create({ id, title: one.title ?? '', body: one.message ?? '' });
              break;
            case 'add_comment':
              tx.comment.create({ id: one.op as never, issue: id, body: one.message ?? '' });
              break;
            case 'edit_comment':
              if (created.has(one.target ?? '')) tx.issue.update(id, { body: one.message ?? '' });
              else tx.comment.update(one.target as never, { body: one.message ?? '' });
              break;
            case 'set_title':
              tx.issue.update(id, { title: one.title ?? '' });
              break;
            case 'set_status':
              tx.issue.update(id, { status: one.status ?? 'open' });
              break;
            case 'label_change':
              tx.issue.update(id, { labels: { add: one.added ?? [], remove: one.removed ?? [] } });
          }
        },
        { undo: false },
      );
      await write;
      commits.push({ id: write.id, device: name });
      operationOf.set(write.id, one);
      if (at % WAVE === WAVE - 1) {
        const wave = (at + 1) / WAVE;
        devices[(wave + 2) % 3]?.online();
        await world.advance(20);
        devices[wave % 3]?.offline();
      }
    }
    for (const device of devices) device.online();
    await world.settle();
    expect(await world.converged()).toBe(true);

    const events = await readEvents(world);
    const { wrong, ...account } = await accountFor(devices, commits, events);
    const counts = Object.entries(account).map(([place, { length }]) => `${length} ${place}`);
    console.log(`${counts.join(', ')}; ${mergedOver(events).length} beside unseen ones`);
    expect(wrong).toEqual([]);
    expect(Object.values(account).flat()).toHaveLength(all.length);
    // The order is the log's, the words are the file's.
    const said = foldByHand(events.map(({ actionId }) => operationOf.get(actionId) as Operation));
    expect(said.issues).toHaveLength(421);
    for (const device of devices) expect(await rowsOf(device)).toEqual(said);
    // They did get in each other's way.
    expect(mergedOver(events).length).toBeGreaterThan(20);
    expect(account.asked.length).toBeGreaterThan(0);
  },
);
