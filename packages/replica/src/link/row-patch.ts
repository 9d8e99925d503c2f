import type { RawRow, RawValue } from './messages.ts';

/**
 * How one result became the next (LQ3). What crosses the link is proportional to what changed: rows that stayed at their
 * place are not mentioned, rows that moved together are one run, rows that are new or other are sent.
 */
export interface RowPatch {
  readonly length: number;
  /** Rows that are new, or have other values than before. */
  readonly set: readonly (readonly [at: number, row: RawRow])[];
  /** Runs of unchanged rows at another place: `to, from, count`, flat. */
  readonly moved?: readonly number[];
}

export const sameValue = (a: RawValue | undefined, b: RawValue | undefined): boolean => {
  if (a === b) return true;
  if (!(a instanceof Uint8Array) || !(b instanceof Uint8Array) || a.byteLength !== b.byteLength) return false;
  for (let at = 0; at < a.byteLength; at += 1) if (a[at] !== b[at]) return false;
  return true;
};

export function sameRow(a: RawRow, b: RawRow): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) {
    const one = a[at];
    const other = b[at];
    if (one !== other && !sameValue(one, other)) return false;
  }
  return true;
}

/**
 * The patch from one result to the next, or null where they are equal. `keyAt` is a column that tells rows apart, if there
 * is one: rows that moved are then found by it, else by all their values.
 */
export function diffRows(before: readonly RawRow[], after: readonly RawRow[], keyAt = -1): RowPatch | null {
  const shorter = Math.min(before.length, after.length);
  let begin = 0;
  while (begin < shorter && sameRow(before[begin] as RawRow, after[begin] as RawRow)) begin += 1;
  if (begin === before.length && begin === after.length) return null;
  let tail = 0;
  while (
    tail < shorter - begin &&
    sameRow(before[before.length - 1 - tail] as RawRow, after[after.length - 1 - tail] as RawRow)
  )
    tail += 1;

  const end = before.length - tail;
  const runs = new Runs();
  const set: (readonly [number, RawRow])[] = [];
  const places = new Places(before, { begin, end, keyAt });
  let next = begin;
  for (let at = begin; at < after.length - tail; at += 1) {
    const row = after[at] as RawRow;
    const isAt = (place: number) => place < end && sameRow(before[place] as RawRow, row);
    // In step; or one row was left out here; or it came from somewhere else; or it is new.
    const from = isAt(next) ? next : isAt(next + 1) ? next + 1 : places.find(row);
    if (from !== undefined) {
      runs.add(at, from);
      next = from + 1;
      continue;
    }
    set.push([at, row]);
    if (keyAt >= 0 && next < end && before[next]?.[keyAt] === row[keyAt]) next += 1;
  }
  if (before.length !== after.length) runs.addRun(after.length - tail, end, tail);
  return { length: after.length, set, ...(runs.flat.length === 0 ? {} : { moved: runs.flat }) };
}

/** Where in the middle part a row like this was. Worked out only if somebody asks. */
class Places {
  readonly #rows: readonly RawRow[];
  readonly #part: { readonly begin: number; readonly end: number; readonly keyAt: number };
  #byKey: Map<RawValue | undefined, number[]> | null = null;

  constructor(rows: readonly RawRow[], part: { readonly begin: number; readonly end: number; readonly keyAt: number }) {
    this.#rows = rows;
    this.#part = part;
  }

  find(row: RawRow): number | undefined {
    this.#byKey ??= this.#places();
    return this.#byKey.get(this.#keyOf(row))?.find((place) => sameRow(this.#rows[place] as RawRow, row));
  }

  #places(): Map<RawValue | undefined, number[]> {
    const places = new Map<RawValue | undefined, number[]>();
    for (let at = this.#part.begin; at < this.#part.end; at += 1) {
      const key = this.#keyOf(this.#rows[at] as RawRow);
      const known = places.get(key);
      if (known === undefined) places.set(key, [at]);
      else if (known.length < SAME_KEY_MAX) known.push(at);
    }
    return places;
  }

  #keyOf(row: RawRow): RawValue | undefined {
    const { keyAt } = this.#part;
    return keyAt >= 0 ? row[keyAt] : contentOf(row);
  }
}

/** Rows with one key that are compared; a join that repeats one key more often sends its moved rows again. */
const SAME_KEY_MAX = 16;

const contentOf = (row: RawRow): string =>
  JSON.stringify(row, (_, value) => (value instanceof Uint8Array ? `bytes ${value.join()}` : value));

class Runs {
  readonly flat: number[] = [];

  add(to: number, from: number): void {
    if (to === from) return;
    this.addRun(to, from, 1);
  }

  addRun(to: number, from: number, count: number): void {
    if (count === 0) return;
    const { flat } = this;
    const last = flat.length - 3;
    if (last >= 0) {
      const length = flat[last + 2] as number;
      if (flat[last] === to - length && flat[last + 1] === from - length) {
        flat[last + 2] = length + count;
        return;
      }
    }
    flat.push(to, from, count);
  }
}

/** The next result: unchanged rows are the same objects as before, the others are made by `make`. */
export function applyPatch<O>(before: readonly O[], patch: RowPatch, make: (row: RawRow) => O): readonly O[] {
  const after = before.slice(0, patch.length);
  const moved = patch.moved ?? [];
  for (let run = 0; run < moved.length; run += 3) {
    const [to, from, count] = [moved[run] as number, moved[run + 1] as number, moved[run + 2] as number];
    for (let at = 0; at < count; at += 1) after[to + at] = before[from + at] as O;
  }
  for (const [at, row] of patch.set) after[at] = make(row);
  return after;
}
