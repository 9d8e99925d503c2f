import type { Clock, Database } from '@holdfast/core';
import type { Deadlines } from './coordinator-deadlines.ts';
import { WHOLE_WORKSPACE } from './coordinator-permit.ts';

/** What the functions of the coordinator work with. */
export interface CoordinatorParts {
  readonly database: Database;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Ids of new permits, random: an attempt is never taken for an earlier one of the same name (F162). */
  readonly newId: () => string;
  /** Of this run of the host. */
  readonly hostInstance: string;
  /** Followed and not paused. Asked inside the transaction that acts. */
  readonly isActive: (log: string) => boolean;
  readonly deadlines: Deadlines;
}

export const isLogActive = (parts: CoordinatorParts, log: string): boolean =>
  log === WHOLE_WORKSPACE || parts.isActive(log);

/** Now, as stored: for people, never compared with a deadline. */
export const instantOf = (parts: CoordinatorParts, afterMs = 0): string =>
  new Date(parts.clock.now() + afterMs).toISOString();
