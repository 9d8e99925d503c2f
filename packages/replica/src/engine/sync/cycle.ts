import { LIMITS } from '@holdfast/core';
import { bootstrapStep } from './bootstrap.ts';
import { type Activity, isBehind, type LogFacts } from './facts.ts';
import type { Verdict } from './loop.ts';
import type { SyncParts } from './parts.ts';
import { intoLog, pullPage } from './pull.ts';
import { pushOnce } from './push.ts';
import { recoverOnce } from './recover.ts';
import { mustRepair, repairStep } from './repair.ts';
import type { AskedAs } from './request.ts';
import { type Backoff, untilRetryMs } from './retry.ts';
import { IDLE_STEPS_MAX, STEPS_PER_CYCLE_MAX } from './settings.ts';
import type { Step } from './step.ts';
import type { Trouble } from './trouble.ts';

/**
 * The second half of a cycle, of one log: recover → bootstrap or repair → pull → push → rest (6.5). Level-triggered: every
 * step is chosen by looking at what is, never by counting what was heard (F86). A step whose result is proven already is
 * left out (SY1), so that with a live socket at the head a commit costs one push and nothing else.
 */
export interface CycleHooks {
  readonly backoff: Backoff;
  /** A handshake has to say where this log stands, before anything else. */
  wantProof(log: string): void;
  /** What was said of the whole replica, not of this log. */
  whole(trouble: Trouble, as: AskedAs | undefined): Promise<Verdict>;
  unreachable(trouble: Trouble): void;
  /** Nothing is left to ask: time for the socket. */
  atRest(log: string): void;
  /** It is blocked, or not followed any more: nothing of it is to be heard. */
  stands(log: string): void;
  changed(): void;
}

type Next = 'settle' | 'recover' | 'bootstrap' | 'repair' | 'pull' | 'push';

const ACTIVITY: Readonly<Record<Next, Activity>> = {
  settle: 'recovering',
  recover: 'recovering',
  bootstrap: 'bootstrapping',
  repair: 'repairing',
  pull: 'pulling',
  push: 'pushing',
};

/**
 * What this run has found to lead nowhere: `nothing` to ask, or the `same` answer as before (F79). Forgotten as soon as
 * something moves.
 */
type InVain = Map<Next, 'nothing' | 'same'>;

export async function runCycle(parts: SyncParts, facts: LogFacts, hooks: CycleHooks): Promise<Verdict> {
  const inVain: InVain = new Map();
  try {
    for (let steps = 0; steps < STEPS_PER_CYCLE_MAX; steps += 1) {
      const next = parts.state.read(() => chooseNext(parts, facts, inVain));
      if (next === 'stand') {
        hooks.stands(facts.log);
        return { next: 'idle' };
      }
      if (next === 'prove') return prove(facts, hooks);
      if (next === 'rest') return rest(parts, facts, hooks, inVain);
      setActivity(facts, hooks, ACTIVITY[next]);
      const step = await takeStep(parts, facts, hooks, next);
      const verdict = await judge(parts, facts, hooks, { step, next, inVain });
      if (verdict !== null) return verdict;
    }
    return { next: 'again' };
  } finally {
    setActivity(facts, hooks, 'idle');
  }
}

