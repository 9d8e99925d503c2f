import { canonical } from './canonical.ts';
import { fail, type Outcome, ok } from './faults.ts';
import { isId } from './ids.ts';
import { isPlainObject, type Json, type JsonObject } from './json.ts';
import { sameValue } from './order.ts';
import type { RecordedChange, SeenValue } from './recorded-change.ts';
import type { EntityData, FieldData, SchemaData } from './schema-data.ts';
import type { CreateOf, Entity, Fields, Id, PatchOf, Row, Schema } from './schema-types.ts';
import { asSet } from './sets.ts';
import { type Issue, valueIssue } from './validate.ts';

/** An id, or the row that the person was looking at: then what was on screen is compared inside the commit (CM2). */
type Seen<R> = Id | R;
type SeenRow<S extends Schema, E extends keyof S & string> = Partial<Row<S, E>> & { readonly id: Row<S, E>['id'] };
type VerbTx<V, R> = {
  [K in keyof V]: V[K] extends (...args: infer A) => any ? (at: Seen<R>, ...args: A) => void : never;
};

export type EntityTx<S extends Schema, E extends keyof S & string> =
  S[E] extends Entity<infer F extends Fields, infer V>
    ? {
        create(fields: CreateOf<E, F>): Id<E>;
        /** Creates, or updates the entity that already has this natural key. */
        put(fields: CreateOf<E, F>): Id<E>;
        update(at: Id<E> | SeenRow<S, E>, patch: PatchOf<F>): void;
        delete(at: Id<E> | SeenRow<S, E>): void;
        restore(id: Id<E>): void;
      } & VerbTx<V, SeenRow<S, E>>
    : never;
export type Tx<S extends Schema> = { readonly [E in keyof S & string]: EntityTx<S, E> };

export interface Recording<T> {
  readonly changes: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
  readonly result: T;
}

export interface RecorderIds {
  newId(): string;
  /** The id of an entity with a natural key, from its key's values in the order of the key. */
  keyedId(entity: string, values: readonly Json[]): string;
}

type Recorded = Outcome<never, 'invalid-change' | 'async-callback'>;

/**
 * Runs the callback of a commit and records what it asks for, as plain data. Synchronous; sees nothing of the replica;
 * everything that the schema can refuse without it is refused here, with one issue per field (CM3, CM4).
 *
 * Faults: `invalid-change` with `issues`, `async-callback`. What the callback throws is thrown.
 */
export function recordCommit<S extends Schema, T>(
  schema: S,
  data: SchemaData,
  ids: RecorderIds,
  build: (tx: Tx<S>) => T,
): Outcome<Recording<T>, 'invalid-change' | 'async-callback'> {
  const recorder = new Recorder(ids);
  const tx: Record<string, unknown> = {};
  for (const [type, entity] of Object.entries(data.entities)) tx[type] = entityTx(recorder, type, entity, schema[type]);
  const result = build(tx as Tx<S>);
  recorder.isOver = true;
  if (isPromise(result)) return fail('async-callback') as Recorded;
  if (recorder.issues.length > 0) return fail('invalid-change', { issues: recorder.issues }) as Recorded;
  return ok({ changes: recorder.changes, seen: recorder.seen, result });
}

const isPromise = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

class Recorder {
  readonly changes: RecordedChange[] = [];
  readonly seen: SeenValue[] = [];
  readonly issues: Issue[] = [];
  readonly ids: RecorderIds;
  isOver = false;

  constructor(ids: RecorderIds) {
    this.ids = ids;
  }

  add(change: RecordedChange): void {
    if (this.isOver) throw new TypeError('This commit is over: its callback has returned. Make the change inside it.');
    this.changes.push(change);
  }
}

function entityTx(recorder: Recorder, entity: string, data: EntityData, declared: Schema[string] | undefined) {
  const tx: Record<string, unknown> = {
    create: (fields: unknown) => recordCreate(recorder, entity, data, fields, 'create'),
    put: (fields: unknown) => recordCreate(recorder, entity, data, fields, 'put'),
    update: (at: unknown, patch: unknown) => recordUpdate(recorder, entity, data, at, patch),
    delete: (at: unknown) => recorder.add({ do: 'delete', entity, id: idOf(at, entity) }),
    restore: (at: unknown) => recorder.add({ do: 'restore', entity, id: idOf(at, entity) }),
  };
  for (const [verb, patchOf] of Object.entries(declared?.verbs ?? {}))
    tx[verb] = (at: unknown, ...args: unknown[]) =>
      recordUpdate(recorder, entity, data, at, (patchOf as (...a: unknown[]) => unknown)(...args), verb);
  return tx;
}

function idOf(at: unknown, entity: string): string {
  const id = typeof at === 'object' && at !== null ? (at as { id?: unknown }).id : at;
  if (isId(id)) return id;
  throw new TypeError(
    `${entity}: an id, or a row with its id, is expected. A row needs "id" among its selected columns.`,
  );
}

