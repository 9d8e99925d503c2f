import type { EventDraft } from './events.ts';
import { fail, type Outcome, ok } from './faults.ts';

/**
 * What the events of one operation must say of `base` and `prior`, whatever the log holds (LG4, EV6):
 *
 * - A `create` is made on nothing seen: base 0, no prior. On an id whose deletion its author saw it is written as
 *   `restore`; folding relies on that (see `foldStored`).
 * - An `update`, `delete` or `restore` is made on something seen: a base above 0, or a prior.
 * - A later event of one entity names the one before it as its prior, and saw no less: its base is not below.
 *
 * Faults: `invalid-event` for one event alone, `entity-version-chain` for two that contradict each other.
 */
export function checkChain(events: readonly EventDraft[]): Outcome<void, 'invalid-event' | 'entity-version-chain'> {
  const last = new Map<string, EventDraft>();
  for (const [at, event] of events.entries()) {
    const isMadeOnNothing = event.base === 0 && event.prior === undefined;
    if (event.change.op === 'create' && !isMadeOnNothing)
      return fail('invalid-event', { path: `events[${at}].base`, reason: 'create-on-seen' });
    if (isMadeOnNothing && event.change.op !== 'create' && event.change.op !== 'put')
      return fail('invalid-event', { path: `events[${at}].base`, reason: 'nothing-seen' });
    const key = `${event.entityType} ${event.entityId}`;
    const before = last.get(key);
    if (before !== undefined && (event.prior !== before.id || event.base < before.base))
      return fail('entity-version-chain', { path: `events[${at}].prior`, event: event.id, before: before.id });
    last.set(key, event);
  }
  return ok(undefined);
}
