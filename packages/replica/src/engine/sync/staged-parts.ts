import { type ErasedEvent, type EventsPage, type Fault, LIMITS, type StoredEvent, type Through } from '@holdfast/core';

/**
 * An operation larger than a page, as far as it has come (PG2). Kept in memory beside the log: nothing of it is in the
 * file before its last part is here, and then all of it moves in one transaction. Worst outcome of a crash: its parts are
 * fetched again. Bounded by what an operation may be.
 */
export interface StagedParts {
  /** Where the log stood when the first part came. What is staged for another place is worth nothing. */
  readonly from: Through;
  readonly epoch: string;
  readonly through: Through;
  readonly events: readonly (StoredEvent | ErasedEvent)[];
  readonly part: number;
  readonly parts: number;
  readonly bytes: number;
}

/** Where the next part must continue, if something is staged on top of this place. */
export const stagedOn = (
  staged: StagedParts | null,
  from: { readonly epoch: string | null; readonly at: Through },
): StagedParts | null =>
  staged !== null &&
  staged.epoch === from.epoch &&
  staged.from.version === from.at.version &&
  staged.from.chain === from.at.chain
    ? staged
    : null;

export type Staging =
  /** Nothing to wait for: the whole page, with all parts before it. */
  { readonly whole: EventsPage } | { readonly staged: StagedParts } | { readonly fault: Fault };

/** Puts a page to what is staged. Bytes are those of the answer. */
export function stage(before: StagedParts | null, from: Through, page: EventsPage, bytes: number): Staging {
  const { part, parts, ...rest } = page;
  const isNext =
    before === null ? part === undefined || part === 1 : part === before.part + 1 && parts === before.parts;
  const first = page.events[0]?.version;
  if (part !== undefined && (!isNext || first !== (before?.through ?? from).version + 1))
    return { fault: { code: 'page-gap', facts: { part, parts, after: before?.part ?? 0 } } };
  // Whatever the operation was, the ledger does not say any more that it comes in parts.
  if (part === undefined || parts === undefined)
    return before === null ? { whole: page } : { fault: lostParts(before) };
  const events = [...(before?.events ?? []), ...page.events];
  if (part === parts) return { whole: { ...rest, events } };
  const sum = (before?.bytes ?? 0) + bytes;
  // A frame around each event comes on top of what the operation itself may be.
  if (events.length > LIMITS.commandEventsMax || sum > 2 * LIMITS.commandBytesMax)
    return {
      fault: { code: 'answer-malformed', facts: { why: 'parts without end', events: events.length, bytes: sum } },
    };
  return {
    staged: { from, epoch: page.epoch, through: page.through, events, part, parts, bytes: sum },
  };
}

const lostParts = ({ part, parts }: StagedParts): Fault => ({ code: 'page-gap', facts: { part, parts } });
