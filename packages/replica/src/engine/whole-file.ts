import type { Database } from '@holdfast/core';
import { DatabaseFault } from './database-fault.ts';

/**
 * SQLite's own look at every page of the file (`PRAGMA quick_check`): the first thing that is wrong, or null. It reads the
 * whole file, so that it is no part of every opening.
 */
export function damageOf(database: Database): string | null {
  try {
    const verdict = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0];
    return verdict === 'ok' ? null : String(verdict);
  } catch (cause) {
    if (!(cause instanceof DatabaseFault) || cause.code !== 'damaged') throw cause;
    return cause.message;
  }
}
