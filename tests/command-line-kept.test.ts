import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { defineSchema, entity, integer, nextSnapshot, schemaData } from '@holdfast/core';
import { serveLedger, staticTokens } from '@holdfast/ledger';
import { createClient, type Replica } from '@holdfast/replica';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { run } from '../packages/cli/src/main.ts';
import { type TrackerSchema, trackerSchema } from '../packages/cli/src/tracker-schema.ts';
import { realData } from '../simulation/src/real-data.fixture.ts';
import { type ServedProcess, startServed } from './processes/served.ts';

/**
 * Each command once, as a process, over what devices and a ledger left behind. One story, told in order: the replica of
 * `ana` is made and used by commands, the one of `ben` by this process.
 */
const BIN = join(resolve(import.meta.dirname, '..'), 'packages/cli/bin/holdfast.js');
const SCHEMA = resolve(import.meta.dirname, '../docs/tasks/schema.ts');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-kept-'));
const LEDGER = join(folder, '.holdfast/ledger');
let dev: ServedProcess;

const processOf = (...args: string[]): ChildProcess =>
  spawn(process.execPath, [BIN, ...args, '--json'], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', HOLDFAST_TOKEN: 'dev' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });

interface Said {
  readonly code: number;
  /** The JSON values of stdout, one a line. */
  readonly values: readonly any[];
  readonly error: { readonly code: string; readonly what: string; readonly why: string; readonly next: string } | null;
}

/** A command as a process, with `--json`. */
async function holdfast(...args: string[]): Promise<Said> {
  const child = processOf(...args);
  let [out, err] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (part: string) => {
    out += part;
  });
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    err += part;
  });
  const [code] = await once(child, 'close');
  const values = out.split('\n').filter((line) => line !== '');
  return { code, values: values.map((line) => JSON.parse(line)), error: err === '' ? null : JSON.parse(err).error };
}

/** What a person reads, of the same program without a process of its own. */
async function said(...args: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let [out, err] = ['', ''];
  const code = await run(args, { out: { write: (part) => (out += part) }, err: { write: (part) => (err += part) } });
  return { code, out, err };
}

const dirOf = (name: string): string => join(folder, name);
const fileOf = (name: string): string =>
  join(dirOf(name), readdirSync(dirOf(name)).find((one) => one.endsWith('.holdfast')) as string);

/** A device's replica, opened here for as long as `work` takes. */
async function within<T>(name: string, work: (replica: Replica<TrackerSchema>) => Promise<T>): Promise<T> {
  await using client = createClient({
    schema: trackerSchema,
    ledger: dev.url,
    dir: dirOf(name),
    account: { id: 'dev', token: () => 'dev' },
  });
  return await work(await client.open('dev'));
}

const settle = async (replica: Replica<TrackerSchema>): Promise<void> => {
  expect(await replica.settle({ signal: AbortSignal.timeout(60_000) })).toMatchObject({ settled: true });
};
const titlesOf = (replica: Replica<TrackerSchema>) =>
  replica.query((db) => db.selectFrom('issue').select(['id', 'title']).orderBy('arrival'));
const retitle = (replica: Replica<TrackerSchema>, title: string) =>
  replica.commit((tx) => tx.issue.update(issue, { title }), { label: title });

/** Changes a file behind the engine's back. */
function tamper(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  expect(Number(database.prepare(sql).run().changes)).toBe(1);
  database.close();
}

/** The one issue that the story is about, and how many comments it came with. */
let issue: string;
const COMMENTS = 403;

function writeIssues(name: string, number: number): string {
  const comments = Array.from({ length: COMMENTS }, (_, at) => ({
    at: '2026-01-01T00:00:00Z',
    author: 'ben',
    body: `${at}`,
  }));
  const people = { author: 'cem', assignees: ['ana', 'ben', 'eve'] };
  writeFileSync(join(folder, name), `${JSON.stringify({ repo: 'a/b', number, title: 'Rain', comments, ...people })}\n`);
  return join(folder, name);
}

