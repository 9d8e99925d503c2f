import { type Clock, type Fault, type Json, sameValue } from '@holdfast/core';
import type { Link, LiveSink } from '../link/link.ts';
import type { Tell } from '../link/messages.ts';
import { applyPatch, type RowPatch } from '../link/row-patch.ts';
import { HoldfastError } from './holdfast-error.ts';
import type { CompiledQuery } from './query-compiler.ts';
import { rowMaker } from './rows.ts';

export interface LiveResult<O> {
  readonly rows: readonly O[];
  /** `stale`: rows of the previous parameters while the new ones load. `partial`: the replica is still catching up. */
  readonly state: 'loading' | 'stale' | 'partial' | 'complete';
  /** Why the query fails at the moment; `rows` are its last ones. */
  readonly error?: HoldfastError;
}

/** One object for every framework: `current` + `subscribe` is React's external store, `subscribe` alone is Svelte's. */
export interface Live<O> extends Disposable, AsyncIterable<readonly O[]> {
  /** The same array until something in it changed; the same row objects where they did not. */
  readonly current: LiveResult<O>;
  /** Calls at once with the current result, then after every change. */
  subscribe(run: (result: LiveResult<O>) => void): () => void;
}

/** Live queries of one page: equal ones are one (LQ1). */
export interface LiveRegistry {
  open<O>(query: CompiledQuery): Live<O>;
  readonly count: number;
}

export function createLiveRegistry(link: Link, clock: Clock): LiveRegistry {
  const entries = new Map<string, Entry<any>>();
  let number = 0;
  /** The shared result of a query; asked for at the host while somebody uses it. */
  const use = (query: CompiledQuery): Entry<any> => {
    const name = JSON.stringify([query.sql, query.parameters]);
    const known = entries.get(name);
    if (known !== undefined) {
      known.users += 1;
      return known;
    }
    number += 1;
    const key = `l${number}`;
    const entry = new Entry<any>(clock, () => {
      link.drop(key);
      entries.delete(name);
    });
    entries.set(name, entry);
    link.live(key, query.sql, query.parameters, entry);
    return entry;
  };
  return {
    open: (query) => new LiveQuery(clock, () => use(query)),
    get count() {
      return entries.size;
    },
  };
}

/** One result on this page, shared by everybody who asked for it. */
class Entry<O> implements LiveSink {
  readonly #clock: Clock;
  readonly #subscribers = new Set<(result: LiveResult<O>) => void>();
  #make: (row: readonly any[]) => O = () => {
    throw new Error('rows before columns');
  };
  #result: LiveResult<O> = { rows: [], state: 'loading' };
  readonly #drop: () => void;
  users = 1;

  constructor(clock: Clock, drop: () => void) {
    this.#clock = clock;
    this.#drop = drop;
  }

  get result(): LiveResult<O> {
    return this.#result;
  }

  leave(): void {
    this.users -= 1;
    if (this.users === 0) this.#drop();
  }

  subscribe(run: (result: LiveResult<O>) => void): () => void {
    this.#subscribers.add(run);
    this.#call(run);
    return () => void this.#subscribers.delete(run);
  }

  rows({ columns, patch, isPartial }: Extract<Tell, { tell: 'rows' }>): void {
    const isNew = columns !== undefined;
    if (isNew) this.#make = rowMaker<O>(columns);
    const before = isNew ? [] : this.#result.rows;
    const rows = kept(this.#result.rows, patch, () => applyPatch(before, patch, this.#make));
    this.#set({ rows, state: isPartial ? 'partial' : 'complete' });
  }

  failing(fault: Fault): void {
    this.#set({ ...this.#result, error: new HoldfastError(fault) });
  }

  /** A host tells everything again after a change of its tables, and the next host does: what is the same is no news. */
  #set(result: LiveResult<O>): void {
    const { rows, state, error } = this.#result;
    if (rows === result.rows && state === result.state && error?.message === result.error?.message) return;
    this.#result = result;
    for (const run of [...this.#subscribers]) this.#call(run);
  }

  /** What an app's subscriber throws is the app's failure, and must not end the turn of whoever told. */
  #call(run: (result: LiveResult<O>) => void): void {
    try {
      run(this.#result);
    } catch (cause) {
      this.#clock.soon(() => {
        throw cause;
      });
    }
  }
}

/** The same array where nothing in it is other than what was told; the same row at its place where its values are (LQ3). */
function kept<O>(told: readonly O[], patch: RowPatch, apply: () => readonly O[]): readonly O[] {
  let isSame = patch.moved === undefined && patch.length === told.length;
  if (isSame && patch.set.length === 0) return told;
  const rows = [...apply()];
  for (const [at] of patch.set) {
    const [before, now] = [told[at], rows[at]];
    if (isRow(before) && isRow(now) && sameRow(before, now)) rows[at] = before;
    else isSame = false;
  }
  return isSame ? told : rows;
}

const isRow = (row: unknown): row is object => typeof row === 'object' && row !== null;

function sameRow(one: object, other: object): boolean {
  const names = Object.keys(one);
  const cell = (row: object, name: string) => (row as Readonly<Record<string, Json>>)[name];
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && sameValue(cell(one, name), cell(other, name)))
  );
}

class LiveQuery<O> implements Live<O> {
  readonly #clock: Clock;
  readonly #use: () => Entry<O>;
  readonly #ends = new Set<() => void>();
  /** Iterations that wait: they end with `dispose`. */
  readonly #woken = new Set<() => void>();
  /** Null while nobody wants it: it was subscribed to, and the last subscriber left. */
  #entry: Entry<O> | null;
  #last: LiveResult<O> = { rows: [], state: 'loading' };
  #isOpen = true;

  constructor(clock: Clock, use: () => Entry<O>) {
    this.#clock = clock;
    this.#use = use;
    this.#entry = use();
  }

  get current(): LiveResult<O> {
    return this.#entry?.result ?? this.#last;
  }

  subscribe(run: (result: LiveResult<O>) => void): () => void {
    if (!this.#isOpen) {
      run(this.current);
      return () => undefined;
    }
    this.#entry ??= this.#use();
    const stop = this.#entry.subscribe(run);
    const end = () => {
      if (!this.#ends.delete(end)) return;
      stop();
      // A framework that subscribes anew in the same turn keeps what is there.
      if (this.#ends.size === 0) this.#clock.soon(() => void (this.#ends.size === 0 && this.#leave()));
    };
    this.#ends.add(end);
    return end;
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const end of [...this.#ends]) end();
    this.#leave();
    for (const woken of this.#woken) woken();
  }

  #leave(): void {
    if (this.#entry === null) return;
    const { rows, state } = this.#entry.result;
    this.#last = { rows, state: state === 'loading' ? 'loading' : 'stale' };
    this.#entry.leave();
    this.#entry = null;
  }

  /** The rows now and after every change. Whoever reads slowly gets the newest, not all between. Ends with `using`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<readonly O[], void, void> {
    let isDue = true;
    let wake: () => void = () => undefined;
    let last: readonly O[] | null = null;
    const stop = this.subscribe(() => {
      isDue = true;
      wake();
    });
    const woken = () => wake();
    this.#woken.add(woken);
    try {
      while (this.#isOpen) {
        if (!isDue) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        isDue = false;
        const { rows, state, error } = this.current;
        if (error !== undefined) throw error;
        if (state === 'loading' || rows === last) continue;
        last = rows;
        yield rows;
      }
    } finally {
      this.#woken.delete(woken);
      stop();
    }
  }
}
