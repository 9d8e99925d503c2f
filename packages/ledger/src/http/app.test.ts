import { expect, test, vi } from 'vitest';
import type { Caller } from '../access/access.ts';
import { Author } from '../engine/drafts.fixture.ts';
import { createLedger } from '../ledger.ts';
import { temporaryFolder } from '../stores/sqlite/store.fixture.ts';

/** What the door itself decides: who may come in, whatever the verifier said a moment ago. */
async function asked(caller: Partial<Caller>, path: string): Promise<number> {
  const [answer] = await askedAll(caller, [[path]]);
  return answer?.status as number;
}

/** One request after another at one ledger: a path, and a body where something is posted. */
async function askedAll(
  caller: Partial<Caller>,
  requests: readonly (readonly [path: string, body?: unknown])[],
): Promise<{ readonly status: number; readonly body: any }[]> {
  const folder = temporaryFolder();
  try {
    await using ledger = await createLedger({
      store: { sqlite: folder.path },
      access: {
        name: 'test',
        verify: () => Promise.resolve({ account: 'ana', grants: { acme: 'writer' as const }, ...caller }),
      },
      createOnFirstUse: true,
      logLevel: 'silent',
    });
    const answers: { status: number; body: any }[] = [];
    for (const [path, body] of requests) {
      const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
      const headers = { 'Content-Type': 'application/json' };
      const answer = await ledger.fetch(new Request(`http://ledger.test/v1${path}`, { headers, ...post }));
      answers.push({ status: answer.status, body: await answer.json() });
    }
    return answers;
  } finally {
    folder.dispose();
  }
}

const EVENTS = '/workspaces/acme/logs/main/events';

test('[S01] a credential that has ended opens nothing, though its verifier still knows it', async () => {
  expect(await asked({ expiresAtMs: Date.now() + 3_600_000 }, EVENTS)).toBe(200);
  expect(await asked({ expiresAtMs: Date.now() - 1 }, EVENTS)).toBe(401);
  expect(await asked({ expiresAtMs: Date.now() - 1 }, '/session')).toBe(401);
});

test('[LG11 S01] a workspace that was not granted is answered as if it were not there, on every way in', async () => {
  for (const rest of ['/logs', '/replicas', '/logs/main/events', '/logs/main/entities', '/logs/main/entities/a/b'])
    expect([rest, await asked({}, `/workspaces/globex${rest}`)]).toEqual([rest, 404]);
});

test('[F182 LG11 S04] whose workspace it is not, for him it is as if it were nowhere: the engine is not even asked', async () => {
  const folder = temporaryFolder();
  let grants: Caller['grants'] = { '*': 'administrator' };
  try {
    await using ledger = await createLedger({
      store: { sqlite: folder.path },
      access: { name: 'test', verify: () => Promise.resolve({ account: 'ana', grants }) },
      createOnFirstUse: true,
      logLevel: 'silent',
    });
    const ask = async (path: string, body?: unknown) => {
      const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
      const headers = { 'Content-Type': 'application/json' };
      const answer = await ledger.fetch(new Request(`http://ledger.test/v1${path}`, { headers, ...post }));
      return { status: answer.status, body: { ...((await answer.json()) as object), requestId: '' } };
    };
    expect((await ask('/workspaces/theirs/logs/main/events')).status).toBe(200);
    grants = { mine: 'administrator' };
    const asked = (['events', 'entities', 'entity', 'history', 'push', 'handshake', 'logs', 'replicas'] as const).map(
      (name) => vi.spyOn(ledger.engine, name),
    );
    for (const [rest, body] of [
      ['/logs'],
      ['/replicas'],
      ['/logs/main/events?after=0'],
      ['/logs/main/entities'],
      ['/logs/main/entities/issue/e1'],
      ['/logs/main/entities/issue/e1/events'],
      ['/logs/main/push', {}],
      ['/handshake', {}],
    ] as const) {
      const there = await ask(`/workspaces/theirs${rest}`, body);
      expect([rest, there.status]).toEqual([rest, 404]);
      expect([rest, await ask(`/workspaces/nowhere${rest}`, body)]).toEqual([rest, there]);
    }
    for (const spy of asked) expect(spy).not.toHaveBeenCalled();
    // They would have noticed.
    await ask('/workspaces/mine/logs/main/events');
    expect(asked[0]).toHaveBeenCalledOnce();
  } finally {
    folder.dispose();
  }
});

