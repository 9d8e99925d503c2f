import { LIMITS } from '@holdfast/core';
import { forgetDrafts } from './kept-drafts.ts';
import type { ReplicaStore } from './replica-store.ts';

/**
 * What a replica may forget: history far below the head, and below the lowest base that pending work still needs; outcomes
 * after 7 days and 10,000 batches. Runs after start and hourly, in bounded batches: nobody who opens a replica waits for it.
 * Returns whether there is more.
 */
const BATCH = 500;

export function prune(store: ReplicaStore): boolean {
  const { database } = store;
  let hasMore = false;
  for (const { log, head } of database.prepare('SELECT log, head FROM main.hf_log').all() as readonly {
    readonly log: string;
    readonly head: number;
  }[]) {
    const waits = database.prepare('SELECT 1 FROM main.hf_outbox WHERE log = ? LIMIT 1').get(log) !== undefined;
    // Unsent work may need any event since its base; history waits until the outbox is empty.
    if (waits) continue;
    const { changes } = database
      .prepare(
        'DELETE FROM main.hf_event WHERE log = ? AND version IN (SELECT version FROM main.hf_event WHERE log = ? AND version <= ? ORDER BY version LIMIT ?)',
      )
      .run(log, log, head - LIMITS.historyEventsKept, BATCH);
    hasMore ||= changes === BATCH;
    forgetDrafts(store, log, { upTo: head - LIMITS.historyEventsKept });
    database.prepare('DELETE FROM main.hf_seen WHERE log = ?').run(log);
    database.prepare('DELETE FROM main.hf_deleted WHERE log = ? AND at <= ?').run(log, head - LIMITS.historyEventsKept);
  }
  database
    .prepare(
      'DELETE FROM main.hf_outcome WHERE at < ? AND action_id NOT IN (SELECT action_id FROM main.hf_outcome ORDER BY at DESC LIMIT ?)',
    )
    .run(store.nowMs() - LIMITS.outcomesKeptMs, LIMITS.outcomesKept);
  return hasMore;
}
