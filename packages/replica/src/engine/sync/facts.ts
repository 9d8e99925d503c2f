import { type Fault, LIMITS, type LogStanding } from '@holdfast/core';
import type { FollowedLog } from '../replica-state.ts';
import { PAGE_EVENTS_MIN, PATIENCE_MAX } from './settings.ts';
import type { StagedParts } from './staged-parts.ts';

/**
 * What this run of the host has learned of one log since it started. Cached only: a restart begins with nothing proven
 * and asks again. Worst outcome if one of these is wrong: a request too many.
 */
export interface LogFacts {
  readonly log: string;
  /** A handshake has said where this replica stands, and nothing since has put that in doubt. */
  isProven: boolean;
  /** A newer answer is wanted, though the last one still holds: a poll, `settle`, a person. */
  isAskedAgain: boolean;
  /** When the ledger last proved to be alive for this log, on the monotonic clock. */
  provenAtMs: number | null;
  standing: LogStanding | null;
  /** The head that the ledger named last; null until it named one. */
  ledgerHead: number | null;
  /** Number of the last handshake that was sent about this log, and of the last that was answered (SY2). */
  handshakeAsked: number;
  handshakeAnswered: number;
  /** Pages that did not continue our chain although they were fetched past all caches, since one was applied (IN3). */
  wrongPages: number;
  /** Doubts since the last progress: one is asked about at once, more wait for the backoff. */
  doubts: number;
  /** Fetches in a row whose signature differed from the ledger's (BS2). */
  differing: number;
  /** What is being fetched was found equal to the ledger's state at this version. */
  compared: { readonly version: number } | null;
  /** The first parts of an operation larger than a page (PG2). */
  staged: StagedParts | null;
  /** Repairs since the ledger last called our state its own; a second one proves nothing new. */
  repairs: number;
  /** A gap, or the ledger's word on the socket: something is to be pulled, whatever heads are known. */
  mustPull: boolean;
  /** The last push got no answer: pages come first then, so that reading never waits for what is owed. */
  pushFailed: boolean;
  /** A push that the ledger refused as a whole for who we are: tried again then, while everything else goes on. */
  pushRefused: { readonly fault: Fault; readonly untilMs: number } | null;
  /** An operation waits because a quota is used up. */
  overQuota: Fault | null;
  readonly sizes: Sizes;
  /** What went wrong last, until something works again. */
  fault: Fault | null;
  activity: Activity;
}

export type Activity = 'idle' | 'handshake' | 'recovering' | 'pulling' | 'pushing' | 'bootstrapping' | 'repairing';

export function createLogFacts(log: string): LogFacts {
  return {
    log,
    isProven: false,
    isAskedAgain: false,
    provenAtMs: null,
    standing: null,
    ledgerHead: null,
    handshakeAsked: 0,
    handshakeAnswered: 0,
    wrongPages: 0,
    doubts: 0,
    differing: 0,
    compared: null,
    staged: null,
    repairs: 0,
    mustPull: false,
    pushFailed: false,
    pushRefused: null,
    overQuota: null,
    sizes: createSizes(),
    fault: null,
    activity: 'idle',
  };
}

/** Raises what the ledger is known to hold; never lowers it. */
export function sawHead(facts: LogFacts, head: number): void {
  facts.ledgerHead = Math.max(facts.ledgerHead ?? 0, head);
}

export const isBehind = (log: FollowedLog, facts: LogFacts): boolean =>
  facts.mustPull || (facts.ledgerHead !== null && log.head < facts.ledgerHead);

/** Something moved: what was tried in vain before counts no more. */
export function sawProgress(facts: LogFacts, nowMs: number): void {
  sawAnswer(facts, nowMs);
  facts.doubts = 0;
}

/** The ledger is alive, and nothing moved: a doubt that comes back is the same doubt, and waits longer each time. */
export function sawAnswer(facts: LogFacts, nowMs: number): void {
  facts.provenAtMs = nowMs;
  facts.fault = null;
}

/**
 * How much fits through this network (F81, F82). Learned by failing, forgotten when the network may be another one. An
 * operation that was refused for its size alone goes alone from then on, so that others do not suffer for it.
 */
export interface Sizes {
  readonly pushBytesMax: number;
  readonly pageEvents: number;
  readonly patience: number;
  mustGoAlone(requestId: string): boolean;
  /** It went alone in vain not long ago: not even a recovery asks again before this (monotonic). */
  waitsUntilMs(requestId: string): number;
  /** A push was too large for somebody on the way. True: it can be cut. False: it was one operation, and goes alone. */
  pushTooLarge(push: {
    readonly bytes: number;
    readonly requestIds: readonly string[];
    readonly againAtMs: number;
  }): boolean;
  pushTimedOut(bytes: number): void;
  pageTimedOut(): void;
  worked(): void;
  forget(): void;
}

export function createSizes(): Sizes {
  const alone = new Map<string, number>();
  let pushBytesMax: number = LIMITS.pageBytesMax;
  let pageEvents: number = LIMITS.pageEventsMax;
  let patience = 1;
  const halve = (bytes: number) => {
    // Down to one byte: a push holds one operation at least, however large.
    pushBytesMax = Math.max(1, Math.floor(Math.min(bytes, pushBytesMax) / 2));
  };
  const moreTime = () => {
    patience = Math.min(PATIENCE_MAX, patience * 2);
  };
  return {
    get pushBytesMax() {
      return pushBytesMax;
    },
    get pageEvents() {
      return pageEvents;
    },
    get patience() {
      return patience;
    },
    mustGoAlone: (requestId) => alone.has(requestId),
    waitsUntilMs: (requestId) => alone.get(requestId) ?? 0,
    pushTooLarge: ({ bytes, requestIds, againAtMs }) => {
      halve(bytes);
      const [only] = requestIds;
      if (only === undefined || requestIds.length > 1) return true;
      if (alone.size < LIMITS.deskListedMax || alone.has(only)) alone.set(only, againAtMs);
      return false;
    },
    pushTimedOut: (bytes) => {
      halve(bytes);
      moreTime();
    },
    pageTimedOut: () => {
      pageEvents = Math.max(PAGE_EVENTS_MIN, Math.floor(pageEvents / 2));
      moreTime();
    },
    worked: () => {
      patience = 1;
      pageEvents = Math.min(LIMITS.pageEventsMax, pageEvents * 2);
    },
    forget: () => {
      alone.clear();
      pushBytesMax = LIMITS.pageBytesMax;
      pageEvents = LIMITS.pageEventsMax;
      patience = 1;
    },
  };
}
