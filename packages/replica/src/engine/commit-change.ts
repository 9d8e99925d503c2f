import {
  asSet,
  type Change,
  changeIssues,
  type Issue,
  type Json,
  type JsonObject,
  type MergeRule,
  ownValue,
  type RecordedChange,
  RUN_TIME_TYPE,
} from '@holdfast/core';
import type { CommitRanks } from './commit-rank.ts';
import { definitionChange, definitionNeeded } from './commit-type.ts';
import { stop } from './fault-error.ts';
import type { LocalEntities, LocalEntity } from './local.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { ColumnModel, EntityModel } from './schema-model.ts';
import { type HeldState, quoted } from './tables.ts';

/** One recorded change as the log will hold it: wire names, rules, ranks; and what it asks of others. */
export interface Changed {
  /** Null where nothing is left to say. */
  readonly change: Change | null;
  /** The event's name: `issue.updated`. */
  readonly type: string;
  /** SC9: changes of entities that refer to one that is deleted. */
  readonly follow: readonly RecordedChange[];
  readonly needs: readonly string[];
  readonly requires: readonly (readonly [type: string, id: string])[];
  readonly isUnderRules: boolean;
}

/** `wire`: as the log names them, also fields that this schema does not know; values are taken as they are. */
export type FieldNames = 'code' | 'wire';

export interface ChangeParts {
  readonly store: ReplicaStore;
  readonly entities: LocalEntities;
  readonly names: FieldNames;
  readonly log: string;
  readonly change: RecordedChange;
  readonly entity: LocalEntity;
  readonly now: HeldState | undefined;
  /** What this commit has made of entities so far: their rows do not say it yet. */
  readonly touched: ReadonlyMap<string, Touched>;
  readonly ranks: CommitRanks;
  readonly issues: Issue[];
}

export interface Touched {
  readonly entity: LocalEntity;
  readonly now: HeldState | undefined;
}

export function makeChange(parts: ChangeParts): Changed {
  const { change, entity, now } = parts;
  const { model } = entity.table;
  if (change.entity === RUN_TIME_TYPE)
    return {
      ...NOTHING,
      change: definitionChange(parts, change, now, parts.issues),
      type: `${RUN_TIME_TYPE}.${now === undefined ? 'created' : 'updated'}`,
    };
  if (model === null || (model.isHidden === true && parts.names === 'code'))
    return stop('invalid-change', {
      issues: [{ path: [change.entity], code: 'unknown-entity', message: 'the schema has no such entity' }],
    });
  // CM3: the recorder made only what passes; a page of another version, a daemon's client or a file may not have.
  const found = parts.names === 'wire' ? [] : changeIssues(model.type, model.data, change);
  if (found.length > 0) {
    parts.issues.push(...found);
    return NOTHING;
  }
  switch (change.do) {
    case 'create':
    case 'put':
      return made(
        parts,
        model,
        makeCreate(parts, model, change),
        change.verb ?? (change.do === 'put' && now !== undefined ? 'updated' : 'created'),
      );
    case 'update':
      if (now === undefined) stop('not-found', { entity: change.entity, id: change.id });
      return made(parts, model, makeUpdate(parts, model, change), change.verb ?? 'updated');
    case 'delete':
      if (now === undefined) stop('not-found', { entity: change.entity, id: change.id });
      return { ...made(parts, model, { op: 'delete' }, change.verb ?? 'deleted'), follow: followers(parts) };
    case 'restore':
      return made(parts, model, { op: 'restore', fields: restoredFields(parts, model) }, change.verb ?? 'restored');
  }
}

const NOTHING: Changed = { change: null, type: '', follow: [], needs: [], requires: [], isUnderRules: false };

function made(parts: ChangeParts, model: EntityModel, change: Change | null, verb: string): Changed {
  const written = change === null ? {} : writtenOf(change);
  const refs = change === null ? [] : refsOf(model, written);
  return {
    change,
    type: `${model.type}.${verb}`,
    follow: [],
    needs: [
      ...definitionNeeded(parts, parts.log, model.type),
      ...refs.flatMap(({ to, id }) => creatorOf(parts, to, id)),
    ],
    requires: refs.filter(({ isRequired }) => isRequired).map(({ to, id }) => [to, id] as const),
    isUnderRules: change !== null && isUnderRules(model, change),
  };
}

