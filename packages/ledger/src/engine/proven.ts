import type { Clock, Logger } from '@holdfast/core';
import type { LogRef } from './engine.ts';
import { loggedError } from './logged-error.ts';
import { entityKey, type LedgerStore } from './store-port.ts';

/** Acknowledgements are written together, not each: losing the last ones loses nothing that a handshake does not tell. */
const FLUSH_MS = 10_000;

/** RT7: per replica and log the highest version that it said it holds, on its way to the store. Bounded by the sockets. */
export interface Proven {
  note(ref: LogRef, replica: string, version: number): void;
  flush(): Promise<void>;
}

export function createProven({
  store,
  clock,
  logger,
}: {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly logger: Logger;
}): Proven {
  let logs = new Map<string, { readonly ref: LogRef; readonly versions: Map<string, number> }>();
  let cancel: (() => void) | null = null;

  const flush = async (): Promise<void> => {
    cancel?.();
    cancel = null;
    const noted = logs;
    logs = new Map();
    for (const { ref, versions } of noted.values())
      try {
        await store.recordProven(
          ref,
          [...versions].map(([replica, version]) => ({ replica, version })),
        );
      } catch (cause) {
        logger('warn', 'What replicas hold could not be recorded.', {
          ...ref,
          error: loggedError(cause),
        });
      }
  };

  return {
    note: (ref, replica, version) => {
      const key = entityKey(ref.workspace, ref.log);
      let noted = logs.get(key);
      if (noted === undefined) {
        noted = { ref, versions: new Map() };
        logs.set(key, noted);
      }
      noted.versions.set(replica, Math.max(version, noted.versions.get(replica) ?? 0));
      cancel ??= clock.timer(FLUSH_MS, () => void flush());
    },
    flush,
  };
}
