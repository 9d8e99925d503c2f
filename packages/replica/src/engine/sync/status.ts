import type { Fault, SessionPhase, SessionSignal } from '@holdfast/core';
import type { BootstrapProgress, FollowedLog, OutboxCounts } from '../replica-state.ts';
import { type Activity, isBehind, type LogFacts } from './facts.ts';

/**
 * What the engine knows, and nothing more (P8, I30). A number that is not known is null. Derived each time from state and
 * facts, so that it cannot go stale by itself.
 */
export interface SyncStatus {
  readonly phase: SessionPhase;
  readonly reason: Fault | null;
  readonly isPaused: boolean;
  readonly unsent: number;
  readonly attention: number;
  readonly activity: Activity;
  /** The earliest of all logs; null until each of them was proven to be at the ledger's head once. */
  readonly lastSyncedAt: string | null;
  /** When the next try is due, in milliseconds from now; null where none is waited for. */
  readonly retryInMs: number | null;
  readonly logs: readonly LogStatus[];
}

export interface LogStatus {
  readonly log: string;
  readonly phase: SessionPhase;
  readonly reason: Fault | null;
  readonly activity: Activity;
  /** What is applied here. */
  readonly head: number;
  /** What the ledger named last. */
  readonly ledgerHead: number | null;
  readonly lastSyncedAt: string | null;
  readonly progress: {
    readonly of: BootstrapProgress['purpose'] | 'catching-up';
    /** Entities fetched; events still to come, where the ledger's head is known. */
    readonly entities: number | null;
    readonly eventsLeft: number | null;
  } | null;
}

export interface LogView {
  readonly log: FollowedLog;
  readonly facts: LogFacts;
  readonly progress: BootstrapProgress | undefined;
  /** The socket tells of it. */
  readonly isCovered: boolean;
}

export interface StatusView {
  readonly phase: SessionPhase;
  readonly reason: Fault | null;
  readonly isPaused: boolean;
  readonly counts: OutboxCounts;
  readonly logs: readonly LogView[];
  readonly nowMs: number;
  /** How old a proof of life may be. */
  readonly proofMs: number;
  readonly retryInMs: number | null;
}

export function statusOf(view: StatusView): SyncStatus {
  const logs = view.logs.map((log) => logStatus(log, view));
  const phase = view.isPaused ? 'stopped' : wholePhase(view.phase, logs);
  return {
    phase,
    // What only a log knows, say that its disk is full, is the whole's reason too where it decides the phase.
    reason: view.reason ?? logs.find((log) => log.phase === phase && log.reason !== null)?.reason ?? null,
    isPaused: view.isPaused,
    unsent: view.counts.unsent,
    attention: view.counts.attention,
    activity: logs.find(({ activity }) => activity !== 'idle')?.activity ?? 'idle',
    lastSyncedAt: earliest(logs.map(({ lastSyncedAt }) => lastSyncedAt)),
    retryInMs: view.retryInMs,
    logs,
  };
}

/** A replica is no better off than the log that is worst off (I30). */
function wholePhase(phase: SessionPhase, logs: readonly LogStatus[]): SessionPhase {
  if (phase !== 'live' && phase !== 'catching-up') return phase;
  return WORST_FIRST.find((worst) => logs.some((log) => log.phase === worst)) ?? phase;
}

function logStatus({ log, facts, progress, isCovered }: LogView, view: StatusView): LogStatus {
  const { phase, reason } = phaseOf({ log, facts, progress, isCovered }, view);
  return {
    log: log.log,
    phase,
    reason,
    activity: facts.activity,
    head: log.head,
    ledgerHead: facts.ledgerHead ?? log.ledgerHead,
    lastSyncedAt: log.lastSyncedAt,
    progress: progressOf(log, facts, progress),
  };
}

/** Phases that belong to the whole replica, whatever one log says. */
const OF_THE_WHOLE: ReadonlySet<SessionPhase> = new Set([
  'sign-in-needed',
  'other-account',
  'update-needed',
  'no-owner',
  'stopped',
]);

