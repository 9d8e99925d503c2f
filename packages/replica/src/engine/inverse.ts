import {
  canonical,
  isSet,
  type Json,
  type JsonObject,
  ownValue,
  type RecordedChange,
  RUN_TIME_TYPE,
  type SeenValue,
  sameValue,
} from '@holdfast/core';
import type { LocalEntity } from './local.ts';
import type { EntityModel } from './schema-model.ts';
import type { HeldState } from './tables.ts';

/** The changes, by wire name, that take an entity from `after` back to `before` (CM7): counters and sets by what moved. */
export function inverseOf(
  { key, table }: Pick<LocalEntity, 'key' | 'table'>,
  before: HeldState | undefined,
  after: HeldState | undefined,
): readonly RecordedChange[] {
  const about = { entity: key.type, id: key.id };
  // A type stays: entities of others may be of it by now (SC4).
  if (key.type === RUN_TIME_TYPE) return [];
  if (before === after || (before === undefined && after === undefined)) return [];
  if (before === undefined) return [{ do: 'delete', ...about }];
  if (after === undefined) return [{ do: 'restore', ...about, fields: settable(before.fields, table.model) }];
  const set: Record<string, Json> = {};
  const unset: string[] = [];
  const inc: Record<string, number> = {};
  const add: Record<string, readonly Json[]> = {};
  const remove: Record<string, readonly Json[]> = {};
  for (const wire of new Set([...Object.keys(before.fields), ...Object.keys(after.fields)])) {
    const was = ownValue(before.fields, wire);
    const is = ownValue(after.fields, wire);
    const kind = table.model?.byWire.get(wire)?.data.kind;
    if (sameValue(was, is) || kind === 'serial') continue;
    if (kind === 'counter' && isCount(was ?? 0) && isCount(is ?? 0)) inc[wire] = Number(was ?? 0) - Number(is ?? 0);
    else if (kind === 'setOf' && isSet(was ?? []) && isSet(is ?? [])) {
      const [gone, come] = [without(was, is), without(is, was)];
      if (gone.length > 0) add[wire] = gone;
      if (come.length > 0) remove[wire] = come;
    } else if (was === undefined) unset.push(wire);
    else set[wire] = was;
  }
  const parts = { set, inc, add, remove };
  const kept = Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));
  if (Object.keys(kept).length === 0 && unset.length === 0) return [];
  return [{ do: 'update', ...about, ...kept, ...(unset.length === 0 ? {} : { unset }) }];
}

/** What the action left in the fields that its inverse takes back: undo is refused where somebody changed them since. */
export function seenAfter(
  inverse: readonly RecordedChange[],
  read: (type: string, id: string) => Pick<LocalEntity, 'local'>,
): readonly SeenValue[] {
  return inverse.flatMap((change) => {
    const { local } = read(change.entity, change.id);
    const fields =
      change.do === 'update'
        ? [...Object.keys(change.set ?? {}), ...(change.unset ?? [])]
        : change.do === 'delete'
          ? Object.keys(local?.fields ?? {})
          : [];
    return fields.map((field) => ({
      entity: change.entity,
      id: change.id,
      field,
      value: ownValue(local?.fields, field) ?? null,
    }));
  });
}

/**
 * What of an inverse is left to say where others' work stays as it is: fields that read otherwise than `seen`, what the action
 * left in them, are left out. A deletion takes whole what nobody else touched, and nothing of what somebody did.
 */
export function withoutChanged(
  change: RecordedChange,
  seen: readonly SeenValue[],
  entity: Pick<LocalEntity, 'local' | 'table'>,
): readonly RecordedChange[] {
  if (change.do === 'restore') return [change];
  if (change.do === 'delete' && addedSince(change, seen, entity).length > 0) return [];
  const fields = entity.local?.fields;
  const changed = new Set(
    seen
      .filter((one) => one.entity === change.entity && one.id === change.id)
      .filter(({ field, value }) => !sameValue(ownValue(fields, field) ?? null, value))
      .map(({ field }) => field),
  );
  if (changed.size === 0) return [change];
  return change.do === 'update' ? withoutFields(change, changed) : [];
}

/** Fields that somebody has given to an entity since the action that made it; a deletion would take them, too. */
export function addedSince(
  { entity: type, id }: Pick<RecordedChange, 'entity' | 'id'>,
  seen: readonly SeenValue[],
  { local, table }: Pick<LocalEntity, 'local' | 'table'>,
): readonly string[] {
  const known = new Set(seen.filter((one) => one.entity === type && one.id === id).map(({ field }) => field));
  return Object.entries(local?.fields ?? {})
    .filter(([wire, value]) => !known.has(wire) && !isNobodys(value, table.model?.byWire.get(wire)?.data.kind))
    .map(([wire]) => wire);
}

/** What the ledger numbered, and a count or a list from which all was taken back. */
const isNobodys = (value: Json, kind: string | undefined): boolean =>
  kind === 'serial' ||
  (kind === 'counter' && value === 0) ||
  (kind === 'setOf' && Array.isArray(value) && value.length === 0);

function withoutFields(
  change: Extract<RecordedChange, { do: 'update' }>,
  fields: ReadonlySet<string>,
): readonly RecordedChange[] {
  const set = Object.fromEntries(Object.entries(change.set ?? {}).filter(([field]) => !fields.has(field)));
  const unset = (change.unset ?? []).filter((field) => !fields.has(field));
  const { set: _set, unset: _unset, ...rest } = change;
  const left = {
    ...rest,
    ...(Object.keys(set).length === 0 ? {} : { set }),
    ...(unset.length === 0 ? {} : { unset }),
  };
  const isEmpty = [left.set, left.unset, left.inc, left.add, left.remove].every((part) => part === undefined);
  return isEmpty ? [] : [left];
}

/** Numbers that the ledger gave are not written by anybody (EV7). */
const settable = (fields: JsonObject, model: EntityModel | null): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([wire]) => model?.byWire.get(wire)?.data.kind !== 'serial'));

const isCount = (value: Json): boolean => Number.isSafeInteger(value);

function without(list: Json | undefined, other: Json | undefined): readonly Json[] {
  const known = new Set(Array.isArray(other) ? (other as readonly Json[]).map(canonical) : []);
  return Array.isArray(list) ? (list as readonly Json[]).filter((element) => !known.has(canonical(element))) : [];
}