beforeAll(async () => {
  dev = await startServed(['dev', '--port', '0'], { cwd: folder });
}, 60_000);
afterAll(async () => {
  await dev.stop('SIGINT');
  rmSync(folder, { recursive: true, force: true });
});

test('[P8] an import says how many comments and people it left out, to people and to programs', async () => {
  const imported = await holdfast(
    ...['import', 'github-issues', writeIssues('one.jsonl', 1), '--dir', 'ana', '--ledger', dev.url],
  );
  const commentsLeftOut = COMMENTS - imported.values[0].comments;
  expect(imported).toEqual({
    code: 0,
    values: [
      {
        ...{ issues: 1, comments: expect.any(Number), commentsLeftOut, assigneesLeftOut: 2, authorsLeftOut: 1 },
        ...{ cut: 0, cuts: [], already: 0, unsent: 0 },
      },
    ],
    error: null,
  });
  expect(commentsLeftOut).toBeGreaterThan(0);
  await within('ben', async (replica) => {
    await settle(replica);
    expect(await replica.query((db) => db.selectFrom('comment').select('id'))).toHaveLength(
      imported.values[0].comments,
    );
    issue = (await titlesOf(replica))[0]?.id as string;
  });
  const { out } = await said(
    ...['import', 'github-issues', writeIssues('two.jsonl', 2), '--dir', dirOf('cem'), '--ledger', dev.url],
  );
  expect(out).toContain(`\n${commentsLeftOut} comments were left out: of one issue at most `);
  expect(out).toContain('\n2 assignees were left out: of one issue the first is taken.\n');
  expect(out).toContain('\nWho opened it was left out of 1 issues: there is no field for it here.\n');
});

test('[P8] an import names the texts that it cut, with their lengths: all of them to programs, the first to people', async () => {
  // Real texts, as if each had been pasted into the title.
  const bodies = (realData<{ readonly body: string }>('tracker_issues') ?? []).map(({ body }) => body.trim());
  const titles = bodies.filter(({ length }) => length > 500).slice(0, 7);
  const file = join(folder, 'long.jsonl');
  const lines = titles.map((title, at) => JSON.stringify({ repo: 'a/b', number: at + 1, title }));
  writeFileSync(file, lines.join('\n'));
  // A ledger of its own: the story's has one workspace.
  const ledger = await serveLedger({
    schema: trackerSchema,
    store: { sqlite: join(folder, 'long') },
    access: staticTokens({ dev: { account: 'dev', grants: { '*': 'administrator' } } }),
    listen: { port: 0 },
    createOnFirstUse: true,
    logLevel: 'silent',
  });
  onTestFinished(() => ledger.close());
  const imported = (...args: string[]) =>
    said(...['import', 'github-issues', file, '--ledger', ledger.url, '--workspace', 'long', ...args]);
  const { out } = await imported('--dir', dirOf('dora'), '--json');
  const told = JSON.parse(out);
  expect([told.issues, told.cut]).toEqual([titles.length, titles.length]);
  await using client = createClient({
    schema: trackerSchema,
    ledger: ledger.url,
    dir: dirOf('dora'),
    account: { id: 'dev', token: () => 'dev' },
  });
  const rows = await titlesOf(await client.open('long'));
  expect(told.cuts).toEqual(
    titles.map((title, at) => ({
      issue: `a/b#${at + 1}`,
      field: 'title',
      from: title.length,
      to: rows.find((row) => title.startsWith(row.title))?.title.length,
    })),
  );
  expect((await imported('--dir', dirOf('emil'), '--limit', '7')).out).toContain('7 were here already');
  const { out: text } = await said(
    ...['import', 'github-issues', file, '--ledger', ledger.url, '--workspace', 'long2', '--dir', dirOf('emil')],
  );
  const [{ issue: first, from, to }] = told.cuts;
  expect(text).toContain(`\n   ${first}  title: ${from} characters became ${to}\n`);
  expect(text.match(/characters became/g)).toHaveLength(5);
  expect(text).toContain('\n   and 2 more\n');
});

