import { spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { schemaData } from '@holdfast/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodePlatform } from '../adapters/node/platform.ts';
import { type TestSchema, testSchema } from '../host/host.fixture.ts';
import { createClient, DIAGNOSTICS_CHANNEL, isHoldfastError, type Replica, type Signal } from '../index.ts';
import { Link } from '../link/link.ts';
import { openWorkerHost } from '../node/worker-client.ts';
import { type Bench, openBench, until } from './client.fixture.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.end());

const codeOf = (promise: PromiseLike<unknown>) =>
  promise.then(
    () => 'fine',
    (cause) => (isHoldfastError(cause) ? cause.code : String(cause)),
  );
const titles = async (of: Replica<TestSchema>) =>
  (await of.query((db) => db.selectFrom('issue').select('title').orderBy('title'))).map(({ title }) => title);

test('[AC2] signing out refuses where work is unsent, and does nothing then', async () => {
  const client = bench.client('ana');
  const replica = await client.open('acme');
  await replica.settle();
  await replica.pause();
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const refused = await client.signOut({ unsent: 'refuse' }).catch((cause: unknown) => cause);
  expect(refused).toMatchObject({ code: 'needs-attention', details: { reason: 'unsent-work', unsent: 1 } });
  expect(client.session.current).toBe('signed-in');
  expect(await titles(replica)).toEqual(['A']);
  await replica.resume();
  await replica.settle();
  await client.signOut({ unsent: 'refuse' });
  expect(client.session.current).toBe('none');
});

test('[AC2] unsent work of a workspace that is not open counts too', async () => {
  const client = bench.client('ana');
  const closed = await client.open('globex');
  await closed.pause();
  await closed.commit((tx) => tx.issue.create({ title: 'A' }));
  await closed.close();
  await client.open('acme');
  expect(await client.workspaces()).toEqual(
    expect.arrayContaining([
      { id: 'globex', name: 'globex', unsent: 1, attention: 0 },
      { id: 'acme', name: 'acme', unsent: 0, attention: 0 },
    ]),
  );
  expect(await codeOf(client.signOut({ unsent: 'refuse' }))).toBe('needs-attention');
});

test('[AC2] keep leaves everything on the device for the next time', async () => {
  const client = bench.client('ana');
  const replica = await client.open('acme');
  await replica.pause();
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  const heard: string[] = [];
  client.session.subscribe(() => heard.push(client.session.current));
  await client.signOut({ unsent: 'keep' });
  expect(heard).toEqual(['none']);
  expect(await codeOf(client.open('acme'))).toBe('unauthenticated');
  expect(await codeOf(replica.query((db) => db.selectFrom('issue').select('id')))).toBe('closed');
  await client.signIn({ id: 'ana', token: () => 'ana-token' });
  const again = await client.open('acme');
  expect(await titles(again)).toEqual(['A']);
  await again.settle();
});

test('[AC2 OB7] export writes what is unsent of every workspace, each as a pack of its own', async () => {
  const client = bench.client('ana');
  for (const workspace of ['acme', 'globex']) {
    const replica = await client.open(workspace);
    await replica.pause();
    await replica.commit((tx) => tx.issue.create({ title: `in ${workspace}` }));
  }
  const packs: Uint8Array[] = [];
  await client.signOut({ unsent: 'export', to: new WritableStream({ write: (chunk) => void packs.push(chunk) }) });
  expect(packs).toHaveLength(2);
  const elsewhere = await bench.client('ana').open('acme');
  const taken = await Promise.all(packs.map((pack) => codeOf(elsewhere.unpack(pack))));
  expect(taken.sort()).toEqual(['fine', 'other-account']);
  expect(await titles(elsewhere)).toEqual(['in acme']);
  const whole = new Uint8Array(Buffer.concat(packs));
  expect(await elsewhere.unpack(whole)).toEqual({ batches: 0, already: 1 });
  const globex = await bench.client('ana').open('globex');
  expect(await globex.unpack(whole)).toEqual({ batches: 1, already: 0 });
});

test('[F113 AC2] whoever else signs in gets a replica of his own; what is open stops sending and stays', async () => {
  const client = bench.client('ana');
  const anas = await client.open('acme');
  await anas.settle();
  await client.signIn({ id: 'ben', token: () => 'ben-token' });
  expect(client.session.current).toBe('other-account');
  await until(() => anas.status.current.isPaused);
  await anas.commit((tx) => tx.issue.create({ title: 'of Ana' }));
  const bens = await client.open('acme');
  await bens.commit((tx) => tx.issue.create({ title: 'of Ben' }));
  await bens.settle();
  expect(await titles(bens)).toEqual(['of Ben']);
  expect((await anas.settle({ signal: AbortSignal.timeout(50) })).settled).toBe(false);
  expect(await titles(anas)).toContain('of Ana');
  // Even if somebody resumes it, it never speaks with the credentials of somebody else.
  await anas.resume();
  await until(() => anas.status.current.phase === 'sign-in-needed');
  await bens.settle();
  expect(await titles(bens)).toEqual(['of Ben']);
  await client.signIn({ id: 'ana', token: () => 'ana-token' });
  await anas.settle();
  await until(async () => (await titles(bens)).length === 2 || client.session.current !== 'signed-in');
  expect(await titles(anas)).toEqual(['of Ana', 'of Ben']);
});

test('[AC1] a session that ended is told once; with fresh credentials everything goes on in place', async () => {
  let token = 'ana-token';
  const client = bench.client('ana', { account: { id: 'ana', token: () => token } });
  const replica = await client.open('acme');
  await replica.settle();
  token = 'expired';
  const heard: string[] = [];
  client.session.subscribe(() => heard.push(client.session.current));
  const write = replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await write;
  await until(() => client.session.current === 'sign-in-needed');
  expect(replica.status.current.phase).toBe('sign-in-needed');
  expect(heard).toEqual(['sign-in-needed']);
  token = 'ana-token';
  await client.signIn({ id: 'ana', token: () => token });
  await write.ordered();
  await until(() => client.session.current === 'signed-in');
});

test('[F111 AC1 AC2] a session that cannot be renewed stops no work, and signing out says what is unsent first', async () => {
  let token = 'ana-token';
  const client = bench.client('ana', { account: { id: 'ana', token: () => token } });
  const replica = await client.open('acme');
  await replica.settle();
  token = 'revoked';
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await until(() => replica.status.current.phase === 'sign-in-needed');
  await replica.commit((tx) => tx.issue.create({ title: 'B' }));
  await until(() => replica.status.current.unsent === 2);
  const refused = await client.signOut({ unsent: 'refuse' }).catch((cause: unknown) => cause);
  expect(refused).toMatchObject({ code: 'needs-attention', details: { reason: 'unsent-work', unsent: 2 } });
  expect(await titles(replica)).toEqual(['A', 'B']);
});

test('[F115 AC2] signing out asks about the unsent work of all that is open, then ends all of it, sockets too', async () => {
  const client = bench.client('ana');
  const open = [await client.open('acme'), await client.open('globex'), await client.open('acme')];
  const sockets = async () => (await bench.ledger.ledger.engine.status()).sockets;
  await until(async () => (await sockets()) === 2);
  await open[1]?.pause();
  await open[1]?.commit((tx) => tx.issue.create({ title: 'A' }));
  expect(await codeOf(client.signOut({ unsent: 'refuse' }))).toBe('needs-attention');
  for (const replica of open) expect(await codeOf(titles(replica))).toBe('fine');
  await client.signOut({ unsent: 'keep' });
  for (const replica of open) expect(await codeOf(titles(replica))).toBe('closed');
  await until(async () => (await sockets()) === 0);
});

test('[AC2] a replica opens offline, with no ledger and an expired token', async () => {
  const dir = join(bench.folder, 'offline');
  const first = bench.client('ana', { dir });
  const replica = await first.open('acme');
  await replica.commit((tx) => tx.issue.create({ title: 'A' })).ordered();
  await first.close();
  const again = bench.client('ana', { dir, account: { id: 'ana', token: () => Promise.reject(new Error('expired')) } });
  const offline = await again.open('acme');
  expect(await titles(offline)).toEqual(['A']);
  await offline.commit((tx) => tx.issue.create({ title: 'B' }));
  expect(await titles(offline)).toEqual(['A', 'B']);
});

test('[AR3] a ledger that is no http or https address is refused at once, with what was given', () => {
  const account = { id: 'ana' };
  for (const ledger of ['localhost', 'localhost:4800', '', 'ftp://ledger.test', undefined as unknown as string])
    expect(() => createClient({ schema: testSchema, ledger, dir: ':memory:', account })).toThrow(
      expect.objectContaining({
        code: 'bad-setting',
        retry: 'after-change',
        message: expect.stringContaining(`ledger is ${ledger === undefined ? 'undefined' : JSON.stringify(ledger)}`),
      }),
    );
  for (const ledger of ['http://127.0.0.1:4800', 'HTTPS://sync.example.com/base/'])
    createClient({ schema: testSchema, ledger, dir: ':memory:', account });
});

test('[F187] no name of an account, a workspace or a log is part of a path', async () => {
  const dir = join(bench.folder, 'inside', 'files');
  const before = readdirSync(bench.folder);
  const named = [
    ['../../outside', '..'],
    ['/outside', '..\\..\\outside'],
    ['..', '%2e%2e%2foutside'],
    ['C:', '-rf'],
  ] as const;
  for (const [id, name] of named) {
    const replica = await bench.client(id, { dir, account: { id, token: () => 'none' } }).open(name);
    await replica.follow(name);
    await replica.close();
  }
  expect(readdirSync(bench.folder).filter((name) => !before.includes(name))).toEqual(['inside']);
  expect(readdirSync(join(bench.folder, 'inside'))).toEqual(['files']);
  const files = readdirSync(dir);
  expect(files.filter((name) => !/^[0-9a-f]{40}\.holdfast(-wal|-shm|\.lock)?$/.test(name))).toEqual([]);
  expect(new Set(files.map((name) => name.slice(0, 40))).size).toBe(named.length);
});

test('[AC1] a token function that throws is named by the status, and its message is in the log', async () => {
  const logged: unknown[] = [];
  const signals: Signal[] = [];
  await using client = createClient({
    schema: testSchema,
    ledger: 'http://127.0.0.1:9',
    dir: ':memory:',
    account: { id: 'ana', token: () => Promise.reject(new Error('the vault is shut')) },
    logger: (level, message, facts) => void logged.push([level, message, facts]),
    observe: (signal) => void signals.push(signal),
  });
  const replica = await client.open('w');
  const { promise: offline, resolve } = Promise.withResolvers<unknown>();
  replica.status.subscribe(() => {
    const { phase, reason } = replica.status.current;
    // It begins without one: nobody has been asked yet.
    if (phase === 'offline' && reason !== undefined) resolve(reason);
  });
  expect(await offline).toBe('token-failed');
  expect(logged).toContainEqual(['warn', 'The token function of the app failed.', { message: 'the vault is shut' }]);
  expect(signals).toContainEqual(expect.objectContaining({ name: 'sync.token', message: 'the vault is shut' }));
});

test('[F169 F53] a second process is told who holds the replica, and how to go on', async () => {
  const dir = join(bench.folder, 'shared');
  const client = bench.client('ana', { dir });
  await client.open('acme');
  const refused = await bench
    .client('ana', { dir })
    .open('acme')
    .catch((cause: unknown) => cause);
  expect(refused).toMatchObject({ code: 'replica-in-use', retry: 'safe', details: { pid: process.pid } });
  expect(String(refused)).toContain(`kill ${process.pid}`);
});

test('[OW2 F169 F53] a forced take-over fences the first host off, and nothing of it takes effect', async () => {
  const dir = join(bench.folder, 'taken');
  const first = await bench.client('ana', { dir }).open('acme');
  await first.commit((tx) => tx.issue.create({ title: 'before' }));
  const second = await bench.client('ana', { dir, takeOver: true }).open('acme');
  expect(await codeOf(first.commit((tx) => tx.issue.create({ title: 'fenced' })))).toBe('outranked');
  await until(() => first.status.current.phase === 'stopped');
  expect(await codeOf(first.query((db) => db.selectFrom('issue').select('id')))).toBe('outranked');
  await second.commit((tx) => tx.issue.create({ title: 'after' }));
  await second.settle();
  expect(await titles(second)).toEqual(['after', 'before']);
});

test('[P1 F61] a commit that was answered survives a kill of its process', async () => {
  const dir = join(bench.folder, 'killed');
  const source = `import { createClient } from ${JSON.stringify(resolve(import.meta.dirname, '../index.ts'))};
    import { testSchema } from ${JSON.stringify(resolve(import.meta.dirname, '../host/host.fixture.ts'))};
    const client = createClient({ schema: testSchema, ledger: 'http://127.0.0.1:1', dir: ${JSON.stringify(dir)}, account: { id: 'ana', token: () => 'x' } });
    const replica = await client.open('acme');
    for (let at = 0; ; at += 1) { await replica.commit((tx) => tx.issue.create({ title: String(at) })); process.stdout.write(at + '\\n'); }`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: import.meta.dirname,
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.includes('25\n')) child.kill('SIGKILL');
  });
  await once(child, 'exit');
  const answered = said.split('\n').filter((line) => line !== '').length;
  const replica = await createClient({
    schema: (await import('../host/host.fixture.ts')).testSchema,
    ledger: 'http://127.0.0.1:1',
    dir,
    account: { id: 'ana', token: () => 'x' },
  }).open('acme');
  expect((await titles(replica)).length).toBeGreaterThanOrEqual(answered);
  await replica.close();
});

