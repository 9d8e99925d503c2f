import { canonical } from './canonical.ts';
import type { Change, EntityState, StoredEvent } from './events.ts';
import { fail, type Outcome, ok } from './faults.ts';
import { type EntityFields, ownValue } from './fields.ts';
import type { Json, JsonObject } from './json.ts';
import { LIMITS } from './limits.ts';
import { compareValues } from './order.ts';
import { addToSet, isSet, removeFromSet } from './sets.ts';
import { utf8Length } from './utf8.ts';

/** Why a change cannot be folded: the `reason` in the facts of `invalid-event`, beside the `path` in the change. */
export type FoldReason =
  | 'entity-absent'
  | 'entity-present'
  | 'null-value'
  | 'not-an-integer'
  | 'sum-out-of-range'
  | 'not-a-set'
  | 'field-named-twice'
  | 'too-many-fields'
  | 'entity-too-large';

type Folded = Outcome<EntityFields, 'invalid-event'>;

/**
 * Folds a new event's change into an entity's fields (`undefined`: absent), with every check of EV6: what an author may
 * commit and a ledger may accept. The result's keys are in canonical order, and what did not change is the same value.
 *
 * An event whose verdict is `same` (4.4) is not folded: it has no effect. Faults: `invalid-event` with reason and path.
 */
export function foldChange(fields: EntityFields, change: Change): Folded {
  const ill = formProblem(change);
  if (ill !== undefined) return ill;
  if (change.op === 'create' && fields !== undefined) return invalid('entity-present', 'change.op');
  if (change.op === 'restore' && fields !== undefined) return invalid('entity-present', 'change.op');
  if ((change.op === 'update' || change.op === 'delete') && fields === undefined)
    return invalid('entity-absent', 'change.op');
  const folded = effectOf(fields, change);
  return folded.ok && folded.value !== undefined && folded.value !== fields ? withinLimits(folded.value) : folded;
}

/**
 * Folds an accepted event. Total, and decided by state and event alone, so that ledger, replica, bootstrap and signature
 * agree without history:
 *
 * - A `create` takes effect only as the first event of its entity (entity version 1). A later one was accepted because it
 *   equals the first, and has no effect, whether the entity lives or was deleted since.
 * - A `restore` takes effect only on an absent entity, a `delete` only on a live one; elsewhere they were accepted as same.
 * - A live entity's `version`, `updatedBy` and `updatedAt` follow every event's envelope, also of one without effect.
 *   `createdBy`, `createdAt` and `arrival` are those of the event that made it live.
 * - `assigned` is folded as field values of the event that it came with (EV7).
 * - What no ledger accepts (an update of an absent entity, `inc` on a text) has no effect.
 */
export function foldStored(state: EntityState | undefined, event: StoredEvent): EntityState | undefined {
  const fields = fieldsAfter(state?.fields, event);
  if (fields === undefined) return undefined;
  // A healed event keeps who wrote it and when, from before the loss (HL3).
  const { actor, recordedAt } = event.origin ?? event;
  const made = state ?? { createdBy: actor, createdAt: recordedAt, arrival: event.version };
  return {
    type: event.entityType,
    id: event.entityId,
    version: event.entityVersion,
    fields,
    createdBy: made.createdBy,
    createdAt: made.createdAt,
    updatedBy: actor,
    updatedAt: recordedAt,
    arrival: made.arrival,
  };
}

function fieldsAfter(fields: EntityFields, event: StoredEvent): EntityFields {
  const { change } = event;
  if (change.op === 'create' && event.entityVersion !== 1) return fields;
  if (change.op === 'restore' && fields !== undefined) return fields;
  if (change.op === 'update' && fields === undefined) return fields;
  const folded = effectOf(fields, change);
  if (!folded.ok) return fields;
  return event.assigned === undefined || folded.value === undefined
    ? folded.value
    : withEdits(folded.value, new Map(Object.entries(event.assigned)));
}

/** What a change does to the fields where it takes effect. Faults are those that depend on the values it meets. */
function effectOf(fields: EntityFields, change: Change): Folded {
  switch (change.op) {
    case 'create':
    case 'restore':
      return ok(inOrder(change.fields));
    case 'delete':
      return ok(undefined);
    case 'put':
      return ok(withEdits(fields ?? {}, setEdits(fields ?? {}, change)));
    case 'update':
      return updated(fields ?? {}, change);
  }
}

type Update = Extract<Change, { op: 'update' }>;
/** New values by field; `undefined` unsets. */
type Edits = Map<string, Json | undefined>;

function updated(fields: JsonObject, change: Update): Folded {
  const edits = setEdits(fields, change);
  for (const field of change.unset ?? []) edits.set(field, undefined);
  for (const [field, by] of Object.entries(change.inc ?? {})) {
    const now = ownValue(fields, field) ?? 0;
    if (!Number.isSafeInteger(now)) return invalid('not-an-integer', `change.inc.${field}`);
    const sum = (now as number) + by;
    if (!Number.isSafeInteger(sum)) return invalid('sum-out-of-range', `change.inc.${field}`);
    edits.set(field, sum);
  }
  for (const [field, elements] of Object.entries(change.add ?? {})) {
    const now = ownValue(fields, field) ?? [];
    if (!isSet(now)) return invalid('not-a-set', `change.add.${field}`);
    edits.set(field, addToSet(now, elements));
  }
  for (const [field, elements] of Object.entries(change.remove ?? {})) {
    const now = edits.get(field) ?? ownValue(fields, field);
    // Removing from an absent set leaves it absent: nobody set it.
    if (now === undefined) continue;
    if (!isSet(now)) return invalid('not-a-set', `change.remove.${field}`);
    edits.set(field, removeFromSet(now, elements));
  }
  return ok(withEdits(fields, edits));
}

