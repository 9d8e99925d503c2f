import type { ActionOutcome } from '../engine/replica-state.ts';
import type { Link, WaitSignal } from '../link/link.ts';
import { told } from './holdfast-error.ts';

/**
 * A write on its way: durable here → shown on this page → ordered by the ledger. Awaiting it means: durable on this
 * device, whatever happens to the process. It rejects with what refused it, and then nothing was written.
 */
export interface Write<T> extends Promise<T>, WriteOnItsWay {}

export interface WriteOnItsWay {
  /** Its action id: `replica.write(id)` finds it again after a restart. */
  readonly id: string;
  /** This page's live queries show it. */
  shown(): Promise<void>;
  /** The ledger has it. Rejects with `refused` or `needs-attention`; retry and offline just wait. */
  ordered(o?: { readonly signal?: WaitSignal }): Promise<{ readonly version: number }>;
}

/** A write of before: it is durable, so there is nothing to await but what comes of it. */
export interface EarlierWrite extends WriteOnItsWay {
  readonly state: ActionOutcome['state'];
}

/** What a write is made of: the promise of its durability, with the local sequence that includes it. */
export interface Durable<T> {
  readonly seq: number;
  readonly result: T;
}

export class LinkedWrite<T> extends Promise<T> implements Write<T> {
  readonly id: string;
  readonly #link: Link;
  readonly #durable: Promise<Durable<T>>;

  constructor(link: Link, id: string, durable: Promise<Durable<T>>) {
    super((resolve, reject) => {
      durable.then(({ result }) => resolve(result), reject);
    });
    this.id = id;
    this.#link = link;
    this.#durable = durable;
  }

  /** What is chained to a write is a promise, not a write. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  shown(): Promise<void> {
    return told(this.#durable.then(({ seq }) => shown(this.#link, seq)));
  }

  ordered(o: WaitOptions = {}): Promise<{ readonly version: number }> {
    return told(this.#durable.then(() => ordered(this.#link, this.id, o)));
  }
}

export const earlierWrite = (link: Link, id: string, state: ActionOutcome['state']): EarlierWrite => ({
  id,
  state,
  shown: () => told(shown(link, 0)),
  ordered: (o = {}) => told(ordered(link, id, o)),
});

interface WaitOptions {
  readonly signal?: WaitSignal;
}

const shown = async (link: Link, seq: number): Promise<void> => {
  await link.request('shown', { seq });
};

const ordered = (link: Link, action: string, { signal }: WaitOptions): Promise<{ readonly version: number }> =>
  link.request('ordered', { action }, signal === undefined ? {} : { signal });
