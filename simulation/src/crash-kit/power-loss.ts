import { frameEnds, type Image, pageSizeOf, saltsOf } from './wal.ts';

/**
 * What a disk may hold when the power goes, at any point of SQLite's work with a checkpoint of its own. The writes are read
 * off two images of one connection, before and after a transaction, in the order in which SQLite makes them under
 * `synchronous=NORMAL` (strace shows it): where the journal begins anew its header, and a sync of it; the frames of the
 * transaction; and where a checkpoint follows a sync of the journal, the pages of the main file by number, a sync of that.
 * Between two syncs of a file the disk writes in any order, or not at all; never anything across a sync.
 */
export type Step =
  | { readonly file: File; readonly offset: number; readonly bytes: Buffer }
  | { readonly file: File; readonly synced: true };
type File = 'main' | 'wal';
type Write = Extract<Step, { bytes: Buffer }>;

const WAL_HEADER = 32;

/** A transaction, with the checkpoint that it may have set off. */
export function stepsBetween(before: Image, after: Image): readonly Step[] {
  const steps: Step[] = [];
  const size = pageSizeOf(after);
  const isAnew = saltsOf(before) !== saltsOf(after);
  if (isAnew) steps.push(write('wal', after.wal, 0, WAL_HEADER), { file: 'wal', synced: true });
  let from = isAnew ? WAL_HEADER : lastOf(frameEnds(before));
  for (const end of frameEnds(after, from)) {
    steps.push(write('wal', after.wal, from, end));
    from = end;
  }
  const pages: Write[] = [];
  for (let at = 0; at < after.main.length; at += size) {
    const page = write('main', after.main, at, at + size);
    if (!page.bytes.equals(before.main.subarray(at, at + size))) pages.push(page);
  }
  if (pages.length === 0) return steps;
  return [...steps, { file: 'wal', synced: true }, ...pages, { file: 'main', synced: true }];
}

const write = (file: File, of: Buffer, from: number, to: number): Write => ({
  file,
  offset: from,
  bytes: of.subarray(from, to),
});
const lastOf = (ends: readonly number[]): number => ends.at(-1) ?? WAL_HEADER;

/** How much of what was not synced has reached the disk. */
const LOSSES: readonly ((pending: readonly Write[]) => readonly Write[])[] = [
  (pending) => pending,
  (pending) => pending.filter(({ file }) => file === 'main'),
  (pending) => pending.filter(({ file }) => file === 'wal'),
  (pending) => pending.slice(-1),
  (pending) => pending.slice(1),
  (pending) => pending.filter((_, at) => at % 2 === 1),
  (pending) => pending.map((one, at) => (at === pending.length - 1 ? torn(one) : one)),
];
/** A sector is written or is not. */
const SECTOR = 512;
const torn = ({ file, offset, bytes }: Write): Write => ({
  file,
  offset,
  bytes: bytes.subarray(0, Math.floor(bytes.length / 2 / SECTOR) * SECTOR),
});

/** A disk that is written to, and what it may hold if the power goes now. */
export class Disk {
  #durable: Image;
  #pending: Write[] = [];

  constructor(durable: Image) {
    this.#durable = durable;
  }

  take(step: Step): void {
    if ('bytes' in step) {
      this.#pending.push(step);
      return;
    }
    this.#durable = written(
      this.#durable,
      this.#pending.filter(({ file }) => file === step.file),
    );
    this.#pending = this.#pending.filter(({ file }) => file !== step.file);
  }

  /** Everything was written: what a process that is killed leaves. */
  get whole(): Image {
    return written(this.#durable, this.#pending);
  }

  /** Each once; `whole` is one of them. */
  images(): readonly Image[] {
    const seen = new Set<string>();
    return LOSSES.flatMap((lose) => {
      const kept = lose(this.#pending);
      const name = kept.map(({ file, offset, bytes }) => `${file} ${offset} ${bytes.length}`).join();
      if (seen.has(name)) return [];
      seen.add(name);
      return [written(this.#durable, kept)];
    });
  }
}

function written(image: Image, writes: readonly Write[]): Image {
  const files = { main: image.main, wal: image.wal };
  for (const name of ['main', 'wal'] as const) {
    const of = writes.filter(({ file }) => file === name);
    if (of.length === 0) continue;
    const length = Math.max(files[name].length, ...of.map(({ offset, bytes }) => offset + bytes.length));
    const now = Buffer.alloc(length);
    files[name].copy(now);
    for (const { offset, bytes } of of) bytes.copy(now, offset);
    files[name] = now;
  }
  return files;
}