test('[LK1] a host in a worker serves the same client', async () => {
  const client = bench.client('ana', {
    worker: () => new Worker(new URL('../worker.ts', import.meta.url)),
    dir: join(bench.folder, 'worker'),
  });
  const replica = await client.open('acme');
  using live = replica.live((db) => db.selectFrom('issue').select(['title', 'done', 'labels']));
  const write = replica.commit((tx) => tx.issue.create({ title: 'A', labels: ['x'] }));
  await write.shown();
  expect(live.current.rows).toEqual([{ title: 'A', done: false, labels: ['x'] }]);
  await write.ordered();
  expect(replica.status.current.storage).toBe('durable');
  const refused = await replica.commit((tx) => tx.issue.create({} as never)).catch((cause: unknown) => cause);
  expect(refused).toMatchObject({ code: 'invalid-change' });
  await replica.close();
  const again = await client.open('acme');
  expect(await titles(again)).toEqual(['A']);
});

/** A client whose workers a test can end; `create` may fail from some number on. */
function inWorkers(dir: string, workersMax = Number.POSITIVE_INFINITY) {
  const workers: Worker[] = [];
  const client = bench.client('ana', {
    worker: () => {
      if (workers.length >= workersMax) throw new Error('no more workers');
      const worker = new Worker(new URL('../worker.ts', import.meta.url));
      workers.push(worker);
      return worker;
    },
    dir: dir === ':memory:' ? dir : join(bench.folder, dir),
  });
  return { client, workers, die: () => workers.at(-1)?.terminate() };
}

