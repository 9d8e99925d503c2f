/** T12 Testing an app: `npx node --test docs/tasks/t12-testing.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWorld } from '@holdfast/replica/testing';
import { schema } from './schema.ts';

test('two people edit different fields of one issue offline', async () => {
  await using world = await createWorld({ schema, seed: 7 });
  const ana = await world.device('ana');
  const ben = await world.device('ben');
  const project = await ana.replica.commit((tx) => tx.project.create({ name: 'P' }));
  const id = await ana.replica.commit((tx) => tx.issue.create({ project, title: 'A', status: 'todo' }));
  await world.settle();
  ana.offline();
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.update(id, { title: 'Ana' }));
  await ben.replica.commit((tx) => tx.issue.update(id, { priority: 2 }));
  await ben.crash();
  await ben.restart();
  ana.online();
  ben.online();
  await world.settle();
  const row = await ben.replica.first((db) => db.selectFrom('issue').selectAll().where('id', '=', id));
  assert.deepEqual([row?.title, row?.priority, row?.sync], ['Ana', 2, 'synced']);
  assert.ok(await world.converged());
});