test('[LQ6 SY2] watch shows a result, and the next one when a commit of another process changed it', async () => {
  const watching = processOf('replica', 'watch', 'select title from issue', '--dir', 'ana', '--every', '50');
  const ended = once(watching, 'close');
  const lines = createInterface({ input: watching.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value as string);
  expect(await next()).toEqual({ rows: [{ title: 'Rain' }] });
  const write = JSON.stringify({ id: issue, title: 'Snow' });
  const committed = await holdfast('replica', 'commit', 'issue', write, '--dir', 'ana', '--settle');
  expect(committed).toEqual({
    code: 0,
    values: [{ entity: 'issue', id: issue, action: expect.any(String), settled: true, attention: 0, obstacles: [] }],
    error: null,
  });
  while (!JSON.stringify(await next()).includes('"Snow"'));
  watching.kill('SIGINT');
  expect(await ended).toEqual([0, null]);
  await within('ben', async (replica) => {
    await settle(replica);
    expect((await titlesOf(replica)).map(({ title }) => title)).toContain('Snow');
    const refused = await said('replica', 'commit', 'issue', '{"title": "Hail"}', '--dir', dirOf('ben'));
    expect([refused.code, refused.err.split('\n')[0]]).toEqual([1, expect.stringContaining('[replica-in-use]')]);
  });
  expect((await said('replica', 'commit', 'issue', '{"title"', '--dir', dirOf('ana'))).err).toContain('[not-json]');
});

test('[ST1] what two people set at once waits on the desk: exit code 3, until somebody decided', async () => {
  await within('ana', async (replica) => {
    await settle(replica);
    await replica.pause();
    await retitle(replica, 'Mine');
  });
  await within('ben', async (replica) => {
    await settle(replica);
    await retitle(replica, 'Theirs');
    await settle(replica);
  });
  const write = JSON.stringify({ name: 'other work' });
  const committed = await holdfast('replica', 'commit', 'project', write, '--dir', 'ana', '--settle');
  expect([committed.code, committed.values[0].attention]).toEqual([3, 1]);
  const desk = await holdfast('replica', 'desk', '--dir', 'ana');
  expect(desk).toEqual({
    code: 3,
    values: [
      expect.objectContaining({
        kind: 'clash',
        needs: 'answer',
        label: 'Mine',
        entity: { type: 'issue', id: issue },
        fields: [expect.objectContaining({ field: 'title', base: 'Snow', mine: 'Mine', theirs: 'Theirs' })],
      }),
    ],
    error: null,
  });
  expect((await said('replica', 'desk', '--dir', dirOf('ana'))).out).toContain('      theirs  "Theirs" (dev)\n');
  await within('ana', async (replica) => {
    await replica.desk.resolve(desk.values[0].id, 'mine');
    await settle(replica);
  });
  expect((await said('replica', 'desk', '--dir', dirOf('ana'))).code).toBe(0);
});

/** What sync did, newest first. */
function expectJournal({ code, values }: Said): void {
  expect(code).toBe(0);
  expect(values.length).toBeGreaterThan(5);
  for (const entry of values)
    expect(entry).toEqual({
      seq: expect.any(Number),
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      kind: expect.any(String),
      facts: expect.any(Object),
    });
  const seqs = values.map(({ seq }) => seq);
  expect(seqs).toEqual(seqs.toSorted((one, other) => other - one));
  expect(JSON.stringify(values)).not.toMatch(/Rain|Snow|Theirs|Packed/);
}

test('[OB7 P8] what one device could not send is packed there, and taken once by another; the journal tells nothing of what people wrote', async () => {
  await within('ben', async (replica) => {
    await settle(replica);
    await replica.pause();
    await retitle(replica, 'Packed');
  });
  const [packed, journal] = await Promise.all([
    holdfast('replica', 'pack', '--to', 'ben.pack', '--dir', 'ben'),
    holdfast('replica', 'journal', '--dir', 'ana'),
  ]);
  expectJournal(journal);
  expect(packed).toMatchObject({ code: 0, values: [{ file: 'ben.pack', batches: 1, bytes: expect.any(Number) }] });
  const again = await said('replica', 'pack', '--to', join(folder, 'ben.pack'), '--dir', dirOf('ben'));
  expect([again.code, again.err]).toEqual([2, expect.stringContaining('[file-not-written]')]);
  const taken = await holdfast('replica', 'unpack', 'ben.pack', '--dir', 'ana');
  expect(taken).toEqual({ code: 0, values: [{ batches: 1, already: 0 }], error: null });
  const twice = await said('replica', 'unpack', join(folder, 'ben.pack'), '--dir', dirOf('ana'), '--json');
  expect(JSON.parse(twice.out)).toEqual({ batches: 0, already: 1 });
  const missing = await said('replica', 'unpack', join(folder, 'no.pack'), '--dir', dirOf('ana'));
  expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('[not-found]')]);
});

