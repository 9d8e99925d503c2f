import { createSeededRandom } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';
import { drawLasting, LASTING } from './lasting.ts';
import { runSeed } from './run.ts';
import { replayCommand } from './shrink.ts';

for (const lasting of LASTING)
  test(`[I29 I30] ${lasting}: what is not healed hurts one device, which says so, and keeps nobody else from coming to rest`, async () => {
    for (const seed of [3, 14]) {
      const options = { lasting, logs: 2 };
      const { violations, counts } = await runSeed(seed, options);
      expect(violations, replayCommand(seed, options)).toEqual([]);
      expect(counts[`lasting ${lasting}`]).toBe(1);
    }
  });

test('[I29] one seed in five keeps a fault for ever', () => {
  const drawn = Array.from({ length: 500 }, (_, seed) => drawLasting(createSeededRandom(seed)));
  const hurt = drawn.filter((kind) => kind !== null);
  expect(hurt.length).toBeGreaterThan(80);
  expect(hurt.length).toBeLessThan(120);
  expect(new Set(hurt)).toEqual(new Set(LASTING));
});
