import { defineSchema, entity, rank, text } from '@holdfast/core';
import { createWorld, type WorldDevice } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';

/** SC10 with a natural key: whoever puts a row second updates it, so a put says no place that its author did not say. */
const schema = defineSchema({
  pin: entity(
    { board: text(), card: text(), note: text({ optional: true }), rank: rank() },
    { key: ['board', 'card'] },
  ),
});
type S = typeof schema;

const pins = ({ replica }: WorldDevice<S>) =>
  replica.query((db) => db.selectFrom('pin').select(['card', 'rank']).orderBy('rank').orderBy('id'));
const order = async (device: WorldDevice<S>) => (await pins(device)).map(({ card }) => card);

test('[SC10 SC5 I12] rows put without a place are in the middle on every device, ask nobody when two put one, and are placed by an update', async () => {
  await using world = await createWorld({ schema, seed: 71 });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  await world.settle();
  // Both put all of them offline, in another order.
  for (const device of [ana, ben]) device.offline();
  const cards = ['a', 'b', 'c'];
  const put = (device: WorldDevice<S>, card: string) =>
    device.replica.commit((tx) => tx.pin.put({ board: 'main', card, note: 'same' }));
  for (const card of cards) await put(ana, card);
  for (const card of cards.toReversed()) await put(ben, card);
  const middle = new Set((await pins(ana)).map((row) => row.rank));
  expect(middle.size).toBe(1);
  for (const device of [ana, ben]) device.online();
  await world.settle();
  await world.converged();
  expect(await pins(ben)).toEqual(await pins(ana));
  expect(await fieldsAtLedger()).toEqual(cards.map((card) => ({ board: 'main', card, note: 'same' })));
  for (const { replica } of [ana, ben]) expect(await replica.desk.list()).toEqual([]);

  // A place that is said counts from those rows too, also where its row is put.
  await ana.replica.commit((tx) => tx.pin.put({ board: 'main', card: 'first', rank: { at: 'start' } }));
  await ana.replica.commit((tx) => tx.pin.put({ board: 'main', card: 'last', rank: { at: 'end' } }));
  const [, second] = await ana.replica.query((db) => db.selectFrom('pin').selectAll().orderBy('rank').orderBy('id'));
  await ana.replica.commit((tx) => tx.pin.update(second as NonNullable<typeof second>, { rank: { at: 'end' } }));
  // Put again, it stays where it is.
  await put(ana, second?.card as string);
  await world.settle();
  await world.converged();
  const rest = cards.filter((card) => card !== second?.card);
  const shown = await order(ana);
  expect([shown[0], shown.slice(1, 3).toSorted(), shown.slice(3)]).toEqual(['first', rest, ['last', second?.card]]);
  await ben.crash();
  await ben.restart();
  await world.settle();
  const eve = await world.device('eve');
  await world.settle();
  await world.converged();
  for (const device of [ben, eve]) expect(await pins(device)).toEqual(await pins(ana));

  async function fieldsAtLedger(): Promise<unknown[]> {
    const answered = await world.ledger.current.fetch(
      new Request('http://ledger.test/v1/workspaces/world/logs/main/entities', {
        headers: { Authorization: 'Bearer ana' },
      }),
    );
    const { entities } = (await answered.json()) as { entities: { fields: { card: string } }[] };
    return entities.map(({ fields }) => fields).sort((a, b) => (a.card < b.card ? -1 : 1));
  }
});

const todos = defineSchema({ todo: entity({ title: text(), list: text({ default: 'a' }), rank: rank() }) });

test('[SC10] rows that one commit puts at one place stand in the order in which they were put', async () => {
  await using world = await createWorld({ schema: todos, seed: 72 });
  const { replica } = await world.device('ana');
  const shown = () => replica.query((db) => db.selectFrom('todo').selectAll().orderBy('rank'));
  const line = async () => (await shown()).map(({ title }) => title).join('');

  await replica.commit((tx) => {
    for (const title of 'abcdef') tx.todo.create({ title, rank: { at: 'end' } });
  });
  expect(await line()).toBe('abcdef');
  const [a, b] = await shown();
  if (a === undefined || b === undefined) throw new Error('two rows');
  await replica.commit((tx) => {
    for (const title of '12345') tx.todo.create({ title, rank: { after: a, before: b } });
    for (const title of 'xy') tx.todo.create({ title, rank: { at: 'start' } });
  });
  expect(await line()).toBe('yxa12345bcdef');

  // A neighbour that the same commit has moved stands where it is now.
  const c = (await shown()).find(({ title }) => title === 'c');
  if (c === undefined) throw new Error('a row');
  await replica.commit((tx) => {
    tx.todo.update(a, { rank: { at: 'end' } });
    tx.todo.update(c, { rank: { after: a, before: null } });
    tx.todo.create({ title: '-', rank: { after: a, before: c } });
    tx.todo.create({ title: '.', rank: { at: 'end' } });
  });
  expect(await line()).toBe('yx12345bdefa-c.');
});