type Standing = Pick<StatusView, 'phase' | 'reason' | 'nowMs' | 'proofMs'>;

function phaseOf(one: LogView, view: Standing): { readonly phase: SessionPhase; readonly reason: Fault | null } {
  const { log, facts } = one;
  if (OF_THE_WHOLE.has(view.phase)) return { phase: view.phase, reason: view.reason };
  const said = saidOf(one);
  if (said !== null) return said;
  if (!facts.isProven) {
    const isOffline = view.phase === 'offline' || facts.fault !== null;
    return { phase: isOffline ? 'offline' : 'connecting', reason: facts.fault ?? (isOffline ? view.reason : null) };
  }
  if (log.stage !== 'visible' || log.repairing || isBehind(log, facts))
    return { phase: 'catching-up', reason: facts.fault };
  return { phase: isAlive(one, view) ? 'live' : 'connecting', reason: null };
}

const BLOCKED_PHASES: Partial<Record<Fault['code'], SessionPhase>> = {
  moved: 'moved',
  deleted: 'deleted',
  'history-changed': 'history-changed',
};

/** What stands in this log's way by an answer of the ledger. */
function saidOf({ log, facts }: LogView): { readonly phase: SessionPhase; readonly reason: Fault } | null {
  if (log.blocked !== null) return { phase: BLOCKED_PHASES[log.blocked.code] ?? 'blocked', reason: log.blocked };
  if (facts.pushRefused !== null) return { phase: 'blocked', reason: facts.pushRefused.fault };
  return facts.overQuota === null ? null : { phase: 'quota', reason: facts.overQuota };
}

/** I30: at the head, as far as the ledger said within the time that a proof is good for. */
export const isAlive = (
  { facts, isCovered }: Pick<LogView, 'facts' | 'isCovered'>,
  { nowMs, proofMs }: Pick<StatusView, 'nowMs' | 'proofMs'>,
): boolean => isCovered || (facts.provenAtMs !== null && nowMs - facts.provenAtMs <= proofMs);

function progressOf(log: FollowedLog, facts: LogFacts, progress: BootstrapProgress | undefined): LogStatus['progress'] {
  if (progress !== undefined)
    return {
      of: progress.purpose,
      entities: progress.entities,
      eventsLeft: progress.scanned && facts.ledgerHead !== null ? Math.max(0, facts.ledgerHead - progress.head) : null,
    };
  if (log.stage !== 'visible' || facts.ledgerHead === null || log.head >= facts.ledgerHead) return null;
  return { of: 'catching-up', entities: null, eventsLeft: facts.ledgerHead - log.head };
}

const earliest = (instants: readonly (string | null)[]): string | null =>
  instants.length === 0 || instants.includes(null) ? null : ([...(instants as string[])].sort()[0] ?? null);

/** The worst of all logs decides what the whole replica says: one that is gone matters more than one that is live. */
const WORST_FIRST: readonly SessionPhase[] = [
  'history-changed',
  'moved',
  'deleted',
  'blocked',
  'quota',
  'offline',
  'connecting',
  'catching-up',
  'live',
];

const SIGNALS: Partial<Record<SessionPhase, SessionSignal>> = {
  'history-changed': 'history-changed',
  moved: 'moved',
  deleted: 'deleted',
  blocked: 'blocked',
  quota: 'quota',
  'catching-up': 'behind',
  live: 'at-head',
};

/** What the logs together say to the session's grid; null where nothing is known yet. */
export function signalOf(view: Standing & Pick<StatusView, 'logs'>): {
  readonly signal: SessionSignal;
  readonly reason: Fault | null;
} | null {
  const phases = view.logs.map((log) => phaseOf(log, view));
  for (const phase of WORST_FIRST) {
    const found = phases.find((one) => one.phase === phase);
    if (found === undefined) continue;
    const signal = SIGNALS[phase];
    return signal === undefined ? null : { signal, reason: found.reason };
  }
  return null;
}
