import type { StoredEvent } from '@holdfast/core';
import { expect, test } from 'vitest';
import { calmWorld, invariants } from './calm-world.fixture.ts';
import { checkQuiet, checkStep } from './checkers.ts';
import { checkEntityChains, checkOwnOrder, compareNotes, foldPlainly } from './oracle.ts';
import { checkSymmetry } from './oracle-symmetry.ts';
import type { World } from './world.ts';

/** A checker that cannot fail is a defect: each is shown the violation that it is for. */
const stored = (version: number, actionId: string, entityVersion: number, more: Partial<StoredEvent> = {}) =>
  ({
    version,
    actionId,
    entityVersion,
    base: entityVersion - 1,
    entityType: 'note',
    entityId: 'n',
    change: { op: 'create', fields: { title: 'one' } },
    ...more,
  }) as StoredEvent;
test('[I10] a fork in an entity, and a base that never stood, are found', () => {
  expect(checkEntityChains([stored(1, 'a', 1), stored(2, 'b', 2)])).toEqual([]);
  expect(invariants(checkEntityChains([stored(1, 'a', 1), stored(2, 'b', 1)]))).toEqual(['I10']);
  expect(invariants(checkEntityChains([stored(1, 'a', 1, { base: 4 })]))).toEqual(['I10']);
});

test('[I17] own work in another order than it was committed is found', () => {
  const events = [stored(1, 'a', 1), stored(2, 'b', 2)];
  expect(checkOwnOrder('x', ['a', 'b'], events)).toEqual([]);
  expect(invariants(checkOwnOrder('x', ['b', 'a'], events))).toEqual(['I17']);
});

test('[I15] what would be another if it had come first is found, but for what the last one decides', () => {
  const made = stored(1, 'a', 1, {
    id: 'a',
    actor: 'ana',
    change: { op: 'create', fields: { title: 'one', votes: 1 } },
  });
  /** Of ana and of ben, each on what `made` has left. */
  const both = (anas: StoredEvent['change'], bens: StoredEvent['change'], base = 1) => {
    const events = [
      made,
      stored(2, 'b', 2, { id: 'b', actor: 'ana', base: 1, change: anas }),
      stored(3, 'c', 3, { id: 'c', actor: 'ben', base, change: bens }),
    ];
    const said = new Map([['c', events.slice(2)]]);
    return invariants(checkSymmetry({ name: 'x', account: 'ben', said }, events));
  };
  const title = (value: string, rule?: 'last') => ({
    op: 'update' as const,
    set: { title: value },
    ...(rule === undefined ? {} : { rules: { title: rule } }),
  });
  expect(both(title('two'), title('three'))).toEqual(['I15']);
  expect(both(title('two'), { op: 'update', unset: ['title'] })).toEqual(['I15']);
  expect(both({ op: 'update', add: { tags: ['a'] } }, { op: 'update', remove: { tags: ['a'] } })).toEqual(['I15']);
  // He had seen it; both say the same; they are about different fields, or add up; a rule says who counts.
  expect(both(title('two'), title('three'), 2)).toEqual([]);
  expect(both(title('two'), title('two'))).toEqual([]);
  expect(both(title('two'), { op: 'update', set: { body: 'b' }, inc: { votes: 1 } })).toEqual([]);
  expect(both({ op: 'update', inc: { votes: 1 } }, { op: 'update', inc: { votes: 2 } })).toEqual([]);
  expect(both(title('two', 'last'), title('three', 'last'))).toEqual([]);
});

test('[I12] the plain oracle folds what each kind of change does, and finds a row that differs', () => {
  const events = [
    stored(1, 'a', 1, { change: { op: 'create', fields: { title: 'one', body: 'b', tags: ['a'] } } }),
    stored(2, 'b', 2, { change: { op: 'update', set: { title: 'two' }, unset: ['body'], inc: { votes: 2 } } }),
    stored(3, 'c', 3, { change: { op: 'update', add: { tags: ['c'] }, remove: { tags: ['a'] } } }),
    stored(4, 'd', 4, { change: { op: 'update', set: { level: 3 }, rules: { level: 'max' } } }),
    stored(5, 'e', 5, { change: { op: 'update', set: { level: 1 }, rules: { level: 'max' } } }),
  ];
  const said = foldPlainly(events);
  expect(said.get('n')).toEqual({ title: 'two', status: 'open', level: 3, body: null, tags: ['c'], votes: 2 });
  expect(compareNotes('x', said, said)).toEqual([]);
  expect(invariants(compareNotes('x', foldPlainly(events.slice(0, 4)), foldPlainly(events.slice(0, 3))))).toEqual([
    'I12',
  ]);
  expect(invariants(compareNotes('x', new Map(), said))).toEqual(['I12']);
});

test('[I09 I11 I12 I25 I30] what a file or a status says wrongly is found', async () => {
  const { world, end } = await calmWorld();
  const [ana, ben] = world.devices as [World['devices'][0], World['devices'][1]];
  expect(await checkQuiet(world)).toEqual([]);
  ana.resolved.add('a commit that is nowhere');
  expect(invariants(checkStep(world))).toEqual(['I25']);
  ana.resolved.delete('a commit that is nowhere');
  const seen = ben.seenAt.get('main');
  if (seen !== undefined) ben.seenAt.set('main', { ...seen, head: 99 });
  expect(invariants(checkStep(world))).toEqual(['I09']);
  ben.engine?.database.exec("UPDATE main.note SET title = 'other'");
  const found = invariants(await checkQuiet(world));
  expect(found).toContain('I11');
  expect(found).toContain('I12');
  end();
});

test('[I04 I05] a ledger that takes what it has once more is found', async () => {
  const { world, end } = await calmWorld();
  const [ana] = world.devices as [World['devices'][0]];
  expect(ana.pushes.length).toBeGreaterThan(0);
  const honest = world.ledger.fetch;
  let first: string | undefined;
  // It looks at nothing but the url, and counts wrongly.
  Object.assign(world.ledger, {
    fetch: async (url: string, request: Parameters<typeof honest>[1]) => {
      first ??= request.body;
      const answer = await honest(url, first === undefined ? request : { ...request, body: first });
      const text = (await answer.text()).replace(/"firstVersion":\d+/, '"firstVersion":99');
      return { ...answer, text: () => Promise.resolve(text) };
    },
  });
  const found = invariants(await checkQuiet(world));
  expect(found).toContain('I04');
  expect(found).toContain('I05');
  end();
});

test('[I30] who says live and stands behind the ledger is found', async () => {
  const { world, end } = await calmWorld();
  const [ana, ben] = world.devices as [World['devices'][0], World['devices'][1]];
  ben.network.rules.fromLedger = false;
  ana.commit((tx) => tx.note.create({ title: 'three' }));
  await world.time.advance(5_000);
  expect(ben.engine?.sync.status.phase).toBe('live');
  expect(invariants(await checkQuiet(world))).toContain('I30');
  end();
});
