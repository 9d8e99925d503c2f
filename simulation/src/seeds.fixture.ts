import { expect, test } from 'vitest';
import { runSeed } from './run.ts';
import { replayCommand } from './shrink.ts';

/** Seeds `from` to `to` as tests of 25 each; the first of each 25 runs twice. Two files share them, so that both cores work. */
const CHUNK = 25;

export function seedsHold(from: number, to: number): void {
  for (let first = from; first <= to; first += CHUNK)
    test(`[I12 I13 I29] seeds ${first} to ${first + CHUNK - 1}: after any storm everybody agrees, nothing is lost, nothing is stuck`, async () => {
      for (let seed = first; seed < first + CHUNK; seed += 1) {
        const { violations, faults } = await runSeed(seed, { twice: seed === first, coda: false });
        expect(violations, `faults ${faults.join(', ')}; ${replayCommand(seed)}`).toEqual([]);
      }
    }, 180_000);
}
