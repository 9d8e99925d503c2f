import type { Json, JsonObject } from './json.ts';

/**
 * The canonical form of RFC 8785 (JCS), and the one walk that proves a value to be of our JSON profile (JS1, JS2).
 * `JSON.stringify` already writes numbers and texts as RFC 8785 wants them; what it does not do is sort keys. A value
 * whose keys are in order, the usual case, is therefore written by one native call.
 */
export function canonical(value: Json): string {
  return isSorted(value) ? JSON.stringify(value) : write(value);
}

function isSorted(value: Json): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) {
    for (const element of value as readonly Json[]) if (!isSorted(element)) return false;
    return true;
  }
  let last: string | null = null;
  for (const key in value as JsonObject) {
    if (last !== null && key <= last) return false;
    last = key;
    const member = (value as JsonObject)[key] as Json;
    if (typeof member === 'object' && member !== null && !isSorted(member)) return false;
  }
  return true;
}

function write(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(write).join(',')}]`;
  const object = value as JsonObject;
  const members = Object.keys(object)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${write(object[key] as Json)}`);
  return `{${members.join(',')}}`;
}
