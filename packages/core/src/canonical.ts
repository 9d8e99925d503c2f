import type { Json, JsonObject } from './json.ts';

/**
 * The canonical form of RFC 8785 (JCS), the only form of what is stored, hashed and compared (JS2). `JSON.stringify`
 * writes numbers and texts as RFC 8785 wants them; what it does not do is sort keys. A value whose keys are in order,
 * the usual case, is therefore written by one native call.
 *
 * The value is JSON of the profile, checked before (`jsonProblem`). Of anything else it makes what `JSON.stringify` would:
 * a member that is undefined is left out.
 */
export function canonical(value: Json): string {
  return isSorted(value) ? JSON.stringify(value) : write(value);
}

/** Keys in the order of their UTF-16 units, everywhere. Keys like `10` and `9` come numerically, so out of order. */
function isSorted(value: Json): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) {
    for (const element of value as readonly Json[])
      if (typeof element === 'object' && element !== null && !isSorted(element)) return false;
    return true;
  }
  let last: string | null = null;
  for (const key in value as JsonObject) {
    if (last !== null && key < last) return false;
    last = key;
    const member = (value as JsonObject)[key] as Json;
    if (typeof member === 'object' && member !== null && !isSorted(member)) return false;
  }
  return true;
}

function write(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(write).join(',')}]`;
  const object = value as JsonObject;
  let text = '';
  for (const key of Object.keys(object).sort()) {
    const member = object[key];
    if (member === undefined) continue;
    text += `${text === '' ? '{' : ','}${JSON.stringify(key)}:${write(member)}`;
  }
  return text === '' ? '{}' : `${text}}`;
}
