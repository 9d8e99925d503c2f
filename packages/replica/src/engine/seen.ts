import { type Json, ownValue, sameValue } from '@holdfast/core';
import type { CommitParts } from './commit.ts';
import { stop } from './fault-error.ts';
import { isOn, type LocalEntities, type LocalEntity } from './local.ts';
import type { CommitRequest } from './replica-state.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { ColumnModel } from './schema-model.ts';

/**
 * CM2: a field under `ask` that reads otherwise now than its author saw, and is not equal to what is written, refuses the
 * commit with all three values. The page's own commits since the row was drawn do not count.
 */
export function checkSeen({ store, entities, names = 'code' }: CommitParts, request: CommitRequest): void {
  const changed = request.seen.flatMap((seen) => {
    const entity = entities.get({ log: request.log, type: seen.entity, id: seen.id });
    const { model } = entity.table;
    const field = names === 'wire' ? model?.byWire.get(seen.field) : model?.byName.get(seen.field);
    if (field === undefined || (field.data.onClash ?? 'ask') !== 'ask') return [];
    const now = shownNow(entity, field);
    const mine = writtenIn(request, seen.entity, seen.id, seen.field);
    if (sameValue(now, seen.value) || sameValue(now, mine) || isOwn(store, entities, entity, field, request.own))
      return [];
    return [{ entity: seen.entity, id: seen.id, field: seen.field, seen: seen.value, now, mine }];
  });
  if (changed.length > 0) stop('changed-meanwhile', { fields: changed });
}

/** What the row shows of a field: null for unset, the default where one is shown. */
function shownNow({ local }: LocalEntity, field: ColumnModel): Json {
  const value = ownValue(local?.fields, field.wire) ?? (local === undefined ? undefined : field.fallback);
  if (field.data.kind === 'oneOf' && value !== undefined && field.data.values?.includes(value as string) !== true)
    return field.data.otherwise ?? null;
  return value ?? null;
}

function writtenIn({ changes }: CommitRequest, type: string, id: string, field: string): Json {
  const change = changes.findLast((one) => one.entity === type && one.id === id && one.do === 'update');
  return change?.do === 'update' ? (ownValue(change.set, field) ?? null) : null;
}

function isOwn(
  store: ReplicaStore,
  entities: LocalEntities,
  entity: LocalEntity,
  field: ColumnModel,
  own: readonly string[] = [],
): boolean {
  if (own.length === 0) return false;
  const seq = entity.base?.pending.findLast((one) =>
    entities
      .draftsOf(one)
      .some(
        (draft) =>
          isOn(draft, entity.key) && draft.change.op === 'update' && Object.hasOwn(draft.change.set ?? {}, field.wire),
      ),
  );
  const row =
    seq === undefined
      ? undefined
      : store.database.prepare('SELECT action_id FROM main.hf_outbox WHERE seq = ?').get(seq);
  return row !== undefined && own.includes(row['action_id'] as string);
}