test('[LG2 SY2] a ledger says who asks, what it holds and that it is whole; exit code 4 where its file was changed, 5 where it is gone', async () => {
  const ofFolder = ['--dir', LEDGER, '--workspace', 'dev'];
  const [status, logs, usage, verified] = await Promise.all([
    holdfast('ledger', 'status', '--ledger', dev.url),
    holdfast('ledger', 'logs', '--ledger', dev.url, '--workspace', 'dev'),
    holdfast('ledger', 'usage', ...ofFolder),
    holdfast('ledger', 'verify', ...ofFolder),
  ]);
  expect(status).toMatchObject({
    code: 0,
    values: [
      {
        account: 'dev',
        grants: { '*': 'administrator' },
        workspaces: [{ workspace: 'dev' }],
      },
    ],
  });
  const { log, head } = logs.values[0];
  expect([logs.code, logs.values.length, log]).toEqual([0, 1, 'main']);
  expect(usage).toMatchObject({ code: 0, values: [{ log, head }] });
  expect(verified).toMatchObject({ code: 0, values: [{ log, events: head, problems: [] }] });

  expect(await dev.stop('SIGINT')).toBe(0);
  const [file] = readdirSync(LEDGER).filter((name) => name.endsWith('.db'));
  tamper(
    join(LEDGER, file as string),
    `UPDATE entity SET fields = json_set(fields, '$.title', 'forged') WHERE id = '${issue}'`,
  );
  const [damaged, waiting] = await Promise.all([
    holdfast('ledger', 'verify', ...ofFolder),
    holdfast('replica', 'commit', 'project', '{"name": "later"}', '--dir', fileOf('cem'), '--settle'),
  ]);
  expect(damaged).toMatchObject({ code: 4, values: [{ problems: [{ what: 'entity', entity: { id: issue } }] }] });
  expect(waiting).toMatchObject({ code: 5, values: [{ entity: 'project', settled: false, attention: 0 }] });
});

test('[PM10 DG2] the doctor names what does not fit, exit code 4; its repair ends what was left half done, and packs first', async () => {
  const file = fileOf('ana');
  const whole = `${file}.whole`;
  copyFileSync(file, whole);
  const clean = await said('replica', 'doctor', '--dir', dirOf('ana'), '--json');
  expect([clean.code, JSON.parse(clean.out).findings]).toEqual([0, []]);
  tamper(file, "UPDATE hf_log SET signature = replace(signature, substr(signature, 1, 1), 'x')");
  const damaged = await holdfast('replica', 'doctor', '--dir', 'ana');
  expect(damaged).toMatchObject({ code: 4, error: null });
  expect(damaged.values[0].findings).toEqual([
    { check: 'signature', log: 'main', what: expect.any(String), next: expect.stringContaining('unsent work is kept') },
  ]);

  copyFileSync(whole, file);
  const undone = `UPDATE hf_permit SET state = 'local-commit-entered', disposition = 'accepted', ended_at = NULL`;
  tamper(file, `${undone} WHERE seq = (SELECT max(seq) FROM hf_permit WHERE class = 'push')`);
  const found = await said('replica', 'doctor', '--dir', dirOf('ana'));
  expect([found.code, found.out]).toEqual([4, expect.stringContaining('Run "holdfast replica doctor --repair"')]);
  const repaired = await holdfast('replica', 'doctor', '--repair', '--to', 'before.pack', '--dir', 'ana');
  expect(repaired).toMatchObject({
    code: 0,
    values: [{ pack: 'before.pack', ended: [{ log: 'main', class: 'push' }] }, { findings: [] }],
  });
  expect(existsSync(join(folder, 'before.pack'))).toBe(true);
});

