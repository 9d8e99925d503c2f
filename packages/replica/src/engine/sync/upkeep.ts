import { LIMITS } from '@holdfast/core';
import { messageOf } from './journal.ts';
import type { SyncParts } from './parts.ts';

const EVERY_MS = 3_600_000;

/** PM14, and history that nobody needs any more: at start and hourly, in bounded batches, each its own short transaction. Returns what stops it. */
export function startUpkeep(parts: SyncParts): () => void {
  const { clock } = parts.platform;
  let isStopped = false;
  let cancel = () => {};

  const sweep = (rows: number) => {
    if (isStopped) return;
    let hasMore = false;
    try {
      hasMore = parts.write(() => parts.permits.prune());
    } catch (error) {
      parts.logger('warn', 'Old permits could not be pruned.', { error: messageOf(error) });
    }
    try {
      hasMore = parts.write(() => parts.state.prune()) || hasMore;
    } catch (error) {
      parts.logger('warn', 'Old history could not be pruned.', { error: messageOf(error) });
    }
    const done = rows + LIMITS.permitPruneBatch;
    if (hasMore && done < LIMITS.permitPruneSweep) clock.soon(() => sweep(done));
    else cancel = clock.timer(EVERY_MS, () => sweep(0));
  };

  clock.soon(() => sweep(0));
  return () => {
    isStopped = true;
    cancel();
  };
}
