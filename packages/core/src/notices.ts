import type { Change, StoredEvent } from './events.ts';
import { type EntityFields, ownValue } from './fields.ts';
import type { Json } from './json.ts';
import { sameValue } from './order.ts';
import { type Notice, seenBy } from './rebase-facts.ts';

/**
 * What a foreign event, as it is ingested, took from events of one's own that its author had not seen (MG6): the notices
 * for one's own desk. Nothing is reported twice: a value that was replaced before is not replaced again.
 *
 * - Under `last`, another value in a field that one had set or unset: `overwritten`, with the field.
 * - A deletion that `editedWhileDeleted: 'delete'` carried over one's edits: `overwritten`, of the entity.
 * - An edit that `keep` carried over one's deletion: `not-deleted`.
 */
export function noticesOf(ingested: {
  readonly event: StoredEvent;
  /** The entity's confirmed fields before the event. */
  readonly before: EntityFields;
  /** One's own confirmed events of the entity, oldest first; those that the author had seen may be among them. */
  readonly mine: readonly StoredEvent[];
}): readonly Notice[] {
  const { event, before, mine } = ingested;
  const unseen = mine.filter((own) => own.entityVersion > seenBy(event) && own.entityVersion < event.entityVersion);
  const about = (kind: Notice['kind'], own: StoredEvent, field: string | null): Notice => ({
    kind,
    eventId: own.id,
    entityType: event.entityType,
    entityId: event.entityId,
    field,
    by: event.actor,
    at: event.recordedAt,
  });
  const { change } = event;
  if (change.op === 'delete') {
    const edit = before === undefined ? undefined : unseen.findLast((own) => own.change.op !== 'delete');
    return edit === undefined ? [] : [about('overwritten', edit, null)];
  }
  if (change.op === 'restore') {
    const deletion = before === undefined ? unseen.findLast((own) => own.change.op === 'delete') : undefined;
    return deletion === undefined ? [] : [about('not-deleted', deletion, null)];
  }
  if (change.op === 'create' || before === undefined) return [];
  return [...lastWords(change)].flatMap(([field, theirs]): Notice[] => {
    const own = unseen.findLast(({ change: earlier }) => lastWords(earlier).has(field));
    const value = own === undefined ? undefined : lastWords(own.change).get(field);
    const now = ownValue(before, field);
    if (own === undefined || sameValue(value, theirs) || !sameValue(value, now)) return [];
    const values = { ...(value !== undefined && { mine: value }), ...(theirs !== undefined && { theirs }) };
    return [{ ...about('overwritten', own, field), ...values }];
  });
}

/** The fields that a change sets, or unsets (undefined), under `last`. */
function lastWords(change: Change): ReadonlyMap<string, Json | undefined> {
  const words = new Map<string, Json | undefined>();
  if (change.op !== 'update' && change.op !== 'put') return words;
  const isLast = (field: string): boolean =>
    change.rules !== undefined && Object.hasOwn(change.rules, field) && change.rules[field] === 'last';
  for (const [field, value] of Object.entries(change.set ?? {})) if (isLast(field)) words.set(field, value);
  if (change.op === 'update') for (const field of change.unset ?? []) if (isLast(field)) words.set(field, undefined);
  return words;
}
