import type { Change } from './events.ts';
import { LIMITS } from './limits.ts';

/** What LG4 reads of an accepted event of one entity. `change` is null where its bytes were erased (DG1). */
export interface EntityEvent {
  readonly id: string;
  readonly prior?: string | null | undefined;
  readonly entityVersion: number;
  readonly change: Change | null;
}

export type Theirs<E extends EntityEvent> =
  | {
      readonly isTooMany: false;
      /** What the author had not seen, oldest first. */
      readonly theirs: readonly E[];
      /** The author's own events after the base, reached through `prior`, oldest first. */
      readonly chain: readonly E[];
    }
  /** More than `max`. The ledger answers `version-conflict`; the replica judges there, and comes back with a newer base. */
  | { readonly isTooMany: true };

/**
 * The events of an entity that the author of a change had not seen (LG4): those after `base`, less those reached from
 * `prior` through `prior`, because these are the author's own. `events` are in order of entity version; those at or below
 * the base may be among them.
 *
 * Left out is also what counts as one with what the author saw: a create has an effect only as an entity's first event,
 * and where the author's own chain holds an equal create, the first one is as good as his.
 *
 * At most `max` of theirs are looked at, by default `LIMITS.theirsExaminedMax`. A replica passes `Infinity`: what it
 * keeps is bounded already.
 */
export function theirsSince<E extends EntityEvent>(
  events: readonly E[],
  since: { readonly base: number; readonly prior?: string | null | undefined; readonly max?: number },
): Theirs<E> {
  const max = since.max ?? LIMITS.theirsExaminedMax;
  const theirs: E[] = [];
  const chain: E[] = [];
  let own = since.prior;
  // A prior is accepted before what names it, so one walk from the newest back meets the chain in its order.
  for (let at = events.length - 1; at >= 0; at -= 1) {
    const event = events[at] as E;
    if (event.entityVersion <= since.base) break;
    if (event.id === own) {
      own = event.prior;
      chain.push(event);
    } else if (event.change?.op !== 'create' || event.entityVersion === 1) {
      if (theirs.push(event) > max) return { isTooMany: true };
    }
  }
  if (theirs.at(-1)?.change?.op === 'create' && chain.some((event) => event.change?.op === 'create')) theirs.pop();
  return { isTooMany: false, theirs: theirs.reverse(), chain: chain.reverse() };
}
