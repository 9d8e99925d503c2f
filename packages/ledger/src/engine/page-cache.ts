/**
 * Texts of full pages, which never change for (log identity, epoch, after, limit) (LG15). Bounded by bytes; the page used
 * longest ago goes first. Access is checked before anybody looks here.
 */
export class PageCache<T extends { readonly bytes: number }> {
  readonly #bytesMax: number;
  readonly #pages = new Map<string, T>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(key: string): T | undefined {
    const page = this.#pages.get(key);
    if (page === undefined) return undefined;
    this.#pages.delete(key);
    this.#pages.set(key, page);
    return page;
  }

  set(key: string, page: T): void {
    if (page.bytes > this.#bytesMax) return;
    const before = this.#pages.get(key);
    if (before !== undefined) this.#bytes -= before.bytes;
    this.#pages.delete(key);
    this.#pages.set(key, page);
    this.#bytes += page.bytes;
    for (const [oldest, { bytes }] of this.#pages) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#pages.delete(oldest);
      this.#bytes -= bytes;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }
}
