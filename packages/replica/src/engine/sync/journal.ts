import type { JsonObject, Logger } from '@holdfast/core';
import type { ReplicaState } from '../replica-state.ts';
import type { SyncJournal } from './parts.ts';

/**
 * What sync did, for people who ask later (6.1): kinds, counts, versions, ids and fault codes, never payloads. Written in
 * the transaction that did it where there is one.
 */
export function createJournal(state: ReplicaState, logger: Logger): SyncJournal {
  return {
    write: (kind: string, facts: JsonObject) => {
      try {
        state.journal.write(kind, facts);
      } catch (error) {
        logger('warn', 'A journal entry could not be written.', { kind, error: messageOf(error) });
      }
    },
  };
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
