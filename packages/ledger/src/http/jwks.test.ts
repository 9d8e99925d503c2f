import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { jwt } from '../access/jwt.ts';
import { type Served, serveLedger } from '../ledger.ts';
import { temporaryFolder } from '../stores/sqlite/store.fixture.ts';

/**
 * JSON Web Tokens at both doors, with keys that an issuer publishes over HTTP, rotates and withdraws. The wall clock and
 * the ledger's timers are the test's; the tests are one story, in order.
 */
const ISSUER = 'https://id.example.com/';
const MINUTE_MS = 60_000;
/** A ledger asks for the issuer's keys again after this. */
const KEYS_KEPT_MS = 10 * MINUTE_MS;
/** And not more often than this, whatever tokens it is shown. */
const KEYS_REST_MS = 30_000;

interface Key {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly published: JWK;
}
const newKey = async (kid: string): Promise<Key> => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { kid, privateKey, published: { ...(await exportJWK(publicKey)), kid, alg: 'ES256' } };
};

/** What the issuer says now, and how often it was asked. */
const issuer = { status: 503, says: '{}', asked: 0 };
const publish = (...keys: readonly Key[]) => {
  issuer.status = 200;
  issuer.says = JSON.stringify({ keys: keys.map(({ published }) => published) });
};
const folder = temporaryFolder();
let one: Key;
let two: Key;
let keyServer: Server;
let served: Served;

beforeAll(async () => {
  [one, two] = await Promise.all([newKey('one'), newKey('two')]);
  keyServer = createServer((_request, response) => {
    issuer.asked += 1;
    response.writeHead(issuer.status, { 'Content-Type': 'application/json', Connection: 'close' }).end(issuer.says);
  });
  await new Promise<void>((done) => keyServer.listen(0, '127.0.0.1', done));
  const { port } = keyServer.address() as AddressInfo;
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'performance'] });
  served = await serveLedger({
    store: { sqlite: folder.path },
    access: jwt({
      issuer: ISSUER,
      audience: 'tracker',
      jwksUri: `http://127.0.0.1:${port}/keys`,
      grants: (claims) => ({ [claims['org']]: 'writer' }),
    }),
    createOnFirstUse: true,
    listen: { port: 0 },
    admin: { port: 0 },
    logLevel: 'silent',
  });
});
afterAll(async () => {
  vi.useRealTimers();
  await served.close();
  await new Promise((done) => keyServer.close(done));
  folder.dispose();
});

const inMinutes = (minutes: number): number => Math.floor((Date.now() + minutes * MINUTE_MS) / 1000);
const tokenBy = (key: Key, minutes = 60, header: Record<string, string> = {}): Promise<string> =>
  new SignJWT({ sub: 'ana', org: 'acme' })
    .setProtectedHeader({ alg: 'ES256', kid: key.kid, ...header })
    .setIssuer(ISSUER)
    .setAudience('tracker')
    .setExpirationTime(inMinutes(minutes))
    .sign(key.privateKey);

async function ask(token: string, path = '/session') {
  const response = await fetch(`${served.url}/v1${path}`, { headers: { Authorization: `Bearer ${token}` } });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, any> };
}
const statusOf = async (token: string, path?: string): Promise<number> => (await ask(token, path)).status;

/** A socket that was welcomed. */
async function listen(token: string, id: string) {
  const socket = new WebSocket(`${served.url.replace('http', 'ws')}/v1/workspaces/acme/live`);
  const frames: Record<string, unknown>[] = [];
  const closed = new Promise<number>((done) => socket.once('close', (code) => done(code)));
  const welcomed = new Promise<void>((done) =>
    socket.on('message', (data) => {
      frames.push(JSON.parse(String(data)) as Record<string, unknown>);
      done();
    }),
  );
  await new Promise<void>((done) => socket.once('open', done));
  const replica = { id, generation: 1, instance: 'here' };
  socket.send(JSON.stringify({ type: 'hello', token, protocol: { min: 1, max: 1 }, replica }));
  await welcomed;
  return { socket, frames, closed };
}

