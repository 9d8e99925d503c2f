import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from '../packages/cli/src/main.ts';
import { created, createOutsider, operation } from './outsider.fixture.ts';
import { type ServedProcess, startServed } from './processes/served.ts';

/** `holdfast dev` as one process, and docs/PROTOCOL.md as somebody reads it: line by line, into a shell. */
const folder = mkdtempSync(join(tmpdir(), 'holdfast-dev-'));
let dev: ServedProcess;
const { call, replica } = createOutsider(() => dev.url, 'dev', 'dev');

beforeAll(async () => {
  dev = await startServed(['dev', '--port', '0', '--account', 'ana'], { cwd: folder });
}, 60_000);
afterAll(async () => {
  await dev.stop('SIGINT');
  rmSync(folder, { recursive: true, force: true });
});

const page = readFileSync(resolve(import.meta.dirname, '../docs/PROTOCOL.md'), 'utf8');
/** By the heading above each: what stands in its shell block. */
const blocks = page.split(/^## /m).flatMap((section) => {
  const [, script] = /^```sh\n([\s\S]*?)^```/m.exec(section) ?? [];
  const heading = section.startsWith('# ') ? 'Start' : section.slice(0, section.indexOf('\n'));
  return script === undefined ? [] : [{ heading, script }];
});

/** Runs the blocks one after another in one shell, and gives the JSON values that each printed. */
async function runPage(): Promise<Readonly<Record<string, readonly any[]>>> {
  const said = blocks.map(({ heading, script }) => `printf '\\n## ${heading}\\n'\n${script}`).join('');
  // A line for every answer, since none ends with one of its own. Nothing else of the page is changed.
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', `curl() { command curl "$@"; echo; }\n${said}`], {
    cwd: folder,
    env: { ...process.env, HOLDFAST_LEDGER: dev.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const [code] = await once(shell, 'close');
  expect(code).toBe(0);
  const answers: Record<string, any[]> = {};
  for (const part of out.split(/^## /m).slice(1)) {
    const [heading = '', ...lines] = part.split('\n').filter((line) => line !== '');
    answers[heading] = lines.map((line) => JSON.parse(line));
  }
  return answers;
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;

test('[LG10 S43] dev: one token with all roles, everything made on first use, on loopback, in a folder of its own', async () => {
  const session = await call('GET', '/session');
  expect([session.status, session.body.account, session.body.grants]).toEqual([200, 'dev', { '*': 'administrator' }]);
  expect(new URL(dev.url).hostname).toBe('127.0.0.1');
  expect((await call('GET', '/session', undefined, { Authorization: 'Bearer other' })).status).toBe(401);
  const shaken = await replica('dev', 'never-heard-of', 'some-log').handshake();
  expect([shaken.status, shaken.body.logs[0].status, shaken.body.logs[0].role]).toEqual([200, 'ok', 'administrator']);
  const { body } = await call('GET', '/workspaces');
  expect(body.workspaces).toContainEqual(expect.objectContaining({ workspace: 'never-heard-of' }));
  expect(existsSync(join(folder, '.holdfast/ledger'))).toBe(true);
});

test('[LG13 SC6] dev knows no schema: an entity of any name keeps its values, and nothing is numbered; more people have tokens', async () => {
  const ana = await call('GET', '/session', undefined, { Authorization: 'Bearer ana' });
  expect([ana.status, ana.body.account]).toEqual([200, 'ana']);
  const writer = replica('dev', 'numbers', 'main');
  await writer.handshake();
  const issue = created('with a number of its own');
  const event = { ...issue, change: { op: 'create', fields: { title: 'One', number: 42 } } };
  const { body } = await writer.push([operation([event])]);
  expect(body.results).toMatchObject([{ status: 'accepted' }]);
  expect(body.results[0]).not.toHaveProperty('assigned');
  const state = await call('GET', '/workspaces/numbers/logs/main/entities');
  expect(state.body.entities).toMatchObject([{ fields: { title: 'One', number: 42 } }]);
});

test('[S40] dev refuses an address that others can reach, and says why', async () => {
  let err = '';
  const streams = { out: { write: () => undefined }, err: { write: (text: string) => (err += text) } };
  const args = ['serve', '--dev', '--dir', join(folder, 'open'), '--port', '0', '--host', '0.0.0.0', '--json'];
  expect(await run(args, streams)).toBe(2);
  expect(JSON.parse(err).error).toMatchObject({ code: 'not-for-dev', why: 'Its token is known to everybody.' });
  expect(existsSync(join(folder, 'open'))).toBe(false);
});

test('[LG10] the page on the protocol has its shell blocks where a reader expects them', () => {
  expect(blocks.map(({ heading }) => heading)).toEqual([
    'Start',
    'Who am I',
    'What is there',
    'Where do I stand',
    'Write',
    'Read',
  ]);
});

// The calls themselves are also made by black-box.test.ts, without a shell.
test.skipIf(!hasCurl)(
  '[LG10 LG2] the lines of docs/PROTOCOL.md run as they stand (skipped where there is no curl)',
  async () => {
    const first = await runPage();
    for (const answer of Object.values(first).flat()) expect(answer).not.toHaveProperty('code');
    expect(first['Who am I']).toMatchObject([{ account: 'dev' }]);
    expect(first['What is there']).toMatchObject([
      { workspace: 'dev', created: true },
      { workspaces: expect.arrayContaining([expect.objectContaining({ workspace: 'dev' })]) },
      { log: 'main', head: 0 },
      { logs: [{ log: 'main' }] },
    ]);
    const [{ logs }] = first['Where do I stand'] as [{ logs: any[] }];
    expect(logs).toMatchObject([{ log: 'main', status: 'ok', head: { version: 0 }, role: 'administrator' }]);
    const [pushed] = first['Write'] as [any];
    expect(pushed).toMatchObject({ head: 1, results: [{ status: 'accepted', firstVersion: 1, entityVersions: [1] }] });
    const [events, entities, entity, history, replicas] = first['Read'] as readonly any[];
    expect(events).toMatchObject({
      more: false,
      through: { version: 1 },
      events: [{ version: 1, entityId: 'issue-1' }],
    });
    expect(entities.entities).toMatchObject([{ id: 'issue-1', fields: { title: 'From curl' } }]);
    expect(entity.entity).toMatchObject({ id: 'issue-1', version: 1, fields: { title: 'From curl' } });
    expect(history.events).toMatchObject([{ version: 1, change: { op: 'create' } }]);
    expect(replicas.replicas).toMatchObject([{ account: 'dev', generation: 1 }]);

    // Another reader, another shell: the same request has the same first result.
    const second = await runPage();
    expect((second['Write'] as [any])[0].results).toEqual(pushed.results);
    expect((second['Read'] as readonly any[])[0]).toEqual(events);
  },
);

test('[F80] dev ends with exit code 0 when it is told to', async () => {
  expect(await dev.stop('SIGINT')).toBe(0);
  expect(dev.errors()).toBe('');
});
