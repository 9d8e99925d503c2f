import { canonical, type EventDraft, type Json } from '@holdfast/core';
import type { OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';

/**
 * Own work that the ledger acknowledged, and whose events never came here, because the state came whole above them. A
 * ledger that loses it again (HL1) can be offered it only if its drafts are kept: as rows of `hf_event` under a log name
 * of their own, as far back as history is kept.
 */
export const keptLog = (log: string): string => `=${log}`;
const doneLog = (log: string, actionId: string): string => `${keptLog(log)}/${actionId}`;

/** Every log name that begins with this one and a slash; a log's own name has none. "0" is the next character. */
const BELOW = 'log > ? AND log < ?';
const namesBelow = (name: string): readonly [string, string] => [`${name}/`, `${name}0`];

/** `first`: the version of its first event. Nothing where its events are here. */
export function keepDrafts(store: ReplicaStore, row: OutboxRow, first: number): void {
  const isHere = store.database
    .prepare('SELECT 1 FROM main.hf_event WHERE log = ? AND version = ? AND action_id = ?')
    .get(row.log, first, row.actionId);
  if (isHere !== undefined) return;
  row.drafts.forEach((draft, at) => {
    insert(store, row, { draft, log: keptLog(row.log), version: first + at });
  });
}

/**
 * Own work that others had done already, so that it was closed without being sent. Should the ledger lose what did it
 * (HL1), it is to be done again. Each draft under a log name of its own, since several may be done at one version.
 *
 * `done`: the version at which the log had all of it.
 */
export function keepDone(store: ReplicaStore, row: OutboxRow, done: number): void {
  row.drafts.forEach((draft, at) => {
    insert(store, row, {
      draft,
      log: `${doneLog(row.log, row.actionId)}/${String(at).padStart(4, '0')}`,
      version: done,
    });
  });
}

/** The version at which others had done it; undefined for any other work. */
export function doneAt({ database }: ReplicaStore, log: string, actionId: string): number | undefined {
  const names = namesBelow(doneLog(log, actionId));
  return database.prepare(`SELECT version FROM main.hf_event WHERE ${BELOW} LIMIT 1`).get(...names)?.['version'] as
    | number
    | undefined;
}

/** It is sent after all. */
export function forgetDone({ database }: ReplicaStore, log: string, actionId: string): void {
  database.prepare(`DELETE FROM main.hf_event WHERE ${BELOW}`).run(...namesBelow(doneLog(log, actionId)));
}

/** Own drafts above a version whose events are not here; `isDone`: others had done it, under no request of ours. */
export interface KeptDraft {
  readonly actionId: string;
  readonly requestId: string;
  readonly draftText: string;
  readonly isDone: boolean;
}

export function ownDraftsAbove({ database }: ReplicaStore, log: string, version: number): readonly KeptDraft[] {
  const kept = keptLog(log);
  return database
    .prepare(
      `SELECT log, action_id, draft, envelope FROM main.hf_event WHERE (log IN (?, ?) OR (${BELOW})) AND version > ? AND own = 1 AND draft IS NOT NULL ORDER BY version, log`,
    )
    .all(log, kept, ...namesBelow(kept), version)
    .map((row) => ({
      actionId: row['action_id'] as string,
      requestId: (JSON.parse(row['envelope'] as string) as { readonly requestId: string }).requestId,
      draftText: row['draft'] as string,
      isDone: row['log'] !== log && row['log'] !== kept,
    }));
}

function insert(
  { database }: ReplicaStore,
  row: OutboxRow,
  at: { readonly draft: EventDraft; readonly log: string; readonly version: number },
): void {
  const { draft, log, version } = at;
  database
    .prepare(
      "INSERT OR REPLACE INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain) VALUES (?, ?, ?, ?, ?, 0, ?, 1, ?, NULL, ?, '')",
    )
    .run(
      log,
      version,
      draft.id,
      draft.entityType,
      draft.entityId,
      row.actionId,
      canonical(draft as unknown as Json),
      JSON.stringify({ requestId: row.requestId }),
    );
}

/** They are in the outbox again, or too far back. */
export function forgetDrafts(
  store: ReplicaStore,
  log: string,
  versions: { readonly above: number } | { readonly upTo: number },
): void {
  // What others have done stays, until it is sent after all: the history that did it may be found again.
  if ('above' in versions)
    store.database.prepare('DELETE FROM main.hf_event WHERE log = ? AND version > ?').run(keptLog(log), versions.above);
  else
    store.database
      .prepare(`DELETE FROM main.hf_event WHERE (log = ? OR (${BELOW})) AND version <= ?`)
      .run(keptLog(log), ...namesBelow(keptLog(log)), versions.upTo);
}
