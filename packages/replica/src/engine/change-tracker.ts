/** What the transaction in work has touched, for whoever watches the replica (LQ6). Forgotten on rollback. */
export class ChangeTracker {
  #tables = new Map<string, Set<string>>();
  #isMuted = false;
  outbox = false;
  desk = false;
  logs = false;
  /** Definitions of types were written: the tables may not be theirs any more (SC4). Not told; the state looks after it. */
  definitions = false;

  /** For rows that no query sees yet. */
  muted(work: () => void): void {
    this.#isMuted = true;
    try {
      work();
    } finally {
      this.#isMuted = false;
    }
  }

  columns(table: string, columns: readonly string[]): void {
    if (this.#isMuted) return;
    const known = this.#tables.get(table) ?? new Set();
    for (const column of columns) known.add(column);
    this.#tables.set(table, known);
  }

  /** Rows came or went. */
  rows(table: string): void {
    this.columns(table, ['*']);
  }

  take(): {
    readonly tables: ReadonlyMap<string, ReadonlySet<string>>;
    readonly outbox: boolean;
    readonly desk: boolean;
    readonly logs: boolean;
  } {
    const taken = { tables: this.#tables, outbox: this.outbox, desk: this.desk, logs: this.logs };
    this.#tables = new Map();
    this.outbox = false;
    this.desk = false;
    this.logs = false;
    this.definitions = false;
    return taken;
  }
}
