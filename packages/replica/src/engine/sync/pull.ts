import { decodeEventsPage, type EventsPage, type Fault, randomHex, type Through } from '@holdfast/core';
import type { IngestReport } from '../replica-state.ts';
import { type LogFacts, sawAnswer, sawHead, sawProgress } from './facts.ts';
import type { SyncParts } from './parts.ts';
import type { Permit, PermitRequest } from './permits.ts';
import { exchange, recordAnswer, recordTrouble } from './request.ts';
import { type StagedParts, stage, stagedOn } from './staged-parts.ts';
import { ask, done, later, notStarted, type Step, troubled } from './step.ts';
import { troubleOf } from './trouble.ts';

/**
 * One page of events, applied through the one path that moves the head (IN1). A page that does not continue our chain is
 * thrown away and fetched once more past all caches; after that a handshake decides (IN3).
 */
export interface PullTarget {
  readonly class: Extract<PermitRequest['class'], 'pull' | 'bootstrap' | 'repair'>;
  /** Where the page must continue; null: there is nothing to pull any more. */
  from(): { readonly epoch: string | null; readonly at: Through; readonly identity: string | null } | null;
  /** Inside transaction 2. */
  apply(page: EventsPage, permit: Permit): PageOutcome;
}

export type PageOutcome =
  | { readonly ok: true; readonly value: Pick<IngestReport, 'applied' | 'head' | 'parked' | 'merged' | 'confirmed'> }
  | { readonly ok: false; readonly fault: Fault };

/** The visible log. */
export const intoLog = (parts: SyncParts, name: string): PullTarget => ({
  class: 'pull',
  from: () => {
    const log = parts.state.log(name);
    if (log === undefined || log.stage !== 'visible') return null;
    return { epoch: log.epoch, at: { version: log.head, chain: log.chain }, identity: log.identity };
  },
  apply: (page) => ingestPage(parts, name, page),
});

/** IN1, and PM7: own events that pass ingest close their obligations in the same transaction. */
export function ingestPage(
  parts: SyncParts,
  log: string,
  page: Parameters<SyncParts['state']['ingest']>[0] | EventsPage,
): PageOutcome {
  const outcome = parts.state.ingest({ ...page, log });
  if (outcome.ok && outcome.value.confirmed.length > 0) parts.permits.confirmed(outcome.value.confirmed);
  return outcome;
}

export async function pullPage(parts: SyncParts, facts: LogFacts, target: PullTarget): Promise<Step> {
  const first = await fetchPage(parts, facts, target, 'as-it-comes');
  if (!('wrongPage' in first)) return first;
  const second = await fetchPage(parts, facts, target, 'past-caches');
  if (!('wrongPage' in second)) return second;
  facts.wrongPages += 1;
  return ask(second.wrongPage);
}

async function fetchPage(
  parts: SyncParts,
  facts: LogFacts,
  target: PullTarget,
  way: 'as-it-comes' | 'past-caches',
): Promise<Step | { readonly wrongPage: Fault }> {
  const exchanged = await exchange(parts, () => {
    const from = target.from();
    if (from === null) return null;
    const { at, epoch, identity } = from;
    facts.staged = stagedOn(facts.staged, from);
    const after = facts.staged?.through ?? at;
    const limit = facts.sizes.pageEvents;
    const fresh = way === 'past-caches' ? `&fresh=${randomHex(parts.platform.random, 8)}` : '';
    return {
      from,
      after,
      class: target.class,
      log: facts.log,
      boundary: { epoch, version: at.version, chain: at.chain },
      method: 'GET' as const,
      path: `/logs/${encodeURIComponent(facts.log)}/events?after=${after.version}&limit=${limit}${fresh}`,
      namesLog: true,
      identity,
      patience: facts.sizes.patience,
    };
  });
  if (!exchanged.started) return notStarted(exchanged.why);
  const { permit, answer } = exchanged;
  if (answer.kind !== 'answered') {
    if (answer.kind === 'unknown' && answer.fault.code === 'request-timeout') facts.sizes.pageTimedOut();
    recordTrouble(parts, { permit, answer });
    return troubled(troubleOf(answer), exchanged.facts.as);
  }
  const read = decodeEventsPage(answer.body);
  if (!read.ok) {
    recordTrouble(parts, { permit, answer: { kind: 'unknown', fault: read.fault } });
    return later(read.fault);
  }
  const { from, after } = exchanged.spec;
  return takePage(parts, {
    facts,
    target,
    permit,
    page: read.value,
    from,
    after,
    bytes: exchanged.facts.receivedBytes,
  });
}

