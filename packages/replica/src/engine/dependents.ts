import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import { keysOf, LOCAL_STATES, type OutboxFrame, type OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { EntityKey } from './tables.ts';

/** Who builds on whom in the outbox (ST2). */
export class Dependents {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;

  constructor(store: ReplicaStore, outbox: Outbox) {
    this.#store = store;
    this.#outbox = outbox;
  }

  /**
   * Later work that names a batch, directly or through others, by `prior` or `needs`; in outbox order, of any log. An event's
   * prior is of its own entity, so that what can name it is what is pending, or set aside, on the same entities.
   */
  of(entities: LocalEntities, row: OutboxRow): readonly OutboxRow[] {
    const needing = this.#needing(row);
    const names = new Set<string>();
    const open = new Set<number>();
    const found: OutboxRow[] = [];
    const include = (one: OutboxRow) => {
      names.add(one.actionId);
      for (const draft of one.drafts) names.add(draft.id);
      for (const key of keysOf(one)) for (const seq of this.#on(entities, key)) if (seq > one.seq) open.add(seq);
      for (const seq of needing.get(one.actionId) ?? []) if (seq > one.seq) open.add(seq);
    };
    include(row);
    const looked = new Set<number>();
    for (;;) {
      const seq = lowest(open);
      if (seq === undefined) return found;
      open.delete(seq);
      if (looked.has(seq)) continue;
      looked.add(seq);
      const later = this.#outbox.bySeq(seq);
      if (later === undefined || later.state === 'accepted' || !namesAny(later, names)) continue;
      found.push(later);
      include(later);
    }
  }

  /** Outbox seqs of the operations on one entity, pending or set aside. */
  #on(entities: LocalEntities, key: EntityKey): readonly number[] {
    const aside = this.#store.database
      .prepare('SELECT seq FROM main.hf_aside WHERE log = ? AND type = ? AND id = ?')
      .all(key.log, key.type, key.id);
    return [...(entities.get(key).base?.pending ?? []), ...aside.map((one) => one['seq'] as number)];
  }

  /** Action id → seqs of later work that needs it: of any log, since a type that `main` defines is used in all of them (SC4). */
  #needing(row: OutboxRow): ReadonlyMap<string, readonly number[]> {
    const needing = new Map<string, number[]>();
    for (const later of this.#store.database
      .prepare(`SELECT seq, frame FROM main.hf_outbox WHERE seq > ? AND instr(frame, '"needs"') > 0`)
      .all(row.seq))
      for (const action of (JSON.parse(later['frame'] as string) as OutboxFrame).needs ?? []) {
        const seqs = needing.get(action);
        if (seqs === undefined) needing.set(action, [later['seq'] as number]);
        else seqs.push(later['seq'] as number);
      }
    return needing;
  }

  /** The set aside batch that a row is held by; null where it names none. */
  holderOf(entities: LocalEntities, row: OutboxRow): string | null {
    for (const named of this.#namedBy(entities, row)) {
      if (!LOCAL_STATES.has(named.state)) return named.actionId;
      if (named.heldBy !== null) return named.heldBy;
    }
    return null;
  }

  namesWaiting(entities: LocalEntities, row: OutboxRow): boolean {
    return this.#namedBy(entities, row).length > 0;
  }

  /** Batches of the outbox that a row names by `prior` or `needs`. */
  #namedBy(entities: LocalEntities, row: OutboxRow): readonly OutboxRow[] {
    const named = new Map<number, OutboxRow>();
    for (const action of row.frame.needs ?? []) {
      const one = this.#outbox.byAction(action);
      if (one !== undefined) named.set(one.seq, one);
    }
    const own = new Set(row.drafts.map((draft) => draft.id));
    for (const { prior, entityType, entityId } of row.drafts) {
      if (prior === undefined || own.has(prior)) continue;
      // The nearest first: a chain names what stands right before.
      const before = this.#on(entities, { log: row.log, type: entityType, id: entityId }).filter(
        (seq) => seq < row.seq,
      );
      for (const seq of before.sort((a, b) => b - a)) {
        const one = named.get(seq) ?? this.#outbox.bySeq(seq);
        if (one?.drafts.some((draft) => draft.id === prior) !== true) continue;
        named.set(seq, one);
        break;
      }
    }
    return [...named.values()];
  }

  renameNeed(row: OutboxRow, by: string | undefined): void {
    for (const seq of this.#needing(row).get(row.actionId) ?? []) {
      const later = this.#outbox.bySeq(seq);
      if (later === undefined) continue;
      const needs = (later.frame.needs ?? []).flatMap((action) =>
        action !== row.actionId ? [action] : by === undefined ? [] : [by],
      );
      const { needs: _old, ...frame } = later.frame;
      this.#store.database
        .prepare('UPDATE main.hf_outbox SET frame = ? WHERE seq = ?')
        .run(JSON.stringify(needs.length === 0 ? frame : { ...frame, needs }), seq);
    }
  }
}

const lowest = (seqs: ReadonlySet<number>): number | undefined => (seqs.size === 0 ? undefined : Math.min(...seqs));

const namesAny = (row: OutboxRow, names: ReadonlySet<string>): boolean =>
  row.drafts.some((draft) => draft.prior !== undefined && names.has(draft.prior)) ||
  (row.frame.needs ?? []).some((action) => names.has(action));
