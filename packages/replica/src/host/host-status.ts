import type { SyncStatus } from '../engine/sync/status.ts';
import type { Status } from '../link/status.ts';

/** Where a host runs, which the sync engine does not know. */
export interface HostPlace {
  readonly storage: Status['storage'];
  readonly host: Status['host'];
}

export const publicStatus = (status: SyncStatus, place: HostPlace): Status => ({
  phase: status.phase,
  ...(status.reason === null ? {} : { reason: status.reason.code }),
  isPaused: status.isPaused,
  activity: status.activity,
  unsent: status.unsent,
  attention: status.attention,
  ...place,
  ...(status.lastSyncedAt === null ? {} : { lastSyncedAt: status.lastSyncedAt }),
  ...(status.retryInMs === null ? {} : { retryInMs: status.retryInMs }),
  logs: status.logs,
});
