import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { compareUtf8 } from './utf8.ts';

/** A set is an array sorted by the canonical bytes of its elements, each once (EV6). */
export function asSet(elements: readonly Json[]): readonly Json[] {
  const byText = new Map(elements.map((element) => [canonical(element), element] as const));
  return [...byText.keys()].sort(compareUtf8).map((text) => byText.get(text) as Json);
}

export function isSet(value: Json | undefined): value is readonly Json[] {
  if (!Array.isArray(value)) return false;
  let last: string | null = null;
  for (const element of value as readonly Json[]) {
    const text = canonical(element);
    if (last !== null && compareUtf8(last, text) >= 0) return false;
    last = text;
  }
  return true;
}

export function changedSet(set: readonly Json[], add: readonly Json[], remove: readonly Json[]): readonly Json[] {
  const gone = new Set(remove.map(canonical));
  return asSet([...set.filter((element) => !gone.has(canonical(element))), ...add]);
}
