import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  answer,
  type Bench,
  type BenchDevice,
  createBench,
  isLive,
  loginPage,
  refusal,
  rewritten,
} from './bench.fixture.ts';

let bench: Bench;
let ana: BenchDevice;

beforeEach(async () => {
  bench = createBench();
  ana = bench.device('ana');
  ana.sync.start();
  await bench.until('live', () => isLive(ana));
});
afterEach(() => bench.close());

const isSignedOut = () => ana.sync.status.phase === 'sign-in-needed';

test('[AC1 F45] an expiry found by an answer stops the loop once, is told once, and is no failed attempt', async () => {
  ana.script = (_url, request) => refusal(request, 401, 'unauthenticated');
  ana.create('parent');
  ana.create('child');
  await bench.until('told', () => isSignedOut());
  const before = ana.sent.length;
  ana.create('more work');
  ana.sync.kick('online');
  await bench.time.advance(3_600_000);
  expect(ana.sent.length).toBe(before);
  expect(ana.told.map((fault) => fault?.code)).toEqual(['unauthenticated']);
  expect(ana.sync.status).toMatchObject({ unsent: 3, retryInMs: null });
  ana.script = null;
  ana.sync.credentialsChanged();
  await bench.until('goes on in place', () => isLive(ana), 2_000);
  expect(ana.titles()).toEqual(['child', 'more work', 'parent']);
  const sentIn = ana.sent.filter(({ path }) => path.endsWith('/push')).at(-1)?.body?.['operations'];
  expect((sentIn as { events: { change: { fields: { title: string } } }[] }[])[0]?.events[0]?.change.fields.title).toBe(
    'parent',
  );
});

test('[F110 AC1] a session that ends while offline stops nothing here; back online it is told, and goes on without a restart', async () => {
  ana.network.rules.offline = true;
  ana.network.cut();
  ana.create('before it ended');
  await bench.time.advance(120_000);
  ana.script = (_url, request) => refusal(request, 401, 'unauthenticated');
  ana.create('after it ended');
  expect(ana.titles()).toEqual(['after it ended', 'before it ended']);
  expect(ana.told).toEqual([]);
  ana.network.rules.offline = false;
  ana.sync.kick('online');
  await bench.until('told', () => isSignedOut());
  const before = ana.sent.length;
  await bench.time.advance(3_600_000);
  expect(ana.sent.length).toBe(before);
  expect(ana.sync.status).toMatchObject({ phase: 'sign-in-needed', unsent: 2, retryInMs: null });
  // The ledger takes her again: her first request goes at once, whatever failed before.
  ana.script = null;
  ana.sync.credentialsChanged();
  await bench.until('sent', () => isLive(ana), 1_000);
  expect(ana.titles()).toEqual(['after it ended', 'before it ended']);
});

test('[AC1 F45] an app that has a fresh credential at hand is not bothered', async () => {
  let token = 'ana';
  ana.token = () => token;
  ana.script = (_url, request) => {
    if (request.headers['authorization'] !== 'Bearer ana') return undefined;
    token = 'ana/writer';
    return refusal(request, 401, 'unauthenticated');
  };
  ana.create('refreshed');
  await bench.until('sent', () => isLive(ana), 2_000);
  expect(ana.told).toEqual([]);
});

test('[AC1] with nobody to tell, the expiry is told as soon as there is somebody, once', async () => {
  ana.sync.presence({ visible: false, online: true });
  ana.script = (_url, request) => refusal(request, 401, 'unauthenticated');
  ana.create('unseen');
  await bench.until('found', () => isSignedOut());
  expect(ana.told.length).toBe(0);
  ana.sync.presence({ visible: true, online: true });
  ana.sync.presence({ visible: true, online: true });
  expect(ana.told.length).toBe(1);
});

test('[AC1 F112] a login page in front of the ledger is told once, and asked about slowly until it is gone', async () => {
  ana.script = () => loginPage();
  ana.create('behind a gateway');
  await bench.until('told', () => isSignedOut(), 10_000);
  expect(ana.told.map((fault) => fault?.code)).toEqual(['network-untrusted']);
  const before = ana.sent.length;
  await bench.time.advance(600_000);
  expect(ana.told.length).toBe(1);
  const probes = ana.paths(before);
  expect(new Set(probes)).toEqual(new Set(['/handshake']));
  expect(probes.length).toBeLessThan(60);
  ana.script = null;
  await bench.until('heals by itself', () => isLive(ana), 61_000);
  expect(ana.told.length).toBe(1);
});

