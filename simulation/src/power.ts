import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import type { Database } from '@holdfast/core';
import { cutAt, frameEnds, type Image, readImage } from './crash-kit/wal.ts';

/** A place in a file's journal. Two journals of one file, before and after it began anew, differ in their salt. */
export interface JournalMark {
  readonly salt: string;
  readonly bytes: number;
}

const FRAME_HEADER = 24;
const WAL_HEADER = 32;

/** Where the journal ends now: what was committed is at or below it. */
export function markOf(file: string): JournalMark {
  const { salt, bytes } = readIndex(file);
  return { salt, bytes };
}

/**
 * From the index beside the journal, whose layout is in the SQLite documentation, "WAL-mode File Format", 2.3.1: `szPage` at
 * 14, `mxFrame` at 16, the salts at 32, `nBackfill` at 96, `nBackfillAttempted` at 128. `checkpointed`: bytes that a
 * checkpoint has begun to copy into the file, which it synced first.
 */
function readIndex(file: string): JournalMark & { readonly checkpointed: number } {
  const index = Buffer.alloc(136);
  if (existsSync(`${file}-shm`)) {
    const from = openSync(`${file}-shm`, 'r');
    readSync(from, index, 0, index.length, 0);
    closeSync(from);
  }
  const pageBytes = index.readUInt16LE(14);
  const endOf = (frames: number): number => (frames === 0 ? 0 : WAL_HEADER + frames * (FRAME_HEADER + pageBytes));
  return {
    salt: index.toString('hex', 32, 40),
    bytes: endOf(index.readUInt32LE(16)),
    checkpointed: endOf(Math.max(index.readUInt32LE(96), index.readUInt32LE(128))),
  };
}

/**
 * What SQLite syncs: all that is in the journal when a connection goes back from `synchronous=FULL` after a commit. `synced`
 * is called then.
 */
export function watchSyncs(database: Database, synced: () => void): Database {
  let isFull = false;
  return {
    exec: (sql) => {
      database.exec(sql);
      if (sql === 'PRAGMA synchronous=FULL') isFull = true;
      if (sql !== 'PRAGMA synchronous=NORMAL' || !isFull) return;
      isFull = false;
      synced();
    },
    prepare: (sql) => database.prepare(sql),
    prepareQuery: (sql) => database.prepareQuery(sql),
    isInPlace: () => database.isInPlace(),
    function: (name, run) => database.function(name, run),
    get inTransaction() {
      return database.inTransaction;
    },
    close: () => database.close(),
  };
}

/** Where a power cut may leave the journal: the end of each frame that was not synced, and as it is. The earliest first. */
export function cutsOf(file: string, synced: JournalMark): { readonly image: Image; readonly cuts: readonly number[] } {
  const image = readImage(file);
  const { salt, bytes, checkpointed } = readIndex(file);
  // A journal that began anew since has nothing in it that was synced; what is checkpointed was synced before.
  const from = Math.max(salt === synced.salt ? synced.bytes : WAL_HEADER, checkpointed);
  const ends = frameEnds(image, from).filter((end) => end <= bytes);
  return { image: cutAt(image, bytes), cuts: [...new Set([Math.min(from, bytes), ...ends])] };
}
