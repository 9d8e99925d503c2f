import { type Fault, LIMITS } from '@holdfast/core';
import { type LogFacts, sawHead } from './facts.ts';
import { type HandshakeLog, handshake } from './handshake.ts';
import type { Trigger, Verdict } from './loop.ts';
import type { SyncParts } from './parts.ts';
import { WHOLE_WORKSPACE } from './permits.ts';
import type { AskedAs } from './request.ts';
import type { Backoff } from './retry.ts';
import type { Trouble } from './trouble.ts';

/**
 * The first half of a cycle, of all logs: settle old permits locally → handshake (6.5). It runs only for logs of which
 * something is not proven, or that somebody wants asked again; everything else is left out (SY1).
 */
export interface LedgerCycleHooks {
  readonly backoff: Backoff;
  facts(): readonly LogFacts[];
  /** False while the replica stands, and nothing came that could have changed that. */
  mayAsk(triggers: readonly Trigger[]): boolean;
  /** The ledger tells us of this log as things happen. */
  covers(log: string): boolean;
  /** A permit of this log ended without an answer. */
  owes(log: string): void;
  begin(): void;
  whole(trouble: Trouble, as: AskedAs | undefined): Promise<Verdict>;
  unreachable(trouble: Trouble): void;
  /** The ledger answered as ledger. */
  worked(logs: readonly HandshakeLog[]): void;
}

/** Asked again although the last answer still holds. */
const ASKS_AGAIN: ReadonlySet<Trigger> = new Set(['online', 'visible', 'manual', 'credentials']);

export async function runLedgerCycle(
  parts: SyncParts,
  hooks: LedgerCycleHooks,
  triggers: readonly Trigger[],
): Promise<Verdict> {
  if (!hooks.mayAsk(triggers)) return { next: 'idle' };
  for (const log of settleOverdue(parts))
    if (log === WHOLE_WORKSPACE) for (const facts of hooks.facts()) facts.isAskedAgain = true;
    // A lane at rest does not know that something is owed now.
    else hooks.owes(log);
  const isAsking = triggers.some((trigger) => ASKS_AGAIN.has(trigger));
  const isPoll = triggers.includes('poll') || triggers.includes('retry');
  for (const facts of hooks.facts()) if (isAsking || (isPoll && !hooks.covers(facts.log))) facts.isAskedAgain = true;

  const open = hooks.facts().filter((facts) => !facts.isProven || facts.isAskedAgain);
  if (open.length === 0) return untilNextPoll(parts, hooks);
  const asked = open.slice(0, LIMITS.handshakeLogsMax);
  hooks.begin();
  // Whoever asks again while it is on its way gets another one.
  for (const facts of asked) {
    facts.isAskedAgain = false;
    facts.handshakeAsked += 1;
    if (facts.activity === 'idle') facts.activity = 'handshake';
  }
  let isAnswered = false;
  try {
    const result = await handshake(
      parts,
      asked.map(({ log }) => log),
      1,
    );
    if (!result.done) {
      if ('trouble' in result) {
        // What went wrong before that is not what is waited for now (I30).
        for (const facts of asked) if (facts.fault !== null) facts.fault = result.trouble.fault;
        return await afterTrouble(hooks, result.trouble, result.as);
      }
      return result.why === 'no-token'
        ? { next: 'retry', inMs: noToken(hooks) }
        : { next: 'idle', withinMs: parts.settings.pollMs };
    }
    for (const log of result.logs) learn(parts, hooks, log);
    isAnswered = true;
    hooks.worked(result.logs);
  } finally {
    for (const facts of asked) {
      if (!isAnswered) facts.isAskedAgain = true;
      if (facts.activity === 'handshake') facts.activity = 'idle';
    }
  }
  hooks.backoff.reset();
  return open.length > asked.length ? { next: 'again' } : untilNextPoll(parts, hooks);
}

/** PM6, PM12: what nobody works on any more ends here, and its operations wait again under their request ids. Gives the logs. */
export function settleOverdue(parts: SyncParts): readonly string[] {
  return settleOld(parts, { of: 'overdue', working: parts.working.permits });
}

export function settleOld(parts: SyncParts, old: Parameters<SyncParts['permits']['settleOld']>[0]): readonly string[] {
  return parts.write(() => {
    const { queueAgain, logs, blocked } = parts.permits.settleOld(old);
    if (queueAgain.length > 0) parts.state.markUnknown(queueAgain, { code: 'permit-expired' }, null);
    for (const log of blocked)
      if (parts.state.log(log)?.blocked === null) parts.state.block(log, { code: 'local-commit-invariant' });
    if (queueAgain.length > 0) parts.journal.write('recovered', { of: old.of, operations: queueAgain.length });
    return logs;
  });
}

function learn(parts: SyncParts, hooks: LedgerCycleHooks, answered: HandshakeLog): void {
  const { log, standing, fetched, of } = answered;
  const facts = hooks.facts().find((one) => one.log === log);
  if (facts === undefined) return;
  facts.isProven = true;
  facts.standing = standing;
  facts.handshakeAnswered = facts.handshakeAsked;
  facts.pushRefused = null;
  facts.provenAtMs = parts.platform.clock.monotonic();
  if ('head' in standing) {
    // The one place that may lower it: the ledger itself says what it holds.
    facts.ledgerHead = standing.head.version;
    const head = parts.state.log(log)?.head ?? 0;
    if (standing.status !== 'history-changed') sawHead(facts, head);
  }
  if (of === 'repair' && standing.status === 'history-changed') facts.standing = null;
  if (of === 'head' && 'signature' in standing && standing.signature === 'equal') facts.repairs = 0;
  if (fetched?.signature === 'equal') {
    facts.compared = { version: fetched.version };
    facts.differing = 0;
  }
  if (fetched?.signature === 'differs') differs(parts, facts);
}

/** BS2: what was fetched is thrown away; the second time it is the ledger's state that is suspect. */
function differs(parts: SyncParts, facts: LogFacts): void {
  facts.differing += 1;
  if (facts.differing < 2) return;
  parts.write(() => parts.state.block(facts.log, { code: 'ledger-state-suspect', facts: { log: facts.log } }));
}

function afterTrouble(hooks: LedgerCycleHooks, trouble: Trouble, as: AskedAs): Promise<Verdict> | Verdict {
  switch (trouble.next) {
    case 'sign-in':
    case 'renew':
    case 'wait-whole':
      return hooks.whole(trouble, as);
    case 'reissue':
      return { next: 'retry', inMs: hooks.backoff.next() };
    case 'ask':
      // Of a whole workspace: there is nothing here that we may see, or it is somewhere else.
      return hooks.whole({ next: 'wait-whole', phase: 'blocked', fault: trouble.fault }, as);
    case 'retry':
      hooks.unreachable(trouble);
      return { next: 'retry', inMs: hooks.backoff.next(trouble.retryAfterMs) };
    default:
      hooks.unreachable(trouble);
      return { next: 'retry', inMs: hooks.backoff.next() };
  }
}

const NO_TOKEN: Fault = { code: 'token-failed' };

function noToken(hooks: LedgerCycleHooks): number {
  hooks.unreachable({ next: 'retry', fault: NO_TOKEN, retryAfterMs: null });
  return hooks.backoff.next();
}

/** Without a socket that covers a log, somebody has to ask (F76). */
function untilNextPoll(parts: SyncParts, hooks: LedgerCycleHooks): Verdict {
  const isCovered = hooks.facts().every(({ log }) => hooks.covers(log));
  return isCovered ? { next: 'idle' } : { next: 'idle', withinMs: parts.settings.pollMs };
}
