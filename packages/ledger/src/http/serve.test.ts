import { connect, type Socket } from 'node:net';
import type { Position } from '@holdfast/core';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { staticTokens } from '../access/static-tokens.ts';
import { Author } from '../engine/drafts.fixture.ts';
import { type Served, serveLedger } from '../ledger.ts';
import { temporaryFolder } from '../stores/sqlite/store.fixture.ts';

/** What a served ledger has beside the doors: the admin listener, and an end in good order. Real sockets on loopback. */
const LOG = '/v1/workspaces/acme-gmbh/logs/main';
let served: Served;
let folder: ReturnType<typeof temporaryFolder>;
/** Called while a change is being judged. */
let judging: () => void = () => undefined;

beforeEach(async () => {
  // Nothing here may wait for time to pass; what does is told when.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  folder = temporaryFolder();
  served = await serveLedger({
    store: { sqlite: folder.path },
    access: staticTokens({ secret: { account: 'ana@acme', grants: { '*': 'administrator' } } }),
    admit: {
      issue: () => {
        judging();
        return undefined;
      },
    },
    createOnFirstUse: true,
    listen: { port: 0 },
    admin: { port: 0 },
    logLevel: 'silent',
  });
});
afterEach(async () => {
  judging = () => undefined;
  const closed = served.close();
  await vi.advanceTimersByTimeAsync(10_000);
  await closed;
  vi.useRealTimers();
  folder.dispose();
});

const HEADERS = { Authorization: 'Bearer secret', 'Content-Type': 'application/json' };
const get = (url: string) => fetch(url, { headers: HEADERS });
const admin = async (path: string) => {
  const response = await fetch(`${served.adminUrl}${path}`);
  return [response.status, (await response.text()).trim()] as const;
};

async function positionNow(): Promise<Position> {
  const page = (await (await get(`${served.url}${LOG}/events`)).json()) as { epoch: string; through: Position };
  return { epoch: page.epoch, version: page.through.version, chain: page.through.chain };
}

async function pushBody(author = new Author('device-of-ana')): Promise<string> {
  return JSON.stringify(author.request(await positionNow(), [author.operation([author.create('the-entity')])]));
}

const push = (body: string) => fetch(`${served.url}${LOG}/push`, { method: 'POST', headers: HEADERS, body });

/** A plain connection, and everything that came over it. */
function dial(): { readonly socket: Socket; said(text: string): Promise<void>; readonly ended: Promise<void> } {
  const { hostname, port } = new URL(served.url);
  const socket = connect(Number(port), hostname);
  let heard = '';
  const listeners = new Set<() => void>();
  socket.on('data', (chunk) => {
    heard += chunk.toString('latin1');
    for (const look of listeners) look();
  });
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  return {
    socket,
    said: (text) =>
      new Promise((done) => {
        const look = () => heard.includes(text) && done();
        listeners.add(look);
        look();
      }),
    ended: new Promise((done) => socket.once('close', () => done())),
  };
}

/** The head of a push, and no byte of its body yet; the ledger has it and waits. */
async function begun(body: string) {
  const line = dial();
  line.socket.write(
    [
      `POST ${LOG}/push HTTP/1.1`,
      'Host: ledger.test',
      'Authorization: Bearer secret',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Expect: 100-continue',
      '\r\n',
    ].join('\r\n'),
  );
  await line.said('100 Continue');
  return { ...line, finish: () => line.socket.write(body) };
}

test('[S25] health and metrics are on the admin listener and nowhere else, count what happened, and name nobody', async () => {
  expect((await push(await pushBody())).status).toBe(200);
  expect((await push('no json')).status).toBe(400);
  expect((await fetch(`${served.url}/v1/session`)).status).toBe(401);
  expect(await admin('/healthz')).toEqual([200, 'ok']);
  expect(await admin('/readyz')).toEqual([200, 'ready']);
  const [status, text] = await admin('/metrics');
  expect(status).toBe(200);
  const lines = text.split('\n');
  const route = 'route="/v1/workspaces/:w/logs/:log/push",method="POST"';
  expect(lines).toContain(`holdfast_requests_total{${route},status="200"} 1`);
  expect(lines).toContain(`holdfast_requests_total{${route},status="400"} 1`);
  expect(lines).toContain('holdfast_requests_total{route="/v1/session",method="GET",status="401"} 1');
  expect(lines).toContain('holdfast_request_seconds_count{route="/v1/workspaces/:w/logs/:log/push"} 2');
  for (const line of [
    'holdfast_appended_events 1',
    'holdfast_appended_operations 1',
    'holdfast_append_groups 1',
    'holdfast_waiting_pushes 0',
    'holdfast_sockets 0',
    'holdfast_subscriptions 0',
  ])
    expect(lines).toContain(line);
  for (const name of ['acme', 'ana', 'main"', 'device-of', 'the-entity', 'secret']) expect(text).not.toContain(name);

  for (const path of ['/healthz', '/readyz', '/metrics', '/v1/metrics']) {
    expect([path, (await get(`${served.url}${path}`)).status]).toEqual([path, 404]);
  }
  for (const path of ['/v1/session', `${LOG}/events`, '/']) expect(await admin(path)).toEqual([404, 'not found']);
});

test('[F80 S25] while it closes it is alive and not ready, and who is in the middle of asking is answered', async () => {
  const half = await begun(await pushBody());
  const closing = served.close();
  expect(await admin('/readyz')).toEqual([503, 'closing']);
  expect(await admin('/healthz')).toEqual([200, 'ok']);
  await expect(get(`${served.url}/v1/session`)).rejects.toThrow();
  half.finish();
  await half.said('HTTP/1.1 503');
  await half.said('"code":"shutting-down"');
  // Its connection would be kept for another 75 s; no timer has run here.
  await closing;
  await expect(admin('/healthz')).rejects.toThrow();
});

test('[F80 LG9] a push that is being judged when the end comes is written, and answered as accepted', async () => {
  const body = await pushBody();
  let closing: Promise<void> | null = null;
  judging = () => {
    closing = served.close();
  };
  const answer = await push(body);
  expect([answer.status, (await answer.json()) as unknown]).toEqual([
    200,
    expect.objectContaining({ head: 1, results: [expect.objectContaining({ status: 'accepted' })] }),
  ]);
  expect(closing).not.toBeNull();
  await closing;
});

test('[F80 S35] nobody holds up the end for longer than 5 s: neither a body that never comes nor a socket that does not say goodbye', async () => {
  const half = await begun(await pushBody());
  const mute = dial();
  mute.socket.write(
    [
      'GET /v1/workspaces/acme-gmbh/live HTTP/1.1',
      'Host: ledger.test',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.from('0123456789abcdef').toString('base64')}`,
      '\r\n',
    ].join('\r\n'),
  );
  await mute.said('101 Switching Protocols');
  const closing = served.close();
  await mute.said('going-away');
  vi.advanceTimersByTime(5_000);
  await closing;
  await Promise.all([half.ended, mute.ended]);
});
