import type { Envelope, ErasedEvent, EventDraft, StoredEvent } from '@holdfast/core';
import type { ReplicaStore } from './replica-store.ts';

/** The events of one entity that this file keeps, oldest first. */
export function storedEvents(
  store: ReplicaStore,
  log: string,
  type: string,
  id: string,
): readonly (StoredEvent | ErasedEvent)[] {
  return store.database
    .prepare(
      'SELECT draft, leaf, envelope FROM main.hf_event WHERE log = ? AND type = ? AND entity = ? ORDER BY entity_version',
    )
    .all(log, type, id)
    .map((row) => {
      const envelope = JSON.parse(row['envelope'] as string) as Envelope;
      if (row['draft'] === null)
        return { ...envelope, leaf: row['leaf'] as string, erased: true } satisfies ErasedEvent;
      return { ...(JSON.parse(row['draft'] as string) as EventDraft), ...envelope };
    });
}
