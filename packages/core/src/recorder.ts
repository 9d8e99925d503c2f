import { isId } from './ids.ts';
import { isPlainObject, type Json } from './json.ts';
import type { RecordedChange, SeenValue } from './recorded-change.ts';
import { type EntityData, META_COLUMNS } from './schema-data.ts';
import { type Issue, issue } from './validate.ts';

export interface RecorderIds {
  newId(): string;
  /** The id of an entity with a natural key, from its key's values in the order of the key. */
  keyedId(entity: string, values: readonly Json[]): string;
}

export interface FieldAt {
  readonly type: string;
  readonly id: string;
  readonly name: string;
}

/** A value that is no longer known: elements were added to or removed from a set that nobody showed. */
export const UNKNOWN = Symbol('unknown');

/**
 * What one commit has asked for so far. In memory, for the length of one callback; the worst outcome is a commit that is
 * refused. It remembers what it wrote, so that a second change of one field is compared with the first, not with the row.
 */
export class Recorder {
  readonly changes: RecordedChange[] = [];
  readonly seen: SeenValue[] = [];
  readonly issues: Issue[] = [];
  readonly ids: RecorderIds;
  /** Types that this commit defines (SC4). */
  readonly defined = new Map<string, EntityData>();
  readonly #written = new Map<string, Json | typeof UNKNOWN>();

  constructor(ids: RecorderIds) {
    this.ids = ids;
  }

  wrote(at: FieldAt, value: Json | typeof UNKNOWN): void {
    this.#written.set(keyOf(at), value);
  }

  /** What this commit wrote there earlier; undefined: nothing. */
  earlier(at: FieldAt): Json | typeof UNKNOWN | undefined {
    return this.#written.get(keyOf(at));
  }
}

const keyOf = ({ type, id, name }: FieldAt): string => `${type} ${id} ${name}`;

/** The id that a change is about, from an id or a row. Null, and an issue, where there is none. */
export function idAt(recorder: Recorder, type: string, at: unknown): string | null {
  const id = rowAt(at) === null ? at : (at as { readonly id?: unknown }).id;
  if (isId(id)) return id;
  const message = 'an id is expected, or a row with its id: select "id" too';
  recorder.issues.push(issue([type, 'id'], 'wrong-type', message));
  return null;
}

export const rowAt = (at: unknown): Readonly<Record<string, unknown>> | null =>
  typeof at === 'object' && at !== null ? (at as Readonly<Record<string, unknown>>) : null;

const META: ReadonlySet<string> = new Set(META_COLUMNS);

/**
 * The object of fields that the callback gave. Fields that are not there are issues, one each. `isCarried`: may a name
 * that every row carries stand there with this value?
 */
export function fieldsGiven(
  recorder: Recorder,
  type: string,
  data: EntityData,
  given: unknown,
  isCarried: (name: string, value: unknown) => boolean,
): Readonly<Record<string, unknown>> {
  if (!isPlainObject(given)) {
    recorder.issues.push(issue([type], 'wrong-type', 'an object of fields is expected'));
    return {};
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(data.fields, name) || given[name] === undefined) continue;
    if (META.has(name) && isCarried(name, given[name])) continue;
    recorder.issues.push(
      META.has(name)
        ? issue([type, name], 'not-settable', 'every row carries this; it is not written')
        : issue([type, name], 'unknown-field', `${type} has no such field`),
    );
  }
  return given;
}
