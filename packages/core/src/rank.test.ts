import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rankBetween } from './rank.ts';

const seeded = (seed: number) => {
  let state = seed >>> 0 || 1;
  const unit = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
  return { unit, bytes: (length: number) => new Uint8Array(length) };
};

test('[SC10] a key is strictly between its neighbours, wherever rows are put in', () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(fc.nat(1000), { maxLength: 200 }), (seed, places) => {
      const random = seeded(seed);
      const list: string[] = [];
      for (const place of places) {
        const at = place % (list.length + 1);
        const key = rankBetween(list[at - 1] ?? null, list[at] ?? null, random);
        if (at > 0) expect(key > (list[at - 1] as string)).toBe(true);
        if (at < list.length) expect(key < (list[at] as string)).toBe(true);
        expect(key).toMatch(/^[0-9A-Za-z]*[1-9A-Za-z]$/);
        list.splice(at, 0, key);
      }
    }),
    { numRuns: 300 },
  );
});

test('[SC10] keys stay short: appending and prepending never lengthen them, a thousand at one place cost a digit for four or more', () => {
  const random = seeded(7);
  let last: string | null = null;
  let first: string | null = null;
  for (let n = 0; n < 10_000; n += 1) {
    last = rankBetween(last, null, random);
    first = rankBetween(null, first, random);
    expect(last.length).toBe(8);
    expect(first.length).toBe(8);
  }
  const low = rankBetween(null, null, random);
  let high = rankBetween(low, null, random);
  for (let n = 0; n < 1_000; n += 1) high = rankBetween(low, high, random);
  expect(high.length).toBeLessThanOrEqual(1_000 / 4);
});

test('[SC10] neighbours out of order, equal or foreign still give a key', () => {
  const random = seeded(3);
  expect(rankBetween('V1', 'V1', random) > 'V1').toBe(true);
  expect(rankBetween('V1', 'A1', random) > 'V1').toBe(true);
  expect(rankBetween('not a rank!', null, random)).toMatch(/^[0-9A-Za-z]+$/);
});
