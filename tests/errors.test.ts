import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { RECOVERY } from '@holdfast/core';
import { expect, test } from 'vitest';

test('[AR3] every fault code has its place in docs/ERRORS.md', () => {
  const page = readFileSync(resolve(import.meta.dirname, '../docs/ERRORS.md'), 'utf8');
  const missing = Object.keys(RECOVERY).filter((code) => !page.includes(`\`${code}\``));
  expect(missing).toEqual([]);
});
