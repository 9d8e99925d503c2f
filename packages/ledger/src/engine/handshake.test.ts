import { type HandshakeAnswer, type HandshakeRequest, signatureOf } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { createNodePlatform } from '../adapters/node/platform.ts';
import { Author, wire } from './drafts.fixture.ts';
import { ANA, answerOf, BEN, READER, REF, refusalOf, type World, world } from './world.fixture.ts';

let permit = 100;
const request = (author: Author, more: Partial<HandshakeRequest> = {}): HandshakeRequest => {
  permit += 1;
  return { protocol: { min: 1, max: 1 }, replica: { ...author.replica, permit }, logs: [], ...more };
};
const meet = async (
  w: World,
  author: Author,
  more: Partial<HandshakeRequest> = {},
  actor = ANA,
): Promise<HandshakeAnswer> => answerOf(await w.engine.handshake(actor, 'acme', wire(request(author, more))));
const refused = async (w: World, author: Author, more: Partial<HandshakeRequest> = {}, actor = ANA) =>
  refusalOf(await w.engine.handshake(actor, 'acme', wire(request(author, more)))).refusal;

describe('positions', () => {
  test('[DG5] a position is in the log if its chain is; the epoch does not decide', async () => {
    await using w = world();
    const a = new Author('a');
    const start = await w.start();
    await w.accept(a, a.create('e1'));
    const one = await w.head();
    await w.accept(a, a.create('e2'));
    const two = await w.head();
    const standing = async (positions: readonly (typeof one)[]) =>
      (await meet(w, a, { logs: [{ log: 'main', positions }] })).logs[0];
    expect(await standing([two, one])).toMatchObject({
      status: 'ok',
      role: 'writer',
      head: { version: 2, chain: two.chain },
      epoch: two.epoch,
    });
    expect(await standing([one])).toMatchObject({ status: 'behind' });
    expect(await standing([{ ...one, epoch: 'another' }])).toMatchObject({ status: 'behind' });
    expect(await standing([start])).toMatchObject({ status: 'behind' });
    expect(await standing([])).toMatchObject({ status: 'behind' });
    const lost = { ...two, version: 3, chain: 'f'.repeat(64) };
    expect(await standing([lost, two, one])).toMatchObject({
      status: 'history-changed',
      commonVersion: 2,
      healing: false,
    });
    expect(await standing([lost, { ...two, chain: 'e'.repeat(64) }, one, start])).toMatchObject({ commonVersion: 1 });
    expect(await standing([lost])).toMatchObject({ status: 'history-changed', commonVersion: 0 });
    expect(await standing([{ ...two, chain: one.chain }, one])).toMatchObject({
      status: 'history-changed',
      commonVersion: 1,
    });
  });

  test('[DG2] the state signature is compared at the replica’s version', async () => {
    await using w = world();
    const a = new Author('a');
    const start = await w.start();
    const { digest } = createNodePlatform();
    await w.accept(a, a.create('e1', { title: 'one' }));
    const one = await w.head();
    const signature = signatureOf([{ type: 'issue', id: 'e1', version: 1, fields: { title: 'one' } }], digest);
    await w.accept(a, a.create('e2'));
    const at = async (position: typeof one, own?: string) => {
      const [log] = (
        await meet(w, a, {
          logs: [{ log: 'main', positions: [position], ...(own === undefined ? {} : { signature: own }) }],
        })
      ).logs;
      return log !== undefined && 'signature' in log ? log.signature : undefined;
    };
    expect(await at(one, signature)).toBe('equal');
    expect(await at(one, 'a'.repeat(64))).toBe('differs');
    expect(await at(one)).toBeUndefined();
    expect(await at(start, '0'.repeat(64))).toBe('equal');
    expect(await at(start, signature)).toBe('differs');
  });

  test('[F182 LG11] a log that is not there cannot be told from one that is not his', async () => {
    await using w = world({ createOnFirstUse: false });
    await w.engine.createWorkspace('acme');
    const a = new Author('a');
    expect(
      (
        await meet(w, a, {
          logs: [
            { log: 'none', positions: [] },
            { log: 'main', positions: [] },
          ],
        })
      ).logs,
    ).toMatchObject([
      { log: 'none', status: 'not-allowed' },
      { log: 'main', status: 'ok' },
    ]);
    expect(refusalOf(await w.engine.handshake(ANA, 'none', wire(request(a))))).toMatchObject({ status: 404 });
  });

  test('[LG10] the answer is vouched for by the identity of the log and the echoed permit', async () => {
    await using w = world();
    const a = new Author('a');
    const asked = request(a, { logs: [{ log: 'main', positions: [] }] });
    const answer = await w.engine.handshake(ANA, 'acme', wire(asked));
    expect(answer).toMatchObject({
      ok: true,
      permit: asked.replica.permit,
      logIdentity: (await w.store.log(REF))?.identity,
    });
  });
});

