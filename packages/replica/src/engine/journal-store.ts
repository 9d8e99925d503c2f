import { type JsonObject, LIMITS } from '@holdfast/core';
import type { ReplicaState } from './replica-state.ts';
import type { ReplicaStore } from './replica-store.ts';

/** The journal: what sync did, without payloads. An entry that cannot be written never disturbs what it tells of. */
export function createJournal(store: ReplicaStore): ReplicaState['journal'] {
  const { database } = store;
  return {
    write: (kind, facts) => {
      try {
        store.write(() => {
          const { lastInsertRowid } = database
            .prepare('INSERT INTO main.hf_journal (at, kind, facts) VALUES (?, ?, ?)')
            .run(store.nowIso(), kind, JSON.stringify(facts));
          // Pruned once in a while, so that an entry costs one insert.
          if (lastInsertRowid % 100 === 0)
            database
              .prepare('DELETE FROM main.hf_journal WHERE seq <= ?')
              .run(lastInsertRowid - LIMITS.journalEntriesMax);
        });
      } catch {
        // A full disk or an outranked host is told by the work itself.
      }
    },
    page: (before) =>
      database
        .prepare('SELECT seq, at, kind, facts FROM main.hf_journal WHERE seq < ? ORDER BY seq DESC LIMIT ?')
        .all(before ?? Number.MAX_SAFE_INTEGER, LIMITS.journalPageMax)
        .map((row) => ({
          seq: row['seq'] as number,
          at: row['at'] as string,
          kind: row['kind'] as string,
          facts: JSON.parse(row['facts'] as string) as JsonObject,
        })),
  };
}
