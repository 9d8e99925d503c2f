import type { ConfirmedEvent } from './entity-facts.ts';
import type { Change, EventDraft } from './events.ts';
import { type EntityFields, ownValue } from './fields.ts';
import { foldChange } from './fold.ts';
import type { Json } from './json.ts';
import { sameValue } from './order.ts';

/**
 * Who gave a field the value that it has: the newest of `events`, oldest first, that changed it. Undefined where none of
 * them did: then its value is what it was before them.
 *
 * A restore carries every field of the entity, also those that other people wrote. It wrote those that its mark names
 * (MG5), or without a mark those that are otherwise than before. `before`: the field's value below `events`; undefined for
 * unset.
 */
export function writerOf(
  field: string,
  events: readonly ConfirmedEvent[],
  before: Json | undefined,
): ConfirmedEvent | undefined {
  let value = before;
  let writer: ConfirmedEvent | undefined;
  for (const event of events) {
    const after = valueAfter(event, field, value);
    if (after === UNTOUCHED || sameValue(after, value)) continue;
    value = after;
    const edited = editedFields(event);
    if (edited === undefined || edited.includes(field)) writer = event;
  }
  return writer;
}

/** The fields that its author edited, where MG5 made a restore of an edit; undefined for any other event. */
export function editedFields({
  meta,
  change,
}: {
  readonly meta?: EventDraft['meta'] | undefined;
  readonly change: Change | null;
}): readonly string[] | undefined {
  const mark = meta?.['holdfast'];
  if (change?.op !== 'restore' || typeof mark !== 'object' || mark === null || !('edited' in mark)) return undefined;
  const { edited } = mark;
  return Array.isArray(edited) ? edited.filter((field) => typeof field === 'string') : undefined;
}

/** Every field that a change names, in its order. */
export function fieldsOf(change: Change): readonly string[] {
  if (change.op === 'delete') return [];
  if (change.op === 'create' || change.op === 'restore') return Object.keys(change.fields);
  if (change.op === 'put') return Object.keys(change.set);
  const { set, unset, inc, add, remove } = change;
  const parts = [Object.keys(set ?? {}), unset ?? [], Object.keys(inc ?? {}), Object.keys(add ?? {})];
  return [...new Set([...parts.flat(), ...Object.keys(remove ?? {})])];
}

const UNTOUCHED = Symbol('untouched');

function valueAfter({ change }: ConfirmedEvent, field: string, before: Json | undefined) {
  // What a deletion took away comes back as it was, unless the restore says otherwise.
  if (change === null || change.op === 'delete') return UNTOUCHED;
  if (change.op === 'create' || change.op === 'restore') return ownValue(change.fields, field);
  if (!fieldsOf(change).includes(field)) return UNTOUCHED;
  const fields: EntityFields = before === undefined ? {} : { [field]: before };
  const folded = foldChange(fields, change);
  return folded.ok ? ownValue(folded.value, field) : undefined;
}