// ── create and put ──────────────────────────────────────────────────────────────────────────────────────────────────

function recordCreate(
  recorder: Recorder,
  entity: string,
  data: EntityData,
  given: unknown,
  how: 'create' | 'put',
): string {
  const input = inputOf(recorder, entity, data, given);
  const fields: Record<string, Json> = {};
  const place: Record<string, JsonObject> = {};
  for (const [name, field] of Object.entries(data.fields)) {
    const value = input[name];
    if (value === undefined || value === null) {
      if (field.default !== undefined) fields[name] = field.default;
      else if (field.kind === 'rank') place[name] = { at: 'end' };
      else if (isRequired(field))
        recorder.issues.push({ path: [entity, name], code: 'missing', message: 'this field is required' });
      continue;
    }
    createField(recorder, [entity, name], field, value, { fields, place, name });
  }
  const keyed = data.key !== undefined;
  const id = entityId(recorder, entity, data, input, fields);
  const places = Object.keys(place).length === 0 ? {} : { place };
  // Two makers of one keyed entity make one: its create is written as put.
  recorder.add({ do: keyed || how === 'put' ? 'put' : 'create', entity, id, fields, ...places });
  return id;
}

const isRequired = (field: FieldData): boolean =>
  field.optional !== true && !['counter', 'setOf', 'rank', 'serial'].includes(field.kind);

function createField(
  recorder: Recorder,
  path: readonly string[],
  field: FieldData,
  value: unknown,
  into: { readonly fields: Record<string, Json>; readonly place: Record<string, JsonObject>; readonly name: string },
): void {
  const refuse = (code: Issue['code'], message: string) => recorder.issues.push({ path, code, message });
  switch (field.kind) {
    case 'serial':
      refuse('not-settable', 'the ledger numbers this');
      return;
    case 'rank':
      if (isPlace(value)) into.place[into.name] = placeOf(value);
      else refuse('wrong-type', '{ at } or { after, before } is expected');
      return;
    case 'counter':
      if (isPlainObject(value) && Number.isSafeInteger(value['by'])) into.fields[into.name] = value['by'] as number;
      else refuse('wrong-type', '{ by } with a whole number is expected');
      return;
    case 'setOf': {
      const elements = isPlainObject(value) ? (value['add'] ?? []) : value;
      const found = valueIssue(plain(elements), field, path);
      if (found === null) into.fields[into.name] = asSet((plain(elements) as readonly Json[]) ?? []);
      else recorder.issues.push(found);
      return;
    }
    default: {
      const found = valueIssue(plain(value), field, path);
      if (found === null) into.fields[into.name] = plain(value) as Json;
      else recorder.issues.push(found);
    }
  }
}

function entityId(
  recorder: Recorder,
  entity: string,
  data: EntityData,
  input: Record<string, unknown>,
  fields: JsonObject,
): string {
  if (data.key !== undefined) {
    const values = data.key.map((name) => fields[name] ?? null);
    return recorder.ids.keyedId(entity, values);
  }
  const { id } = input;
  if (id === undefined) return recorder.ids.newId();
  if (!isId(id))
    recorder.issues.push({
      path: [entity, 'id'],
      code: 'wrong-type',
      message: 'an id is 1 to 128 visible ASCII characters',
    });
  return id as string;
}

function inputOf(recorder: Recorder, entity: string, data: EntityData, given: unknown): Record<string, unknown> {
  if (!isPlainObject(given)) {
    recorder.issues.push({ path: [entity], code: 'wrong-type', message: 'an object of fields is expected' });
    return {};
  }
  for (const name of Object.keys(given))
    if (!Object.hasOwn(data.fields, name) && name !== 'id')
      recorder.issues.push({ path: [entity, name], code: 'unknown-field', message: `${entity} has no such field` });
  return given;
}

// ── update ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Update {
  readonly set: Record<string, Json>;
  readonly unset: string[];
  readonly inc: Record<string, number>;
  readonly add: Record<string, readonly Json[]>;
  readonly remove: Record<string, readonly Json[]>;
  readonly place: Record<string, JsonObject>;
}

function recordUpdate(
  recorder: Recorder,
  entity: string,
  data: EntityData,
  at: unknown,
  given: unknown,
  verb?: string,
): void {
  const id = idOf(at, entity);
  const row = typeof at === 'object' && at !== null ? (at as Record<string, unknown>) : null;
  const patch = inputOf(recorder, entity, data, given);
  const update: Update = { set: {}, unset: [], inc: {}, add: {}, remove: {}, place: {} };
  for (const [name, value] of Object.entries(patch)) {
    const field = Object.hasOwn(data.fields, name) ? data.fields[name] : undefined;
    if (field === undefined || value === undefined) continue;
    const seen = row !== null && Object.hasOwn(row, name) ? plain(row[name]) : undefined;
    updateField(recorder, [entity, name], field, value, seen, update, name);
    if (seen !== undefined && isWritten(update, name))
      recorder.seen.push({ entity, id, field: name, value: seen as Json });
  }
  const change = compact(update);
  // Nothing that differs from what was read: there is nothing to say, unless the verb itself is the news.
  if (Object.keys(change).length === 0 && verb === undefined) return;
  recorder.add({ do: 'update', entity, id, ...change, ...(verb === undefined ? {} : { verb }) });
}

