import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';

/** The command as people run it: real processes, real sockets, real files. */
const ROOT = resolve(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const holdfast = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, 'packages/cli/bin/holdfast.js'), ...args],
    {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, NO_COLOR: '1', HOLDFAST_TOKEN: 'dev' },
      timeout: 110_000,
    },
  );
  return { status, stdout, stderr };
};

test('[P1 P2 P3 P5 I21] the demonstration: merges, a conflict, a kill -9 in the middle of a push, and a count that fits', {
  timeout: 120_000,
}, () => {
  const { status, stdout, stderr } = holdfast('demo', '--issues', '25', '--keep', '--json');
  expect([status, stderr]).toEqual([0, '']);
  const [result, { kept }] = stdout
    .trim()
    .split('\n')
    .slice(-2)
    .map((line) => JSON.parse(line));
  onTestFinished(() => rmSync(kept, { recursive: true, force: true }));
  expect(existsSync(join(kept, 'ledger'))).toBe(true);
  for (const command of ['verify', 'usage']) {
    const asked = holdfast('ledger', command, '--dir', join(kept, 'ledger'), '--workspace', 'nope', '--json');
    expect([asked.status, JSON.parse(asked.stderr).error]).toEqual([
      2,
      expect.objectContaining({ code: 'not-found', why: 'It holds one workspace: demo.' }),
    ]);
  }
  expect(result).toMatchObject({
    ok: true,
    lost: 0,
    doubled: 0,
    conflicts: 1,
    chainsEqual: true,
    signaturesEqual: true,
    obligationsOpen: 0,
    findings: 0,
  });
  expect(result.merges).toBeGreaterThanOrEqual(1);
  // The push was really cut, and what was owed was found out.
  expect(result.unansweredAtKill).toBeGreaterThan(0);
  expect(result.obligationsOpened).toBeGreaterThanOrEqual(result.unansweredAtKill);
  // "Lost 0" speaks of the 25 imported issues, six edits and comments, and 25 votes for every kill.
  expect(result.committed).toBeGreaterThanOrEqual(25 + 6 + 25);
});

test('[OB7] issues are imported without a ledger, wait, can be packed, and the file is whole', {
  timeout: 120_000,
}, () => {
  const data = join(ROOT, 'data/tracker_issues.jsonl.gz');
  const imported = holdfast(
    'import',
    'github-issues',
    data,
    '--ledger',
    'http://127.0.0.1:9',
    '--limit',
    '3',
    '--json',
  );
  expect(imported.status).toBe(5);
  expect(JSON.parse(imported.stdout)).toMatchObject({ issues: 3, unsent: 3 });
  const rows = holdfast('replica', 'query', 'select title, sync from issue order by arrival', '--json');
  expect(
    rows.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).sync),
  ).toEqual(['pending', 'pending', 'pending']);
  expect(JSON.parse(holdfast('replica', 'doctor', '--json').stdout).findings).toEqual([]);
  const packed = holdfast('replica', 'pack', '--to', 'unsent.pack', '--json');
  expect(JSON.parse(packed.stdout)).toMatchObject({ batches: 3 });
  expect(JSON.parse(holdfast('replica', 'status', '--json').stdout).counts.unsent).toBe(3);
});

test('[LQ5] a query that is none, a folder without a replica and a wrong flag say what, why and what next', {
  timeout: 120_000,
}, () => {
  const refused = holdfast('replica', 'query', 'delete from issue');
  expect(refused.status).toBe(2);
  expect(refused.stderr.trim().split('\n')).toHaveLength(3);
  expect(refused.stderr).toContain('[query-refused]');
  expect(refused.stderr).toContain('The tables of this replica: comment, issue, project.');
  const missing = holdfast('replica', 'status', '--dir', 'nowhere', '--json');
  expect([missing.status, JSON.parse(missing.stderr).error.code]).toEqual([2, 'not-found']);
  expect(holdfast('replica', 'frobnicate').status).toBe(2);
  expect(holdfast('ledger', 'status', '--ledger', 'http://127.0.0.1:9').status).toBe(5);
});
