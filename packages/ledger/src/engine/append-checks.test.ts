import { describe, expect, test } from 'vitest';
import { Author } from './drafts.fixture.ts';
import { ANA, BEN, READER, REF, world } from './world.fixture.ts';

describe('order of checks', () => {
  test('[LG11] a reader may not push, whatever he sends', async () => {
    await using w = world();
    const a = new Author('a');
    expect(await w.send(a.request(await w.head(), [a.operation([a.create('e1')])]), READER)).toMatchObject({
      status: 403,
      refusal: { code: 'not-allowed' },
    });
    expect(await w.send('nonsense', READER)).toMatchObject({ status: 403 });
  });

  test('[LG11] a log that does not exist', async () => {
    await using w = world({ createOnFirstUse: false });
    await w.engine.createWorkspace('acme');
    const a = new Author('a');
    const request = a.request({ epoch: 'e', version: 0, chain: '0'.repeat(64) }, [a.operation([a.create('e1')])]);
    expect(await w.send(request, ANA, { workspace: 'acme', log: 'none' })).toMatchObject({ status: 404 });
    expect(await w.send(request, ANA, { workspace: 'none', log: 'main' })).toMatchObject({ status: 404 });
  });

  test('[LG11 DG5] a position that is not in the log refuses the whole request; nothing is judged, no fence is taken', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1'));
    const head = await w.head();
    const operation = a.operation([a.create('e2')]);
    for (const wrong of [
      { ...head, chain: 'f'.repeat(64) },
      { ...head, version: 2 },
      { ...head, version: 0 },
    ])
      expect(await w.send(a.request(wrong, [operation], { generation: 9, permit: 99 }))).toMatchObject({
        status: 409,
        refusal: { code: 'history-changed', details: { head: 1 } },
      });
    // The epoch does not decide, and generation 1 is still the highest.
    expect(await w.send(a.request({ ...head, epoch: 'another' }, [operation]))).toMatchObject({
      results: [{ status: 'accepted' }],
    });
  });

  test('[LG8] a replica belongs to its account; lower generations and second copies are told so', async () => {
    await using w = world();
    const a = new Author('a', 2, 'host-1');
    await w.accept(a, a.create('e1'));
    const operation = a.operation([a.create('e2')]);
    const head = await w.head();
    expect(await w.send(a.request(head, [operation]), BEN)).toMatchObject({ refusal: { code: 'other-account' } });
    expect(await w.send(a.request(head, [operation], { generation: 1 }))).toMatchObject({
      refusal: { code: 'stale-generation', details: { generation: 2 } },
    });
    expect(await w.send(a.request(head, [operation], { instance: 'host-2' }))).toMatchObject({
      refusal: { code: 'replica-cloned' },
    });
    expect((await w.head()).version).toBe(1);
    expect(await w.send(a.request(head, [operation], { generation: 3, instance: 'host-2' }))).toMatchObject({
      results: [{ status: 'accepted' }],
    });
    expect(await w.send(a.request(head, [a.operation([a.create('e3')])]))).toMatchObject({
      refusal: { code: 'stale-generation' },
    });
  });

  test('[F181 LG2] the request id of somebody else gives nothing of his away, changes nothing, and is nothing in another log', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    const first = a.operation([a.create('e1', { title: 'a secret' })]);
    await w.push(a, [first]);
    const stolen = b.operation([b.create('e2')], { requestId: first.requestId });
    expect(await w.push(b, [stolen], BEN)).toEqual([
      {
        requestId: first.requestId,
        status: 'refused',
        code: 'idempotency-mismatch',
        details: { requestId: first.requestId },
      },
    ]);
    expect((await w.head()).version).toBe(1);
    expect(await w.push(a, [first])).toMatchObject([{ status: 'accepted', firstVersion: 1 }]);
    const team = { workspace: 'acme', log: 'team' };
    expect(await w.send(b.request(await w.head(team), [stolen]), BEN, team)).toMatchObject({
      results: [{ status: 'accepted', firstVersion: 1 }],
    });
  });

  test('[LG8] a permit number that does not grow is refused, but for a repeat of remembered work', async () => {
    await using w = world();
    const a = new Author('a');
    const head = await w.head();
    const first = a.operation([a.create('e1')]);
    expect(await w.send(a.request(head, [first], { permit: 5 }))).toMatchObject({ results: [{ status: 'accepted' }] });
    const second = a.operation([a.create('e2')]);
    for (const permit of [4, 5])
      expect(await w.send(a.request(head, [second], { permit }))).toMatchObject({
        refusal: { code: 'stale-permit', details: { highest: 5 } },
      });
    expect(await w.send(a.request(head, [first], { permit: 4 }))).toMatchObject({ results: [{ firstVersion: 1 }] });
    expect(await w.send(a.request(head, [first, second], { permit: 5 }))).toMatchObject({
      refusal: { code: 'stale-permit' },
    });
    expect((await w.head()).version).toBe(1);
    expect(await w.send(a.request(head, [second], { permit: 6 }))).toMatchObject({ results: [{ status: 'accepted' }] });
    // A new generation counts from the beginning.
    expect(await w.send(a.request(head, [a.operation([a.create('e3')])], { generation: 2, permit: 1 }))).toMatchObject({
      results: [{ status: 'accepted' }],
    });
    await using again = await w.restart();
    expect(
      await again.send(a.request(head, [a.operation([a.create('e4')])], { generation: 2, permit: 1 })),
    ).toMatchObject({
      refusal: { code: 'stale-permit' },
    });
  });

  test('[LG11 F103] a remembered result costs no quota; what is new does', async () => {
    let isOver = false;
    await using w = world({ quota: () => (isOver ? { retryAfterMs: 9_000 } : undefined) });
    const a = new Author('a');
    const first = a.operation([a.create('e1')]);
    await w.push(a, [first]);
    isOver = true;
    expect(await w.push(a, [first, a.operation([a.create('e2')])])).toMatchObject([
      { status: 'accepted' },
      { code: 'quota-exceeded', details: { retryAfterMs: 9_000 } },
    ]);
  });

  test('[LG14] admit sees before, after and changed, and may refuse with a field', async () => {
    const seen: unknown[] = [];
    await using w = world({
      admit: (change, actor) => {
        seen.push([change.type, change.before?.fields, change.after?.fields, change.changed, actor.account]);
        return change.before !== undefined && change.before.createdBy !== actor.account
          ? { reason: 'not-yours', message: 'Only its author may change it.', field: 'title' }
          : undefined;
      },
    });
    const a = new Author('a');
    await w.push(a, [a.operation([a.create('e1', { title: 'one', body: 'x' })])]);
    const edit = a.operation([a.set('e1', { title: 'two', body: 'x' }, 1)]);
    const b = new Author('b');
    expect(await w.push(b, [b.operation([b.set('e1', { title: 'no' }, 1)])], BEN)).toMatchObject([
      {
        code: 'not-admitted',
        message: 'Only its author may change it.',
        details: { reason: 'not-yours', field: 'title' },
      },
    ]);
    expect(await w.push(a, [edit])).toMatchObject([{ status: 'accepted' }]);
    expect(seen).toEqual([
      ['issue.created', undefined, { title: 'one', body: 'x' }, ['body', 'title'], 'ana'],
      ['issue.updated', { title: 'one', body: 'x' }, { title: 'no', body: 'x' }, ['title'], 'ben'],
      ['issue.updated', { title: 'one', body: 'x' }, { title: 'two', body: 'x' }, ['title'], 'ana'],
    ]);
    expect((await w.engine.verify(REF))?.problems).toEqual([]);
  });

  test('[F117 LG14] a right that ends after the change was made is asked for when it is accepted, at each change alone', async () => {
    const may = new Set(['e1', 'e2', 'e3']);
    await using w = world({
      admit: ({ entityId: id }) => {
        const reason = may.has(id) ? undefined : { reason: 'not-yours', message: 'No more.' };
        // Whoever is judged next in the same transaction meets what this one left.
        if (id === 'e1') may.delete('e2');
        return reason;
      },
    });
    const a = new Author('a');
    const made = a.request(
      await w.head(),
      ['e1', 'e2', 'e3'].map((id) => a.operation([a.create(id)])),
    );
    may.delete('e3');
    expect(await w.send(made)).toMatchObject({
      results: [{ status: 'accepted' }, { code: 'not-admitted' }, { code: 'not-admitted' }],
    });
    expect((await w.head()).version).toBe(1);
  });

  test('[LG14] an admit that answers later is a defect, never an acceptance', async () => {
    await using w = world({ admit: () => Promise.resolve(undefined) as never });
    const a = new Author('a');
    expect(await w.push(a, [a.operation([a.create('e1')])])).toMatchObject([{ code: 'internal' }]);
    expect((await w.head()).version).toBe(0);
  });
});