function chooseNext(parts: SyncParts, facts: LogFacts, inVain: InVain): Next | 'stand' | 'prove' | 'rest' {
  const log = parts.state.log(facts.log);
  if (log === undefined || log.blocked !== null) return 'stand';
  if (!facts.isProven) return 'prove';
  const owed = parts.permits.owed(facts.log);
  const mayTry = (next: Next): boolean => !inVain.has(next);
  const isRepair = mustRepair(log, facts);
  const isReadable = log.stage === 'visible' && !isRepair;
  // Its request was given up when the state had come another way (a full disk, a forced switch).
  if (isReadable && owed.state && mayTry('settle')) return 'settle';
  // Owed operations first; but reading never waits for them: where asking failed, pages come before the next try.
  if (facts.pushFailed && isReadable && isBehind(log, facts) && mayTry('pull')) return 'pull';
  // What is owed to a history that the ledger has lost is asked about once its new one is adopted (HL4).
  const mayAsk = log.stage === 'visible' && log.adopting !== true && mayPush(parts, facts);
  if (mayAsk && mayTry('recover') && owed.operations.length > 0) return 'recover';
  if (isRepair) return mayTry('repair') ? 'repair' : 'rest';
  if (log.stage !== 'visible') return mayTry('bootstrap') ? 'bootstrap' : 'rest';
  if (isBehind(log, facts) && mayTry('pull')) return 'pull';
  // What a page was to bring may have come another way: one that ends at the head closes what is owed (PM7).
  if (mayTry('pull') && owed.pull) return 'pull';
  if (mayAsk && mayTry('push') && parts.state.flowing(facts.log) > 0) return 'push';
  return 'rest';
}

function mayPush(parts: SyncParts, facts: LogFacts): boolean {
  return facts.pushRefused === null || parts.platform.clock.monotonic() >= facts.pushRefused.untilMs;
}

type TakenStep = Step | { readonly step: 'compare' };

function takeStep(parts: SyncParts, facts: LogFacts, hooks: CycleHooks, next: Next): Promise<TakenStep> {
  const retryInMs = (retryAfterMs: number | null) => hooks.backoff.next(retryAfterMs);
  switch (next) {
    case 'settle':
      return Promise.resolve(settleState(parts, facts.log));
    case 'recover':
      return recoverOnce(parts, facts, retryInMs);
    case 'repair':
      return repairStep(parts, facts);
    case 'bootstrap':
      return bootstrapStep(parts, facts, 'bootstrap');
    case 'pull':
      return pullPage(parts, facts, intoLog(parts, facts.log));
    case 'push':
      return pushOnce(parts, facts, retryInMs);
  }
}

/** Nothing is asked: what was owed is here. */
function settleState(parts: SyncParts, log: string): Step {
  parts.write(() => parts.permits.settleByFirstState(log));
  return { step: 'nothing' };
}

/** Null: go on. */
async function judge(
  parts: SyncParts,
  facts: LogFacts,
  hooks: CycleHooks,
  taken: { readonly step: TakenStep; readonly next: Next; readonly inVain: InVain },
): Promise<Verdict | null> {
  const { step, next, inVain } = taken;
  hooks.changed();
  switch (step.step) {
    case 'done':
      return afterAnswer(parts, facts, hooks, { moved: step.moved, next, inVain });
    case 'nothing':
      inVain.set(next, 'nothing');
      return null;
    case 'held':
      return { next: 'idle' };
    case 'compare':
      // What was fetched is at the ledger's head: the handshake compares signatures.
      facts.doubts += 1;
      if (facts.doubts <= IDLE_STEPS_MAX) return prove(facts, hooks);
      facts.isProven = false;
      return { next: 'retry', inMs: hooks.backoff.next() };
    case 'trouble':
      return afterTrouble(parts, facts, hooks, { step, next });
  }
}

function afterAnswer(
  parts: SyncParts,
  facts: LogFacts,
  hooks: CycleHooks,
  of: { readonly moved: boolean; readonly next: Next; readonly inVain: InVain },
): Verdict | null {
  if (of.moved) {
    of.inVain.clear();
    return null;
  }
  of.inVain.set(of.next, 'same');
  const log = parts.state.log(facts.log);
  const isBehindHead = log !== undefined && isBehind(log, facts);
  // The ledger named a head, and a page that ends below it: a handshake tells what is true.
  const isShort = of.next === 'bootstrap' || of.next === 'repair' || (of.next === 'pull' && isBehindHead);
  if (isShort) return doubt(facts, hooks);
  return null;
}