const isWritten = (update: Update, name: string): boolean =>
  Object.hasOwn(update.set, name) || update.unset.includes(name);

function compact(update: Update): Partial<Extract<RecordedChange, { do: 'update' }>> {
  const kept = Object.entries(update).filter(([, part]) =>
    Array.isArray(part) ? part.length > 0 : Object.keys(part as object).length > 0,
  );
  return Object.fromEntries(kept) as Partial<Extract<RecordedChange, { do: 'update' }>>;
}

function updateField(
  recorder: Recorder,
  path: readonly string[],
  field: FieldData,
  value: unknown,
  seen: unknown,
  update: Update,
  name: string,
): void {
  const refuse = (code: Issue['code'], message: string) => void recorder.issues.push({ path, code, message });
  if (value === null) {
    if (field.optional !== true) return refuse('not-optional', 'this field cannot be unset');
    if (seen !== null) update.unset.push(name);
    return;
  }
  switch (field.kind) {
    case 'serial':
      return refuse('not-settable', 'the ledger numbers this');
    case 'rank':
      if (!isPlace(value)) return refuse('wrong-type', '{ at } or { after, before } is expected');
      update.place[name] = placeOf(value);
      return;
    case 'counter': {
      const by = isPlainObject(value) ? value['by'] : undefined;
      if (!Number.isSafeInteger(by)) return refuse('not-settable', 'a counter takes { by } with a whole number');
      if (by !== 0) update.inc[name] = by as number;
      return;
    }
    case 'setOf':
      return updateSet(recorder, path, field, value, seen, update, name);
    default: {
      const json = plain(value);
      const found = valueIssue(json, field, path);
      if (found !== null) recorder.issues.push(found);
      else if (seen === undefined || seen === null || !sameValue(seen as Json, json as Json))
        update.set[name] = json as Json;
    }
  }
}

/** A whole list over a row that was seen is what was added and removed; without one it replaces the set on purpose. */
function updateSet(
  recorder: Recorder,
  path: readonly string[],
  field: FieldData,
  value: unknown,
  seen: unknown,
  update: Update,
  name: string,
): void {
  const asked = isPlainObject(value) ? value : null;
  const lists = asked === null ? [value] : [asked['add'] ?? [], asked['remove'] ?? []];
  for (const list of lists) {
    const found = valueIssue(plain(list), field, path);
    if (found !== null) return void recorder.issues.push(found);
  }
  const [first, second] = lists.map((list) => asSet(plain(list) as readonly Json[]));
  if (asked === null && !Array.isArray(seen)) {
    update.set[name] = first as readonly Json[];
    return;
  }
  const before = new Set(Array.isArray(seen) ? (seen as readonly Json[]).map(canonical) : []);
  const after = new Set((first as readonly Json[]).map(canonical));
  const add =
    asked === null
      ? (first as readonly Json[]).filter((one) => !before.has(canonical(one)))
      : (first as readonly Json[]);
  const remove =
    asked === null
      ? (seen as readonly Json[]).filter((one) => !after.has(canonical(one)))
      : (second as readonly Json[]);
  if (add.length > 0) update.add[name] = add;
  if (remove.length > 0) update.remove[name] = remove;
}

// ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A `Date` says an instant. Everything else is taken as it is, and checked. */
const plain = (value: unknown): Json | undefined => {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.toISOString();
  if (Object.is(value, -0)) return 0;
  return value as Json | undefined;
};

const isPlace = (
  value: unknown,
): value is { at?: 'start' | 'end'; after?: { rank: string } | null; before?: { rank: string } | null } => {
  if (!isPlainObject(value)) return false;
  if (value['at'] !== undefined) return value['at'] === 'start' || value['at'] === 'end';
  return (
    'after' in value &&
    'before' in value &&
    [value['after'], value['before']].every((one) => one === null || isRankedRow(one))
  );
};
const isRankedRow = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && ('rank' in value || 'id' in value);

/** Only what the host needs crosses the link: the neighbours' ids, and the ranks that were on screen. */
function placeOf(place: { at?: string; after?: unknown; before?: unknown }): JsonObject {
  if (place.at !== undefined) return { at: place.at };
  const side = (row: unknown): Json => {
    if (row === null) return null;
    const { id, rank } = row as { id?: unknown; rank?: unknown };
    return { ...(typeof id === 'string' ? { id } : {}), ...(typeof rank === 'string' ? { rank } : {}) };
  };
  return { after: side(place.after), before: side(place.before) };
}
