import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { compareUtf8 } from './utf8.ts';

/**
 * The one order in which `max` and `min` compare (EV6). It is total over JSON, so that every replica picks the same value
 * whatever two app versions wrote: false < true < numbers < texts < arrays < objects, with null before all. Numbers by
 * value, texts by their UTF-8 bytes, arrays element by element, objects by their canonical bytes. 0 means: same value.
 */
export function compareValues(a: Json, b: Json): number {
  const byRank = rankOf(a) - rankOf(b);
  if (byRank !== 0) return byRank;
  if (typeof a === 'number') return a < (b as number) ? -1 : a > (b as number) ? 1 : 0;
  if (typeof a === 'string') return compareUtf8(a, b as string);
  if (Array.isArray(a)) return compareArrays(a, b as readonly Json[]);
  return typeof a === 'object' && a !== null ? compareUtf8(canonical(a), canonical(b)) : 0;
}

/** Same value whatever the order of keys: the equality of every clash table. */
export const sameValue = (a: Json | undefined, b: Json | undefined): boolean => {
  if (a === b) return true;
  if (a === undefined || b === undefined || typeof a !== 'object' || typeof b !== 'object') return false;
  return canonical(a) === canonical(b);
};

function compareArrays(a: readonly Json[], b: readonly Json[]): number {
  for (let at = 0; at < a.length && at < b.length; at += 1) {
    const byElement = compareValues(a[at] as Json, b[at] as Json);
    if (byElement !== 0) return byElement;
  }
  return a.length - b.length;
}

function rankOf(value: Json): number {
  if (value === null) return 0;
  if (typeof value === 'boolean') return value ? 2 : 1;
  if (typeof value === 'number') return 3;
  if (typeof value === 'string') return 4;
  return Array.isArray(value) ? 5 : 6;
}
