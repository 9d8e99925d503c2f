import type { Change } from './events.ts';
import { type EntityFields, ownValue } from './fields.ts';
import type { Json } from './json.ts';
import { sameValue } from './order.ts';

/**
 * What changed between two states of an entity, as the changes that somebody would have made: for judging against theirs
 * where their events are not here (a repair, a bootstrap over pending work, RS1). It knows values only, so it asks more
 * often than the events would: an increment reads as a set. Empty where nothing changed.
 */
export function differenceAsChanges(before: EntityFields, after: EntityFields): readonly Change[] {
  if (before === undefined) return after === undefined ? [] : [{ op: 'restore', fields: after }];
  if (after === undefined) return [{ op: 'delete' }];
  const set: Record<string, Json> = {};
  for (const [field, value] of Object.entries(after))
    if (!sameValue(ownValue(before, field), value)) set[field] = value;
  const unset = Object.keys(before).filter((field) => !Object.hasOwn(after, field));
  if (Object.keys(set).length === 0 && unset.length === 0) return [];
  return [{ op: 'update', ...(Object.keys(set).length > 0 && { set }), ...(unset.length > 0 && { unset }) }];
}
