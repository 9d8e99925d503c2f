import { endOfPage, lastVersionOf, type PageBounds, type PageEnd, type PageEvent } from './event-page.ts';
import type { AcceptedOperation } from './log-in-work.ts';
import type { OperationOutline } from './store-port.ts';

const TAIL_EVENTS_MAX = 1_024;
const TAIL_BYTES_MAX = 512 * 1024;

/**
 * The last operations of one log, as this process appended them: push answers and catching up read here instead of from
 * the store. Derived and bounded; where it does not reach, the store is asked.
 */
export class Tail {
  readonly #operations: { readonly outline: OperationOutline; readonly accepted: AcceptedOperation }[] = [];
  #events = 0;
  #bytes = 0;
  /** It holds everything after this version. */
  #after: number;

  constructor(head: number) {
    this.#after = head;
  }

  get head(): number {
    const last = this.#operations[this.#operations.length - 1];
    return last === undefined ? this.#after : lastVersionOf(last.outline);
  }

  /** Begins anew where the log went on without this process. */
  add(operations: readonly AcceptedOperation[]): void {
    const first = operations[0];
    if (first === undefined) return;
    if (first.row.firstVersion !== this.head + 1) {
      this.#operations.length = 0;
      this.#events = 0;
      this.#bytes = 0;
      this.#after = first.row.firstVersion - 1;
    }
    for (const accepted of operations) {
      this.#operations.push({ outline: accepted.row, accepted });
      this.#events += accepted.row.count;
      this.#bytes += accepted.row.bytes;
    }
    this.#shorten();
  }

  /** A page after a version, or undefined where the tail does not reach that far back. */
  page(after: number, bounds: PageBounds, bytesOf?: (operation: OperationOutline) => number): TailPage | undefined {
    if (after < this.#after || after > this.head) return undefined;
    const from = this.#operations.findIndex(({ outline }) => lastVersionOf(outline) > after);
    if (from === -1) return { operations: [], events: [], end: null };
    const later = this.#operations.slice(from);
    const end = endOfPage(
      later.map(({ outline }) => outline),
      after,
      bounds,
      bytesOf,
    );
    const to = end?.to ?? after;
    const operations = later.filter(({ outline }) => outline.firstVersion <= to);
    const events = operations.flatMap(({ accepted }) =>
      accepted.events.filter(({ version }) => version > after && version <= to),
    );
    return {
      operations: operations.map(({ outline }) => outline),
      events,
      end,
    };
  }

  #shorten(): void {
    let drop = 0;
    while (drop < this.#operations.length && (this.#events > TAIL_EVENTS_MAX || this.#bytes > TAIL_BYTES_MAX)) {
      const { outline } = this.#operations[drop] as { outline: OperationOutline };
      this.#events -= outline.count;
      this.#bytes -= outline.bytes;
      this.#after = lastVersionOf(outline);
      drop += 1;
    }
    this.#operations.splice(0, drop);
  }
}

export interface TailPage {
  readonly operations: readonly OperationOutline[];
  readonly events: readonly PageEvent[];
  readonly end: PageEnd | null;
}
