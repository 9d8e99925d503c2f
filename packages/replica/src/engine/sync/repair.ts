import type { EventsPage } from '@holdfast/core';
import type { FollowedLog } from '../replica-state.ts';
import { bootstrapStep, intoBootstrap } from './bootstrap.ts';
import type { LogFacts } from './facts.ts';
import type { SyncParts } from './parts.ts';
import type { Permit } from './permits.ts';
import { ingestPage, type PageOutcome, type PullTarget, pullPage } from './pull.ts';
import { done, type Step } from './step.ts';

/**
 * Repair (6.6), for a log whose position is in the log and whose state signature differs there, and for one whose ledger
 * a person chose to adopt (HL4). No answer, no swap: while a push of this log is owed, the cycle recovers first. A history that
 * is adopted comes first instead: from the old position nothing can be asked, and request ids make it safe to ask afterwards.
 */
export const mustRepair = (log: FollowedLog, facts: LogFacts): boolean =>
  log.repairing ||
  (log.stage === 'visible' &&
    facts.isProven &&
    facts.standing !== null &&
    'signature' in facts.standing &&
    facts.standing.signature === 'differs');

export async function repairStep(parts: SyncParts, facts: LogFacts): Promise<Step | { readonly step: 'compare' }> {
  const progress = parts.state.bootstrapCursor(facts.log);
  // A person who adopts a history has chosen to take it whole: then there is no state that a repair should have mended.
  const isAdopting = parts.state.log(facts.log)?.adopting === true;
  if (progress === undefined && facts.repairs > 0 && !isAdopting) {
    // BS2, 6.6: what was fetched whole, and proven, differs again. More of the same would prove nothing.
    parts.write(() => parts.state.block(facts.log, { code: 'ledger-state-suspect', facts: { log: facts.log } }));
    return done(true);
  }
  const isCompared = progress?.scanned === true && facts.compared?.version === progress.head;
  if (!isCompared) return bootstrapStep(parts, facts, 'repair');
  const step = await pullPage(parts, facts, swapIn(parts, facts));
  if (step.step !== 'done') return step;
  facts.compared = null;
  facts.repairs += 1;
  // The next handshake shows whether it helped.
  facts.isProven = false;
  return done(true);
}

/**
 * The swap happens in the transaction of one more page, under its `repair` permit: everything that was to be fetched
 * again is settled with it (PM9), and what the log has added meanwhile goes on top by the one path.
 */
const swapIn = (parts: SyncParts, facts: LogFacts): PullTarget => ({
  ...intoBootstrap(parts, facts),
  apply: (page, permit) => swap(parts, facts, { page, permit }),
});

interface Swap {
  readonly page: EventsPage;
  readonly permit: Permit;
}

function swap(parts: SyncParts, facts: LogFacts, { page, permit }: Swap): PageOutcome {
  const isAdopting = parts.state.log(facts.log)?.adopting === true;
  if (!isAdopting && parts.permits.owed(facts.log).operations.length > 0)
    return { ok: false, fault: { code: 'not-ready' } };
  parts.state.finishBootstrap(facts.log);
  if (facts.standing !== null) parts.state.recordStanding(facts.standing);
  parts.permits.settleByRepair(permit);
  return ingestPage(parts, facts.log, page);
}
