import { LIMITS, type OperationResult, type PushAnswer } from '@holdfast/core';
import { andThen, type JsonText, type MaybePromise } from './answer.ts';
import type { ThroughOf } from './attest.ts';
import {
  endOfPage,
  eventTexts,
  lastVersionOf,
  type PageBounds,
  type PageEnd,
  type PageEvent,
  pageBounds,
} from './event-page.ts';
import { type ReadPush, requestIdOf } from './push-request.ts';
import type { LedgerStore, OperationOutline, PageRows } from './store-port.ts';
import type { Tail } from './tail.ts';

/** What a push is answered from: the log as it is after its group. */
export interface AnsweredLog {
  readonly identity: string;
  readonly epoch: string;
  readonly head: number;
  readonly tail: Tail;
}

/** An own event is a reference: the sender has its bytes. About as long as this. */
const REFERENCE_BYTES = 96;

/**
 * The answer to a push that was judged: one result per operation, and the events after the sender's position, whole
 * operations, at most a page. Those that this request carried, from this replica, come as references.
 */
export function pushAnswer(
  push: ReadPush,
  results: readonly OperationResult[],
  log: AnsweredLog,
  parts: { readonly store: LedgerStore; readonly throughOf: ThroughOf },
): MaybePromise<JsonText<PushAnswer>> {
  const after = push.position.version;
  const own = new Set(push.operations.map(requestIdOf));
  const isOwn = (operation: OperationOutline): boolean =>
    own.has(operation.requestId) && operation.replicaId === push.replica.id && operation.partEvents === null;
  const bytesOf = (operation: OperationOutline): number =>
    isOwn(operation) ? operation.count * REFERENCE_BYTES : operation.bytes;
  const bounds = pageBounds(undefined);
  return andThen(eventsAfter(push, log, parts.store, after, bounds, bytesOf), ({ operations, events }) => {
    const last = events[events.length - 1];
    const through =
      last === undefined
        ? parts.throughOf(log.identity, after, push.position.chain)
        : parts.throughOf(log.identity, last.version, last.chain);
    const texts = ownAndOthers(
      operations.map((operation) => ({ ...operation, isOwn: isOwn(operation) })),
      events,
    );
    const more = through.version < log.head;
    return `{"epoch":${JSON.stringify(log.epoch)},"events":[${texts}],"head":${log.head},"more":${more},"results":${JSON.stringify(results)},"through":${JSON.stringify(through)}}`;
  });
}

interface Page {
  readonly operations: readonly OperationOutline[];
  readonly events: readonly PageEvent[];
  readonly end: PageEnd | null;
}

const NOTHING: Page = { operations: [], events: [], end: null };

function eventsAfter(
  push: ReadPush,
  log: AnsweredLog,
  store: LedgerStore,
  after: number,
  bounds: PageBounds,
  bytesOf: (operation: OperationOutline) => number,
): MaybePromise<Page> {
  if (after === log.head) return NOTHING;
  const inTail = log.tail.page(after, bounds, bytesOf);
  if (inTail !== undefined) return inTail.end?.part === undefined ? inTail : NOTHING;
  let end: PageEnd | null = null;
  const rows = store.page(push.ref, {
    after,
    eventsMax: LIMITS.pageEventsMax,
    choose: (_log, operations) => {
      end = endOfPage(operations, after, bounds, bytesOf);
      return end?.to ?? null;
    },
  });
  return andThen(rows, (found) => {
    // PG2: parts are for who reads page by page; an answer that would be one tells only that there is more.
    if (end?.part !== undefined) return NOTHING;
    const to = end?.to ?? after;
    return {
      operations: (found?.operations ?? []).filter(({ firstVersion }) => firstVersion <= to),
      events: found === undefined ? [] : pageEvents(found),
      end,
    };
  });
}

function pageEvents({ events, chains }: PageRows): readonly PageEvent[] {
  const texts = eventTexts(events);
  return events.map(({ version }, at) => ({ version, chain: chains.get(version) ?? '', text: texts[at] as string }));
}

/** Both lists are in order of version, so one walk finds each event's operation. */
function ownAndOthers(
  operations: readonly (OperationOutline & { readonly isOwn: boolean })[],
  events: readonly PageEvent[],
): string {
  let at = 0;
  return events
    .map(({ version, text }) => {
      while (at < operations.length - 1 && lastVersionOf(operations[at] as OperationOutline) < version) at += 1;
      const operation = operations[at];
      if (operation === undefined || !operation.isOwn) return text;
      const index = version - operation.firstVersion;
      return `{"index":${index},"requestId":${JSON.stringify(operation.requestId)},"version":${version}}`;
    })
    .join(',');
}
