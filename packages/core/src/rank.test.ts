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

/** Keys that another device, or a later version, may have made: any text in base 62 that does not end in `0`. */
const foreignKey = fc
  .string({ unit: fc.constantFrom('0', '1', '2', 'U', 'y', 'z'), maxLength: 6 })
  .chain((head) => fc.constantFrom('1', 'U', 'z').map((end) => head + end));

test('[SC10] between any two keys in order there is room, and beyond any key', () => {
  fc.assert(
    fc.property(fc.integer(), foreignKey, foreignKey, (seed, a, b) => {
      const random = seeded(seed);
      const [low, high] = a < b ? [a, b] : [b, a];
      expect(rankBetween(low, null, random) > low).toBe(true);
      expect(rankBetween(null, high, random) < high).toBe(true);
      if (low === high) return;
      const key = rankBetween(low, high, random);
      expect([low, key, high, low < key && key < high]).toEqual([low, key, high, true]);
    }),
    { numRuns: 20_000 },
  );
});

test('[SC10] appending and prepending never lengthen keys', () => {
  const random = seeded(7);
  let last: string | null = null;
  let first: string | null = null;
  for (let n = 0; n < 10_000; n += 1) {
    last = rankBetween(last, null, random);
    first = rankBetween(null, first, random);
    expect(last.length).toBe(8);
    expect(first.length).toBe(8);
  }
});

test('[SC10] a thousand insertions at one place cost at most a digit for four, ten thousand at random places ten in all', () => {
  const random = seeded(7);
  const low = rankBetween(null, null, random);
  const high = rankBetween(low, null, random);
  const places: Readonly<Record<string, (n: number) => 'low' | 'high'>> = {
    'always after one row': () => 'high',
    'always before one row': () => 'low',
    'now after, now before the last': (n) => (n % 2 === 0 ? 'low' : 'high'),
  };
  for (const [how, moves] of Object.entries(places)) {
    const ends = { low, high };
    for (let n = 0; n < 1_000; n += 1) ends[moves(n)] = rankBetween(ends.low, ends.high, random);
    expect([how, Math.max(ends.low.length, ends.high.length) <= 8 + 1_000 / 4]).toEqual([how, true]);
  }
  const list = [low, high];
  for (let n = 0; n < 10_000; n += 1) {
    const at = 1 + Math.floor(random.unit() * (list.length - 1));
    list.splice(at, 0, rankBetween(list[at - 1] as string, list[at] as string, random));
  }
  expect(Math.max(...list.map((key) => key.length))).toBeLessThanOrEqual(8 + 10);
});

test('[SC10] two devices that insert at one place make two keys', () => {
  const [ana, ben] = [seeded(1), seeded(2)];
  let same = 0;
  for (let n = 0; n < 10_000; n += 1) if (rankBetween('A1', 'A2', ana) === rankBetween('A1', 'A2', ben)) same += 1;
  // One in 61³, that is 226,981.
  expect(same).toBeLessThanOrEqual(2);
});

test('[SC10] neighbours out of order, equal or foreign still give a key', () => {
  const random = seeded(3);
  expect(rankBetween('V1', 'V1', random) > 'V1').toBe(true);
  expect(rankBetween('V1', 'A1', random) > 'V1').toBe(true);
  expect(rankBetween('not a rank!', null, random)).toMatch(/^[0-9A-Za-z]+$/);
});
