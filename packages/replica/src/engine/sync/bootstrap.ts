import { decodeEntitiesPage, type EntitiesPage, type Fault, LIMITS } from '@holdfast/core';
import { FaultError } from '../fault-error.ts';
import type { BootstrapProgress } from '../replica-state.ts';
import { type LogFacts, sawHead, sawProgress } from './facts.ts';
import type { SyncParts } from './parts.ts';
import { type PullTarget, pullPage } from './pull.ts';
import { exchange, recordAnswer, recordTrouble } from './request.ts';
import { ask, done, later, notStarted, type Step, troubled } from './step.ts';
import { troubleOf } from './trouble.ts';

/**
 * The first state of a log, or a repaired one, as a fuzzy snapshot (5.3): note the position, scan the entities page by
 * page, pull from that position on, and let a handshake compare the signature. Resumable at any page; the tables are the
 * state's. One call makes one step.
 */
export async function bootstrapStep(
  parts: SyncParts,
  facts: LogFacts,
  purpose: BootstrapProgress['purpose'],
): Promise<Step | { readonly step: 'compare' }> {
  const progress = parts.state.bootstrapCursor(facts.log);
  if (progress === undefined) return begin(parts, facts, purpose);
  if (!progress.scanned) return scanPage(parts, facts);
  if (facts.ledgerHead === null || progress.head < facts.ledgerHead)
    return pullPage(parts, facts, intoBootstrap(parts, facts));
  return { step: 'compare' };
}

/** BS1: the position that everything after it is measured by. */
function begin(parts: SyncParts, facts: LogFacts, purpose: BootstrapProgress['purpose']): Step {
  const { standing } = facts;
  if (standing === null || !('head' in standing)) return ask({ code: 'not-ready' });
  const { head, epoch } = standing;
  // What an earlier fetch was compared with says nothing of this one, also where both have one version.
  facts.compared = null;
  parts.write(() => {
    parts.state.beginBootstrap(facts.log, head, epoch, purpose);
    // Nothing has ever happened in this log: what there is to fetch is known without asking.
    if (head.version === 0 && purpose === 'bootstrap') {
      parts.state.bootstrapPage(facts.log, { asOf: head, entities: [], after: null, next: null });
      finishFirstState(parts, facts.log);
    }
    parts.journal.write(purpose, { log: facts.log, from: head.version });
  });
  sawHead(facts, head.version);
  return done(true);
}

/**
 * The first state becomes visible: whatever page of it was owed is here, also one of a history that the ledger has lost
 * since, of which no later request could tell that it lies ahead (PM7, BS4).
 */
export function finishFirstState(parts: SyncParts, log: string): void {
  parts.state.finishBootstrap(log);
  parts.permits.settleByFirstState(log);
}

async function scanPage(parts: SyncParts, facts: LogFacts): Promise<Step> {
  const exchanged = await exchange(parts, () => {
    const progress = parts.state.bootstrapCursor(facts.log);
    if (progress === undefined || progress.scanned) return null;
    const cursor = progress.cursor === null ? '' : `&cursor=${encodeURIComponent(progress.cursor)}`;
    return {
      progress,
      class: progress.purpose,
      log: facts.log,
      boundary: { epoch: progress.epoch, version: progress.from.version, chain: progress.from.chain },
      method: 'GET' as const,
      path: `/logs/${encodeURIComponent(facts.log)}/entities?limit=${facts.sizes.pageEvents}${cursor}`,
      namesLog: true,
      identity: identityOf(facts),
      patience: facts.sizes.patience,
    };
  });
  if (!exchanged.started) return notStarted(exchanged.why);
  const { permit, answer, spec } = exchanged;
  if (answer.kind !== 'answered') {
    if (answer.kind === 'unknown' && answer.fault.code === 'request-timeout') facts.sizes.pageTimedOut();
    recordTrouble(parts, { permit, answer });
    return troubled(troubleOf(answer), exchanged.facts.as);
  }
  const read = decodeEntitiesPage(answer.body);
  const fault = read.ok ? doubtOf(read.value, spec.progress) : read.fault;
  if (!read.ok || fault !== null) {
    const given = fault ?? { code: 'answer-malformed' };
    recordTrouble(parts, { permit, answer: { kind: 'unknown', fault: given } });
    return given.code === 'history-changed' ? ask(given) : later(given);
  }
  const page = read.value;
  recordAnswer(parts, { permit }, () => {
    const { cursor } = spec.progress;
    const { asOf, entities, next = null } = page;
    const taken = parts.state.bootstrapPage(facts.log, { asOf, entities, after: cursor, next });
    if (!taken.ok) throw new FaultError(taken.fault);
  });
  sawHead(facts, page.asOf.version);
  facts.sizes.worked();
  sawProgress(facts, parts.platform.clock.monotonic());
  return done(true);
}

/** BS1: a page read before H is thrown away; another epoch is for a handshake to judge (BS4). */
function doubtOf(page: EntitiesPage, progress: BootstrapProgress): Fault | null {
  if (page.epoch !== progress.epoch) return { code: 'history-changed', facts: { epoch: page.epoch } };
  if (page.asOf.version < progress.from.version)
    return { code: 'page-gap', facts: { asOf: page.asOf.version, from: progress.from.version } };
  if (page.entities.length > LIMITS.pageEventsMax * 4) return { code: 'answer-malformed', facts: { why: 'too-many' } };
  if (page.next !== undefined && page.next === progress.cursor)
    return { code: 'answer-malformed', facts: { why: 'cursor' } };
  return null;
}

/** BS2: from the noted position on, strictly; an event takes effect above the `asOf` of the range that covers it. */
export const intoBootstrap = (parts: SyncParts, facts: LogFacts): PullTarget => ({
  class: parts.state.bootstrapCursor(facts.log)?.purpose ?? 'bootstrap',
  from: () => {
    const progress = parts.state.bootstrapCursor(facts.log);
    if (progress === undefined) return null;
    return {
      epoch: progress.epoch,
      at: { version: progress.head, chain: progress.chain },
      identity: identityOf(facts),
    };
  },
  apply: (page) => parts.state.ingest({ ...page, log: facts.log }, 'bootstrap'),
});

/** What is fetched belongs to the log that the last handshake spoke of, also where the visible one is another (HL4). */
const identityOf = (facts: LogFacts): string | null =>
  facts.standing !== null && 'identity' in facts.standing ? facts.standing.identity : null;
