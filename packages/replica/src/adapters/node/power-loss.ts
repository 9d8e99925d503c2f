import { statSync } from 'node:fs';
import { uptime } from 'node:os';

/**
 * F10: the file has a journal that was written to before this machine started, so that it was open when the machine went
 * down. Of a process that only died the system has kept every write. To be asked before the file is opened.
 *
 * `startedAtMs`: wall time, as the journal's time is; a clock that was set in between makes an opening longer, or leaves
 * damage to be found when it is met.
 */
export function isAfterPowerLoss(file: string, startedAtMs: number = Date.now() - uptime() * 1_000): boolean {
  const journal = statSync(`${file}-wal`, { throwIfNoEntry: false });
  return journal !== undefined && journal.size > 0 && journal.mtimeMs < startedAtMs;
}
