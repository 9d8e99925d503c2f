import { canonical, type Json } from '@holdfast/core';
import type { OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';

/**
 * Own work that the ledger acknowledged, and whose events never came here, because the state came whole above them. A
 * ledger that loses it again (HL1) can be offered it only if its drafts are kept: as rows of `hf_event` under a log name
 * of their own, as far back as history is kept.
 */
export const keptLog = (log: string): string => `=${log}`;

/** `first`: the version of its first event. Nothing where its events are here. */
export function keepDrafts(store: ReplicaStore, row: OutboxRow, first: number): void {
  const { database } = store;
  const isHere = database
    .prepare('SELECT 1 FROM main.hf_event WHERE log = ? AND version = ? AND action_id = ?')
    .get(row.log, first, row.actionId);
  if (isHere !== undefined) return;
  const insert = database.prepare(
    "INSERT OR REPLACE INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain) VALUES (?, ?, ?, ?, ?, 0, ?, 1, ?, NULL, ?, '')",
  );
  row.drafts.forEach((draft, at) => {
    insert.run(
      keptLog(row.log),
      first + at,
      draft.id,
      draft.entityType,
      draft.entityId,
      row.actionId,
      canonical(draft as unknown as Json),
      JSON.stringify({ requestId: row.requestId }),
    );
  });
}

/** They are in the outbox again, or too far back. */
export function forgetDrafts(
  store: ReplicaStore,
  log: string,
  versions: { readonly above: number } | { readonly upTo: number },
): void {
  const isAbove = 'above' in versions;
  store.database
    .prepare(`DELETE FROM main.hf_event WHERE log = ? AND version ${isAbove ? '>' : '<='} ?`)
    .run(keptLog(log), isAbove ? versions.above : versions.upTo);
}
