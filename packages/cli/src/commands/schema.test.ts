import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../../../..');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-lock-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('[SC2] a lock file that is no snapshot is refused with what is wrong in it, and nothing is written over it', () => {
  const lock = join(folder, 'schema.lock.json');
  const check = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [
        join(ROOT, 'packages/cli/bin/holdfast.js'),
        ...['schema', 'check', join(ROOT, 'docs/tasks/schema.ts'), '--lock', lock, ...args],
      ],
      { cwd: folder, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' }, timeout: 60_000 },
    );
    return { status, said: stdout + stderr };
  };
  expect(check('--write').status).toBe(0);
  expect(check()).toMatchObject({ status: 0, said: expect.stringContaining('No change.') });
  const kind = { issue: { fields: { title: { kind: 'txt' } } } };
  for (const [text, why] of [
    [JSON.stringify({ format: 1, schema: { format: 1, entities: kind } }), 'entities.issue.fields.title.kind'],
    [JSON.stringify({ format: 2 }), 'a schema snapshot of format 1 is expected'],
    ['<<<<<<< ours', 'a schema snapshot of format 1 is expected'],
  ] as const) {
    writeFileSync(lock, text);
    const { status, said } = check('--write');
    expect([status, said]).toEqual([1, expect.stringContaining(why)]);
  }
});
