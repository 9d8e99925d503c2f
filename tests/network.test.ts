import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Served, serveLedger, staticTokens } from '@holdfast/ledger';
import { createClient, type Replica, type Status } from '@holdfast/replica';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { auditLog } from '../packages/cli/src/demo/audit.ts';
import { type TrackerSchema, trackerSchema } from '../packages/cli/src/tracker-schema.ts';
import { isPageRequest, isPush, PASS, page, startProxy, type TcpProxy } from './processes/tcp-proxy.ts';

/** What real networks do to real requests: a ledger, a device, and between them a proxy that misbehaves. */
let folder: string;
let ledger: Served;
let proxy: TcpProxy;
let replica: Replica<TrackerSchema>;
const committed = new Set<string>();
const SILENCE_MS = 1_000;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-network-'));
  ledger = await serveLedger({
    schema: trackerSchema,
    store: { sqlite: join(folder, 'ledger') },
    access: staticTokens({ 'ana-token': { account: 'ana', grants: { demo: 'writer' } } }),
    listen: { port: 0 },
    admin: { port: 0 },
    createOnFirstUse: true,
    logLevel: 'silent',
  });
  proxy = await startProxy(ledger.url);
  replica = await createClient({
    schema: trackerSchema,
    ledger: proxy.url,
    dir: join(folder, 'ana'),
    account: { id: 'ana', token: () => 'ana-token' },
    // Requests only: a socket would bring what an answer that was lost has said.
    settings: { live: false, requestSilenceMs: SILENCE_MS },
  }).open('demo');
  committed.clear();
  await settle();
});
afterEach(async () => {
  await replica.close();
  await proxy[Symbol.asyncDispose]();
  await ledger.close();
  rmSync(folder, { recursive: true, force: true });
});

const settle = async (): Promise<void> => {
  expect(await replica.settle({ signal: AbortSignal.timeout(60_000) })).toMatchObject({ settled: true, attention: 0 });
};

/** One project with its issues, each a commit of its own; none of them has left when it returns. */
async function work(titles: readonly string[]): Promise<void> {
  await replica.pause();
  for (const title of titles) {
    const write = replica.commit((tx) => tx.issue.create({ project: tx.project.put({ name: 'P' }), title }));
    await write;
    committed.add(write.id);
  }
}

async function goOn(): Promise<void> {
  await replica.resume();
  await replica.sync('online');
}

const until = (isThere: (status: Status) => boolean): Promise<Status> =>
  new Promise((resolve) => {
    const stop = replica.status.subscribe(look);
    function look(): void {
      if (!isThere(replica.status.current)) return;
      stop();
      resolve(replica.status.current);
    }
    look();
  });

/** Everything once in the log, and one state here and there. */
async function expectWhole(issues: number): Promise<void> {
  expect(await auditLog(ledger.url, 'ana-token', committed, new Set())).toMatchObject({ lost: 0, doubled: 0 });
  const verified = await ledger.ledger.engine.verify({ workspace: 'demo', log: 'main' });
  expect(verified?.problems).toEqual([]);
  expect((await replica.facts())['logs']).toMatchObject([{ chain: verified?.chain, signature: verified?.signature }]);
  const rows = await replica.query((db) => db.selectFrom('issue').select(['title', 'sync']));
  expect([rows.length, new Set(rows.map(({ sync }) => sync))]).toEqual([issues, new Set(['synced'])]);
  expect(replica.status.current.unsent).toBe(0);
}

test('[F71 F02 I04 I21] a push that is lost goes again with the same bytes, and one whose answer is lost is in the log once', async () => {
  let pushes = 0;
  proxy.rule = async (request, ask) => {
    if (!isPush(request)) return ask();
    pushes += 1;
    if (pushes === 1) return null;
    const answer = await ask();
    return pushes === 2 ? null : answer;
  };
  await work(['a', 'b', 'c']);
  await goOn();
  await settle();
  const [first, second] = proxy.seen.filter(isPush).map(({ body }) => JSON.parse(body).operations as unknown[]);
  expect(first).toHaveLength(3);
  expect(second).toEqual(first);
  expect(pushes).toBeGreaterThan(2);
  await expectWhole(3);
});

test('[F70 I04] a request that is delivered twice, one after the other or at once, is accepted once', async () => {
  let isTwin = false;
  const statuses: string[] = [];
  proxy.rule = async (request, ask) => {
    if (!isPush(request)) return ask();
    isTwin = !isTwin;
    const both = isTwin ? await Promise.all([ask(), ask()]) : [await ask(), await ask()];
    statuses.push(...both.map((answer) => answer.subarray(9, 12).toString('latin1')));
    return both[1] as Buffer;
  };
  for (const title of ['a', 'b', 'c', 'd']) {
    await work([title]);
    await goOn();
    await settle();
  }
  expect(proxy.seen.filter(isPush)).toHaveLength(4);
  // The second is answered from what is remembered, not refused, and never by a failure.
  expect(statuses).toEqual(Array.from({ length: 8 }, () => '200'));
  await expectWhole(4);
});

