import { type Json, type JsonObject, ownValue, sameValue } from '@holdfast/core';
import type { ReplicaStore } from './replica-store.ts';
import { type EntityKey, type HeldMeta, type HeldState, quoted } from './tables.ts';

/**
 * The base of an entity with pending changes: what is confirmed of it, and which operations stand on that (ST1). It lies in
 * the entity's row, so that a commit writes one page for both; where local work deleted the row, in `hf_base`. Only what
 * differs from the row is kept: a commit writes as little as it changes.
 */
export interface Confirmed {
  /** Entity version, also of one that was deleted; 0 for none. */
  readonly version: number;
  readonly state: HeldState | undefined;
}

export interface Base {
  readonly confirmed: Confirmed;
  /** Outbox seqs, in order, of the operations of the local state that touch the entity. */
  readonly pending: readonly number[];
  /** Id of the newest of their events on the entity: the `prior` of the next. */
  readonly lastEvent: string;
}

/** As it is written, in order: for ever. `was` and `meta` are null where nothing is confirmed. */
type BaseData = readonly [
  version: number,
  pending: readonly number[],
  lastEvent: string,
  was: Was | null,
  meta: Partial<HeldMeta> | null,
];

/** Confirmed values of the fields in which the row says otherwise: null where nothing is confirmed (JS4: no field is). */
type Was = Readonly<Record<string, Json>>;

/** `local`: what the row says, undefined where there is none. */
export function baseText({ confirmed, pending, lastEvent }: Base, local: HeldState | undefined): string {
  const { version, state } = confirmed;
  const data: BaseData = [
    version,
    pending,
    lastEvent,
    state === undefined ? null : wasOf(state.fields, local?.fields),
    state === undefined ? null : metaDifference(state.meta, local?.meta),
  ];
  return JSON.stringify(data);
}

export function readBase(text: string, local: HeldState | undefined): Base {
  const [version, pending, lastEvent, was, meta] = JSON.parse(text) as BaseData;
  const state =
    was === null
      ? undefined
      : { version, fields: withWas(local?.fields, was), meta: { ...local?.meta, ...meta } as HeldMeta };
  return { confirmed: { version, state }, pending, lastEvent };
}

/** Every entity with pending changes, of one log or of all. */
export function pendingKeys({ database, tables }: ReplicaStore, log?: string): readonly EntityKey[] {
  const ofLog = log === undefined ? '' : ' AND log = ?';
  const parameters = log === undefined ? [] : [log];
  const typed = [...tables.keys()].flatMap((type) =>
    database
      .prepare(
        `SELECT _log AS log, _id AS id FROM main.${quoted(type)} WHERE _base IS NOT NULL${log === undefined ? '' : ' AND _log = ?'}`,
      )
      .all(...parameters)
      .map((row) => ({ log: row['log'] as string, type, id: row['id'] as string })),
  );
  const others = database
    .prepare(
      `SELECT log, type, id FROM main.hf_entity WHERE base IS NOT NULL${ofLog} UNION ALL SELECT log, type, id FROM main.hf_base WHERE true${ofLog}`,
    )
    .all(...parameters, ...parameters)
    .map((row) => ({ log: row['log'] as string, type: row['type'] as string, id: row['id'] as string }));
  return [...typed, ...others];
}

function wasOf(confirmed: JsonObject, local: JsonObject | undefined): Was {
  if (local === undefined) return confirmed;
  const was: Record<string, Json> = {};
  for (const field in confirmed)
    if (!sameValue(ownValue(local, field), confirmed[field])) was[field] = confirmed[field] as Json;
  for (const field in local) if (!Object.hasOwn(confirmed, field)) was[field] = null;
  return was;
}

/** The row's fields are sorted, and stay so: only a field that the row lacks changes their order. */
function withWas(local: JsonObject | undefined, was: Was): JsonObject {
  const names = Object.keys(was);
  if (names.length === 0) return local ?? {};
  const fields: Record<string, Json> = {};
  for (const field in local)
    if (!Object.hasOwn(was, field)) fields[field] = local[field] as Json;
    else if (was[field] !== null) fields[field] = was[field] as Json;
  const added = names.filter((field) => was[field] !== null && !Object.hasOwn(local ?? {}, field));
  if (added.length === 0) return fields;
  for (const field of added) fields[field] = was[field] as Json;
  return Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function metaDifference(confirmed: HeldMeta, local: HeldMeta | undefined): Partial<HeldMeta> {
  if (local === undefined) return confirmed;
  const difference: Record<string, string | number> = {};
  for (const name of META) if (local[name] !== confirmed[name]) difference[name] = confirmed[name];
  return difference;
}

const META = ['createdBy', 'createdAt', 'updatedBy', 'updatedAt', 'arrival'] as const;
