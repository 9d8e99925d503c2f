import {
  defineSchema,
  entity,
  integer,
  type Json,
  json,
  type StoredEvent,
  sameValue,
  setOf,
  text,
} from '@holdfast/core';
import { createWorld as createTestWorld } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';
import { accountFor, type Commit, mergedOver, readEvents } from './account.fixture.ts';
import { checkEntityChains, checkOwnOrder, foldFields } from './oracle.ts';
import { realData } from './real-data.fixture.ts';

/** Real edits of a real tracker, by many hands in parallel, replayed through three devices that come and go. */
interface Edit {
  readonly issue: string;
  readonly author: string;
  readonly op: 'create' | 'update' | 'delete';
  readonly set?: Readonly<Record<string, Json>>;
}

const schema = defineSchema({
  bead: entity({
    title: text({ default: '' }),
    description: text({ optional: true }),
    status: text({ optional: true, onClash: 'last' }),
    priority: integer({ optional: true, onClash: 'last' }),
    issueType: text({ optional: true, onClash: 'last' }),
    assignee: text({ optional: true, onClash: 'last' }),
    labels: setOf(text()),
    dependencies: setOf(text()),
    other: json<Json>({ optional: true, onClash: 'last' }),
  }),
});

const isText = (value: Json | undefined): value is string => typeof value === 'string';
const texts = (value: Json | undefined): string[] => (Array.isArray(value) ? value.map(String) : []);

function fieldsOf(set: Readonly<Record<string, Json>>) {
  const known = ['title', 'description', 'status', 'priority', 'issue_type', 'assignee', 'labels', 'dependencies'];
  const other = Object.fromEntries(
    Object.entries(set).filter(([name, value]) => !known.includes(name) && value !== null),
  );
  return {
    ...(isText(set['title']) && { title: set['title'] }),
    ...(isText(set['description']) && { description: set['description'] }),
    ...(isText(set['status']) && { status: set['status'] }),
    ...(Number.isSafeInteger(set['priority']) && { priority: set['priority'] as number }),
    ...(isText(set['issue_type']) && { issueType: set['issue_type'] }),
    ...(isText(set['assignee']) && { assignee: set['assignee'] }),
    ...(Array.isArray(set['labels']) && { labels: texts(set['labels']) }),
    ...(Array.isArray(set['dependencies']) && { dependencies: texts(set['dependencies']) }),
    ...(Object.keys(other).length > 0 && { other: other as Json }),
  };
}

/** A row, and what a plain fold of the log says, in one shape: what is not set is not there, sets have no order. */
const plain = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    ['title', 'description', 'status', 'priority', 'issueType', 'assignee', 'labels', 'dependencies', 'other']
      .map((field) => [field, fields[field]] as const)
      .filter(([, value]) => value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0))
      .map(([field, value]) => [field, Array.isArray(value) ? value.toSorted() : value]),
  );

/** What a commit wrote that its event in the log says otherwise; a field that it left as it was is not in the event. */
function changedOnTheWay({ change }: StoredEvent, fields: ReturnType<typeof fieldsOf>): string[] {
  if (change.op === 'delete') return [];
  const said: Readonly<Record<string, Json>> =
    change.op === 'create' || change.op === 'restore' ? change.fields : (change.set ?? {});
  const { labels: _, dependencies: __, ...single } = fields;
  return Object.entries(single)
    .filter(([field, value]) => said[field] !== undefined && !sameValue(said[field], value as Json))
    .map(([field]) => field);
}

const WAVE = 100;

test('[I10 I12 I13 I17 I26] the 15,872 edits of beads_edits, replayed through three devices, are each accounted for and the same everywhere', {
  timeout: 400_000,
}, async () => {
  await using world = await createTestWorld({ schema, seed: 11 });
  const devices = [await world.device('one'), await world.device('two'), await world.device('three')] as const;
  await world.settle();
  const all = realData<Edit>('beads_edits') ?? [];
  expect(all).toHaveLength(15_872);
  const commits: Commit[] = [];
  const written = new Map<string, ReturnType<typeof fieldsOf>>();
  let passedOver = 0;
  for (let at = 0; at < all.length; at += 1) {
    const { issue, author, op, set = {} } = all[at] as Edit;
    const device = devices[author.length % 3 === 0 ? at % 3 : Number(author.replace(/\D/g, '')) % 3] ?? devices[0];
    const { replica } = device;
    const id = issue as never;
    const row = await replica.first((db) => db.selectFrom('bead').select('id').where('id', '=', id));
    const fields = fieldsOf(set);
    // Another device's create may not have come yet; then this one makes it, as the clones of that project did.
    if (op === 'delete' && row === undefined) passedOver += 1;
    else if (op !== 'delete' && row !== undefined && Object.keys(fields).length === 0) passedOver += 1;
    else {
      const write = replica.commit(
        (tx) => {
          if (op === 'delete') tx.bead.delete(id);
          else if (row === undefined) tx.bead.create({ id, ...fields });
          else tx.bead.update(id, fields);
        },
        { undo: false },
      );
      await write;
      commits.push({ id: write.id, device: device.name });
      written.set(write.id, op === 'delete' ? {} : fields);
    }
    if (at % WAVE === WAVE - 1) {
      const out = devices[((at / WAVE) % 3) | 0] as (typeof devices)[number];
      out.online();
      await world.advance(20);
      (devices[((at / WAVE + 1) % 3) | 0] as (typeof devices)[number]).offline();
    }
  }
  for (const device of devices) device.online();
  await world.settle();
  // One that comes when all is over, and has nothing of its own.
  const reader = await world.device('reader');
  await world.settle();
  expect(await world.converged()).toBe(true);
  const report = await world.ledger.current.engine.verify({ workspace: 'world', log: 'main' });
  expect(report?.problems).toEqual([]);

  const events = await readEvents(world);
  const { wrong, ...account } = await accountFor(devices, commits, events);
  const counts = Object.entries(account).map(([place, { length }]) => `${length} ${place}`);
  console.log(
    `${commits.length} commits, ${passedOver} edits of what was not there, ${report?.entities} live: ${counts.join(', ')}; ${mergedOver(events).length} beside unseen ones`,
  );
  expect(wrong).toEqual([]);
  expect(Object.values(account).flat()).toHaveLength(commits.length);
  expect(commits.length).toBeGreaterThan(14_000);
  expect(account.inLog.toSorted()).toEqual(events.map(({ actionId }) => actionId).toSorted());
  expect(mergedOver(events).length).toBeGreaterThan(20);
  // Nobody is asked more often than the data is at odds with itself.
  expect((account.asked.length + account.held.length) / commits.length).toBeLessThan(0.01);

  expect(checkEntityChains(events)).toEqual([]);
  for (const { name } of devices) {
    const own = commits.filter(({ device }) => device === name).map(({ id }) => id);
    expect(checkOwnOrder(name, own, events)).toEqual([]);
  }
  for (const event of events) expect(changedOnTheWay(event, written.get(event.actionId) ?? {})).toEqual([]);
  const said = new Map([...foldFields(events, 'bead')].map(([id, fields]) => [id, plain(fields)]));
  expect(said.size).toBe(report?.entities);
  for (const { replica } of [...devices, reader]) {
    const rows = await replica.query((db) => db.selectFrom('bead').selectAll());
    expect(new Map(rows.map((row) => [row.id as string, plain(row)]))).toEqual(said);
  }
});