const writtenOf = (change: Change): JsonObject =>
  change.op === 'create' || change.op === 'restore' ? change.fields : change.op === 'delete' ? {} : (change.set ?? {});

function isUnderRules(model: EntityModel, change: Change): boolean {
  if (model.underRules.size === 0) return false;
  if (change.op === 'delete') return false;
  const names = Object.keys(writtenOf(change));
  if (change.op === 'update')
    names.push(
      ...(change.unset ?? []),
      ...[change.inc, change.add, change.remove].flatMap((part) => Object.keys(part ?? {})),
    );
  return names.some((name) => model.underRules.has(name));
}

// ── create and update ───────────────────────────────────────────────────────────────────────────────────────────────

function makeCreate(
  parts: ChangeParts,
  model: EntityModel,
  change: Extract<RecordedChange, { do: 'create' | 'put' }>,
): Change {
  const fields = wired(parts, model, { ...change.fields, ...placed(parts, model, change.place) });
  const { entity, now } = parts;
  if (change.do === 'put') return { op: 'put', ...rulesOf(model, Object.keys(fields)), set: fields };
  // On an id whose deletion the author saw it is written as restore (EV6).
  return now === undefined && (entity.confirmed.version > 0 || entity.base !== undefined)
    ? { fields, op: 'restore' }
    : { fields, op: 'create' };
}

function makeUpdate(
  parts: ChangeParts,
  model: EntityModel,
  change: Extract<RecordedChange, { do: 'update' }>,
): Change | null {
  const set = wired(parts, model, { ...change.set, ...placed(parts, model, change.place) });
  const unset = (change.unset ?? []).map((name) => column(parts, model, name)?.wire ?? name);
  const inc = rename(parts, model, change.inc);
  const add = rename(parts, model, change.add);
  const remove = rename(parts, model, change.remove);
  const present = unset.filter((name) => ownValue(parts.now?.fields, name) !== undefined);
  const update = {
    ...(add === null ? {} : { add }),
    ...(inc === null ? {} : { inc }),
    op: 'update' as const,
    ...(remove === null ? {} : { remove }),
    ...rulesOf(model, [...Object.keys(set), ...present]),
    ...(Object.keys(set).length === 0 ? {} : { set }),
    ...(present.length === 0 ? {} : { unset: present }),
  };
  const isEmpty =
    add === null && inc === null && remove === null && Object.keys(set).length === 0 && present.length === 0;
  return isEmpty && change.verb === undefined ? null : update;
}

/** By wire name. */
function wired(parts: ChangeParts, model: EntityModel, values: JsonObject): Record<string, Json> {
  const fields: [string, Json][] = [];
  for (const [name, value] of Object.entries(values)) {
    const field = column(parts, model, name);
    if (field === undefined) continue;
    fields.push([field.wire, field.data.kind === 'setOf' && isList(value) ? asSet(value) : value]);
  }
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields);
}

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

/** A field that this schema does not know (EV5). */
const unknownField = (wire: string): ColumnModel => ({
  name: wire,
  wire,
  data: { kind: 'json' },
  sqlType: 'TEXT',
  fallback: undefined,
});

function column(parts: ChangeParts, model: EntityModel, name: string): ColumnModel | undefined {
  if (parts.names === 'wire') return model.byWire.get(name) ?? unknownField(name);
  const found = model.byName.get(name);
  if (found === undefined)
    parts.issues.push({ path: [model.type, name], code: 'unknown-field', message: `${model.type} has no such field` });
  return found;
}

