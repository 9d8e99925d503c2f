import type { SessionPhase } from '@holdfast/core';
import type { LogStatus } from '../engine/sync/status.ts';

export type { LogStatus };

/** What stands between this replica and the ledger (P8): it never says more than is known. */
export type Phase = SessionPhase;

export interface Status {
  readonly phase: Phase;
  /** A code of docs/ERRORS.md. */
  readonly reason?: string;
  readonly isPaused: boolean;
  /** What the engine does at the moment; `idle` most of the time. */
  readonly activity: string;
  readonly unsent: number;
  /** Entries on the desk that wait for an answer. */
  readonly attention: number;
  readonly storage: 'durable' | 'evictable' | 'memory';
  readonly host: 'here' | 'another-tab' | 'daemon';
  /** When every log was at the ledger's head last; absent until then. */
  readonly lastSyncedAt?: string;
  /** Milliseconds until the next try; absent where none is waited for. */
  readonly retryInMs?: number;
  readonly logs: readonly LogStatus[];
}
