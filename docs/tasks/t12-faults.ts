/** T12, further: what can go wrong, on purpose. docs/TESTING.md explains it. `npx node --test docs/tasks/t12-faults.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CRASH_POINTS, type CrashPoint, createWorld } from '@holdfast/replica/testing';
import { schema } from './schema.ts';

for (const point of ['before-send', 'after-send', 'before-apply'] satisfies CrashPoint[])
  test(`a vote counts once: ${CRASH_POINTS[point]}`, async () => {
    await using world = await createWorld({ schema, seed: 7 });
    const ana = await world.device('ana');
    const ben = await world.device('ben', { skewMs: -3_600_000 });
    const project = await ana.replica.commit((tx) => tx.project.create({ name: 'P' }));
    const id = await ana.replica.commit((tx) => tx.issue.create({ project, title: 'A', status: 'todo' }));
    await world.settle();

    ben.crashAt(point);
    await ben.replica.commit((tx) => tx.issue.update(id, { votes: { by: 1 } }));
    await world.run(() => !ben.isRunning, { limitMs: 60_000, what: `ben dies ${point}` });
    world.ledger.restart();
    await ben.restart();

    ana.next('answer-lost', 'push');
    await ana.replica.commit((tx) => tx.issue.update(id, { votes: { by: 1 } }));
    await world.settle();
    const row = await ben.replica.first((db) => db.selectFrom('issue').select('votes').where('id', '=', id));
    assert.equal(row?.votes, 2);
    assert.ok(await world.converged());
  });
