import { canonical, type Json, type JsonObject, ownValue, type RecordedChange, sameValue } from '@holdfast/core';
import type { LocalEntity } from './local.ts';
import type { ColumnModel } from './schema-model.ts';
import type { HeldState } from './tables.ts';

/** The changes that take an entity from `after` back to `before`, for undo (CM7): counters and sets by what moved. */
export function inverseOf(
  entity: LocalEntity,
  before: HeldState | undefined,
  after: HeldState | undefined,
): readonly RecordedChange[] {
  const { model } = entity.table;
  const { type, id } = entity.key;
  if (model === null || before === after) return [];
  if (before === undefined) return after === undefined ? [] : [{ do: 'delete', entity: type, id }];
  if (after === undefined) return [{ do: 'restore', entity: type, id, fields: inCode(before.fields, model.byWire) }];
  const set: Record<string, Json> = {};
  const unset: string[] = [];
  const inc: Record<string, number> = {};
  const add: Record<string, readonly Json[]> = {};
  const remove: Record<string, readonly Json[]> = {};
  for (const column of model.columns) {
    const was = ownValue(before.fields, column.wire);
    const is = ownValue(after.fields, column.wire);
    if (sameValue(was ?? null, is ?? null) || column.data.kind === 'serial') continue;
    if (column.data.kind === 'counter') inc[column.name] = Number(was ?? 0) - Number(is ?? 0);
    else if (column.data.kind === 'setOf') {
      const [gone, come] = [without(was, is), without(is, was)];
      if (gone.length > 0) add[column.name] = gone;
      if (come.length > 0) remove[column.name] = come;
    } else if (was === undefined) unset.push(column.name);
    else set[column.name] = was;
  }
  const parts = { set, inc, add, remove };
  const kept = Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));
  if (Object.keys(kept).length === 0 && unset.length === 0) return [];
  return [{ do: 'update', entity: type, id, ...kept, ...(unset.length === 0 ? {} : { unset }) }];
}

/** What the action left in the fields that its inverse sets: undo is refused where somebody changed them since. */
export function seenAfter(inverse: readonly RecordedChange[], read: (type: string, id: string) => LocalEntity) {
  return inverse.flatMap((change) => {
    if (change.do !== 'update') return [];
    const { table, local } = read(change.entity, change.id);
    return [...Object.keys(change.set ?? {}), ...(change.unset ?? [])].map((field) => {
      const wire = table.model?.byName.get(field)?.wire ?? field;
      return { entity: change.entity, id: change.id, field, value: ownValue(local?.fields, wire) ?? null };
    });
  });
}

const inCode = (fields: JsonObject, byWire: ReadonlyMap<string, ColumnModel>): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([wire, value]) => {
      const column = byWire.get(wire);
      return column === undefined || column.data.kind === 'serial' ? [] : [[column.name, value] as const];
    }),
  );

function without(list: Json | undefined, other: Json | undefined): readonly Json[] {
  const known = new Set(Array.isArray(other) ? (other as readonly Json[]).map(canonical) : []);
  return Array.isArray(list) ? (list as readonly Json[]).filter((element) => !known.has(canonical(element))) : [];
}