async function afterTrouble(
  parts: SyncParts,
  facts: LogFacts,
  hooks: CycleHooks,
  of: { readonly step: Extract<Step, { step: 'trouble' }>; readonly next: Next },
): Promise<Verdict | null> {
  const { trouble, as, inMs } = of.step;
  facts.fault = trouble.fault;
  if (of.next === 'push' || of.next === 'recover') facts.pushFailed = true;
  const { code } = trouble.fault;
  switch (trouble.next) {
    case 'sign-in':
    case 'renew':
    case 'wait-whole':
      facts.isProven = false;
      return hooks.whole(trouble, as);
    case 'reissue':
      facts.doubts += 1;
      return facts.doubts < IDLE_STEPS_MAX ? null : retry(facts, hooks, trouble);
    case 'ask':
      if (code === 'not-allowed' && (of.next === 'push' || of.next === 'recover')) {
        // Reading goes on; writing is tried again from time to time, in case somebody is given the right.
        const untilMs = parts.platform.clock.monotonic() + LIMITS.retryMaxMs;
        facts.pushRefused = { fault: trouble.fault, untilMs };
        return null;
      }
      if (facts.wrongPages > 1) {
        // IN3: the position is in the log, and the page is still wrong. Reading stops, nothing is thrown away.
        parts.write(() => parts.state.block(facts.log, { code: 'ledger-history-damaged', facts: { from: code } }));
        return null;
      }
      return doubt(facts, hooks);
    case 'retry':
      if (code === 'quota-exceeded') facts.overQuota = trouble.fault;
      return retry(facts, hooks, trouble, inMs);
    default:
      return retry(facts, hooks, trouble, inMs);
  }
}

/** The first doubt is asked about at once; one that comes back although the ledger said all is well has to wait. */
function doubt(facts: LogFacts, hooks: CycleHooks): Verdict {
  facts.isProven = false;
  facts.doubts += 1;
  if (facts.doubts > 1) return { next: 'retry', inMs: hooks.backoff.next() };
  return prove(facts, hooks);
}

/** After an unknown outcome the next question is small: where do we stand. */
function retry(facts: LogFacts, hooks: CycleHooks, trouble: Trouble, inMs?: number): Verdict {
  facts.isProven = false;
  hooks.unreachable(trouble);
  const retryAfterMs = trouble.next === 'retry' ? trouble.retryAfterMs : null;
  return { next: 'retry', inMs: inMs ?? hooks.backoff.next(retryAfterMs) };
}

function prove(facts: LogFacts, hooks: CycleHooks): Verdict {
  facts.isProven = false;
  hooks.wantProof(facts.log);
  return { next: 'idle' };
}

function rest(parts: SyncParts, facts: LogFacts, hooks: CycleHooks, inVain: InVain): Verdict {
  const { clock } = parts.platform;
  const waits: number[] = [];
  if (inVain.get('push') === 'same' || inVain.get('recover') === 'same') waits.push(hooks.backoff.next());
  else hooks.backoff.reset();
  hooks.atRest(facts.log);
  const storedAtMs = parts.state.nextRetryAtMs(facts.log);
  if (storedAtMs !== null) {
    // A clock that was set back may not keep work waiting beyond the cap (OB4).
    if (storedAtMs > clock.now() + LIMITS.retryMaxMs) parts.write(() => parts.state.resetRetries());
    waits.push(untilRetryMs({ storedAtMs, nowMs: clock.now() }));
  }
  if (facts.pushRefused !== null) waits.push(Math.max(0, facts.pushRefused.untilMs - clock.monotonic()));
  return waits.length === 0 ? { next: 'idle' } : { next: 'idle', withinMs: Math.max(1, Math.min(...waits)) };
}

function setActivity(facts: LogFacts, hooks: CycleHooks, activity: Activity): void {
  if (facts.activity === activity) return;
  facts.activity = activity;
  hooks.changed();
}