test('[P8] the doctor of a ledger’s folder says in three lines whose it is, and which command looks into it', async () => {
  for (const dir of [LEDGER, join(LEDGER, readdirSync(LEDGER).find((name) => name.endsWith('.db')) as string)]) {
    const { code, err } = await said('replica', 'doctor', '--dir', dir, '--workspace', 'dev');
    const [what, why, next, ...more] = err.split('\n');
    expect([code, why, more]).toEqual([2, expect.stringContaining('A ledger keeps'), ['']]);
    expect(what).toBe(`${dir} is a ledger’s, not a replica’s.  [not-a-replica]`);
    // It is a command that can be copied.
    const command = /"holdfast (.*)"/.exec(next as string)?.[1]?.split(' ') as string[];
    expect((await said(...command)).out).toContain('live entities');
  }
});

test('[P8] the verification of a replica’s folder says in three lines whose it is, and which command looks into it', async () => {
  // A copy tells by what is in it, whatever it is called.
  const copy = join(folder, 'copy-of-a-replica.db');
  copyFileSync(fileOf('ana'), copy);
  for (const dir of [dirOf('ana'), fileOf('ana'), copy])
    for (const command of ['verify', 'usage']) {
      const { code, err } = await said('ledger', command, '--dir', dir, '--workspace', 'dev');
      const [what, why, next, ...more] = err.split('\n');
      expect([code, why, more]).toEqual([2, expect.stringContaining('A replica is'), ['']]);
      expect(what).toBe(`${dir} is a replica’s, not a ledger’s.  [not-a-ledger]`);
      const meant = /"holdfast (.*)"/.exec(next as string)?.[1]?.split(' ') as string[];
      expect((await said(...meant)).out).toContain('Everything fits');
    }
});

test('[P8] one file of a ledger is not its folder, and a copy of it under another name is not a replica', async () => {
  const file = join(LEDGER, readdirSync(LEDGER).find((name) => name.endsWith('.db')) as string);
  const { code, err } = await said('ledger', 'verify', '--dir', file, '--workspace', 'dev');
  expect([code, err]).toEqual([2, expect.stringMatching(/\[not-a-ledger\]\n.*\n.*--dir .*ledger\n$/)]);
  expect((await said('ledger', 'verify', '--dir', SCHEMA, '--workspace', 'dev')).err).toContain('[not-a-ledger]');
  const copy = join(folder, 'copy-of-a-ledger.db');
  copyFileSync(file, copy);
  expect((await said('replica', 'doctor', '--dir', copy)).err).toContain('[not-a-replica]');
});

test('[SC2] a schema is printed as data, and a change that devices cannot bear is refused: exit code 1', async () => {
  const module = await import(SCHEMA);
  const before = defineSchema({ ...module.schema.entities, composer: entity({ body: integer() }, { local: true }) });
  const lock = join(folder, 'schema.lock.json');
  expect((await said('schema', 'check', SCHEMA, '--lock', lock, '--json')).err).toContain('"code":"not-found"');
  writeFileSync(lock, JSON.stringify(nextSnapshot(null, schemaData(before))));
  const [printed, refused] = await Promise.all([
    holdfast('schema', 'print', SCHEMA),
    holdfast('schema', 'check', SCHEMA),
  ]);
  expect(printed).toEqual({ code: 0, values: [JSON.parse(JSON.stringify(schemaData(module.schema)))], error: null });
  expect(refused).toMatchObject({ code: 1, values: [{ refused: 1 }], error: null });
});
