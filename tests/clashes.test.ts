import { defineSchema, entity, integer, ref, text } from '@holdfast/core';
import { createWorld, type WorldDevice } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';

/** What becomes of work of several people on one thing: every order of arrival, on whole devices around one ledger. */
const schema = defineSchema({
  issue: entity(
    {
      title: text(),
      body: text({ optional: true }),
      low: integer({ default: 0, onClash: 'last' }),
      high: integer({ default: 0, onClash: 'last' }),
    },
    // Two fields that merge one by one, and are wrong together.
    { rules: (r) => ({ 'one side only': r.any(r.is('low', 0), r.is('high', 0)) }) },
  ),
  asked: entity({ title: text(), body: text({ optional: true }) }, { editedWhileDeleted: 'ask' }),
  gone: entity({ title: text(), body: text({ optional: true }) }, { editedWhileDeleted: 'delete' }),
  kept: entity({ title: text(), body: text({ optional: true }) }, { editedWhileDeleted: 'keep' }),
  list: entity({ name: text() }),
  // A card is nothing without its list.
  card: entity({ title: text(), list: ref('list') }),
});
type Schema = typeof schema;
type Device = WorldDevice<Schema>;
type Kind = 'asked' | 'gone' | 'kept';

const ORDERS = [
  ['ana', 'ben', 'cyd'],
  ['ana', 'cyd', 'ben'],
  ['ben', 'ana', 'cyd'],
  ['ben', 'cyd', 'ana'],
  ['cyd', 'ana', 'ben'],
  ['cyd', 'ben', 'ana'],
] as const;
const NAMES = ['ana', 'ben', 'cyd'] as const;

async function three(seed: number) {
  const world = await createWorld({ schema, seed });
  const devices = Object.fromEntries(
    await Promise.all(NAMES.map(async (name) => [name, await world.device(name)] as const)),
  ) as Readonly<Record<(typeof NAMES)[number], Device>>;
  await world.settle();
  return { world, devices, all: NAMES.map((name) => devices[name]) };
}
type Three = Awaited<ReturnType<typeof three>>;

/** All three work without a network; then one after the other comes back, in that order. */
async function apart(
  { world, devices, all }: Three,
  order: readonly (typeof NAMES)[number][],
  work: (device: Device) => PromiseLike<unknown>,
): Promise<void> {
  for (const device of all) device.offline();
  for (const device of all) await work(device);
  for (const name of order) {
    devices[name].online();
    await world.settle();
  }
}

const answers = async ({ replica }: Device) => (await replica.desk.list()).filter(({ needs }) => needs === 'answer');
const issues = ({ replica }: Device) =>
  replica.query((db) =>
    db.selectFrom('issue').select(['title', 'body', 'low', 'high', 'sync']).orderBy('title').orderBy('body'),
  );
const titlesOf = ({ replica }: Device, kind: Kind) =>
  replica.query((db) => db.selectFrom(kind).select(['title', 'body']).orderBy('title'));

test('[F140 MG2] one field, three devices, three texts: whoever comes first has it, the other texts wait for their authors', async () => {
  for (const [at, order] of ORDERS.entries()) {
    const here = await three(100 + at);
    await using _ = here.world;
    const id = await here.devices.ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
    await here.world.settle();
    await apart(here, order, ({ name, replica }) =>
      replica.commit((tx) => tx.issue.update(id, { title: `of ${name}` })),
    );
    for (const device of here.all) {
      expect(await issues(device)).toMatchObject([{ title: `of ${order[0]}` }]);
      const waits = (await answers(device)).map(({ kind, fields }) => [kind, fields[0]?.base, fields[0]?.mine]);
      expect([order, device.name, waits]).toEqual([
        order,
        device.name,
        device.name === order[0] ? [] : [['clash', 'A', `of ${device.name}`]],
      ]);
    }
  }
});

test('[F141 I15 MG3] other fields, three devices: all three hold, the same in whatever order they come', async () => {
  for (const [at, order] of ORDERS.entries()) {
    const here = await three(110 + at);
    await using _ = here.world;
    const id = await here.devices.ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
    await here.world.settle();
    const writes = { ana: { title: 'of ana' }, ben: { body: 'of ben' }, cyd: { low: 3 } } as const;
    await apart(here, order, ({ name, replica }) => replica.commit((tx) => tx.issue.update(id, writes[name as 'ana'])));
    for (const device of here.all) {
      expect(await issues(device)).toEqual([{ title: 'of ana', body: 'of ben', low: 3, high: 0, sync: 'synced' }]);
      expect(await device.replica.desk.list()).toEqual([]);
    }
    expect(await here.world.converged()).toBe(true);
  }
});