test('[LK2 CM5 F12] after a worker died the next one answers what waits: commits once, live queries, and status says so meanwhile', async () => {
  const { client, workers, die } = inWorkers('dying');
  const replica = await client.open('acme');
  using live = replica.live((db) => db.selectFrom('issue').select('title').orderBy('title'));
  const first = await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  await until(() => live.current.rows.length === 1);
  const said: string[] = [];
  replica.status.subscribe(() => {
    const { phase, reason = '' } = replica.status.current;
    said.push(`${phase} ${reason}`);
  });
  // Asked of a worker that is ended at once: whether it was written nobody knows, so it is asked again under its id.
  const asked = replica.commit((tx) => tx.issue.create({ title: 'B' }), { label: 'B' });
  const ended = die();
  // Asked while nobody is there.
  const meanwhile = ended?.then(() => replica.commit((tx) => tx.issue.update(first, { done: true })));
  await Promise.all([asked, meanwhile]);
  await asked.ordered();
  await until(() => live.current.rows.length === 2);
  expect(live.current.rows).toEqual([{ title: 'A' }, { title: 'B' }]);
  expect(said).toContain('no-owner no-owner');
  await until(() => replica.status.current.phase === 'live');
  expect(workers).toHaveLength(2);
  const events = await replica.history('issue', await asked);
  expect(events.map(({ type }) => type)).toEqual(['issue.created']);
});

