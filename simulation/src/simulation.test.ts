import { expect, test } from 'vitest';
import { runSeed } from './run.ts';
import { seedsHold } from './seeds.fixture.ts';
import { replayCommand } from './shrink.ts';

/** Whole worlds: production engines, real files, virtual time. `npm run simulate` runs more of them, on every core. */
seedsHold(1, 250);

test('[I12] the same seed is the same world: two runs have one trace', async () => {
  for (const seed of [5, 31, 349]) {
    const first = await runSeed(seed);
    const second = await runSeed(seed);
    expect(second.traceHash, replayCommand(seed)).toBe(first.traceHash);
    expect(first.steps).toBeGreaterThan(0);
  }
  const [one, other] = [await runSeed(6, { steps: 10 }), await runSeed(7, { steps: 10 })];
  expect(one.traceHash).not.toBe(other.traceHash);
});
