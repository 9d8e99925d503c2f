import { describe, expect, test } from 'vitest';
import { Author } from './drafts.fixture.ts';
import { fieldsOf, REF, world } from './world.fixture.ts';

describe('merge at the ledger', () => {
  const prepared = async () => {
    const w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(a, a.create('e1', { title: 'one', body: 'x', votes: 0, tags: [] }));
    await w.accept(b, b.set('e1', { title: 'theirs' }, 1));
    return { w, a, b };
  };

  test('[LG4 MG3] other fields merge; the same field clashes, with the entity, its version and its last log version', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    await w.accept(new Author('c'), new Author('c2').create('elsewhere'));
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'mine' }, 1)])])).toMatchObject([{ status: 'accepted' }]);
    expect(await fieldsOf(w, 'e1')).toMatchObject({ title: 'theirs', body: 'mine' });
    expect(await w.push(a, [a.operation([a.set('e1', { title: 'mine' }, 1)])])).toMatchObject([
      { code: 'version-conflict', details: { type: 'issue', id: 'e1', entityVersion: 3, logVersion: 4 } },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { title: 'theirs' }, 1)])])).toMatchObject([
      { status: 'accepted' },
    ]);
  });

  test('[LG4 MG1] only an operation that says so is merged', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'mine' }, 1)], { merge: 'author' })])).toMatchObject([
      { code: 'version-conflict' },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'mine' }, 2)], { merge: 'author' })])).toMatchObject([
      { status: 'accepted' },
    ]);
  });

  test('[LG4] what an author made on his own chain is not theirs', async () => {
    const { w, a, b } = await prepared();
    await using _ = w;
    const first = a.set('e1', { body: '1' }, 2);
    const second = a.set('e1', { body: '2' }, 2, first.id);
    await w.accept(a, first);
    await w.accept(b, b.set('e1', { title: 'b' }, 3));
    expect(await w.push(a, [a.operation([second])])).toMatchObject([{ status: 'accepted' }]);
    // Without the prior the same change would stand against the first one.
    expect(await w.push(a, [a.operation([a.set('e1', { body: '3' }, 2)])])).toMatchObject([
      { code: 'version-conflict' },
    ]);
  });

  test('[LG4] a prior or a need that is not accepted: prior-missing; a base that is not there: base-ahead', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 2, a.id())])])).toMatchObject([
      { code: 'prior-missing' },
    ]);
    expect(await w.push(a, [a.operation([a.create('e2')], { needs: [a.id()] })])).toMatchObject([
      { code: 'prior-missing' },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 3)])])).toMatchObject([
      { code: 'base-ahead', details: { base: 3, entityVersion: 2 } },
    ]);
    // A version that this very operation makes is none that its author can have seen confirmed.
    const one = a.set('e1', { body: 'm' }, 2);
    expect(await w.push(a, [a.operation([one, a.set('e1', { body: 'n' }, 3, one.id)])])).toMatchObject([
      { code: 'base-ahead' },
    ]);
    const needed = a.operation([a.create('e3')]);
    expect(await w.push(a, [needed, a.operation([a.create('e4')], { needs: [needed.actionId] })])).toMatchObject([
      { status: 'accepted' },
      { status: 'accepted' },
    ]);
    const wrong = a.set('e3', { title: 'x' }, 1, needed.events[0]?.id);
    expect(await w.push(a, [a.operation([{ ...wrong, entityId: 'e4' }])])).toMatchObject([{ code: 'invalid-event' }]);
  });

  test('[LG4] events of one operation that contradict each other; a reference that must exist', async () => {
    const { w, a } = await prepared();
    await using _ = w;
    const one = a.set('e1', { body: 'm' }, 2);
    expect(await w.push(a, [a.operation([one, a.set('e1', { body: 'n' }, 2)])])).toMatchObject([
      { code: 'entity-version-chain' },
    ]);
    const requires = (id: string) => ({ requires: [['issue', id]] as const });
    expect(await w.push(a, [a.operation([a.create('e5')], requires('e9'))])).toMatchObject([
      { code: 'missing-reference', details: { type: 'issue', id: 'e9' } },
    ]);
    expect(await w.push(a, [a.operation([a.create('e5')], requires('e1'))])).toMatchObject([{ status: 'accepted' }]);
    expect(await w.push(a, [a.operation([a.create('e6')], requires('e6'))])).toMatchObject([{ status: 'accepted' }]);
    await w.accept(a, a.draft({ op: 'delete' }, { base: 2 }));
    expect(await w.push(a, [a.operation([a.create('e7')], requires('e1'))])).toMatchObject([
      { code: 'missing-reference' },
    ]);
  });

  test('[LG4 MG2] an equal change of both is the same, and has no effect', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(a, a.create('e1', { title: 'one' }));
    expect((await w.accept(b, b.create('e1', { title: 'one' }))).entityVersions).toEqual([2]);
    expect(await w.push(b, [b.operation([b.create('e1', { title: 'two' })])])).toMatchObject([
      { code: 'version-conflict' },
    ]);
    await w.accept(a, a.draft({ op: 'delete' }, { base: 2 }));
    await w.accept(b, b.draft({ op: 'delete' }, { base: 2 }));
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[LG4] more of theirs than anybody looks at is a conflict for the replica to judge', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    await w.accept(a, a.create('e1', { title: 'one', body: 'x' }));
    let base = 1;
    for (let round = 0; round < 2; round += 1) {
      let prior: string | undefined;
      const own = base;
      const events = Array.from({ length: 501 }, (_, at) => {
        const event = b.set('e1', { title: `${round} ${at}` }, own, prior);
        prior = event.id;
        return event;
      });
      await w.accept(b, ...events);
      base += 501;
    }
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 1)])])).toMatchObject([
      { code: 'version-conflict', details: { entityVersion: 1003, logVersion: 1003 } },
    ]);
    expect(await w.push(a, [a.operation([a.set('e1', { body: 'm' }, 3)])])).toMatchObject([{ status: 'accepted' }]);
  });
});
