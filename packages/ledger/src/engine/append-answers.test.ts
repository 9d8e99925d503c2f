import { chainStart } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { createNodePlatform } from '../adapters/node/platform.ts';
import { Author } from './drafts.fixture.ts';
import { ANA, answerOf, REF, refusalOf, world } from './world.fixture.ts';

describe('answers', () => {
  test('[DG1 DG4 DG5] chain, attest and epoch stand in every position that is told', async () => {
    const logKey = new Uint8Array(32).fill(7);
    await using w = world({ logKey });
    const a = new Author('a');
    const answer = await w.pushed(a, [a.operation([a.create('e1')])]);
    const { digest } = createNodePlatform();
    const log = await w.store.log(REF);
    expect((await w.start()).chain).not.toBe(chainStart(log?.identity as string, digest));
    expect(answer.through.attest).toMatch(/^[0-9a-f]{64}$/);
    expect(answer.through).toEqual(answerOf(await w.engine.events(ANA, REF, { after: 0 })).through);
    expect(answerOf(await w.engine.entities(ANA, REF, {})).asOf).toEqual(answer.through);
    await using plain = world();
    expect((await plain.pushed(a, [a.operation([a.create('e1')])])).through.attest).toBeUndefined();
  });

  test('[PG1] a push answer brings what the sender lacks, his own as references', async () => {
    await using w = world();
    const a = new Author('a');
    const b = new Author('b');
    const start = await w.start();
    await w.accept(b, b.create('b1'), b.create('b2'));
    const own = a.operation([a.create('a1'), a.create('a2')]);
    const answer = await w.pushed(a, [own], start);
    expect(answer).toMatchObject({ head: 4, more: false, through: { version: 4 } });
    expect(answer.events.map((event) => ('entityId' in event ? [event.version, event.entityId] : event))).toEqual([
      [1, 'b1'],
      [2, 'b2'],
      { version: 3, requestId: own.requestId, index: 0 },
      { version: 4, requestId: own.requestId, index: 1 },
    ]);
    // From another replica the same operation is somebody else's.
    const copy = await w.pushed(new Author('c'), [own], start);
    expect(copy.events.every((event) => 'entityId' in event)).toBe(true);
    // Nothing new: the position stays.
    const head = await w.head();
    expect(await w.pushed(a, [own], head)).toMatchObject({ events: [], through: { version: 4, chain: head.chain } });
  });

  test('[PG1] an answer holds at most a page of whole operations, and says that there is more', async () => {
    await using w = world();
    const b = new Author('b');
    const start = await w.start();
    for (const count of [300, 200, 20])
      await w.accept(b, ...Array.from({ length: count }, (_, at) => b.create(`${count}-${at}`)));
    const a = new Author('a');
    const answer = await w.pushed(a, [a.operation([a.create('a1')])], start);
    expect([answer.events.length, answer.through.version, answer.head, answer.more]).toEqual([500, 500, 521, true]);
    await using again = await w.restart();
    const later = await again.pushed(new Author('a', 2), [a.operation([a.create('a2')])], start);
    expect([later.events.length, later.through.version, later.head]).toEqual([500, 500, 522]);
  });

  test('[LG11] refused and absent look alike to who reads', async () => {
    await using w = world({ createOnFirstUse: false });
    await w.engine.createWorkspace('acme');
    const absent = { workspace: 'acme', log: 'none' };
    const refusals = [
      refusalOf(await w.engine.events(ANA, absent, { after: 0 })),
      refusalOf(await w.engine.entities(ANA, absent, {})),
      refusalOf(await w.engine.history(ANA, { workspace: 'none', log: 'main' }, { type: 'issue', id: 'e1' })),
    ];
    expect(new Set(refusals.map((refused) => JSON.stringify(refused))).size).toBe(1);
    expect(refusals[0]).toMatchObject({ status: 404, refusal: { code: 'not-found' } });
  });
});
