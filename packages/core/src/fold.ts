import { canonical } from './canonical.ts';
import type { Change, EntityState, MergeRule, StoredEvent } from './events.ts';
import { fail, type Outcome, ok } from './faults.ts';
import type { Json, JsonObject } from './json.ts';
import { LIMITS } from './limits.ts';
import { compareValues } from './order.ts';
import { changedSet, isSet } from './sets.ts';
import { utf8Length } from './utf8.ts';

/** The fields of a live entity; `undefined` is an entity that is absent: never created, or deleted. */
export type EntityFields = JsonObject | undefined;

type Folded = Outcome<EntityFields, 'invalid-event'>;

const invalid = (reason: string, field?: string) =>
  fail('invalid-event', field === undefined ? { reason } : { reason, path: `change.${field}` });

/**
 * Folds a *new* change, with every check of EV6. What passes here folds the same everywhere afterwards.
 */
export function foldChange(fields: EntityFields, change: Change): Folded {
  switch (change.op) {
    case 'create':
      return fields === undefined ? within(change.fields) : invalid('create of an entity that is present');
    case 'restore':
      return fields === undefined ? within(change.fields) : invalid('restore of an entity that is present');
    case 'delete':
      return fields === undefined ? invalid('delete of an entity that is absent') : ok(undefined);
    case 'put':
      return within(withSet({ ...fields }, change.set, change.rules));
    case 'update':
      return fields === undefined ? invalid('update of an entity that is absent') : foldUpdate(fields, change);
  }
}

type Update = Extract<Change, { op: 'update' }>;

function foldUpdate(fields: JsonObject, change: Update): Folded {
  const next: Record<string, Json> = withSet({ ...fields }, change.set ?? {}, change.rules);
  for (const field of change.unset ?? []) delete next[field];
  for (const [field, by] of Object.entries(change.inc ?? {})) {
    const before = next[field] ?? 0;
    if (typeof before !== 'number' || !Number.isSafeInteger(before))
      return invalid('inc of what is no integer', `inc.${field}`);
    const sum = before + by;
    if (!Number.isSafeInteger(by) || !Number.isSafeInteger(sum)) return invalid('a sum out of range', `inc.${field}`);
    next[field] = sum;
  }
  for (const field of setFields(change)) {
    const before = next[field] ?? [];
    if (!isSet(before)) return invalid('add to or remove from what is no set', `add.${field}`);
    next[field] = changedSet(before, change.add?.[field] ?? [], change.remove?.[field] ?? []);
  }
  return within(next);
}

const setFields = (change: Update): ReadonlySet<string> =>
  new Set([...Object.keys(change.add ?? {}), ...Object.keys(change.remove ?? {})]);

function withSet(fields: Record<string, Json>, set: JsonObject, rules: Readonly<Record<string, MergeRule>> = {}) {
  for (const field of Object.keys(set)) {
    const value = set[field] as Json;
    const before = fields[field];
    const rule = Object.hasOwn(rules, field) ? rules[field] : undefined;
    fields[field] = before === undefined ? value : chosen(before, value, rule);
  }
  return fields;
}

function chosen(before: Json, value: Json, rule: MergeRule | undefined): Json {
  if (rule === 'max') return compareValues(value, before) > 0 ? value : before;
  if (rule === 'min') return compareValues(value, before) < 0 ? value : before;
  return value;
}

function within(fields: JsonObject): Folded {
  const names = Object.keys(fields);
  if (names.length > LIMITS.fieldsPerEntityMax)
    return invalid(`an entity holds at most ${LIMITS.fieldsPerEntityMax} fields`);
  if (mayBeLarge(fields, names) && utf8Length(canonical(fields)) > LIMITS.entityBytesMax)
    return invalid(`an entity holds at most ${LIMITS.entityBytesMax} bytes`);
  return ok(fields);
}

/** A cheap upper bound, so that a small entity is never written out only to be measured. */
function mayBeLarge(fields: JsonObject, names: readonly string[]): boolean {
  let bound = 0;
  for (const name of names) {
    const value = fields[name] as Json;
    bound += name.length * 3 + 4;
    if (typeof value === 'string') bound += value.length * 6;
    else if (typeof value === 'object') bound += JSON.stringify(value).length * 3;
    else bound += 30;
    if (bound > LIMITS.entityBytesMax) return true;
  }
  return false;
}

/**
 * Folds an *accepted* event: total, the same at the ledger, on every replica and over a bootstrapped state.
 *
 * An event that was accepted as "same" (4.4) finds the entity as it wants it already: a create or restore of a present
 * entity, or a delete of an absent one, changes no field. Over a present entity it still counts as one of its events:
 * the version follows the envelope. `assigned` values are fields like any other (EV7).
 */
export function foldStored(state: EntityState | undefined, event: StoredEvent): EntityState | undefined {
  const { change } = event;
  if (change.op === 'delete') return undefined;
  if (state === undefined) {
    if (change.op === 'update') return undefined;
    return created(event, change.op === 'put' ? withSet({}, change.set) : change.fields);
  }
  if (change.op === 'create' || change.op === 'restore') return updated(state, event, state.fields);
  const folded = foldChange(state.fields, change);
  return updated(state, event, folded.ok ? (folded.value ?? state.fields) : state.fields);
}

const created = (event: StoredEvent, fields: JsonObject): EntityState => ({
  type: event.entityType,
  id: event.entityId,
  version: event.entityVersion,
  fields: { ...fields, ...event.assigned },
  createdBy: actorOf(event),
  createdAt: instantOf(event),
  updatedBy: actorOf(event),
  updatedAt: instantOf(event),
  arrival: event.version,
});

const updated = (state: EntityState, event: StoredEvent, fields: JsonObject): EntityState => ({
  ...state,
  version: event.entityVersion,
  fields: event.assigned === undefined ? fields : { ...fields, ...event.assigned },
  updatedBy: actorOf(event),
  updatedAt: instantOf(event),
});

/** A healed event keeps who wrote it and when, from before the loss (HL3). */
const actorOf = (event: StoredEvent): string => event.origin?.actor ?? event.actor;
const instantOf = (event: StoredEvent): string => event.origin?.recordedAt ?? event.recordedAt;
