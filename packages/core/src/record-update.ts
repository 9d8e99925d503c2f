import { canonical } from './canonical.ts';
import { isPlainObject, type Json, type JsonObject, jsonProblem } from './json.ts';
import { sameValue } from './order.ts';
import type { RecordedChange } from './recorded-change.ts';
import { type FieldAt, fieldsGiven, type Recorder, rowAt, UNKNOWN } from './recorder.ts';
import type { EntityData, FieldData } from './schema-data.ts';
import { removeFromSet } from './sets.ts';
import { type Issue, issue, numberedByLedger } from './validate.ts';
import { PLACE_EXPECTED, placeOf, seenValue, writtenValue } from './written-value.ts';

/** The parts of one update; a field is in one of them. */
export interface UpdateParts {
  readonly set: Record<string, Json>;
  readonly unset: string[];
  readonly inc: Record<string, number>;
  readonly add: Record<string, readonly Json[]>;
  readonly remove: Record<string, readonly Json[]>;
  readonly place: Record<string, JsonObject>;
}

export const emptyUpdate = (): UpdateParts => ({ set: {}, unset: [], inc: {}, add: {}, remove: {}, place: {} });

/**
 * `update(row, patch)`: a field set to what the row showed is dropped, and what it showed of the others goes along as
 * seen (CM2). `update(id, patch)` is on purpose, whatever is there now.
 */
export function recordUpdate(
  recorder: Recorder,
  type: string,
  data: EntityData,
  change: { readonly id: string; readonly at: unknown; readonly patch: unknown; readonly verb: string | undefined },
): void {
  const { id, verb } = change;
  const row = rowAt(change.at);
  // A patch that is a whole row with changes repeats what every row carries.
  const patch = fieldsGiven(recorder, type, data, change.patch, (name, value) => row !== null && row[name] === value);
  const parts = emptyUpdate();
  for (const [name, value] of Object.entries(patch)) {
    const field = Object.hasOwn(data.fields, name) ? data.fields[name] : undefined;
    if (field === undefined || value === undefined) continue;
    const at: FieldAt = { type, id, name };
    const earlier = recorder.earlier(at);
    const shown = row !== null && Object.hasOwn(row, name) ? seenValue(row[name]) : undefined;
    const before = earlier === undefined ? shown : earlier === UNKNOWN ? undefined : earlier;
    if (before !== undefined && jsonProblem(value) === null && sameValue(before, value as Json)) continue;
    if (data.key?.includes(name) === true) {
      recorder.issues.push(issue([type, name], 'not-settable', 'the id is derived from this field'));
      continue;
    }
    updateField(recorder, { at, field, value, before }, parts);
    const isWritten = Object.hasOwn(parts.set, name) || parts.unset.includes(name);
    if (isWritten && earlier === undefined && shown !== undefined)
      recorder.seen.push({ entity: type, id, field: name, value: shown });
  }
  recordParts(recorder, type, id, parts, verb);
}

/** Nothing that differs from what was read is no change, unless the verb itself is the news. */
export function recordParts(
  recorder: Recorder,
  type: string,
  id: string,
  parts: UpdateParts,
  verb: string | undefined,
): void {
  const filled = Object.entries(parts).filter(([, part]) => Object.keys(part as object).length > 0);
  if (filled.length === 0 && verb === undefined) return;
  const update = Object.fromEntries(filled) as Partial<Extract<RecordedChange, { do: 'update' }>>;
  recorder.changes.push({ do: 'update', entity: type, id, ...update, ...(verb === undefined ? {} : { verb }) });
}

interface FieldUpdate {
  readonly at: FieldAt;
  readonly field: FieldData;
  readonly value: unknown;
  /** What the field holds before this change, as far as its author knows; undefined: not known. */
  readonly before: Json | undefined;
}

function updateField(recorder: Recorder, { at, field, value, before }: FieldUpdate, parts: UpdateParts): void {
  const path = [at.type, at.name] as const;
  const refuse = (code: Issue['code'], message: string) => void recorder.issues.push(issue(path, code, message));
  if (value === null) {
    if (field.optional !== true) return refuse('not-optional', 'this field cannot be unset');
    parts.unset.push(at.name);
    return recorder.wrote(at, null);
  }
  switch (field.kind) {
    case 'serial':
      return void recorder.issues.push(numberedByLedger(path));
    case 'rank': {
      const place = placeOf(value);
      if (place === null) return refuse('wrong-type', PLACE_EXPECTED);
      parts.place[at.name] = place;
      return;
    }
    case 'counter':
      return addTo(recorder, path, field, value, parts);
    case 'setOf':
      if (!Array.isArray(value)) {
        addTo(recorder, path, field, value, parts);
        return recorder.wrote(at, UNKNOWN);
      }
      break;
  }
  const written = writtenValue(value, field, path);
  if ('issue' in written) return void recorder.issues.push(written.issue);
  if (field.kind === 'setOf' && Array.isArray(before))
    addDifference(before, written.value as readonly Json[], at, parts);
  else if (before === undefined || !sameValue(before, written.value)) parts.set[at.name] = written.value;
  recorder.wrote(at, written.value);
}

/** A whole list over a set that was seen says what was added and removed, so that it merges. */
function addDifference(before: readonly Json[], after: readonly Json[], { name }: FieldAt, parts: UpdateParts): void {
  const add = removeFromSet(after, before);
  const remove = removeFromSet(before, after);
  if (add.length > 0) parts.add[name] = add;
  if (remove.length > 0) parts.remove[name] = remove;
}

/** `{ by }` of a counter, `{ add, remove }` of a set. */
export function addTo(
  recorder: Recorder,
  path: readonly [type: string, name: string],
  field: FieldData,
  given: unknown,
  parts: UpdateParts,
): void {
  const [, name] = path;
  const refuse = (message: string) => void recorder.issues.push(issue(path, 'not-settable', message));
  if (field.kind === 'counter') {
    const { by, ...others } = isPlainObject(given) ? given : {};
    if (!Number.isSafeInteger(by) || Object.keys(others).length > 0)
      return refuse('a counter takes { by } with a whole number');
    if (by !== 0) parts.inc[name] = by as number;
    return;
  }
  const { add = [], remove = [], ...others } = isPlainObject(given) ? given : { wrong: given };
  if (Object.keys(others).length > 0) return refuse('a set takes a list, or { add, remove } with lists');
  const [added, removed] = [writtenValue(add, field, path), writtenValue(remove, field, path)];
  if ('issue' in added) return void recorder.issues.push(added.issue);
  if ('issue' in removed) return void recorder.issues.push(removed.issue);
  const [more, less] = [added.value as readonly Json[], removed.value as readonly Json[]];
  const both = more.find((one) => less.some((other) => canonical(one) === canonical(other)));
  if (both !== undefined) return refuse(`${canonical(both)} is added and removed`);
  if (more.length > 0) parts.add[name] = more;
  if (less.length > 0) parts.remove[name] = less;
}