test('[F142 MG2] one value from three devices is one change: nobody is asked or told, and a reader sees it once', async () => {
  const here = await three(120);
  await using _ = here.world;
  const id = await here.devices.ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await here.world.settle();
  const reader = await here.world.device('eve');
  await here.world.settle();
  using live = reader.replica.live((db) => db.selectFrom('issue').select(['title']));
  const seen: (string | undefined)[] = [];
  live.subscribe(({ rows }) => void seen.push(rows[0]?.title));
  await here.world.advance(50);
  await apart(here, ['cyd', 'ana', 'ben'], ({ replica }) =>
    replica.commit((tx) => tx.issue.update(id, { title: 'B' })),
  );
  expect(seen.filter((title, place) => title !== seen[place - 1])).toEqual(['A', 'B']);
  expect(seen.filter((title) => title === 'B')).toHaveLength(1);
  for (const device of here.all) {
    expect(await issues(device)).toMatchObject([{ title: 'B', sync: 'synced' }]);
    expect(await device.replica.desk.list()).toEqual([]);
  }
  expect(await here.world.converged()).toBe(true);
});

/** By what the type says of an edit of what was deleted: what is there in the end, and who hears of it how. */
const DELETED = {
  asked: { isThere: { edit: true, delete: false }, waits: { edit: ['ben'], delete: ['ana'] } },
  gone: { isThere: { edit: false, delete: false }, waits: { edit: [], delete: [] } },
  kept: { isThere: { edit: true, delete: true }, waits: { edit: [], delete: [] } },
} as const;

test.each(['asked', 'gone', 'kept'] as const)(
  '[F143 MG5] edit against delete, of a type whose edited is %s: one rule in both orders, and no text is lost unsaid',
  async (kind) => {
    for (const first of ['edit', 'delete'] as const) {
      const here = await three(first === 'edit' ? 130 : 131);
      await using _ = here.world;
      const { ana, ben } = here.devices;
      const id = await ana.replica.commit((tx) => tx[kind].create({ title: 'A', body: 'stands' }));
      await here.world.settle();
      await apart(here, first === 'edit' ? ['ana', 'ben', 'cyd'] : ['ben', 'ana', 'cyd'], async ({ name, replica }) => {
        if (name === 'ana') await replica.commit((tx) => tx[kind].update(id as never, { title: 'edited' } as never));
        if (name === 'ben') await replica.commit((tx) => tx[kind].delete(id as never));
      });
      const rows = DELETED[kind].isThere[first] ? [{ title: 'edited', body: 'stands' }] : [];
      for (const device of here.all) expect([first, await titlesOf(device, kind)]).toEqual([first, rows]);
      const waiting = (
        await Promise.all(here.all.map(async (one) => ((await answers(one)).length > 0 ? one.name : '')))
      ).filter((name) => name !== '');
      expect([first, waiting]).toEqual([first, DELETED[kind].waits[first]]);
      // Whoever was overruled has it on the desk: as a question, or told.
      const told = (await Promise.all([ana, ben].map(({ replica }) => replica.desk.list()))).flat();
      expect([first, told.length]).toEqual([first, 1]);
    }
  },
);

test.each(['asked', 'gone', 'kept'] as const)(
  '[F143 MG5] of a type whose edited is %s: two who delete agree; what was deleted comes back once when two bring it back alike',
  async (kind) => {
    const here = await three(135);
    await using _ = here.world;
    const { ana } = here.devices;
    const id = await ana.replica.commit((tx) => tx[kind].create({ title: 'A', body: 'stands' }));
    await here.world.settle();
    await apart(here, ['cyd', 'ana', 'ben'], ({ replica }) => replica.commit((tx) => tx[kind].delete(id as never)));
    for (const device of here.all) {
      expect(await titlesOf(device, kind)).toEqual([]);
      expect(await device.replica.desk.list()).toEqual([]);
    }
    await apart(here, ['ben', 'cyd', 'ana'], ({ replica }) => replica.commit((tx) => tx[kind].restore(id as never)));
    for (const device of here.all) {
      expect(await titlesOf(device, kind)).toEqual([{ title: 'A', body: 'stands' }]);
      expect(await answers(device)).toEqual([]);
    }
    expect(await here.world.converged()).toBe(true);
  },
);

test('[F144 MG4 SC9] fields that merge one by one and are wrong together, and a reference to what is gone, wait for a person', async () => {
  for (const order of [
    ['ana', 'ben', 'cyd'],
    ['ben', 'ana', 'cyd'],
  ] as const) {
    const here = await three(140);
    await using _ = here.world;
    const { ana } = here.devices;
    const [id, list] = await ana.replica.commit((tx) => {
      const of = tx.list.create({ name: 'L' });
      return [tx.issue.create({ title: 'A' }), of] as const;
    });
    await here.world.settle();
    await apart(here, order, async ({ name, replica }) => {
      if (name === 'ana') await replica.commit((tx) => tx.issue.update(id, { low: 1 }));
      if (name === 'ben') await replica.commit((tx) => tx.issue.update(id, { high: 1 }));
      if (name === 'ana') await replica.commit((tx) => void tx.list.delete(list));
      if (name === 'ben') await replica.commit((tx) => void tx.card.create({ title: 'in L', list }));
    });
    const second = here.devices[order[1]];
    const waits = (await answers(second)).map(({ kind, facts }) => `${kind} ${facts?.['rules'] ?? ''}`).sort();
    // Of card and list only the card can be wrong: a list may go whatever is in it.
    expect([order, waits]).toEqual([
      order,
      order[1] === 'ben' ? ['missing-reference ', 'rule one side only'] : ['rule one side only'],
    ]);
    for (const device of here.all)
      expect((await issues(device)).filter(({ low, high }) => low !== 0 && high !== 0)).toEqual([]);
  }
});

