import { expect, test } from 'vitest';
import type { Caller } from '../access/access.ts';
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