function rename<V>(
  parts: ChangeParts,
  model: EntityModel,
  of: Readonly<Record<string, V>> | undefined,
): Record<string, V> | null {
  if (of === undefined) return null;
  const entries = Object.entries(of).map(([name, value]) => [column(parts, model, name)?.wire ?? name, value] as const);
  return entries.length === 0 ? null : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function rulesOf(
  model: EntityModel,
  wires: readonly string[],
): { readonly rules?: Readonly<Record<string, MergeRule>> } {
  const rules: [string, MergeRule][] = [];
  for (const wire of wires) {
    const rule = model.byWire.get(wire)?.data.onClash;
    if (rule !== undefined && rule !== 'ask') rules.push([wire, rule]);
  }
  return rules.length === 0 ? {} : { rules: Object.fromEntries(rules.sort(([a], [b]) => (a < b ? -1 : 1))) };
}

function restoredFields(parts: ChangeParts, model: EntityModel): JsonObject {
  const { change, entity, store, now } = parts;
  if (now !== undefined)
    stop('invalid-change', {
      issues: [{ path: [change.entity, change.id], code: 'wrong-type', message: 'it is not deleted' }],
    });
  if (change.do === 'restore' && change.fields !== undefined) return wired(parts, model, change.fields);
  if (entity.confirmed.state !== undefined) return entity.confirmed.state.fields;
  // What a log deleted under the name of a local type was never this device's.
  if (model.isLocal) return stop('not-found', { entity: change.entity, id: change.id });
  const row = store.database
    .prepare('SELECT fields FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
    .get(parts.log, change.entity, change.id);
  if (typeof row?.['fields'] !== 'string') return stop('not-found', { entity: change.entity, id: change.id });
  return JSON.parse(row['fields']) as JsonObject;
}

// ── ranks (SC10) ────────────────────────────────────────────────────────────────────────────────────────────────────

function placed(
  parts: ChangeParts,
  model: EntityModel,
  places: Readonly<Record<string, JsonObject>> | undefined,
): Record<string, Json> {
  const { store, log, touched } = parts;
  const presentIn = (field: ColumnModel) => (id: string) => {
    const { fields } = touched.get(`${model.type} ${id}`)?.now ?? store.tableOf(model.type).read(log, id)?.state ?? {};
    return ownValue(fields, field.wire) as string | undefined;
  };
  const ranks: Record<string, Json> = {};
  for (const [name, place] of Object.entries(places ?? {})) {
    const field = column(parts, model, name);
    if (field !== undefined)
      ranks[name] = parts.ranks.make({ model, field, id: parts.change.id, place, present: presentIn(field) });
  }
  return ranks;
}

// ── refs (SC9) ──────────────────────────────────────────────────────────────────────────────────────────────────────

interface Ref {
  readonly to: string;
  readonly id: string;
  readonly isRequired: boolean;
}

function refsOf(model: EntityModel, written: JsonObject): readonly Ref[] {
  const refs: Ref[] = [];
  for (const wire in written) {
    const data = model.byWire.get(wire)?.data;
    const value = written[wire];
    if (data?.kind === 'ref' && data.to !== undefined && typeof value === 'string')
      refs.push({ to: data.to, id: value, isRequired: data.optional !== true });
  }
  return refs;
}

/** The action that creates an entity which the log does not know yet. */
function creatorOf({ entities, log, store }: ChangeParts, type: string, id: string): readonly string[] {
  const { base, confirmed } = entities.get({ log, type, id });
  if (base === undefined || confirmed.state !== undefined) return [];
  const seq = base.pending[0];
  const row =
    seq === undefined
      ? undefined
      : store.database.prepare('SELECT action_id FROM main.hf_outbox WHERE seq = ?').get(seq);
  return row === undefined ? [] : [row['action_id'] as string];
}

/** Those who refer to a deleted entity, as their `onDelete` says. The author's replica does it, in the same commit. */
function followers({ store, log, change, names, touched }: ChangeParts): readonly RecordedChange[] {
  const follow: RecordedChange[] = [];
  for (const { model } of store.tables.values()) {
    for (const field of model?.columns ?? []) {
      if (model === null || model.isHidden === true || field.data.to !== change.entity || field.data.kind !== 'ref')
        continue;
      const { onDelete } = field.data;
      if (onDelete === undefined || onDelete === 'keep' || !model.byName.has(field.name)) continue;
      const rows = store.database
        .prepare(`SELECT _id FROM main.${quoted(model.type)} WHERE ${quoted(field.wire)} = ? AND _log = ?`)
        .all(change.id, log);
      const referring = new Set(rows.map((row) => row['_id'] as string));
      for (const { entity, now } of touched.values()) {
        if (entity.key.type !== model.type) continue;
        if (ownValue(now?.fields, field.wire) === change.id) referring.add(entity.key.id);
        else referring.delete(entity.key.id);
      }
      const name = names === 'wire' ? field.wire : field.name;
      for (const id of referring)
        if (onDelete === 'clear') follow.push({ do: 'update', entity: model.type, id, unset: [name] });
        else follow.push({ do: 'delete', entity: model.type, id });
    }
  }
  return follow;
}
