import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createLedger, openEngineReadOnly } from '@holdfast/ledger';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { run } from '../packages/cli/src/main.ts';
import { as, created, createOutsider, hello, operation } from './outsider.fixture.ts';
import config, { LOG_KEY, TOKENS } from './processes/served.config.ts';
import { type ServedProcess, startServed } from './processes/served.ts';

/**
 * `holdfast serve` as it is deployed: one process with a configuration file, a folder and a port from its surroundings, and
 * logs at their most talkative. The tests ask it in turn; the last ends it.
 */
const CONFIG = resolve(import.meta.dirname, 'processes/served.config.ts');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-serve-'));
const DIR = join(folder, 'of-the-environment');
const around = { cwd: folder, env: { HOLDFAST_DIR: DIR, HOLDFAST_PORT: '0' } };
/** In everything that anybody writes here. */
const CANARY = `canary-${randomUUID()}`;
let served: ServedProcess;
const { call, replica, open } = createOutsider(() => served.url, TOKENS.ana);

beforeAll(async () => {
  served = await startServed(['serve', '--config', CONFIG], around);
}, 60_000);
afterAll(async () => {
  await served.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Head and half of the body of a push; resolves when the ledger has the head and asks for the rest. */
async function halfSent(body: string) {
  const asking = request(`${served.url}/v1/workspaces/acme/logs/main/push`, {
    method: 'POST',
    headers: {
      ...as(TOKENS.ana),
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      Expect: '100-continue',
    },
  });
  const answered = new Promise<{ status: number; body: any }>((done, failed) => {
    asking.once('error', failed);
    asking.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.once('end', () => done({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
    });
  });
  await new Promise<void>((done, failed) => {
    asking.once('continue', done);
    asking.once('error', failed);
    asking.flushHeaders();
  });
  const middle = body.length >> 1;
  asking.write(body.slice(0, middle));
  return { asking, answered, finish: () => asking.end(body.slice(middle)) };
}

/** A connection of its own, not one that was kept. */
const dialled = () =>
  new Promise<void>((done, failed) => {
    const socket = connect(Number(new URL(served.url).port), '127.0.0.1', () => {
      socket.destroy();
      done();
    });
    socket.once('error', failed);
  });

test('[S19] no payload and no token is in the logs, whatever becomes of a request', async () => {
  const ana = replica();
  await ana.handshake();
  const { body } = await ana.push([
    operation([created(`plain ${CANARY}`)]),
    operation([created(`throw ${CANARY}`)]),
    operation([created(`refuse ${CANARY}`)]),
    operation([{ ...created(CANARY), [CANARY]: CANARY }]),
  ]);
  expect(body.results.map(({ status, code }: Record<string, string>) => [status, code])).toEqual([
    ['accepted', undefined],
    ['refused', 'internal'],
    ['refused', 'not-admitted'],
    ['refused', 'invalid-event'],
  ]);
  const main = '/workspaces/acme/logs/main';
  expect((await call('POST', `${main}/push`, `{"${CANARY}":1,"${CANARY}":2}`)).status).toBe(400);
  expect((await call('POST', `${main}/push`, `not json ${CANARY}`)).status).toBe(400);
  expect((await call('POST', `${main}/push`, CANARY, { 'Content-Type': CANARY })).status).toBe(415);
  expect((await call('GET', `${main}/events?after=${CANARY}`)).status).toBe(400);
  expect((await call('GET', `/${CANARY}`)).status).toBe(404);
  expect((await call('GET', '/session', undefined, as(CANARY))).status).toBe(401);
  const cut = await halfSent(JSON.stringify({ title: CANARY.repeat(2) }));
  cut.answered.catch(() => undefined);
  cut.asking.destroy();
  // Its session is open, and what it says is none of the protocol.
  const talker = await open();
  talker.send(hello(TOKENS.ana, ana.who));
  await talker.until('welcome');
  talker.socket.send(`not json ${CANARY}`);
  await talker.closed;
  const stranger = await open();
  stranger.send(hello(CANARY, ana.who));
  await stranger.closed;
  // A frame that breaks the form of WebSocket itself.
  const broken = await open();
  const raw = (broken.socket as unknown as { readonly _socket: Socket })._socket;
  raw.write(Buffer.concat([Buffer.from([0xff, 0x7e]), Buffer.from(CANARY)]));
  await broken.closed;

  // A refusal's answer names its line in the log, and everything before has its line before it.
  const { requestId } = (await call('GET', '/nowhere')).body;
  await served.written(requestId);
  const logged = served.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const unjudged = logged.find(({ msg }) => msg === 'An operation could not be judged.');
  expect(unjudged).toMatchObject({ level: 50, workspace: 'acme', log: 'main', error: { name: 'Error' } });
  expect(JSON.stringify(unjudged)).toMatch(/served\.config\.ts:\d+:\d+/);
  expect(logged.filter(({ code }) => code === 'malformed').length).toBeGreaterThanOrEqual(3);
  expect(logged.some(({ msg }) => msg === 'A socket failed.')).toBe(true);
  expectNoSecrets();
});

/** In anything that the process has written so far. */
function expectNoSecrets() {
  const all = served.lines.join('\n') + served.errors();
  for (const secret of [CANARY, ...Object.values(TOKENS), LOG_KEY]) expect(all).not.toContain(secret);
}

/** A command that only looks, or is refused, needs no process of its own. */
async function told(...args: string[]) {
  let [out, err] = ['', ''];
  const code = await run([...args, '--json'], {
    out: { write: (text) => (out += text) },
    err: { write: (text) => (err += text) },
  });
  return { code, out, err };
}

test('[S40] the environment wins over the file, a flag over both, and secrets are not shown', async () => {
  vi.stubEnv('HOLDFAST_DIR', 'of-the-environment');
  vi.stubEnv('HOLDFAST_PORT', '4713');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { code, out } = await told('serve', '--config', CONFIG, '--port', '4712', '--print-config');
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    store: { sqlite: 'of-the-environment' },
    listen: { host: '127.0.0.1', port: 4712 },
    access: 'static-tokens',
    admit: ['issue'],
    logKey: '(set)',
    logLevel: 'debug',
  });
  for (const secret of [...Object.values(TOKENS), LOG_KEY]) expect(out).not.toContain(secret);
  // The process runs by the same rule.
  expect(new URL(served.url).port).not.toBe('4711');
  expect(existsSync(DIR)).toBe(true);
});

test('[S49 F94] what stands in the way is told by its name: a folder in use, a port in use, no configuration', async () => {
  const refused = async (...args: string[]) => {
    const { code, err } = await told('serve', ...args);
    return [code, JSON.parse(err).error.code];
  };
  expect(await refused('--config', CONFIG, '--dir', DIR, '--port', '0')).toEqual([1, 'ledger-in-use']);
  const { port } = new URL(served.url);
  const other = join(folder, 'other');
  expect(await refused('--config', CONFIG, '--dir', other, '--port', port)).toEqual([1, 'port-in-use']);
  // Whoever did not get the port left the folder to others.
  await (await createLedger({ ...config, store: { sqlite: other } })).close();
  expect(await refused('--config', join(folder, 'none.ts'))).toEqual([2, 'no-config']);
});

test('[F80 LG9 S19] SIGTERM in the middle of work: what was accepted is answered and kept, the rest is told to come again', async () => {
  const ana = replica();
  const ben = replica(TOKENS.ben);
  await ana.handshake();
  await ben.handshake();
  const listener = await open();
  listener.send(hello(TOKENS.ben, ben.who));
  await listener.until('welcome');
  const halfway = await halfSent(JSON.stringify(ana.request([operation([created(`late ${CANARY}`)])])));

  // The signal arrives while this one is being judged.
  const last = await ben.push([operation([created(`terminate ${CANARY}`)])]);
  expect(last.body.results[0].status).toBe('accepted');

  expect(await listener.until('going-away')).toMatchObject({ retryMs: expect.any(Number) });
  expect(await listener.closed).toBe(1001);
  await expect(dialled()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  halfway.finish();
  expect(await halfway.answered).toMatchObject({ status: 503, body: { code: 'shutting-down' } });
  expect(await served.ended).toBe(0);

  const engine = openEngineReadOnly(DIR);
  const verified = await engine.verify({ workspace: 'acme', log: 'main' });
  await engine.close();
  expect(verified).toMatchObject({ events: last.body.head, problems: [] });

  expectNoSecrets();
  expect(readdirSync(folder)).not.toContain('the-folder-of-the-file');
});