test('[F190 LG11] who comes again with an old request after his access ended learns nothing of what became of it', async () => {
  const folder = temporaryFolder();
  let caller: Caller = { account: 'ana', grants: { acme: 'writer' } };
  try {
    await using ledger = await createLedger({
      store: { sqlite: folder.path },
      access: { name: 'test', verify: () => Promise.resolve(caller) },
      createOnFirstUse: true,
      logLevel: 'silent',
    });
    const a = new Author('a');
    const headers = { 'Content-Type': 'application/json' };
    const url = 'http://ledger.test/v1/workspaces/acme/logs/main';
    const page = await (await ledger.fetch(new Request(`${url}/events`))).json();
    const { epoch, through } = page as { epoch: string; through: { version: number; chain: string } };
    const recorded = JSON.stringify(a.request({ epoch, ...through }, [a.operation([a.create('e1')])]));
    const send = async () => {
      const answer = await ledger.fetch(new Request(`${url}/push`, { method: 'POST', headers, body: recorded }));
      const body = (await answer.json()) as { code?: string; results?: unknown };
      return [answer.status, body.code, body.results];
    };
    expect(await send()).toMatchObject([200, undefined, [{ status: 'accepted', firstVersion: 1 }]]);
    expect(await send()).toMatchObject([200, undefined, [{ status: 'accepted', firstVersion: 1 }]]);
    caller = { account: 'ana', grants: { acme: 'reader' } };
    expect(await send()).toEqual([403, 'not-allowed', undefined]);
    caller = { account: 'ana', grants: {} };
    expect(await send()).toEqual([404, 'not-found', undefined]);
    caller = { account: 'ana', grants: { acme: 'writer' }, expiresAtMs: Date.now() - 1 };
    expect(await send()).toEqual([401, 'unauthenticated', undefined]);
  } finally {
    folder.dispose();
  }
});

test('[LG11 S01] a name is refused alike wherever it is asked for, made, or made by asking: nothing of it is there', async () => {
  const names = ['a%2Fb', '..%2Fescape', 'a%20b', '%C3%A9', 'x'.repeat(129)];
  const plain = names.map((name) => decodeURIComponent(name));
  const named = (path: string) => ({
    code: 'malformed',
    details: { path, reason: '1 to 128 visible ASCII characters without "/"' },
  });
  const replica = { id: 'a'.repeat(32), generation: 1, instance: 'b'.repeat(32), permit: 1 };
  const handshake = { protocol: { min: 1, max: 1 }, replica, logs: [{ log: 'a/b', positions: [] }] };
  const workspaces = names.flatMap((name) => [
    [`/workspaces/${name}/logs`] as const,
    [`/workspaces/${name}/replicas`] as const,
    [`/workspaces/${name}/logs/main/events`] as const,
    [`/workspaces/${name}/logs/main/entities/issue/1`] as const,
    [`/workspaces/${name}/handshake`, handshake] as const,
    [`/workspaces/${name}/logs/main/push`, {}] as const,
    [`/workspaces/${name}/logs`, { log: 'side' }] as const,
  ]);
  const logs = names.flatMap((name) => [
    [`/workspaces/acme/logs/${name}/events`] as const,
    [`/workspaces/acme/logs/${name}/push`, {}] as const,
  ]);
  const posted = [
    ...plain.map((workspace) => ['/workspaces', { workspace }] as const),
    ...plain.map((log) => ['/workspaces/acme/logs', { log }] as const),
  ];
  const everything = [...workspaces, ...logs, ...posted];
  const caller = { grants: { '*': 'administrator' as const } };
  const answers = await askedAll(caller, [
    ...everything,
    ['/workspaces/acme/handshake', handshake],
    ['/workspaces/acme/logs'],
    ['/workspaces'],
  ]);
  const [greeted, known, all] = answers.splice(-3);
  expect(greeted?.status).toBe(200);
  for (const [at, { status, body }] of answers.entries()) {
    const [path] = everything[at] as readonly [string];
    const isLog = at >= workspaces.length && (path.includes('/logs/') || path.endsWith('/acme/logs'));
    expect([path, status, body]).toEqual([path, 400, expect.objectContaining(named(isLog ? 'log' : 'workspace'))]);
  }
  expect(known?.body.logs.map(({ log }: { log: string }) => log)).toEqual(['main']);
  expect(all?.body.workspaces.map(({ workspace }: { workspace: string }) => workspace)).toEqual(['acme']);
});