describe('who asks', () => {
  test('[F109 LG12] the highest common protocol is used; without one: update-needed', async () => {
    await using w = world();
    const a = new Author('a');
    expect((await meet(w, a, { protocol: { min: 1, max: 7 } })).protocol).toBe(1);
    expect(await refused(w, a, { protocol: { min: 2, max: 7 } })).toMatchObject({
      code: 'update-needed',
      details: { min: 1, max: 1 },
    });
  });

  test('[LG8 F34] the second copy of a replica is told so, and goes on under another id', async () => {
    await using w = world();
    const a = new Author('a', 1, 'host-1');
    await meet(w, a);
    expect(await refused(w, new Author('a', 1, 'host-2'))).toMatchObject({ code: 'replica-cloned' });
    await meet(w, new Author('a', 1, 'host-1'));
    await meet(w, new Author('a', 2, 'host-2'));
    expect(await refused(w, a)).toMatchObject({ code: 'stale-generation', details: { generation: 2 } });
    expect(await refused(w, new Author('a', 3, 'host-3'), {}, BEN)).toMatchObject({ code: 'other-account' });
    await meet(w, new Author('renewed', 1, 'host-1'));
    await using again = await w.restart();
    expect(await refused(again, a)).toMatchObject({ code: 'stale-generation' });
  });

  test('[LG8] a handshake takes its permit: what was sent before it is late', async () => {
    await using w = world();
    const a = new Author('a');
    const start = await w.start();
    await meet(w, a, { replica: { ...a.replica, permit: 8 }, logs: [{ log: 'main', positions: [] }] });
    expect(
      await refused(w, a, { replica: { ...a.replica, permit: 8 }, logs: [{ log: 'main', positions: [] }] }),
    ).toMatchObject({ code: 'stale-permit' });
    const late = a.request(start, [a.operation([a.create('e1')])], { permit: 7 });
    expect(await w.send(late)).toMatchObject({ refusal: { code: 'stale-permit', details: { highest: 8 } } });
    expect(await w.send({ ...late, replica: { ...late.replica, permit: 9 } })).toMatchObject({
      results: [{ status: 'accepted' }],
    });
  });

  test('[LG13 RT7] health, app and what the replica holds are shown, never content', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('e1'));
    const head = await w.head();
    w.clock.advance(5_000);
    await meet(w, a, {
      app: { name: 'tracker', schema: 'abc' },
      health: { unsent: 3, attention: 1, oldestUnsentMs: 60_000 },
      logs: [{ log: 'main', positions: [head] }],
    });
    const { replicas } = answerOf(await w.engine.replicas(ANA, 'acme'));
    expect(replicas).toEqual([
      {
        replica: 'a',
        account: 'ana',
        generation: 1,
        firstSeenAt: '2026-11-30T00:00:00.000Z',
        lastSeenAt: '2026-11-30T00:00:05.000Z',
        app: { name: 'tracker', schema: 'abc' },
        health: { unsent: 3, attention: 1, oldestUnsentMs: 60_000 },
        proven: { main: 1 },
      },
    ]);
  });

  test('[LG6] a malformed handshake is refused with the path', async () => {
    await using w = world();
    const a = new Author('a');
    const bad = { ...request(a), surprise: true };
    expect(refusalOf(await w.engine.handshake(ANA, 'acme', wire(bad)))).toMatchObject({
      status: 400,
      refusal: { details: { path: 'surprise' } },
    });
  });

  test('[LG6] limits and capabilities are published', async () => {
    await using w = world();
    expect(await meet(w, new Author('a'), {}, READER)).toMatchObject({
      account: 'rob',
      serverTime: '2026-11-30T00:00:00.000Z',
      limits: { pageEventsMax: 512, commitEventsMax: 512, bodyBytesMax: 4_194_304 },
      capabilities: expect.arrayContaining(['live']) as string[],
    });
  });
});

describe('workspaces and logs', () => {
  test('[DG3] administrators make logs; each has its own identity, epoch and numbers', async () => {
    await using w = world({ createOnFirstUse: false });
    expect(await w.engine.createWorkspace('acme')).toBe(true);
    expect(await w.engine.createWorkspace('acme')).toBe(false);
    expect(refusalOf(await w.engine.createLog(ANA, { workspace: 'acme', log: 'team' }))).toMatchObject({ status: 403 });
    const admin = { account: 'ada', role: 'administrator' } as const;
    const made = answerOf(await w.engine.createLog(admin, { workspace: 'acme', log: 'team' }));
    expect(answerOf(await w.engine.createLog(admin, { workspace: 'acme', log: 'team' }))).toEqual(made);
    expect(refusalOf(await w.engine.createLog(admin, { workspace: 'none', log: 'team' }))).toMatchObject({
      status: 404,
    });
    const { logs } = answerOf(await w.engine.logs(ANA, 'acme'));
    expect(logs.map(({ log }) => log)).toEqual(['main', 'team']);
    expect(new Set(logs.flatMap(({ identity, epoch }) => [identity, epoch])).size).toBe(4);
    expect(await w.engine.workspaces()).toMatchObject([{ workspace: 'acme' }]);
    expect(refusalOf(await w.engine.logs(ANA, 'none'))).toMatchObject({ status: 404 });
  });

  test('[LG11] workspaces and logs are made when first used only where the configuration says so', async () => {
    await using w = world();
    const a = new Author('a');
    const ref = { workspace: 'fresh', log: 'team' };
    await meet(w, a);
    expect(answerOf(await w.engine.events(ANA, ref, { after: 0 })).head).toBe(0);
    expect((await w.engine.usage('fresh')).map(({ log }) => log)).toEqual(['main', 'team']);
    await using strict = world({ createOnFirstUse: false });
    expect(refusalOf(await strict.engine.events(ANA, REF, { after: 0 }))).toMatchObject({ status: 404 });
    expect(await strict.engine.workspaces()).toEqual([]);
  });

  test('[SY4] after close every request is told to come back', async () => {
    await using w = world();
    const a = new Author('a');
    const head = await w.head();
    await w.engine.close();
    expect(await w.send(a.request(head, [a.operation([a.create('e1')])]))).toMatchObject({
      status: 503,
      refusal: { code: 'shutting-down' },
    });
  });
});
