import {
  defineSchema,
  defineType,
  type EntityData,
  entity,
  type Json,
  json,
  LIMITS,
  type RuleData,
  schemaFrom,
  text,
} from '@holdfast/core';
import { createWorld, type WorldDevice } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';

/** One measure of depth: what a device commits is never refused by the ledger for its form (JS1). */
const schema = defineSchema({
  note: entity(
    { title: text({ optional: true }), body: json<Json>({ optional: true }) },
    { events: (e) => ({ drawn: (body: Json) => e.set({ body }) }) },
  ),
});
type Device = WorldDevice<typeof schema>;

/** Levels that a field's value may have. */
const DEEPEST = LIMITS.jsonDepthMax - LIMITS.draftDepth;

function nested(levels: number): Json {
  let value: Json = 1;
  for (let at = 0; at < levels; at += 1) value = at % 2 === 0 ? [value] : { in: value };
  return value;
}

/** A definition of so many levels in all: the entity, its rules, one rule inside the other, and two of the last one. */
function ruled(levels: number): EntityData {
  let rule: RuleData = { rule: 'present', fields: ['title'] };
  for (let at = 4; at < levels; at += 1) rule = { rule: 'not', of: rule };
  return { fields: { title: { kind: 'text', optional: true } }, rules: { deep: rule } };
}

const type = (name: string, data: EntityData) => schemaFrom({ format: 1, entities: { [name]: data } })[name] as never;

/** Whatever brings a value of so many levels into an event. */
const WAYS: Readonly<Record<string, (device: Device, levels: number) => Promise<unknown>>> = {
  create: async ({ replica }, levels) => await replica.commit((tx) => tx.note.create({ body: nested(levels) })),
  update: async ({ replica }, levels) => {
    const id = await replica.commit((tx) => tx.note.create({ title: 'update' }));
    await replica.commit((tx) => tx.note.update(id, { body: nested(levels) }));
  },
  'arguments of an event': async ({ replica }, levels) => {
    const id = await replica.commit((tx) => tx.note.create({ title: 'verb' }));
    await replica.commit((tx) => tx.note.drawn(id, nested(levels)));
  },
  'undo of a deletion': async ({ replica }, levels) => {
    const id = await replica.commit((tx) => tx.note.create({ body: nested(levels) }));
    await replica.commit((tx) => tx.note.delete(id), { label: 'Deleted' });
    await replica.undo.undo();
  },
  'rules of a type': async ({ replica }, levels) =>
    await replica.commit((tx) => defineType(tx, `ruled${levels}`, type(`ruled${levels}`, ruled(levels)))),
  'default of a type': async ({ replica }, levels) => {
    // The value stands in its field, in the fields, in the entity.
    const data: EntityData = { fields: { body: { kind: 'json', default: nested(levels - 3) } } };
    await replica.commit((tx) => defineType(tx, `kept${levels}`, type(`kept${levels}`, data)));
  },
};

test.each(Object.entries(WAYS))(
  '[JS1 SC4 S07] %s: the deepest value that a commit takes is taken by the ledger, in a pack and on another device; one level more is refused at the commit',
  async (_way, commit) => {
    await using world = await createWorld({ schema, seed: 71 });
    const [ana, ben] = [await world.device('ana'), await world.device('ben')];
    await world.settle();
    ana.offline();
    const taken: number[] = [];
    for (let levels = DEEPEST - 3; levels <= LIMITS.jsonDepthMax + 1; levels += 1)
      try {
        await commit(ana, levels);
        taken.push(levels);
      } catch (cause) {
        expect(cause).toMatchObject({ code: 'invalid-change' });
        expect(JSON.stringify(cause)).toContain('nested deeper');
      }
    expect(taken).toEqual([DEEPEST - 3, DEEPEST - 2, DEEPEST - 1, DEEPEST]);
    const pack = await ana.replica.pack();
    expect(await ana.replica.unpack(pack)).toMatchObject({ batches: 0 });
    ana.online();
    await world.settle();
    expect(ana.replica.status.current).toMatchObject({ unsent: 0, attention: 0 });
    await world.converged();
    const bodies = (device: Device) => device.replica.query((db) => db.selectFrom('note').select(['id', 'body']));
    expect(await bodies(ben)).toEqual(await bodies(ana));
  },
);
