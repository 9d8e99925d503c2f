import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Served, serveLedger, staticTokens } from '@holdfast/ledger';
import { createClient, type Replica } from '@holdfast/replica';
import { CRASH_POINTS } from '@holdfast/replica/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type AppSchema, schema } from '../docs/tasks/schema.ts';
import { claimNext, createAndWait } from '../docs/tasks/t13-read-decide-write.ts';
import { firstInvoice, pay, payOnce, unpaid } from '../docs/tasks/t14-types-at-run-time.ts';

/** The tasks of docs/tasks as programs that run, against a real ledger. */
const TASKS = resolve(import.meta.dirname, '../docs/tasks');
let folder: string;
let ledger: Served;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tasks-'));
  const grants = { acme: 'writer' as const };
  ledger = await serveLedger({
    schema,
    store: { sqlite: join(folder, 'ledger') },
    access: staticTokens({ closer: { account: 'service:closer', grants }, ana: { account: 'ana', grants } }),
    listen: { port: 0 },
    createOnFirstUse: true,
    logLevel: 'silent',
  });
});
afterEach(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(task: string, how: { readonly args?: readonly string[]; readonly env?: Record<string, string> }) {
  const child = spawn(process.execPath, [...(how.args ?? []), join(TASKS, task)], {
    cwd: folder,
    env: { ...process.env, ...how.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  const [code] = (await once(child, 'exit')) as [number | null];
  return { code, said };
}

const openAna = async (): Promise<Replica<AppSchema>> => {
  const account = { id: 'ana', token: () => 'ana' };
  const client = createClient({ schema, ledger: ledger.url, dir: join(folder, 'ana'), account });
  return client.open('acme');
};

test('[SY2 CM1] task T7: a background job settles, closes what is stale, and ends', async () => {
  await using ana = await openAna();
  const project = await ana.commit((tx) => tx.project.create({ name: 'P' }));
  const id = await ana.commit((tx) => tx.issue.create({ project, title: 'old', status: 'doing' }));
  await ana.settle();
  const env = { LEDGER: ledger.url, TOKEN: 'closer', BEFORE: '2999-01-01T00:00:00.000Z' };
  const { code, said } = await run('t07-background-job.ts', { env });
  expect([code, said]).toEqual([0, '']);
  await ana.settle();
  const row = await ana.first((db) =>
    db.selectFrom('issue').select(['status', 'number', 'updatedBy']).where('id', '=', id),
  );
  expect(row).toEqual({ status: 'done', number: 1, updatedBy: 'service:closer' });
});

test('[MG3 CM1] task T12: an app tests two people who edit offline, in a world of its own', async () => {
  const { code, said } = await run('t12-testing.ts', { args: ['--test'] });
  expect(said).toContain('two people edit different fields of one issue offline');
  expect(code).toBe(0);
});

test('[I03 OB3] task T12, further: the example of the guide runs as it stands there, and the guide names every point', async () => {
  const guide = readFileSync(join(TASKS, '../TESTING.md'), 'utf8');
  expect(guide).toContain(readFileSync(join(TASKS, 't12-faults.ts'), 'utf8'));
  for (const [point, what] of Object.entries(CRASH_POINTS)) expect(guide).toContain(`| \`${point}\` | ${what} |`);
  const { code, said } = await run('t12-faults.ts', { args: ['--test'] });
  expect(said).toContain(`a vote counts once: ${CRASH_POINTS['after-send']}`);
  expect([code, said.includes('fail 0')]).toEqual([0, true]);
});

test('[CM4 LQ2] task T13: read, decide, write; and follow one write to the ledger', async () => {
  await using ana = await openAna();
  const project = await ana.commit((tx) => tx.project.create({ name: 'P' }));
  const me = await ana.commit((tx) => tx.person.create({ account: 'ana', name: 'Ana' }));
  const { id, version } = await createAndWait(ana, 'first', project);
  expect(version).toBeGreaterThan(0);
  expect(await claimNext(ana, me)).toBe(id);
  expect(await claimNext(ana, me)).toBeNull();
  const row = await ana.first((db) => db.selectFrom('issue').select(['status', 'assignee']));
  expect(row).toEqual({ status: 'doing', assignee: me });
});

test('[SC4] task T14: a type is defined while the app runs, and is a table like any other', async () => {
  await using ana = await openAna();
  const id = await firstInvoice(ana);
  const rows = await unpaid(ana);
  expect(rows).toEqual([{ id, number: '2026-001', paid: false, tags: ['first'] }]);
  await pay(ana, rows[0] as { id: typeof id });
  expect(await unpaid(ana)).toEqual([]);
  expect(await ana.settle()).toMatchObject({ settled: true, attention: 0 });
  // Paid already: nothing is written again.
  expect(await payOnce(ana, id)).toEqual(['invoice.created', 'invoice.updated']);
});
