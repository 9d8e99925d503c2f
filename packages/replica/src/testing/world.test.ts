import { counter, defineSchema, entity, integer, oneOf, text } from '@holdfast/core';
import { expect, test } from 'vitest';
import { createWorld } from './world.ts';

const schema = defineSchema({
  issue: entity({
    title: text(),
    status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
    priority: integer({ default: 0, onClash: 'last' }),
    votes: counter(),
  }),
});

test('[MG3 DG2] two people edit different fields of one issue offline, one crashes, and both edits hold', async () => {
  await using world = await createWorld({ schema, seed: 7 });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  const id = await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await world.settle();
  ana.offline();
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.update(id, { title: 'Ana' }));
  await ben.replica.commit((tx) => tx.issue.update(id, { priority: 2, votes: { by: 1 } }));
  await ben.crash();
  await ben.restart();
  ana.online();
  ben.online();
  await world.settle();
  const row = await ben.replica.first((db) => db.selectFrom('issue').selectAll().where('id', '=', id));
  expect([row?.title, row?.priority, row?.votes, row?.sync]).toEqual(['Ana', 2, 1, 'synced']);
  expect(await world.converged()).toBe(true);
});

test('[OB6] one field set by two: parked with both sides, resolved by one', async () => {
  await using world = await createWorld({ schema, seed: 8 });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  const id = await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await world.settle();
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.update(id, { title: 'Ana' }));
  await ben.replica.commit((tx) => tx.issue.update(id, { title: 'Ben' }), { label: 'Rename' });
  await world.settle();
  ben.online();
  await world.settle();
  const [entry] = await ben.replica.desk.list();
  expect(entry).toMatchObject({ kind: 'clash', needs: 'answer', label: 'Rename' });
  expect(entry?.fields).toMatchObject([{ field: 'title', base: 'A', mine: 'Ben', theirs: 'Ana', by: 'ana' }]);
  await ben.replica.desk.resolve(entry?.id as string, 'mine');
  await world.settle();
  const row = await ana.replica.first((db) => db.selectFrom('issue').selectAll().where('id', '=', id));
  expect(row?.title).toBe('Ben');
  expect(await ben.replica.desk.list()).toEqual([]);
  await world.converged();
});

test('[I12] a world that has not converged says what differs', async () => {
  await using world = await createWorld({ schema, seed: 9 });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  await world.settle();
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.create({ title: 'only here' }));
  await world.settle();
  await expect(world.converged()).rejects.toThrow(/ben: head 0 of 1/);
});

test('[LG1 I03] the ledger is killed and started again, and nothing is lost', async () => {
  await using world = await createWorld({ schema, seed: 10 });
  const ana = await world.device('ana');
  await world.settle();
  for (let at = 0; at < 20; at += 1) {
    await ana.replica.commit((tx) => tx.issue.create({ title: `${at}` }));
    if (at % 7 === 3) world.ledger.restart();
  }
  await world.settle();
  expect(await ana.replica.query((db) => db.selectFrom('issue').select('id'))).toHaveLength(20);
  await world.converged();
});