/** `set` under `max` or `min` keeps the greater or smaller value; under any other rule the later event's stands. */
function setEdits(fields: JsonObject, change: Update | Extract<Change, { op: 'put' }>): Edits {
  const edits: Edits = new Map();
  for (const [field, value] of Object.entries(change.set ?? {})) {
    const now = ownValue(fields, field);
    const rule = ownValue(change.rules, field);
    const isKept =
      now !== undefined &&
      ((rule === 'max' && compareValues(now, value) >= 0) || (rule === 'min' && compareValues(now, value) <= 0));
    if (!isKept) edits.set(field, value);
  }
  return edits;
}

// ── form ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is wrong with a change whatever it meets. */
function formProblem(change: Change): ReturnType<typeof invalid> | undefined {
  if (change.op === 'delete') return undefined;
  if (change.op === 'create' || change.op === 'restore') return nullIn(change.fields, 'change.fields');
  const nullSet = nullIn(change.set ?? {}, 'change.set');
  if (nullSet !== undefined || change.op === 'put') return nullSet;
  for (const [field, by] of Object.entries(change.inc ?? {}))
    if (!Number.isSafeInteger(by)) return invalid('not-an-integer', `change.inc.${field}`);
  return namedTwice(change);
}

function nullIn(fields: JsonObject, path: string): ReturnType<typeof invalid> | undefined {
  for (const [field, value] of Object.entries(fields))
    if (value === null) return invalid('null-value', `${path}.${field}`);
  return undefined;
}

/** A field has one effect per change; a set may gain some elements and lose others. */
function namedTwice(change: Update): ReturnType<typeof invalid> | undefined {
  if (change.unset === undefined && change.inc === undefined && change.add === undefined && change.remove === undefined)
    return undefined;
  const names = new Set<string>();
  const parts = [Object.keys(change.set ?? {}), change.unset ?? [], Object.keys(change.inc ?? {})];
  for (const field of [...parts.flat(), ...Object.keys(change.add ?? {})]) {
    if (names.has(field)) return invalid('field-named-twice', `change.${field}`);
    names.add(field);
  }
  for (const [field, elements] of Object.entries(change.remove ?? {})) {
    const added = ownValue(change.add, field);
    if (added === undefined && names.has(field)) return invalid('field-named-twice', `change.remove.${field}`);
    const texts = new Set(added?.map(canonical));
    if (elements.some((element) => texts.has(canonical(element))))
      return invalid('field-named-twice', `change.remove.${field}`);
  }
  return undefined;
}

function withinLimits(fields: JsonObject): Folded {
  const count = Object.keys(fields).length;
  if (count > LIMITS.fieldsPerEntityMax)
    return invalid('too-many-fields', 'change', { count, max: LIMITS.fieldsPerEntityMax });
  if (bytesAtMost(fields) <= LIMITS.entityBytesMax) return ok(fields);
  const bytes = utf8Length(canonical(fields));
  return bytes <= LIMITS.entityBytesMax
    ? ok(fields)
    : invalid('entity-too-large', 'change', { bytes, max: LIMITS.entityBytesMax });
}

/** An upper bound of the canonical bytes that costs a walk and no text: an escaped code unit takes at most six. */
function bytesAtMost(value: Json): number {
  if (typeof value === 'string') return value.length * 6 + 2;
  if (typeof value !== 'object' || value === null) return 25;
  let bytes = 2;
  if (Array.isArray(value)) for (const element of value as readonly Json[]) bytes += bytesAtMost(element) + 1;
  else for (const [key, member] of Object.entries(value)) bytes += key.length * 6 + 4 + bytesAtMost(member);
  return bytes;
}

// ── fields ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function withEdits(fields: JsonObject, edits: Edits): JsonObject {
  let isChanged = false;
  let isInPlace = true;
  for (const [field, value] of edits) {
    const now = ownValue(fields, field);
    if (now !== value) isChanged = true;
    if (now === undefined || value === undefined) isInPlace = false;
  }
  if (!isChanged) return fields;
  // New values of fields that are there, the usual case: their order stands.
  if (isInPlace) return inOrder({ ...fields, ...Object.fromEntries(edits as Map<string, Json>) });
  const next = new Map<string, Json>(Object.entries(fields));
  for (const [field, value] of edits)
    if (value === undefined) next.delete(field);
    else next.set(field, value);
  return inOrder(Object.fromEntries(next));
}

function inOrder(fields: JsonObject): JsonObject {
  const names = Object.keys(fields);
  if (names.every((name, at) => at === 0 || (names[at - 1] as string) < name)) return fields;
  return Object.fromEntries(names.sort().map((name) => [name, fields[name] as Json]));
}

const invalid = (reason: FoldReason, path: string, more?: Readonly<Record<string, unknown>>) =>
  fail('invalid-event', { reason, path, ...more });