test('[LK2] what a person decided is not asked of the next worker: it fails with no-owner', async () => {
  const { client, die } = inWorkers('deciding');
  const replica = await client.open('acme');
  await replica.commit((tx) => tx.issue.create({ title: 'A' }), { label: 'A' });
  const ended = die();
  const codes = await Promise.all([codeOf(replica.undo.undo()), codeOf(replica.desk.resolve('x', 'mine')), ended]);
  expect(codes.slice(0, 2)).toEqual(['no-owner', 'no-owner']);
  expect(await titles(replica)).toEqual(['A']);
});

test('[LK1] a worker that dies with what it held in memory fails what waits, and says so', async () => {
  const { client, workers, die } = inWorkers(':memory:');
  const replica = await client.open('acme');
  await replica.pause();
  const write = replica.commit((tx) => tx.issue.create({ title: 'B' }));
  await write;
  const waiting = codeOf(write.ordered());
  await die();
  expect(await waiting).toBe('no-owner');
  expect([replica.status.current.phase, workers.length]).toEqual(['stopped', 1]);
});

test('[LK2 F55] where no worker lives any more the link ends after so many tries, one that dies at once among them', async () => {
  const workers: Worker[] = [];
  let asked = 0;
  const request = { schema: schemaData(testSchema), ledger: bench.ledger.url, account: 'ana', workspace: 'acme' };
  const host = await openWorkerHost(
    () => {
      asked += 1;
      if (asked > 2) throw new Error('no more workers');
      const worker = new Worker(new URL('../worker.ts', import.meta.url));
      workers.push(worker);
      return worker;
    },
    { ...request, dir: join(bench.folder, 'gone'), token: async () => 'ana-token' },
    [1, 1, 1],
  );
  const { promise: ended, resolve: sayEnded } = Promise.withResolvers<string>();
  const link = new Link({ open: host.openChannel, clock: nodePlatform.clock, reopenMs: host.reopenMs ?? [] });
  let lost = 0;
  link.listen({
    // It dies as soon as it was there: that begins the tries not anew.
    welcome: () => void workers.at(-1)?.terminate(),
    lost: () => {
      lost += 1;
    },
    ended: ({ code }) => sayEnded(code),
  });
  link.start();
  expect([await ended, asked, lost]).toEqual(['no-owner', 4, 3]);
  await host.close();
});

