import type { Envelope, ErasedEvent, EventDraft, SqlRow, StoredEvent } from '@holdfast/core';
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
      const { event, envelope } = readStoredEvent(row);
      return event ?? ({ ...envelope, leaf: row['leaf'] as string, erased: true } satisfies ErasedEvent);
    });
}

/** A row of `hf_event`; the event is null where its bytes were erased. */
export function readStoredEvent(row: SqlRow): { readonly event: StoredEvent | null; readonly envelope: Envelope } {
  const envelope = JSON.parse(row['envelope'] as string) as Envelope;
  const draft = row['draft'];
  return {
    envelope,
    event: draft === null ? null : { ...(JSON.parse(draft as string) as EventDraft), ...envelope },
  };
}
