import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const COMMAND = resolve(import.meta.dirname, '../bin/holdfast.js');

test('[P8] a reader that has seen enough ends the command without a word', () => {
  // The reader is gone long before the first line is written.
  const line = `"${process.execPath}" "${COMMAND}" schema --help | true`;
  const { status, stderr } = spawnSync('sh', ['-c', line], { encoding: 'utf8', timeout: 60_000 });
  expect([status, stderr]).toEqual([0, '']);
}, 60_000);
