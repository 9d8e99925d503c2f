import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { defineSchema, entity, ref, setOf, text } from '@holdfast/core';
import { createWorld } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';

/** The operations of a tracker that is itself distributed, folded by Holdfast and by hand. */
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

const FILE = join(import.meta.dirname, '../../../shared/data/issue_ops_gitbug.jsonl.gz');
const isHere = existsSync(FILE);
if (!isHere) console.log('skipped: issue_ops_gitbug is not here; its licence keeps it out of the repository');

test.skipIf(!isHere)(
  '[I11 I12] the 4,805 operations of a distributed tracker, through three devices, fold to what they say',
  { timeout: 300_000 },
  async () => {
    const operations = gunzipSync(readFileSync(FILE))
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line.replaceAll('\\u0000', '')) as Operation);
    await using world = await createWorld({ schema, seed: 12 });
    const devices = [await world.device('one'), await world.device('two'), await world.device('three')] as const;
    await world.settle();
    const labels = new Map<string, Set<string>>();
    const titles = new Map<string, string>();
    let comments = 0;
    const created = new Set(operations.filter(({ type }) => type === 'create').map(({ op }) => op));
    for (const [at, one] of operations.entries()) {
      // One bug's operations come from one device at a time; devices take turns, and see each other's in between.
      const { replica } = devices[Number(one.bug.slice(4)) % 3] as (typeof devices)[number];
      const id = one.bug as never;
      await replica.commit(
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
      if (one.type === 'create' || one.type === 'set_title') titles.set(one.bug, one.title ?? '');
      if (one.type === 'add_comment') comments += 1;
      if (one.type === 'label_change') {
        const set = labels.get(one.bug) ?? new Set();
        for (const label of one.added ?? []) set.add(label);
        for (const label of one.removed ?? []) set.delete(label);
        labels.set(one.bug, set);
      }
      if (at % 200 === 199) await world.advance(20);
    }
    await world.settle();
    expect(await world.converged()).toBe(true);
    const { replica } = devices[0];
    const rows = await replica.query((db) => db.selectFrom('issue').selectAll());
    expect(rows).toHaveLength(421);
    for (const row of rows) {
      const bug = row.id as string;
      expect([row.id, row.title, [...row.labels].sort()]).toEqual([
        row.id,
        titles.get(bug),
        [...(labels.get(bug) ?? [])].sort(),
      ]);
    }
    expect(await replica.query((db) => db.selectFrom('comment').select('id'))).toHaveLength(comments);
  },
);
