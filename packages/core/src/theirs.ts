import type { Change } from './events.ts';
import { LIMITS } from './limits.ts';

/** What the ledger keeps of an entity's events to find "theirs" (LG4). */
export interface EntityEvent {
  readonly id: string;
  readonly entityVersion: number;
  readonly prior: string | null;
  readonly change: Change;
}

export type Theirs = { readonly ok: true; readonly events: readonly EntityEvent[] } | { readonly ok: false };

/**
 * The events that the author had not seen: those after `base`, less those reached from `prior` through `prior`. More
 * than can be examined is not ok: the author must look again, as after a clash.
 */
export function theirsSince(after: readonly EntityEvent[], prior: string | null): Theirs {
  if (after.length > LIMITS.theirsExaminedMax) return { ok: false };
  if (prior === null) return { ok: true, events: after };
  const byId = new Map(after.map((event) => [event.id, event]));
  const own = new Set<string>();
  for (let at: string | null = prior; at !== null && !own.has(at); at = byId.get(at)?.prior ?? null) own.add(at);
  return { ok: true, events: after.filter((event) => !own.has(event.id)) };
}
