import type { Json, JsonObject } from './json.ts';

/** The fields of a live entity; `undefined` is an absent one: never created, or deleted. */
export type EntityFields = JsonObject | undefined;

/** A field may be named `toString`: only own members count. */
export function ownValue<V extends Json | undefined>(
  of: { readonly [field: string]: V } | undefined,
  field: string,
): V | undefined {
  return of !== undefined && Object.hasOwn(of, field) ? of[field] : undefined;
}
