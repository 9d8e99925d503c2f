import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '@holdfast/core';

/**
 * One host per replica file, for the host's life.
 *
 * Owns `<file>.lock`, an empty SQLite file whose write lock it holds: a lock of the operating system, which ends with the
 * process however it ends, so that nothing stale is ever left. `<file>.holder` says who it is, for people only. The lock
 * is for liveness; what counts is decided by the generation in the file itself, which a forced take-over raises (OW2).
 */
export interface FileLock {
  /** Idempotent. */
  release(): void;
}

export interface LockHolder {
  readonly pid: number;
  readonly since: string;
  readonly what?: string;
}

export type LockAttempt =
  | { readonly ok: true; readonly lock: FileLock }
  | { readonly ok: false; readonly holder: LockHolder | null };

const HOLD_MS = 2 ** 31 - 1;

export function lockFile(file: string, holder: LockHolder): LockAttempt {
  const lockPath = `${file}.lock`;
  const holderPath = `${file}.holder`;
  const connection = new DatabaseSync(lockPath);
  try {
    connection.exec('PRAGMA busy_timeout=0; BEGIN EXCLUSIVE');
  } catch (cause) {
    connection.close();
    const { errcode } = cause as { errcode?: number };
    if (errcode !== undefined && (errcode & 0xff) === 5) return { ok: false, holder: readHolder(holderPath) };
    throw cause;
  }
  writeFileSync(holderPath, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  let isHeld = true;
  // A connection that nobody refers to is collected, and its lock with it: a timer refers to it, and keeps no process.
  const hold = setInterval(() => connection.isOpen, HOLD_MS).unref();
  return {
    ok: true,
    lock: {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        clearInterval(hold);
        // First who, then the lock: whoever comes next writes his own name after this.
        rmSync(holderPath, { force: true });
        connection.close();
      },
    },
  };
}

const RETRY_MS = 1_000;

/**
 * For a forced take-over: the generation fences the other process off at once, and its lock is taken when it has ended. From
 * then on a third process is told who has the file. Looks once a second until then, or until it is released.
 */
export function lockWhenFree(file: string, holder: LockHolder, { timer }: Pick<Clock, 'timer'>): FileLock {
  let lock: FileLock | null = null;
  let cancel = timer(RETRY_MS, look);
  function look(): void {
    lock = lockOrNull(file, holder);
    if (lock === null) cancel = timer(RETRY_MS, look);
  }
  return {
    release: () => {
      cancel();
      lock?.release();
    },
  };
}

/** Null also where the disk fails: the lock is for liveness, and no reason to end a host that works. */
function lockOrNull(file: string, holder: LockHolder): FileLock | null {
  try {
    const attempt = lockFile(file, holder);
    return attempt.ok ? attempt.lock : null;
  } catch {
    return null;
  }
}

function readHolder(path: string): LockHolder | null {
  try {
    const read = JSON.parse(readFileSync(path, 'utf8')) as Partial<LockHolder>;
    return typeof read.pid === 'number' ? { pid: read.pid, since: String(read.since), ...what(read) } : null;
  } catch {
    return null;
  }
}
const what = (read: Partial<LockHolder>) => (typeof read.what === 'string' ? { what: read.what } : {});