test('[TM1] whoever subscribes to the diagnostics channel is told, also after the client was made', async () => {
  const replica = await bench.client('ana').open('acme');
  const heard: { readonly name: string }[] = [];
  const hear = (signal: unknown) => void heard.push(signal as { name: string });
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  subscribe(DIAGNOSTICS_CHANNEL, hear);
  await replica.commit((tx) => tx.issue.create({ title: 'B' }));
  unsubscribe(DIAGNOSTICS_CHANNEL, hear);
  await replica.commit((tx) => tx.issue.create({ title: 'C' }));
  expect(heard.filter(({ name }) => name === 'commit')).toHaveLength(1);
});

test('[LK1] what cannot be served here is refused with what to do', () => {
  const options = { schema: {} as TestSchema, ledger: 'http://x', account: { id: 'a' } };
  expect(() => createClient({ ...options, via: 'daemon' })).toThrow(/daemon/);
  expect(() => createClient(options)).toThrow(/dir/);
});

test.each(['a/b', '', 'x'.repeat(129), 'ä', 'two words'])(
  '[LG11] a workspace or log by the name %j, which no ledger takes, is refused where it is opened',
  async (name) => {
    const client = bench.client('ana');
    const reason = '1 to 128 visible ASCII characters without "/"';
    const opened = await client.open(name).catch((cause: unknown) => cause);
    expect(opened).toMatchObject({ code: 'malformed', details: { path: 'workspace', reason } });
    expect(await client.workspaces()).toEqual([]);
    const replica = await client.open('acme');
    const followed = await replica.follow(name).catch((cause: unknown) => cause);
    expect(followed).toMatchObject({ code: 'malformed', details: { path: 'log', reason } });
  },
);
