import { presenceOf } from './field-facts.ts';
import { ownValue } from './fields.ts';
import { isId } from './ids.ts';
import type { Json, JsonObject } from './json.ts';
import { addTo, emptyUpdate, recordParts } from './record-update.ts';
import { fieldsGiven, type Recorder } from './recorder.ts';
import type { EntityData } from './schema-data.ts';
import { issue, numberedByLedger } from './validate.ts';
import { PLACE_EXPECTED, placeOf, writtenValue } from './written-value.ts';

/**
 * `create` says every field, with defaults written out (SC5). An entity with a natural key is always `put`: whoever
 * makes it second updates it, so a default, a place or a count must not be set over what is there. Defaults are then
 * only shown, counts and elements are added by an update of the same commit.
 */
export function recordCreate(recorder: Recorder, type: string, data: EntityData, given: unknown): string {
  const input = fieldsGiven(recorder, type, data, given, (name) => name === 'id');
  const isKeyed = data.key !== undefined;
  const fields: Record<string, Json> = {};
  const place: Record<string, JsonObject> = {};
  const later = emptyUpdate();
  for (const [name, field] of Object.entries(data.fields)) {
    const path = [type, name] as const;
    const value = Object.hasOwn(input, name) ? input[name] : undefined;
    if (value === undefined) {
      if (!isKeyed && field.default !== undefined) fields[name] = field.default;
      if (!isKeyed && field.kind === 'rank') place[name] = { at: 'end' };
      if (presenceOf(field) === 'required') recorder.issues.push(issue(path, 'missing', 'this field is required'));
    } else if (value === null) {
      if (field.optional !== true) recorder.issues.push(issue(path, 'not-optional', 'this field cannot be unset'));
      else if (isKeyed) later.unset.push(name);
    } else if (field.kind === 'rank') {
      const where = placeOf(value);
      if (where === null) recorder.issues.push(issue(path, 'wrong-type', PLACE_EXPECTED));
      else place[name] = where;
    } else if (field.kind === 'serial') {
      recorder.issues.push(numberedByLedger(path));
    } else if (field.kind === 'counter' || (field.kind === 'setOf' && !Array.isArray(value))) {
      addTo(recorder, path, field, value, later);
    } else {
      const written = writtenValue(value, field, path);
      if ('issue' in written) recorder.issues.push(written.issue);
      else fields[name] = written.value;
    }
  }
  const id = isKeyed ? keyedId(recorder, type, data, input, fields) : givenId(recorder, type, input);
  if (!isKeyed) Object.assign(fields, later.inc, later.add);
  for (const name in fields) recorder.wrote({ type, id, name }, fields[name] as Json);
  const places = Object.keys(place).length === 0 ? {} : { place };
  recorder.changes.push({ do: isKeyed ? 'put' : 'create', entity: type, id, fields, ...places });
  if (isKeyed) recordParts(recorder, type, id, later, undefined);
  return id;
}

export function recordPut(recorder: Recorder, type: string, data: EntityData, given: unknown): string {
  if (data.key === undefined)
    recorder.issues.push(issue([type], 'not-settable', `${type} has no natural key: say create, or give it a key`));
  return recordCreate(recorder, type, data, given);
}

function givenId(recorder: Recorder, type: string, input: Readonly<Record<string, unknown>>): string {
  const id = ownValue(input as JsonObject, 'id') as unknown;
  if (id === undefined) return recorder.ids.newId();
  if (!isId(id)) recorder.issues.push(issue([type, 'id'], 'wrong-type', 'an id is 1 to 128 visible ASCII characters'));
  return id as string;
}

function keyedId(
  recorder: Recorder,
  type: string,
  data: EntityData,
  input: Readonly<Record<string, unknown>>,
  fields: JsonObject,
): string {
  const values = (data.key ?? []).map((name) => ownValue(fields, name) ?? null);
  const id = recorder.ids.keyedId(type, values);
  if (Object.hasOwn(input, 'id') && input['id'] !== undefined && input['id'] !== id)
    recorder.issues.push(issue([type, 'id'], 'not-settable', 'this id is derived from the key'));
  return id;
}
