import { LIMITS, storedEventText } from '@holdfast/core';
import { envelopeWriter } from './envelope.ts';
import type { EventText, OperationOutline } from './store-port.ts';

/** An event as it stands in pages, answers and frames. */
export interface PageEvent {
  readonly version: number;
  readonly chain: string;
  readonly text: string;
}

/** Texts of stored events, in order. The envelopes of one operation share a writer. */
export function eventTexts(events: readonly EventText[]): readonly string[] {
  let operation: OperationOutline | null = null;
  let write: ReturnType<typeof envelopeWriter> | null = null;
  return events.map((event) => {
    if (write === null || event.operation !== operation) {
      operation = event.operation;
      write = envelopeWriter(operation);
    }
    const envelope = write(event);
    return event.draft === null
      ? `${envelope.slice(0, -1)},"erased":true,"leaf":"${event.leaf}"}`
      : storedEventText(event.draft, envelope);
  });
}

export interface PageBounds {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** Where a page ends, and which part of an operation it is if that is larger than a page (PG2). */
export interface PageEnd {
  readonly to: number;
  readonly part?: number;
  readonly parts?: number;
}

export const pageBounds = (limit: number | undefined): PageBounds => ({
  eventsMax: Math.min(Math.max(limit ?? LIMITS.pageEventsMax, 1), LIMITS.pageEventsMax),
  bytesMax: LIMITS.pageBytesMax,
});

export const lastVersionOf = ({ firstVersion, count }: Pick<OperationOutline, 'firstVersion' | 'count'>): number =>
  firstVersion + count - 1;

/**
 * PG1: whole operations, as many as fit, at least one. `operations` are those that end after `after`, in order. One that
 * is larger than a page is a page of its own for each of its parts. Null where there is nothing.
 */
export function endOfPage(
  operations: readonly OperationOutline[],
  after: number,
  { eventsMax, bytesMax }: PageBounds,
  bytesOf: (operation: OperationOutline) => number = (operation) => operation.bytes,
): PageEnd | null {
  let events = 0;
  let bytes = 0;
  let to: number | null = null;
  for (const operation of operations) {
    if (operation.partEvents !== null) return to === null ? endOfPart(operation, operation.partEvents, after) : { to };
    const more = lastVersionOf(operation) - Math.max(after, operation.firstVersion - 1);
    if (to !== null && (events + more > eventsMax || bytes + bytesOf(operation) > bytesMax)) break;
    events += more;
    bytes += bytesOf(operation);
    to = lastVersionOf(operation);
  }
  return to === null ? null : { to };
}

function endOfPart(operation: OperationOutline, partEvents: number, after: number): PageEnd {
  const taken = Math.max(0, after - (operation.firstVersion - 1));
  const part = Math.floor(taken / partEvents) + 1;
  return {
    to: Math.min(operation.firstVersion - 1 + part * partEvents, lastVersionOf(operation)),
    part,
    parts: Math.ceil(operation.count / partEvents),
  };
}
