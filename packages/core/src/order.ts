import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { compareUtf8 } from './utf8.ts';

const KIND_ORDER = ['boolean', 'number', 'string', 'object'];

/**
 * One total order over values, for `max` and `min` (EV6): booleans, then numbers, then texts by code point, then the
 * rest by canonical bytes. Fields of one kind only ever meet their own kind; the rest is there so that the fold is total.
 */
export function compareValues(a: Json, b: Json): number {
  const kind = KIND_ORDER.indexOf(typeof a) - KIND_ORDER.indexOf(typeof b);
  if (kind !== 0) return kind;
  if (typeof a === 'number') return a - (b as number);
  if (typeof a === 'boolean') return Number(a) - Number(b);
  if (typeof a === 'string') return compareUtf8(a, b as string);
  return compareUtf8(canonical(a), canonical(b));
}

export const sameValue = (a: Json | undefined, b: Json | undefined): boolean => {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  return canonical(a) === canonical(b);
};
