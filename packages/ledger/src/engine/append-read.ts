import { RUN_TIME_TYPE } from '@holdfast/core';
import type { ReadPush } from './push-request.ts';
import type { SerialFields } from './serials.ts';
import { type AppendRead, type EntityRead, entityKey } from './store-port.ts';

/**
 * How many events after its base are read of one entity. More than `theirsExaminedMax`, because the author's own chain is
 * among them; where that is not enough, the operation is a `version-conflict`, and its replica judges it on a newer base.
 */
const ENTITY_EVENTS_MAX = 8_000;

/** Everything that judging these pushes can ask of the store, gathered without looking at any log. */
export function appendReadOf(pushes: readonly ReadPush[], serials: SerialFields): AppendRead {
  const versions = new Set<number>();
  const replicas = new Set<string>();
  const requestIds = new Set<string>();
  const actionIds = new Set<string>();
  const needs = new Set<string>();
  const eventIds = new Set<string>();
  const types = new Set<string>();
  const entities = new Map<string, EntityRead>();
  let countsTypes = false;

  const want = (type: string, id: string, after: number | null): void => {
    const key = entityKey(type, id);
    const known = entities.get(key);
    if (known !== undefined && (after === null || (known.after !== null && known.after <= after))) return;
    entities.set(key, { type, id, after, theirsMax: ENTITY_EVENTS_MAX });
  };

  for (const { position, replica, operations } of pushes) {
    if (position.version > 0) versions.add(position.version);
    replicas.add(replica.id);
    for (const one of operations) {
      if (!one.isRead) {
        requestIds.add(one.requestId);
        continue;
      }
      const { operation } = one;
      requestIds.add(operation.requestId);
      actionIds.add(operation.actionId);
      for (const actionId of operation.needs ?? []) needs.add(actionId);
      for (const [type, id] of operation.requires ?? []) want(type, id, null);
      for (const { id, prior, entityType, entityId, base } of operation.events) {
        eventIds.add(id);
        if (prior !== undefined) eventIds.add(prior);
        want(entityType, entityId, base);
        if (entityType === RUN_TIME_TYPE) countsTypes = true;
        else if (!serials.knows(entityType)) types.add(entityType);
      }
    }
  }
  return {
    versions: [...versions],
    replicas: [...replicas],
    requestIds: [...requestIds],
    actionIds: [...actionIds],
    needs: [...needs],
    eventIds: [...eventIds],
    types: [...types],
    countsTypes,
    entities: [...entities.values()],
  };
}