test('[F72 F161 I19] an answer that is late, and a request that comes again long after, change nothing', async () => {
  let late: (() => void) | null = null;
  proxy.rule = async (request, ask) => {
    const answer = await ask();
    if (!isPush(request) || late !== null) return answer;
    await new Promise<void>((resolve) => {
      late = resolve;
    });
    return answer;
  };
  await work(['a', 'b']);
  await goOn();
  // Given up after a second of silence, and asked about again; then the first answer comes after all.
  await settle();
  const [first] = proxy.seen.filter(isPush);
  (late as (() => void) | null)?.();
  await work(['c']);
  await goOn();
  await settle();
  await expectWhole(3);
  const before = await ledger.ledger.engine.verify({ workspace: 'demo', log: 'main' });
  const answered = await proxy.again(first as NonNullable<typeof first>);
  expect(answered.toString('utf8')).toMatch(/^HTTP\/1\.1 (200|409) /);
  expect(await ledger.ledger.engine.verify({ workspace: 'demo', log: 'main' })).toEqual(before);
  await expectWhole(3);
});

test('[F78] an answer that is cut anywhere, or says another length, is no answer', async () => {
  const cuts = [0.3, 0.6, 0.9];
  proxy.rule = async (request, ask) => {
    const answer = await ask();
    const part = isPush(request) || isPageRequest(request) ? cuts.shift() : undefined;
    return part === undefined ? answer : answer.subarray(0, Math.floor(answer.byteLength * part));
  };
  await work(['a', 'b', 'c']);
  await goOn();
  await settle();
  expect(cuts).toEqual([]);
  await expectWhole(3);
});

test('[F77 F112 AC1 LG10] a login page with status 200 is no answer: nothing is believed, sent on or given up', async () => {
  const LOGIN = '<!doctype html><title>Hotel</title><form action="/login">Welcome</form>';
  const html = page('200 OK', LOGIN);
  const redirect = Buffer.from(
    'HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
  );
  // JSON of the right form, from somebody who is not the ledger.
  const forged = page('200 OK', '{"logs":[],"results":[],"events":[]}', 'application/json');
  let asked = 0;
  proxy.rule = () => [html, redirect, forged][asked++ % 3] as Buffer;
  await work(['a', 'b']);
  await goOn();
  const { phase, unsent } = await until(({ phase }) => phase === 'sign-in-needed');
  expect([phase, unsent, replica.status.current.attention]).toEqual(['sign-in-needed', 2, 0]);
  expect(new Set(proxy.seen.map(({ path }) => path))).not.toContain('/login');
  expect(await replica.query((db) => db.selectFrom('issue').select('title'))).toHaveLength(2);
  proxy.rule = PASS;
  await replica.sync('online');
  await until(({ phase }) => phase !== 'sign-in-needed');
  await settle();
  await expectWhole(2);
});

test('[F82 OB4] a proxy that takes 16 kB (413): pushes are cut by bytes until they fit, and one that cannot be cut waits alone', async () => {
  const PROXY_BYTES_MAX = 16 * 1024;
  proxy.rule = (request, ask) =>
    Buffer.byteLength(request.body) > PROXY_BYTES_MAX ? page('413 Content Too Large', '<h1>Too large</h1>') : ask();
  const long = 'x'.repeat(450);
  await work(Array.from({ length: 60 }, (_, at) => `${at} ${long}`));
  const project = (await replica.first((db) => db.selectFrom('project').select('id')))?.id;
  const large = replica.commit((tx) =>
    tx.issue.create({ project: project as never, title: 'large', body: 'y'.repeat(PROXY_BYTES_MAX) }),
  );
  await large;
  committed.add(large.id);
  await work(['after it']);
  await goOn();
  await until(({ unsent }) => unsent === 1);
  const refused = proxy.seen.filter(isPush).filter(({ body }) => Buffer.byteLength(body) > PROXY_BYTES_MAX);
  expect(refused.length).toBeGreaterThan(1);
  const arrived = proxy.seen.filter(isPush).length - refused.length;
  // Cut in halves, and no further than they must be.
  expect(arrived).toBeLessThan(30);
  const rows = await replica.query((db) => db.selectFrom('issue').select(['title', 'sync']));
  expect(rows.filter(({ sync }) => sync !== 'synced').map(({ title }) => title)).toEqual(['large']);
  expect(await replica.settle({ signal: AbortSignal.timeout(1) })).toMatchObject({ settled: false });
  // Another network lets it through.
  proxy.rule = PASS;
  await replica.sync('online');
  await settle();
  await expectWhole(62);
});

test('[F80 F82] a proxy that answers an empty 503: outcome unknown, asked again later, nothing lost', async () => {
  let answers = 0;
  proxy.rule = async (request, ask) => {
    if (answers === 3) return ask();
    answers += 1;
    // The ledger may well have had it.
    if (isPush(request)) await ask();
    return Buffer.from('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  };
  await work(['a', 'b']);
  await goOn();
  const { reason } = await until(({ phase }) => phase === 'offline');
  expect(reason).toBe('ledger-unreachable');
  await settle();
  expect(answers).toBe(3);
  await expectWhole(2);
});
