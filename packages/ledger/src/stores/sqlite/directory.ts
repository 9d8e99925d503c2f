import { chmodSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { bytesToHex, type Digest } from '@holdfast/core';
import { StoreFault } from '../../engine/store-port.ts';
import { readTimeline } from './timeline.ts';
import { timelinePathOf } from './workspace-file.ts';

/** The data folder: one file per workspace, named by a hash, so that no name of a user is ever a path (F187). */
export const fileOf = (dir: string, workspace: string, digest: Digest): string =>
  join(dir, `w-${bytesToHex(digest.sha256(workspace)).slice(0, 32)}.db`);

export function prepareDirectory(dir: string): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  chmodSync(dir, 0o700);
}

export const workspaceFiles = (dir: string): readonly string[] =>
  readdirSync(dir)
    .filter((name) => /^w-[0-9a-f]{32}\.db$/.test(name))
    .map((name) => join(dir, name));

/** Timelines whose file is gone: somebody removed it between runs. */
export const orphanedTimelines = (dir: string): readonly { readonly workspace: string; readonly file: string }[] =>
  readdirSync(dir)
    .filter((name) => /^w-[0-9a-f]{32}\.timeline$/.test(name))
    .map((name) => join(dir, name.replace(/timeline$/, 'db')))
    .filter((file) => !existsSync(file))
    .flatMap((file) => {
      const timeline = readTimeline(timelinePathOf(file));
      return timeline === null ? [] : [{ workspace: timeline.workspace, file }];
    });

/**
 * Holds the folder for the life of this process: two ledgers on one log would number twice (F94). The lock is SQLite's
 * own exclusive lock on a file of its own, which the system drops when the process ends, however it ends.
 */
export function lockDirectory(dir: string): { release(): void } {
  const db = new DatabaseSync(join(dir, 'ledger.lock'), { timeout: 0 });
  try {
    db.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (cause) {
    db.close();
    throw new StoreFault('busy', { isRolledBack: true, cause });
  }
  chmodSync(join(dir, 'ledger.lock'), 0o600);
  return { release: () => db.close() };
}
