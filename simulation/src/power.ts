import { existsSync, readFileSync } from 'node:fs';
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
  const wal = existsSync(`${file}-wal`) ? readFileSync(`${file}-wal`) : Buffer.alloc(0);
  return { salt: saltOf(wal, 16), bytes: endOf(wal) };
}

const saltOf = (wal: Buffer, at: number): string => wal.subarray(at, at + 8).toString('hex');

/** A journal that began anew is as long as before, and holds frames of the old one behind those of the new. */
function endOf(wal: Buffer): number {
  if (wal.length <= WAL_HEADER) return wal.length;
  const frame = FRAME_HEADER + wal.readUInt32BE(8);
  let end = WAL_HEADER;
  while (end + frame <= wal.length && saltOf(wal, end + 8) === saltOf(wal, 16)) end += frame;
  return end;
}

/**
 * What SQLite syncs: all that is in the journal when a connection goes back from `synchronous=FULL` after a commit. `synced`
 * is called then.
 */
export function watchSyncs(database: Database, synced: () => void): Database {
  return {
    exec: (sql) => {
      database.exec(sql);
      if (sql === 'PRAGMA synchronous=NORMAL') synced();
    },
    prepare: (sql) => database.prepare(sql),
    prepareQuery: (sql) => database.prepareQuery(sql),
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
  const { salt, bytes } = markOf(file);
  // A journal that began anew since has nothing in it that was synced; what is checkpointed was synced before.
  const from = Math.max(salt === synced.salt ? synced.bytes : WAL_HEADER, checkpointed(file, image));
  const ends = frameEnds(image, from).filter((end) => end <= bytes);
  return { image: cutAt(image, bytes), cuts: [...new Set([Math.min(from, bytes), ...ends])] };
}

/**
 * Bytes of the journal that a checkpoint has begun to copy into the file: it synced them first. From the index beside it,
 * whose layout is in the SQLite documentation, "WAL-mode File Format", 2.3.1: `nBackfill` at 96, `nBackfillAttempted` at 128.
 */
function checkpointed(file: string, image: Image): number {
  const index = readFileSync(`${file}-shm`);
  const frames = Math.max(index.readUInt32LE(96), index.readUInt32LE(128));
  return frames === 0 ? 0 : WAL_HEADER + frames * (FRAME_HEADER + image.wal.readUInt32BE(8));
}
