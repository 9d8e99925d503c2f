import { canonical } from './canonical.ts';
import { differenceAsChanges } from './difference.ts';
import type { Change } from './events.ts';
import { type EntityFields, ownValue } from './fields.ts';
import { foldChange } from './fold.ts';
import type { Json, JsonObject } from './json.ts';
import { sameValue } from './order.ts';
import { isSet } from './sets.ts';

/** What closing a parked operation changed in one entity, for those who built on it (ST3). */
export interface ResolutionEffect {
  /** As if it were theirs: where the entity now is otherwise than the dependents' author saw it. */
  readonly changes: readonly Change[];
  /** Fields that kept the author's value by a person's decision, who saw theirs: theirs no longer counts in them. */
  readonly answered: readonly string[];
  /** The entity with the resolution on it: what the dependents are put on. */
  readonly now: EntityFields;
}

/**
 * Compares what the author of the dependents saw, which had the parked changes in it, with what the entity is after the
 * resolution. A counter and a set are compared by what was done to them, so that work that commutes still holds.
 */
export function resolutionEffect(closed: {
  /** The changes of the parked operation to the entity, in order. */
  readonly parked: readonly Change[];
  readonly confirmed: EntityFields;
  /** Its fields before its newest deletion, where it is absent now. */
  readonly lastFields?: JsonObject | undefined;
  /** The batch that takes its place, in order; none where it was discarded or theirs was chosen. */
  readonly replacement: readonly Change[];
}): ResolutionEffect {
  const { parked, confirmed, replacement } = closed;
  const now = foldAll(confirmed, replacement);
  const wasAlive = parked.at(-1)?.op !== 'delete';
  if (!wasAlive || now === undefined) {
    const isAsSeen = !wasAlive && now === undefined;
    return { changes: isAsSeen ? [] : now === undefined ? [{ op: 'delete' }] : restored(now), answered: [], now };
  }
  const seen = summaryOf(parked);
  const done = summaryOf(replacement);
  const changes: Change[] = [];
  const answered: string[] = [];
  for (const [field, part] of seen) {
    const change = fieldDifference(field, part, { now: ownValue(now, field), done: done.get(field) });
    if (change === undefined) answered.push(field);
    else changes.push(change);
  }
  const others = (fields: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(fields).filter(([field]) => !seen.has(field)));
  // Where they had deleted it, and nobody knows what it was before, only the fields of the parked work are compared.
  const isMade = parked[0]?.op === 'create' || parked[0]?.op === 'put';
  const before = confirmed ?? closed.lastFields ?? (isMade ? {} : now);
  changes.push(...differenceAsChanges(others(before), others(now)));
  return { changes, answered, now };
}

/** A change without what it does to some fields. What it does to the entity as a whole stays. */
export function withoutFields(change: Change, fields: readonly string[]): Change {
  if (change.op === 'delete' || change.op === 'restore' || fields.length === 0) return change;
  const rest = <V>(of: { readonly [field: string]: V }): { readonly [field: string]: V } =>
    Object.fromEntries(Object.entries(of).filter(([field]) => !fields.includes(field)));
  if (change.op === 'create') return { ...change, fields: rest(change.fields) };
  if (change.op === 'put') return { ...change, set: rest(change.set) };
  const { set, unset, inc, add, remove } = change;
  return {
    ...change,
    ...(set && { set: rest(set) }),
    ...(unset && { unset: unset.filter((field) => !fields.includes(field)) }),
    ...(inc && { inc: rest(inc) }),
    ...(add && { add: rest(add) }),
    ...(remove && { remove: rest(remove) }),
  };
}

/** What was done to a field: it got a value (or none), or a counter moved, or a set gained and lost elements. */
type Part =
  | { readonly kind: 'value'; readonly value: Json | undefined }
  | { readonly kind: 'inc'; readonly by: number }
  | { readonly kind: 'elements'; readonly isIn: ReadonlyMap<string, boolean> };

function summaryOf(changes: readonly Change[]): Map<string, Part> {
  const parts = new Map<string, Part>();
  for (const change of changes) {
    if (change.op === 'delete') continue;
    if (change.op === 'create' || change.op === 'restore' || change.op === 'put') {
      const fields = change.op === 'put' ? change.set : change.fields;
      for (const [field, value] of Object.entries(fields)) parts.set(field, { kind: 'value', value });
      continue;
    }
    for (const [field, value] of Object.entries(change.set ?? {})) parts.set(field, { kind: 'value', value });
    for (const field of change.unset ?? []) parts.set(field, { kind: 'value', value: undefined });
    for (const [field, by] of Object.entries(change.inc ?? {})) parts.set(field, moved(parts.get(field), by));
    for (const [field, elements] of Object.entries(change.add ?? {}))
      parts.set(field, membered(parts.get(field), elements, true));
    for (const [field, elements] of Object.entries(change.remove ?? {}))
      parts.set(field, membered(parts.get(field), elements, false));
  }
  return parts;
}

function moved(part: Part | undefined, by: number): Part {
  if (part?.kind === 'value') return { kind: 'value', value: Number(part.value ?? 0) + by };
  return { kind: 'inc', by: (part?.kind === 'inc' ? part.by : 0) + by };
}

function membered(part: Part | undefined, elements: readonly Json[], isIn: boolean): Part {
  if (part?.kind === 'value') {
    const set = { f: part.value ?? [] };
    const folded = foldChange(set, { op: 'update', [isIn ? 'add' : 'remove']: { f: elements } });
    return { kind: 'value', value: folded.ok ? folded.value?.['f'] : part.value };
  }
  const members = new Map(part?.kind === 'elements' ? part.isIn : []);
  for (const element of elements) members.set(canonical(element), isIn);
  return { kind: 'elements', isIn: members };
}

/** The change that leads from what the author saw in a field to what is there now; undefined for none. */
function fieldDifference(
  field: string,
  seen: Part,
  after: { readonly now: Json | undefined; readonly done: Part | undefined },
): Change | undefined {
  const { now, done } = after;
  const given: Change = now === undefined ? { op: 'update', unset: [field] } : { op: 'update', set: { [field]: now } };
  if (seen.kind === 'value') return sameValue(seen.value, now) ? undefined : given;
  if (done?.kind === 'value') return given;
  if (seen.kind === 'inc') {
    const by = (done?.kind === 'inc' ? done.by : 0) - seen.by;
    return by === 0 ? undefined : { op: 'update', inc: { [field]: by } };
  }
  const isInNow = new Set(isSet(now) ? now.map(canonical) : []);
  const add: Json[] = [];
  const remove: Json[] = [];
  for (const [text, isIn] of seen.isIn) {
    if (isIn === isInNow.has(text)) continue;
    (isIn ? remove : add).push(JSON.parse(text) as Json);
  }
  if (add.length + remove.length === 0) return undefined;
  return {
    op: 'update',
    ...(add.length > 0 && { add: { [field]: add } }),
    ...(remove.length > 0 && { remove: { [field]: remove } }),
  };
}

const restored = (fields: JsonObject): readonly Change[] => [{ op: 'restore', fields }];

function foldAll(fields: EntityFields, changes: readonly Change[]): EntityFields {
  let now = fields;
  for (const change of changes) {
    const folded = foldChange(now, change);
    if (folded.ok) now = folded.value;
  }
  return now;
}
