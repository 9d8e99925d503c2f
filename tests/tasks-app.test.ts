import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { defineSchema, entity, integer, nextSnapshot, schemaData, text } from '@holdfast/core';
import { type Served, serveLedger, staticTokens } from '@holdfast/ledger';
import { createClient } from '@holdfast/replica';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { schema } from '../docs/tasks/schema.ts';
import { config } from '../docs/tasks/t09-server-hook.ts';
import { createSignedInClient, type Provider } from '../docs/tasks/t10-signing-in.ts';
import { before } from '../docs/tasks/t11-migrating.ts';

/** Tasks of docs/tasks around an app: what its ledger admits, how it signs in, how its schema grows. */
vi.mock('../docs/tasks/stubs-not-built-yet.ts', () => ({ reaction: () => undefined, createCaller: () => undefined }));

const ROOT = resolve(import.meta.dirname, '..');
let folder: string;
let ledger: Served | null = null;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tasks-'));
});
afterEach(async () => {
  await ledger?.close();
  ledger = null;
  rmSync(folder, { recursive: true, force: true });
});

async function serve(more: Pick<Parameters<typeof serveLedger>[0], 'access' | 'admit'>): Promise<string> {
  const store = { sqlite: join(folder, 'ledger') };
  ledger = await serveLedger({
    schema,
    store,
    listen: { port: 0 },
    createOnFirstUse: true,
    logLevel: 'silent',
    ...more,
  });
  return ledger.url;
}

test('[LG14] task T9: only its author may change a comment, says the hook; his device is told why, and keeps the text', async () => {
  const grants = { acme: 'writer' as const };
  const url = await serve({
    access: staticTokens({ ana: { account: 'ana', grants }, ben: { account: 'ben', grants } }),
    admit: config.admit,
  });
  const open = (id: string) =>
    createClient({ schema, ledger: url, dir: join(folder, id), account: { id, token: () => id } }).open('acme');
  await using ana = await open('ana');
  await using ben = await open('ben');
  const issue = await ana.commit((tx) => {
    const project = tx.project.create({ name: 'P' });
    return tx.issue.create({ project, title: 'One', status: 'todo' });
  });
  const comment = await ana.commit((tx) => tx.comment.create({ issue, body: 'of Ana' }));
  await ana.settle();
  await ben.settle();

  const refused = ben.commit((tx) => tx.comment.update(comment, { body: 'of Ben' }));
  await refused;
  await ben.commit((tx) => tx.issue.closed(issue, '2026-11-30T00:00:00.000Z'));
  expect(await ben.settle()).toMatchObject({ attention: 1 });
  const facts = { reason: 'not-yours', message: 'Only its author may change a comment.' };
  await expect(refused.ordered()).rejects.toMatchObject({
    code: 'refused',
    details: { because: { code: 'not-admitted', facts } },
  });
  expect(await ben.desk.list()).toMatchObject([
    {
      needs: 'answer',
      code: 'not-admitted',
      facts,
      entity: { type: 'comment', id: comment },
      fields: [{ mine: 'of Ben' }],
    },
  ]);
  await ana.commit((tx) => tx.comment.update(comment, { body: 'of Ana, again' }));
  await ana.settle();
  expect(await ana.first((db) => db.selectFrom('comment').select(['body', 'updatedBy']))).toEqual({
    body: 'of Ana, again',
    updatedBy: 'ana',
  });
  expect(await ana.first((db) => db.selectFrom('issue').select('status'))).toEqual({ status: 'done' });
});

test('[AC1 AC2] task T10: it opens with an expired token, signs in through the provider, and again when that expires', async () => {
  let valid = 'none-yet';
  const url = await serve({
    access: {
      name: 'provider',
      verify: ({ token }) => Promise.resolve(token === valid ? { account: 'ana', grants: { acme: 'writer' } } : null),
    },
  });
  const heard: (() => void)[] = [];
  let signedIn: { readonly id: string } | null = null;
  let token = 'expired-long-ago';
  let logins = 0;
  const provider: Provider = {
    get user() {
      return signedIn;
    },
    lastUserId: () => 'ana',
    getToken: () => Promise.resolve(token),
    login: () => {
      logins += 1;
      token = `token-${logins}`;
      valid = token;
      signedIn = { id: 'ana' };
      for (const run of heard) run();
      return Promise.resolve();
    },
    onChange: (run) => void heard.push(run),
  };
  await using client = createSignedInClient(provider, join(folder, 'ana'), url);
  const replica = await client.open('acme');
  const first = replica.commit((tx) => tx.project.create({ name: 'before signing in' }));
  await first;
  await first.ordered();
  expect([logins, client.session.current]).toEqual([1, 'signed-in']);

  valid = 'another-one';
  const second = replica.commit((tx) => tx.project.create({ name: 'after it expired' }));
  await second.ordered();
  expect(logins).toBe(2);
  expect(await replica.query((db) => db.selectFrom('project').select(['name', 'sync']).orderBy('name'))).toEqual([
    { name: 'after it expired', sync: 'synced' },
    { name: 'before signing in', sync: 'synced' },
  ]);
});

// ── T11 ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Checked {
  readonly changes: readonly { readonly what: string; readonly change: string; readonly verdict: string }[];
}

function check(module: string, lockOf: Parameters<typeof schemaData>[0]) {
  const lock = join(folder, 'schema.lock.json');
  const file = join(folder, 'schema.ts');
  writeFileSync(lock, JSON.stringify(nextSnapshot(null, schemaData(lockOf))));
  writeFileSync(file, module);
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(ROOT, 'packages/cli/bin/holdfast.js'), 'schema', 'check', file, '--lock', lock, '--json'],
    { cwd: folder, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' }, timeout: 60_000 },
  );
  const { changes } = JSON.parse(stdout) as Checked;
  return { status, changes: changes.map(({ what, change, verdict }) => [what, change, verdict]) };
}

test('[SC2 SC3] task T11: version 2 is safe for devices that hold version 1, says schema check', () => {
  const module = `export { after as schema } from ${JSON.stringify(join(ROOT, 'docs/tasks/t11-migrating.ts'))};`;
  expect(check(module, before)).toEqual({
    status: 0,
    changes: [
      ['issue.headline', 'renamed in code, wire title', 'safe'],
      ['issue.estimate', 'added, optional', 'safe'],
      ['issue.status', 'value "review" added', 'safe'],
    ],
  });
});

test('[SC2 SC5] task T11: a required field without a default, and a field of another kind, are refused', () => {
  const module = `import { defineSchema, entity, text } from ${JSON.stringify(import.meta.resolve('@holdfast/core'))};
    export const schema = defineSchema({ issue: entity({ title: text(), owner: text(), points: text() }) });`;
  const held = defineSchema({ issue: entity({ title: text(), points: integer({ optional: true }) }) });
  expect(check(module, held)).toEqual({
    status: 1,
    changes: [
      ['issue.owner', 'added, required, no default', 'refused'],
      ['issue.points', 'integer → text', 'refused'],
    ],
  });
});
