import { type Json, type JsonObject, rankBetween } from '@holdfast/core';
import type { ReplicaStore } from './replica-store.ts';
import type { ColumnModel, EntityModel } from './schema-model.ts';
import { quoted } from './tables.ts';

/**
 * The ranks that one commit makes (SC10). The tables do not have them yet, so they are known here: rows that are put at an
 * end, or between the same two rows, one after the other, stand in that order, as if each had been a commit of its own.
 */
export class CommitRanks {
  readonly #store: ReplicaStore;
  readonly #log: string;
  /** The outermost that were made, by list. */
  readonly #ends = new Map<string, { first: string; last: string }>();
  /** The last that was made at a place, by list and neighbours. */
  readonly #beside = new Map<string, string>();

  constructor(store: ReplicaStore, log: string) {
    this.#store = store;
    this.#log = log;
  }

  /** A key for this row. `present`: the rank of a row as it is now, also within this commit; undefined: it has none. */
  make(of: {
    readonly model: EntityModel;
    readonly field: ColumnModel;
    readonly id: string;
    readonly place: JsonObject;
    readonly present: (id: string) => string | undefined;
  }): string {
    const { model, field, place } = of;
    const list = `${model.type} ${field.wire}`;
    const { random } = this.#store.platform;
    const ends = this.#ends.get(list);
    const outermost = (order: 'ASC' | 'DESC'): string | null => {
      const stored = this.#edge(of, order);
      const made = order === 'ASC' ? ends?.first : ends?.last;
      if (stored === null || made === undefined) return stored ?? made ?? null;
      return (order === 'ASC') === made < stored ? made : stored;
    };
    if (place['at'] === 'start') return this.#made(list, rankBetween(null, outermost('ASC'), random));
    if (place['at'] === 'end') return this.#made(list, rankBetween(outermost('DESC'), null, random));
    const after = rankAt(place['after'], of.present);
    const before = rankAt(place['before'], of.present);
    const where = JSON.stringify([list, after, before]);
    const rank = this.#made(list, rankBetween(this.#beside.get(where) ?? after, before, random));
    this.#beside.set(where, rank);
    return rank;
  }

  #made(list: string, rank: string): string {
    const ends = this.#ends.get(list);
    if (ends === undefined) this.#ends.set(list, { first: rank, last: rank });
    else if (rank < ends.first) ends.first = rank;
    else if (rank > ends.last) ends.last = rank;
    return rank;
  }

  #edge(
    { model, field, id }: { readonly model: EntityModel; readonly field: ColumnModel; readonly id: string },
    order: 'ASC' | 'DESC',
  ): string | null {
    const rank = quoted(field.wire);
    const row = this.#store.database
      .prepare(
        `SELECT ${rank} AS r FROM main.${quoted(model.type)} WHERE _log = ? AND _id <> ? AND ${rank} IS NOT NULL ORDER BY ${rank} ${order} LIMIT 1`,
      )
      .get(this.#log, id);
    return (row?.['r'] as string | undefined) ?? null;
  }
}

/** From a neighbour's rank as it is now, not as it was drawn. */
function rankAt(side: Json | undefined, present: (id: string) => string | undefined): string | null {
  if (typeof side !== 'object' || side === null) return null;
  const { id, rank: drawn } = side as { readonly id?: string; readonly rank?: string };
  return (id === undefined ? undefined : present(id)) ?? drawn ?? null;
}
