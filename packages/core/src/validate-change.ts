import { presenceOf } from './field-facts.ts';
import type { Json, JsonObject } from './json.ts';
import type { RecordedChange } from './recorded-change.ts';
import type { EntityData, FieldData } from './schema-data.ts';
import { type Issue, issue, numberedByLedger, valueIssue } from './validate.ts';
import { PLACE_EXPECTED, placeOf } from './written-value.ts';

/**
 * What is wrong with one recorded change, one issue per field (CM3). The recorder makes only changes that pass; the host
 * asks again, since a change may come from a page of another version, a daemon's client or a file.
 */
export function changeIssues(type: string, entity: EntityData, change: RecordedChange): readonly Issue[] {
  const issues = new Map<string, Issue>();
  const touched = new Map<string, Part>();
  const at = (name: string): readonly [string, string] => [type, name];
  const note = (name: string, found: Issue | null): void => {
    if (found !== null && !issues.has(name)) issues.set(name, found);
  };
  for (const [part, name, value] of touchesOf(change)) {
    const field = Object.hasOwn(entity.fields, name) ? entity.fields[name] : undefined;
    const earlier = touched.get(name);
    touched.set(name, part);
    if (field === undefined) note(name, issue(at(name), 'unknown-field', `${type} has no such field`));
    else if (earlier !== undefined && !(earlier === 'add' && part === 'remove'))
      note(name, issue(at(name), 'not-settable', 'one change touches a field in one way'));
    else if (change.do === 'update' && entity.key?.includes(name) === true)
      note(name, issue(at(name), 'not-settable', 'the id is derived from this field'));
    else note(name, partIssue(part, field, value, at(name), change.do));
  }
  if (change.do === 'create' || change.do === 'put')
    for (const [name, field] of Object.entries(entity.fields)) {
      // Whoever puts may update what is there; only the key must be said.
      const isNeeded = change.do === 'create' ? presenceOf(field) === 'required' : entity.key?.includes(name) === true;
      if (isNeeded && !touched.has(name)) note(name, issue(at(name), 'missing', 'this field is required'));
    }
  return [...issues.values()];
}

type Part = 'set' | 'unset' | 'inc' | 'add' | 'remove' | 'place';
type Touch = readonly [part: Part, name: string, value: Json | undefined];

function touchesOf(change: RecordedChange): readonly Touch[] {
  const of = (part: Part, values: JsonObject | undefined): readonly Touch[] =>
    Object.entries(values ?? {}).map(([name, value]) => [part, name, value]);
  switch (change.do) {
    case 'create':
    case 'put':
      return [...of('set', change.fields), ...of('place', change.place)];
    case 'restore':
      return of('set', change.fields);
    case 'delete':
      return [];
    case 'update':
      return [
        ...of('set', change.set),
        ...(change.unset ?? []).map((name): Touch => ['unset', name, undefined]),
        ...of('inc', change.inc),
        ...of('add', change.add),
        ...of('remove', change.remove),
        ...of('place', change.place),
      ];
  }
}

function partIssue(
  part: Part,
  field: FieldData,
  value: Json | undefined,
  path: readonly [string, string],
  how: RecordedChange['do'],
): Issue | null {
  const refuse = (message: string): Issue => issue(path, 'not-settable', message);
  if (field.kind === 'serial' && how !== 'restore') return numberedByLedger(path);
  switch (part) {
    case 'set':
      // A new count may begin anywhere; over one that may be there it would lose what others added.
      if (field.kind === 'counter' && (how === 'update' || how === 'put')) return refuse('a counter is not set');
      return valueIssue(value, field, path);
    case 'unset':
      return ['optional', 'defaulted'].includes(presenceOf(field)) && field.kind !== 'counter'
        ? null
        : issue(path, 'not-optional', 'this field cannot be unset');
    case 'inc':
      if (field.kind !== 'counter') return refuse('only a counter is added to');
      return valueIssue(value, field, path);
    case 'add':
    case 'remove':
      if (field.kind !== 'setOf') return refuse('only a set has elements');
      return valueIssue(value, field, path);
    case 'place':
      if (field.kind !== 'rank') return refuse('only a rank has a place');
      return placeOf(value) === null ? issue(path, 'wrong-type', PLACE_EXPECTED) : null;
  }
}
