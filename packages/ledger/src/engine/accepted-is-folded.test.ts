import type { Change, EventDraft, Json, PushOperation } from '@holdfast/core';
import { expect, test } from 'vitest';
import { Author } from './drafts.fixture.ts';
import { REF, world } from './world.fixture.ts';

/** A small generator with a name: the same seed, the same log. */
function draws(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function changeBy(draw: (below: number) => number): Change {
  const value: Json = ['x', 'y', 1, 2, true, { a: 1 }][draw(6)] as Json;
  const field = ['title', 'toString', 'valueOf'][draw(3)] as string;
  const set = { [field]: value };
  switch (draw(9)) {
    case 0:
      return { op: 'create', fields: { title: value, tags: [], votes: 0 } };
    case 1:
      return { op: 'delete' };
    case 2:
      return { op: 'restore', fields: { title: value } };
    case 3:
      return { op: 'put', set };
    case 4:
      return { op: 'update', inc: { votes: draw(5) - 2 } };
    case 5:
      return { op: 'update', add: { tags: [value] } };
    case 6:
      return { op: 'update', remove: { tags: [value] } };
    case 7:
      return { op: 'update', unset: [field] };
    default:
      return { op: 'update', set, rules: { [field]: (['last', 'max', 'min'] as const)[draw(3)] as 'last' } };
  }
}

test.each([1, 2, 3, 4])(
  '[EV6 DG2 DG1] whatever is accepted, state, signature and chain are those of the log (seed %i)',
  async (seed) => {
    await using w = world();
    const draw = draws(seed);
    const authors = ['a', 'b', 'c'].map((name) => new Author(name));
    const versions = new Map<string, number>();
    let accepted = 0;
    for (let round = 0; round < 60; round += 1) {
      const author = authors[draw(3)] as Author;
      const operations = Array.from({ length: 4 }, () => {
        const entityId = `e${draw(3)}`;
        const last = versions.get(entityId) ?? 0;
        const event = (prior?: EventDraft): EventDraft => {
          const change = changeBy(draw);
          const base = change.op === 'create' && prior === undefined ? 0 : Math.max(0, last - draw(3));
          return author.draft(change, {
            entityId,
            base,
            ...(prior === undefined ? {} : { prior: prior.id, base: prior.base }),
          });
        };
        const first = event();
        return author.operation(draw(2) === 0 ? [first] : [first, event(first)]);
      });
      for (const [at, result] of (await w.push(author, operations)).entries()) {
        expect(result.status === 'refused' && result.code === 'internal').toBe(false);
        if (result.status !== 'accepted') continue;
        accepted += 1;
        const first = (operations[at] as PushOperation).events[0] as EventDraft;
        versions.set(first.entityId, result.entityVersions.at(-1) as number);
      }
    }
    expect(accepted).toBeGreaterThan(20);
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  },
);
