import { readFileSync, writeFileSync } from 'node:fs';

/** The files of a SQLite database in WAL mode, as bytes: what a disk holds. */
export interface Image {
  readonly main: Buffer;
  readonly wal: Buffer;
}

const WAL_HEADER = 32;
const FRAME_HEADER = 24;

export const readImage = (file: string): Image => ({ main: readFileSync(file), wal: readFileSync(`${file}-wal`) });

export function writeImage(file: string, { main, wal }: Image): void {
  writeFileSync(file, main);
  writeFileSync(`${file}-wal`, wal);
}

export const pageSizeOf = ({ wal }: Image): number => wal.readUInt32BE(8);

/** What tells the frames of this journal from those of the one that it overwrites. */
export const saltsOf = ({ wal }: Image): string => wal.subarray(16, 24).toString('hex');

/** Offsets at which a frame of this journal ends, after `from`. */
export function frameEnds(image: Image, from = 0): number[] {
  const size = FRAME_HEADER + pageSizeOf(image);
  const salts = saltsOf(image);
  const ends: number[] = [];
  for (let end = WAL_HEADER + size; end <= image.wal.length; end += size) {
    const begin = end - size;
    if (image.wal.subarray(begin + 8, begin + 16).toString('hex') !== salts) break;
    if (end > from) ends.push(end);
  }
  return ends;
}

/** The journal is cut here: what came later did not reach the disk. */
export const cutAt = ({ main, wal }: Image, length: number): Image => ({ main, wal: wal.subarray(0, length) });

/** The journal has its length, and from here on other bytes than were written. */
export function spoiledFrom({ main, wal }: Image, offset: number, byte: (at: number) => number): Image {
  const spoiled = Buffer.from(wal);
  for (let at = offset; at < spoiled.length; at += 1) spoiled[at] = byte(at);
  return { main, wal: spoiled };
}

/** A checkpoint that was under way: every `n`-th page of the main file is as it will be, the others as they were. */
export function halfCheckpointed(before: Image, checkpointed: Buffer, n: number): Image {
  const size = pageSizeOf(before);
  const main = Buffer.alloc(Math.max(before.main.length, checkpointed.length));
  before.main.copy(main);
  for (let at = 0; at < checkpointed.length; at += size)
    if ((at / size) % n === 0) checkpointed.copy(main, at, at, at + size);
  return { main, wal: before.wal };
}
