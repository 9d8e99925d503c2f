import fc from 'fast-check';

/** One thing done to a message at one place of it. */
export type Spoil =
  | { readonly do: 'replace'; readonly value: unknown }
  | { readonly do: 'add'; readonly key: string; readonly value: unknown }
  | { readonly do: 'remove' };

const nested = (levels: number): unknown => (levels === 0 ? [] : [nested(levels - 1)]);

/** What the profile refuses, what other forms look like, and what fits in one place and not in another. */
const values = fc.constantFrom<unknown>(
  ...['a\ud83d', '\udc00', 'a\0', Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, -(2 ** 60), 1e300, undefined, 1n],
  ...[new Date(0), new Map(), nested(64), nested(80), () => 1, JSON.parse('{"__proto__":1}'), { constructor: {} }],
  ...[null, '', 'a b', 'é', -1, 0.5, true, [], {}, [null], { a: null }, '\ufeff', 'x'.repeat(129)],
);
const keys = fc.constantFrom(
  '__proto__',
  'constructor',
  'prototype',
  '\ud800',
  'a\0',
  'actor',
  'version',
  'note',
  'set',
  '',
);

export const spoils: fc.Arbitrary<Spoil> = fc.oneof(
  fc.record({ do: fc.constant('replace' as const), value: values }),
  fc.record({ do: fc.constant('add' as const), key: keys, value: values }),
  fc.record({ do: fc.constant('remove' as const) }),
);

/** A copy of `message` that is spoiled at the `place`-th of its places. */
export function spoiledAt(message: unknown, spoil: Spoil, place: number): unknown {
  const at = place % placesIn(message);
  let seen = -1;
  const copy = (value: unknown): unknown => {
    seen += 1;
    if (seen === at) return spoiled(value, spoil);
    if (Array.isArray(value)) return value.map(copy).filter((one) => one !== REMOVED);
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.entries(value).map(([key, member]) => [key, copy(member)] as const);
    return Object.fromEntries(members.filter(([, member]) => member !== REMOVED));
  };
  const result = copy(message);
  return result === REMOVED ? undefined : result;
}

const REMOVED = Symbol('removed');

function spoiled(value: unknown, spoil: Spoil): unknown {
  if (spoil.do === 'remove') return REMOVED;
  if (spoil.do === 'replace') return spoil.value;
  if (Array.isArray(value)) return [...value, spoil.value];
  if (typeof value !== 'object' || value === null) return { [spoil.key]: spoil.value };
  // `fromEntries` keeps `__proto__` an own key.
  return Object.fromEntries([...Object.entries(value), [spoil.key, spoil.value]]);
}

function placesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, member) => sum + placesIn(member), 1);
}
