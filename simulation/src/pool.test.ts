import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { createPool } from './pool.ts';
import type { SeedResult } from './run.ts';

/** Turns in a circle for seed 2, dies of seed 3, and has nothing to say against the others. */
const WORKER = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', ({ seed }) => {
  if (seed === 3) process.exit(7);
  while (seed === 2);
  parentPort.postMessage({ seed, violations: [] });
});`;

test('[I29] a world that comes to no end, and one that dies, fail by their seed, and the others run', async () => {
  const told: SeedResult[] = [];
  const pool = createPool({ size: 1, hangsAfterMs: 500, start: () => new Worker(WORKER, { eval: true }) });
  await pool.run([1, 2, 3, 4].values(), {}, (result) => told.push(result));
  expect(told.map(({ seed, violations }) => [seed, violations.map(({ what }) => what.split('\n')[0])])).toEqual([
    [1, []],
    [2, ['the world died: Error: it came to no end in 500 ms']],
    [3, ['the world died: Error: the worker ended with 7']],
    [4, []],
  ]);
});