test('[OB4 F112] a page in the place of some answers only, while handshakes come through, is asked for with growing pauses', async () => {
  ana.script = (url) => (url.endsWith('/push') ? loginPage() : undefined);
  ana.create('behind a filter');
  const before = ana.sent.length;
  await bench.time.advance(60_000);
  expect(ana.paths(before).filter((path) => path.endsWith('/push')).length).toBeGreaterThan(2);
  expect(ana.sent.length - before).toBeLessThan(50);
  ana.script = null;
  await bench.until('heals by itself', () => isLive(ana), 61_000);
});

test('[AC1 F112] a redirect is never followed, and leads to sign-in like a login page', async () => {
  ana.script = () => answer(302, '', { location: 'https://login.example/' });
  ana.create('redirected');
  await bench.until('told', () => isSignedOut(), 10_000);
  expect(ana.told.length).toBe(1);
  expect(ana.sent.every(({ url }) => url.startsWith('http://ledger.test/'))).toBe(true);
});

test('[AC1 F118] a sign-in that does not help is asked for again, not in a loop', async () => {
  ana.script = (_url, request) => refusal(request, 401, 'unauthenticated');
  ana.create('waits');
  await bench.until('told', () => isSignedOut());
  const before = ana.sent.length;
  ana.sync.credentialsChanged();
  await bench.time.advance(60_000);
  expect(ana.sent.length - before).toBeLessThanOrEqual(2);
  expect(ana.told.length).toBe(2);
});

test('[F113 AC2] a ledger that names another account gets nothing and takes nothing', async () => {
  ana.sync.pause();
  ana.token = () => 'eve';
  ana.create('private');
  ana.sync.resume();
  await bench.until('noticed', () => ana.sync.status.phase === 'other-account');
  const before = ana.sent.length;
  ana.create('still private');
  await bench.time.advance(600_000);
  expect(ana.paths(before)).toEqual([]);
  expect(ana.sent.slice(-1)[0]?.path).toBe('/handshake');
  expect(ana.sync.status.unsent).toBe(2);
  ana.token = () => 'ana';
  ana.sync.credentialsChanged();
  await bench.until('goes on', () => isLive(ana), 5_000);
});

test('[F113 AC2] an answer in the name of another account stops the replica, also where the ledger itself sees no reason', async () => {
  ana.sync.pause();
  ana.create('private');
  ana.script = rewritten('/handshake', (body) => {
    body.account = 'eve';
  });
  const before = ana.sent.length;
  ana.sync.resume();
  await bench.until('noticed', () => ana.sync.status.phase === 'other-account');
  await bench.time.advance(600_000);
  expect(ana.paths(before)).toEqual(['/handshake']);
  expect(ana.sync.status.unsent).toBe(1);
});

test('[AC2 LG8] a new file that was first shown with the credential of another account goes on in its own', async () => {
  const file = bench.device('new', { account: 'zoe' });
  file.token = () => 'eve';
  file.create('of zoe');
  file.sync.start();
  await bench.until('noticed', () => file.sync.status.phase === 'other-account');
  expect(file.sync.status.unsent).toBe(1);
  file.token = () => 'zoe';
  file.sync.credentialsChanged();
  await bench.until('goes on', () => isLive(file), 5_000);
  await bench.until('arrives', () => ana.titles().includes('of zoe'), 5_000);
});

test('[AC1] an app that cannot give a credential is asked again later, and nothing is owed', async () => {
  let fails = true;
  ana.token = () => (fails ? Promise.reject(new Error('no network for the identity provider')) : 'ana');
  const before = ana.sent.length;
  ana.create('waits for a token');
  await bench.time.advance(30_000);
  expect(ana.sent.length).toBe(before);
  expect(ana.owed()).toEqual([]);
  expect(ana.sync.status).toMatchObject({ phase: 'offline', reason: { code: 'token-failed' } });
  fails = false;
  await bench.until('sent', () => isLive(ana), 61_000);
});