test('[S01] while the issuer’s keys cannot be had, nobody is told that a token is bad', async () => {
  const token = await tokenBy(one);
  const { status, headers, body } = await ask(token);
  expect([status, headers.get('retry-after'), body['code']]).toEqual([503, '5', 'internal']);
  issuer.status = 200;
  issuer.says = '<html>';
  expect(await statusOf(token)).toBe(503);
  issuer.says = '{"keys":"none"}';
  expect(await statusOf(token)).toBe(503);
  publish(one);
  expect(await statusOf(token)).toBe(200);
});

test('[S01 LG11] a token of the issuer opens what its claims say and nothing else; its keys are fetched once', async () => {
  const token = await tokenBy(one, 5);
  const before = issuer.asked;
  expect((await ask(token)).body).toMatchObject({
    account: 'ana',
    grants: { acme: 'writer' },
    expiresAt: new Date(inMinutes(5) * 1000).toISOString(),
  });
  expect(await statusOf(token, '/workspaces/acme/logs/main/events')).toBe(200);
  expect(await statusOf(token, '/workspaces/globex/logs/main/events')).toBe(404);
  expect(issuer.asked).toBe(before);
});

test('[S01 S07] forged tokens open nothing, and make nobody ask the issuer again and again', async () => {
  const before = issuer.asked;
  // The public key as if it were a shared secret.
  const secret = new TextEncoder().encode(JSON.stringify(one.published));
  const shared = await new SignJWT({ sub: 'ana', org: 'acme' })
    .setProtectedHeader({ alg: 'HS256', kid: 'one' })
    .setIssuer(ISSUER)
    .setAudience('tracker')
    .setExpirationTime(inMinutes(5))
    .sign(secret);
  const [, claims] = (await tokenBy(one)).split('.');
  const unsigned = `${Buffer.from('{"alg":"none","kid":"one"}').toString('base64url')}.${claims}.`;
  // Another key under the name of a published one, and names that nobody published.
  const forged = [shared, unsigned, await tokenBy({ ...two, kid: 'one' })];
  for (let n = 0; n < 5; n += 1) forged.push(await tokenBy({ ...two, kid: `none-${n}` }));
  for (const token of forged) expect(await statusOf(token)).toBe(401);
  expect(issuer.asked).toBe(before);
});

test('[RT3 S34] a socket ends with its token: told so, within a tick, while others stay', async () => {
  const long = await listen(await tokenBy(one, 60), 'long');
  const short = await listen(await tokenBy(one, 5), 'short');
  vi.setSystemTime(Date.now() + 5 * MINUTE_MS);
  vi.advanceTimersByTime(1_000);
  expect(await short.closed).toBe(4401);
  expect(short.frames).toMatchObject([{ type: 'welcome' }, { type: 'session-ending', reason: 'expired' }]);
  expect(long.socket.readyState).toBe(WebSocket.OPEN);
  long.socket.close();
  await long.closed;
});

test('[S01 RT3] a new key is taken up when it is first met; a withdrawn one opens nothing, and its sockets end', async () => {
  const old = await tokenBy(one);
  const listening = await listen(old, 'listening');
  publish(two);
  vi.setSystemTime(Date.now() + KEYS_REST_MS);
  const before = issuer.asked;
  expect(await statusOf(await tokenBy(two))).toBe(200);
  expect(issuer.asked).toBe(before + 1);
  expect(await statusOf(old)).toBe(401);
  // Whether a session may go on is asked at intervals.
  vi.advanceTimersByTime(5_000);
  expect(await listening.closed).toBe(4401);
  expect(listening.frames.at(-1)).toEqual({ type: 'session-ending', reason: 'revoked' });
});

test('[S01] a key that is withdrawn without a successor stops opening when the keys are next looked at', async () => {
  const token = await tokenBy(two);
  publish(one);
  expect(await statusOf(token)).toBe(200);
  vi.setSystemTime(Date.now() + KEYS_KEPT_MS);
  expect(await statusOf(token)).toBe(401);
});