test('[F146 OB1 ST2] behind work that waits for a person: what is on it waits, in its order, and the rest flows', async () => {
  const here = await three(150);
  await using _ = here.world;
  const { ana, ben } = here.devices;
  const id = await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await here.world.settle();
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.update(id, { title: 'of ana' }));
  await here.world.settle();
  const same = [
    ben.replica.commit((tx) => tx.issue.update(id, { title: 'of ben' })),
    ben.replica.commit((tx) => tx.issue.update(id, { body: 'first' })),
    ben.replica.commit((tx) => tx.issue.update(id, { body: 'second' })),
  ];
  const other = ben.replica.commit((tx) => tx.issue.create({ title: 'other' }));
  await Promise.all([...same, other]);
  ben.online();
  await here.world.settle();
  const stateOf = async (write: { readonly id: string }) => (await ben.replica.write(write.id))?.state;
  expect(await stateOf(other)).toBe('ordered');
  expect(await answers(ben)).toMatchObject([{ kind: 'clash', held: 2 }]);
  for (const write of same) expect(await stateOf(write)).not.toBe('ordered');
  const [item] = await answers(ben);
  await ben.replica.desk.resolve(item?.id as string, 'mine');
  await here.world.settle();
  const versions = await Promise.all(same.slice(1).map((write) => write.ordered()));
  expect(versions[0]?.version).toBeLessThan(versions[1]?.version as number);
  for (const device of here.all)
    expect(await issues(device)).toMatchObject([{ title: 'of ben', body: 'second' }, { title: 'other' }]);
  expect(await here.world.converged()).toBe(true);
});

test('[F148 OB6] two decide one clash at once: alike is silent, otherwise the second is asked again, and no text is lost', async () => {
  for (const [seed, choices] of [
    [160, { ana: { title: 'agreed' }, ben: { title: 'agreed' } }],
    [161, { ana: 'mine', ben: 'mine' }],
  ] as const) {
    const here = await three(seed);
    await using _ = here.world;
    const { ana, ben, cyd } = here.devices;
    const id = await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
    await here.world.settle();
    await apart(here, ['cyd', 'ana', 'ben'], ({ name, replica }) =>
      replica.commit((tx) => tx.issue.update(id, { title: `of ${name}` })),
    );
    await apart(here, ['ana', 'ben', 'cyd'], async ({ name, replica }) => {
      if (name === 'cyd') return;
      const [item] = await replica.desk.list();
      expect(item?.fields).toMatchObject([{ mine: `of ${name}`, theirs: 'of cyd' }]);
      await replica.desk.resolve(item?.id as string, choices[name as 'ana']);
    });
    const agree = typeof choices.ana !== 'string';
    for (const device of here.all) expect(await issues(device)).toMatchObject([{ title: agree ? 'agreed' : 'of ana' }]);
    expect(await answers(ana)).toEqual([]);
    expect(await answers(cyd)).toEqual([]);
    expect((await answers(ben)).map(({ fields }) => [fields[0]?.mine, fields[0]?.theirs])).toEqual(
      agree ? [] : [['of ben', 'of ana']],
    );
    if (agree) expect(await here.world.converged()).toBe(true);
  }
});

test('[F150 IN4 LQ2] work that leaves the rows because it clashes leaves them whole, and the rows say why', async () => {
  const here = await three(170);
  await using _ = here.world;
  const { ana, ben } = here.devices;
  const [x, y] = await ana.replica.commit(
    (tx) => [tx.issue.create({ title: 'x' }), tx.issue.create({ title: 'y' })] as const,
  );
  await here.world.settle();
  ben.offline();
  await ana.replica.commit((tx) => tx.issue.update(x, { title: 'x of ana' }));
  await here.world.settle();
  await ben.replica.commit((tx) => {
    tx.issue.update(x, { title: 'x of ben' });
    tx.issue.update(y, { title: 'y of ben' });
  });
  const seen: string[] = [];
  using live = ben.replica.live((db) => db.selectFrom('issue').select(['title', 'sync']).orderBy('title'));
  live.subscribe(({ rows }) => {
    const now = rows.map(({ title, sync }) => `${title} ${sync}`).join(', ');
    if (now !== seen.at(-1)) seen.push(now);
  });
  await here.world.advance(50);
  ben.online();
  await here.world.settle();
  expect(seen).toEqual(['x of ben pending, y of ben pending', 'x of ana attention, y attention']);
  expect(await answers(ben)).toMatchObject([{ kind: 'clash', entity: { type: 'issue', id: x } }]);
});
