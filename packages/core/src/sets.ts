import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import { compareUtf8 } from './utf8.ts';

/**
 * A set is an array whose elements stand in the order of their canonical bytes, each once (EV6). There is no other form,
 * so that two replicas that hold the same elements hold the same bytes. An array in any other order is not a set.
 */
export function asSet(elements: readonly Json[]): readonly Json[] {
  const byText = new Map<string, Json>();
  for (const element of elements) byText.set(canonical(element), element);
  return [...byText.keys()].sort(compareUtf8).map((text) => byText.get(text) as Json);
}

export function isSet(value: Json | undefined): value is readonly Json[] {
  if (!Array.isArray(value)) return false;
  const texts = (value as readonly Json[]).map(canonical);
  return texts.every((text, at) => at === 0 || compareUtf8(texts[at - 1] as string, text) < 0);
}

/** The same array when nothing is new, so that a fold without effect changes nothing. */
export function addToSet(set: readonly Json[], elements: readonly Json[]): readonly Json[] {
  const had = new Set(set.map(canonical));
  return elements.every((element) => had.has(canonical(element))) ? set : asSet([...set, ...elements]);
}

export function removeFromSet(set: readonly Json[], elements: readonly Json[]): readonly Json[] {
  const gone = new Set(elements.map(canonical));
  const kept = set.filter((element) => !gone.has(canonical(element)));
  return kept.length === set.length ? set : kept;
}
