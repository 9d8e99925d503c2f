import { canonical } from './canonical.ts';
import type { Json } from './json.ts';
import type { Recorder } from './recorder.ts';
import { schemaData } from './schema.ts';
import { type EntityData, RUN_TIME_TYPE, type SchemaData } from './schema-data.ts';
import type { Entity, Id, Schema } from './schema-types.ts';
import { issue } from './validate.ts';
import { typeProblem } from './widen-type.ts';

/** Entity types that the app's code does not know: defined and written inside a commit, by name (SC4). */

/** Where a `tx` keeps its two calls: names of an app's entities are texts, so nothing collides. */
export const DEFINE = Symbol('define a type');
export const NAMED = Symbol('an entity type by its name');

/** The changes of a type that is known at run time only: checked as those of the schema, but not by the compiler. */
export interface NamedEntityTx {
  create(fields: Readonly<Record<string, unknown>>): Id;
  put(fields: Readonly<Record<string, unknown>>): Id;
  update(at: Id | { readonly id: Id }, patch: Readonly<Record<string, unknown>>): void;
  delete(at: Id | { readonly id: Id }): void;
  restore(id: Id): void;
}

/**
 * Defines an entity type for everybody who has the workspace, or widens one with new fields. The same definition again is
 * nothing. It can be used at once, also later in the same commit.
 *
 * Where a definition is data, `schemaFrom` makes an entity of it. Refused with `invalid-change` where the name is one of the app's schema, where the definition cannot be, and where it
 * leaves out a field of the one before it or gives it another kind.
 *
 * ```ts
 * await replica.commit((tx) => {
 *   defineType(tx, 'invoice', entity({ number: text(), paid: flag({ default: false }) }));
 *   entityNamed(tx, 'invoice').create({ number: '2026-001' });
 * });
 * ```
 */
export function defineType(tx: object, name: string, definition: Entity<any, any>): void {
  callOf(tx, DEFINE)(name, schemaData({ [name]: definition }).entities[name]);
}

/** The changes of an entity type by its name. A name that nobody defined refuses the commit with `invalid-change`. */
export function entityNamed(tx: object, name: string): NamedEntityTx {
  return callOf(tx, NAMED)(name) as NamedEntityTx;
}

function callOf(tx: object, which: symbol): (...args: unknown[]) => unknown {
  const call = (tx as Readonly<Record<symbol, unknown>>)[which];
  if (typeof call !== 'function') throw new TypeError('The tx of a commit is expected.');
  return call as (...args: unknown[]) => unknown;
}

// ── recording ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** `data`: the types that are known so far, those of `schema` among them. */
export function recordType(
  recorder: Recorder,
  { schema, data }: { readonly schema: Schema; readonly data: SchemaData },
  type: string,
  definition: EntityData,
): void {
  const isTaken = Object.keys(schema).some((name) => name.toLowerCase() === type.toLowerCase());
  const before = recorder.defined.get(type) ?? (Object.hasOwn(data.entities, type) ? data.entities[type] : undefined);
  const problem = isTaken ? `${type}: ${NAME_TAKEN}` : typeProblem(type, definition, before);
  if (problem !== null) {
    recorder.issues.push(issue([type], 'not-settable', problem));
    return;
  }
  recorder.defined.set(type, definition);
  // A copy: what the caller does to its fields afterwards is not part of this commit.
  const copy = JSON.parse(canonical(definition as unknown as Json)) as Json;
  recorder.changes.push({ do: 'put', entity: RUN_TIME_TYPE, id: type, fields: { schema: copy } });
}

export const NAME_TAKEN = 'another type has this name, without regard to case';

/** Whatever is asked of a type that nobody knows is one issue. */
export function unknownCalls(recorder: Recorder, type: string): NamedEntityTx {
  const refuse = (): void => {
    recorder.issues.push(issue([type], 'unknown-entity', `unknown type: nobody defined ${type}`));
  };
  const made = (): Id => {
    refuse();
    return recorder.ids.newId();
  };
  return { create: made, put: made, update: refuse, delete: refuse, restore: refuse };
}
