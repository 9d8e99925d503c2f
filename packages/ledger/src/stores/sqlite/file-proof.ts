import { renameSync, type Stats, statSync } from 'node:fs';

/**
 * Proof that the file which this process writes is still the one that stands under its name (F91, scenario 21). A
 * deleted, swapped or overwritten file takes writes without complaint and forgets them at the next start, so nothing is
 * acknowledged without this. Only this process writes the file, so its size and time change by our own commits alone.
 */
export class FileProof {
  readonly #path: string;
  readonly #walPath: string;
  #main: Stats;
  #wal: Stats | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#walPath = `${path}-wal`;
    this.#main = statSync(path);
    this.#wal = lookAt(this.#walPath);
  }

  holds(): boolean {
    const main = lookAt(this.#path);
    if (main === undefined || !isSameFile(main, this.#main)) return false;
    if (main.size !== this.#main.size || main.mtimeMs !== this.#main.mtimeMs) return false;
    if (this.#wal === undefined) return true;
    const wal = lookAt(this.#walPath);
    return wal !== undefined && isSameFile(wal, this.#wal);
  }

  /** After a commit of ours, which may have written the file itself (a checkpoint). */
  renew(): void {
    this.#main = lookAt(this.#path) ?? this.#main;
    this.#wal ??= lookAt(this.#walPath);
  }

  /**
   * The journal of a file that is gone must not be replayed into what somebody put in its place. It is moved aside, never
   * deleted: it may hold the last copy of acknowledged work.
   */
  moveJournalAside(suffix: string): string | null {
    const wal = lookAt(this.#walPath);
    if (wal === undefined || this.#wal === undefined || !isSameFile(wal, this.#wal)) return null;
    const aside = `${this.#walPath}.orphaned-${suffix}`;
    renameSync(this.#walPath, aside);
    return aside;
  }
}

const lookAt = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false });
const isSameFile = (a: Stats, b: Stats): boolean => a.ino === b.ino && a.dev === b.dev;
