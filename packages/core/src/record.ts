import { type Fault, fail, type Outcome, ok } from './faults.ts';
import { recordCreate, recordPut } from './record-create.ts';
import { DEFINE, NAMED, recordType, unknownCalls } from './record-type.ts';
import { recordUpdate } from './record-update.ts';
import type { RecordedChange, SeenValue } from './recorded-change.ts';
import { idAt, Recorder, type RecorderIds } from './recorder.ts';
import type { EntityData, SchemaData } from './schema-data.ts';
import type { CreateOf, Entity, Fields, Id, PatchOf, Row, Schema } from './schema-types.ts';

export type { RecorderIds };

/** What `update` takes in place of an id: the row that the person was looking at, or the part of it that was selected. */
export type SeenRow<S extends Schema, E extends keyof S & string> = Partial<Row<S, E>> & { readonly id: Id<E> };
type VerbTx<V, At> = {
  [K in keyof V]: V[K] extends (...args: infer A) => any ? (at: At, ...args: A) => void : never;
};

export type EntityTx<S extends Schema, E extends keyof S & string> =
  S[E] extends Entity<infer F extends Fields, infer V>
    ? {
        /** Makes an entity and says its id at once. With a natural key it is `put`. */
        create(fields: CreateOf<E, F>): Id<E>;
        /** Creates, or updates the entity that already has this natural key. */
        put(fields: CreateOf<E, F>): Id<E>;
        /** With a row: refused if a field it writes reads otherwise now. With an id: whatever it is now. */
        update(at: Id<E> | SeenRow<S, E>, patch: PatchOf<F>): void;
        delete(at: Id<E> | SeenRow<S, E>): void;
        restore(id: Id<E>): void;
      } & VerbTx<V, Id<E> | SeenRow<S, E>>
    : never;
export type Tx<S extends Schema> = { readonly [E in keyof S & string]: EntityTx<S, E> };

export interface Recorded {
  readonly changes: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
}

export interface Recording<S extends Schema> {
  readonly tx: Tx<S>;
  /** No change is taken after it. `invalid-change` carries every issue that was found (CM3). */
  end(): Outcome<Recorded, 'invalid-change'>;
}

/**
 * Records what a commit asks for, as plain data, seeing nothing of the replica. Whatever the schema can refuse without
 * it is an issue here. `data` names the entities, also those added at run time; verbs come from `schema`, so those have none.
 */
export function startRecording<S extends Schema>(schema: S, data: SchemaData, ids: RecorderIds): Recording<S> {
  const recorder = new Recorder(ids);
  let isOver = false;
  const whileOpen =
    <A extends readonly unknown[], R>(record: (...args: A) => R) =>
    (...args: A): R => {
      if (isOver) throw new TypeError('This commit is over: its callback has returned. Make the change inside it.');
      return record(...args);
    };
  // A schema has many entities and a commit touches few: each is made when it is asked for.
  const made: Record<string, unknown> = Object.create(null);
  const callsOf = (type: string): Calls | undefined => {
    const entity = recorder.defined.get(type) ?? (Object.hasOwn(data.entities, type) ? data.entities[type] : undefined);
    if (entity === undefined) return undefined;
    const declared = Object.hasOwn(schema, type) ? schema[type] : undefined;
    const calls = entityCalls(recorder, type, entity, declared);
    for (const name in calls) calls[name] = whileOpen(calls[name] as Calls[string]);
    return calls;
  };
  const atRunTime: Readonly<Record<symbol, unknown>> = {
    [DEFINE]: whileOpen((type: string, entity: EntityData) => {
      delete made[type];
      recordType(recorder, { schema, data }, type, entity);
    }),
    [NAMED]: whileOpen((type: string) => (made[type] ??= callsOf(type) ?? unknownCalls(recorder, type))),
  };
  const tx = new Proxy(made, {
    get: (_, type) => {
      if (typeof type !== 'string') return atRunTime[type];
      made[type] ??= callsOf(type);
      return made[type];
    },
  });
  return {
    tx: tx as unknown as Tx<S>,
    end: () => {
      isOver = true;
      const { changes, seen, issues } = recorder;
      return issues.length > 0 ? fail('invalid-change', { issues }) : ok({ changes, seen });
    },
  };
}

/**
 * Runs the callback of a commit and gives what it recorded, with what it returned (CM4).
 *
 * Faults: `invalid-change` with one issue per field; `async-callback`. What the callback throws is thrown.
 */
export function recordCommit<S extends Schema, T>(
  schema: S,
  data: SchemaData,
  ids: RecorderIds,
  build: (tx: Tx<S>) => T,
): Outcome<Recorded & { readonly result: T }, 'invalid-change' | 'async-callback'> {
  const recording = startRecording(schema, data, ids);
  let result: T;
  try {
    result = build(recording.tx);
  } finally {
    recording.end();
  }
  if (isPromise(result)) {
    // It goes on and may reject, for one because the commit is over. It was refused; nobody else waits for it.
    result.then(undefined, () => undefined);
    return fail('async-callback');
  }
  const recorded = recording.end();
  return recorded.ok ? ok({ ...recorded.value, result }) : (recorded as { ok: false; fault: Fault<'invalid-change'> });
}

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === 'object' || typeof value === 'function') &&
  value !== null &&
  typeof (value as { then?: unknown }).then === 'function';

export type Calls = Record<string, (...args: any[]) => unknown>;

function entityCalls(recorder: Recorder, type: string, data: EntityData, declared: Schema[string] | undefined): Calls {
  const update = (at: unknown, patch: unknown, verb?: string): void => {
    const id = idAt(recorder, type, at);
    if (id !== null) recordUpdate(recorder, type, data, { id, at, patch, verb });
  };
  const whole = (how: 'delete' | 'restore', at: unknown): void => {
    const id = idAt(recorder, type, at);
    if (id !== null) recorder.changes.push({ do: how, entity: type, id });
  };
  const calls: Calls = {
    create: (fields: unknown) => recordCreate(recorder, type, data, fields),
    put: (fields: unknown) => recordPut(recorder, type, data, fields),
    update: (at: unknown, patch: unknown) => update(at, patch),
    delete: (at: unknown) => whole('delete', at),
    restore: (at: unknown) => whole('restore', at),
  };
  const verbs = (declared?.verbs ?? {}) as Readonly<Record<string, (...args: unknown[]) => unknown>>;
  for (const [verb, patchOf] of Object.entries(verbs))
    calls[verb] = (at: unknown, ...args: unknown[]) => update(at, patchOf(...args), verb);
  return calls;
}
