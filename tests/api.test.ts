import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

test('[AR4] the public surface is the one that is written down in api/', () => {
  const root = resolve(import.meta.dirname, '..');
  const { status, stderr, stdout } = spawnSync(process.execPath, ['scripts/api-report.ts', '--check'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${resolve(root, 'node_modules/.bin')}:${process.env['PATH']}` },
  });
  expect([status, stderr, stdout]).toEqual([0, '', '']);
});