interface TakenPage {
  readonly facts: LogFacts;
  readonly target: PullTarget;
  readonly permit: Permit;
  readonly page: EventsPage;
  readonly from: NonNullable<ReturnType<PullTarget['from']>>;
  /** Where the page must continue: `from`, or the last staged part on top of it (PG2). */
  readonly after: Through;
  readonly bytes: number;
}

function takePage(parts: SyncParts, taken: TakenPage): Step | { readonly wrongPage: Fault } {
  const { facts, target, permit, from, after, bytes } = taken;
  const before = facts.staged;
  facts.staged = null;
  const doubt = doubtOf(taken.page, { ...from, at: after });
  if (doubt !== null) {
    giveUpPage(parts, permit, doubt);
    return doubt.code === 'chain-mismatch' ? { wrongPage: doubt } : ask(doubt);
  }
  const staging = stage(before, from.at, taken.page, bytes);
  if ('fault' in staging) {
    giveUpPage(parts, permit, staging.fault);
    return { wrongPage: staging.fault };
  }
  if ('staged' in staging) return keepPart(parts, taken, staging.staged);
  const page = staging.whole;
  let outcome: PageOutcome = { ok: false, fault: { code: 'not-following' } };
  try {
    recordAnswer(parts, { permit }, () => {
      outcome = target.apply(page, permit);
      if (!outcome.ok) throw new WrongPage(outcome.fault);
      journalPage(parts, permit, page, outcome);
    });
  } catch (error) {
    if (!(error instanceof WrongPage)) throw error;
    // Nobody may take it any more: the log was unfollowed, or the ledger has lost what it continues.
    if (NOT_WANTED.has(error.fault.code)) return { step: 'nothing' };
    // Nothing is wrong with the page: a swap may not be made yet.
    if (error.fault.code === 'not-ready') return later(error.fault);
    return { wrongPage: error.fault };
  }
  facts.wrongPages = 0;
  facts.mustPull = false;
  facts.sizes.worked();
  sawHead(facts, page.head);
  const saw = page.events.length > 0 ? sawProgress : sawAnswer;
  saw(facts, parts.platform.clock.monotonic());
  return done(page.events.length > 0);
}

/** Nothing of it is applied, and the head stays (PG2); its request is over all the same. */
function keepPart(parts: SyncParts, { facts, permit, page }: TakenPage, staged: StagedParts): Step {
  recordAnswer(parts, { permit }, () => {
    parts.journal.write(permit.class, { log: permit.log, part: staged.part, parts: staged.parts });
  });
  facts.staged = staged;
  facts.sizes.worked();
  sawHead(facts, page.head);
  sawProgress(facts, parts.platform.clock.monotonic());
  return done(true);
}

const NOT_WANTED: ReadonlySet<string> = new Set(['not-following', 'history-changed']);

/** Undoes the transaction that would have applied it; never leaves this file. */
class WrongPage extends Error {
  override readonly name = 'WrongPage';
  readonly fault: Fault;
  constructor(fault: Fault) {
    super(fault.code);
    this.fault = fault;
  }
}

/** What a page says before any of it is applied. */
function doubtOf(page: EventsPage, { at, epoch }: TakenPage['from']): Fault | null {
  // A head below ours is not "nothing new" (IN3); another epoch is taken from a handshake only (DG3).
  if (page.head < at.version) return { code: 'history-changed', facts: { head: page.head, ours: at.version } };
  if (epoch !== null && page.epoch !== epoch) return { code: 'history-changed', facts: { epoch: page.epoch } };
  const isSame = page.through.version === at.version && page.through.chain === at.chain;
  if (page.events.length === 0 && page.part === undefined && !isSame)
    return { code: 'chain-mismatch', facts: { version: at.version } };
  return null;
}

function giveUpPage(parts: SyncParts, permit: Permit, fault: Fault): void {
  recordTrouble(parts, { permit, answer: { kind: 'unknown', fault } });
}

function journalPage(parts: SyncParts, permit: Permit, page: EventsPage, outcome: PageOutcome): void {
  if (page.events.length === 0 || !outcome.ok) return;
  const { applied, merged, parked, head } = outcome.value;
  parts.journal.write(permit.class, { log: permit.log, applied, merged, parked, head });
}
