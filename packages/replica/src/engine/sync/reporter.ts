import type { CancelSignal, Fault } from '@holdfast/core';
import { isBehind } from './facts.ts';
import type { Lanes } from './lanes.ts';
import type { SyncParts } from './parts.ts';
import type { SessionDriver } from './session.ts';
import { type SettleReport, type SettleView, settleWhen } from './settle.ts';
import { type LogView, type SyncStatus, signalOf, statusOf } from './status.ts';
import { createWatchdog, type Watched } from './watchdog.ts';

/**
 * Tells what the engine knows: status to its listeners, obstacles to whoever settles, lack of progress to the watchdog.
 * Derived from state and facts; gathers what changes within one turn into one telling.
 */
export interface Reporter {
  readonly status: SyncStatus;
  changed(): void;
  subscribe(listener: (status: SyncStatus) => void): () => void;
  settle(signal: CancelSignal | undefined): Promise<SettleReport>;
  close(): void;
}

export function createReporter(of: {
  readonly parts: SyncParts;
  readonly session: SessionDriver;
  readonly lanes: Lanes;
  readonly isCovered: (log: string) => boolean;
  readonly isPaused: () => boolean;
  readonly retryAtMs: () => readonly (number | null)[];
  readonly kickAll: () => void;
}): Reporter {
  const { parts, session, lanes } = of;
  const { clock } = parts.platform;
  const listeners = new Set<(status: SyncStatus) => void>();
  const settling = new Set<() => void>();
  let told = '';
  let isDue = false;
  let isClosed = false;

  const logViews = (): readonly LogView[] =>
    parts.state.logs().flatMap((log) => {
      const lane = lanes.get(log.log);
      if (lane === undefined) return [];
      const progress = log.stage === 'visible' && !log.repairing ? undefined : parts.state.bootstrapCursor(log.log);
      return [{ log, facts: lane.facts, progress, isCovered: of.isCovered(log.log) }];
    });

  const view = () => ({
    phase: session.phase,
    reason: session.reason,
    logs: logViews(),
    nowMs: clock.monotonic(),
    proofMs: parts.settings.proofMs,
  });

  const statusNow = (): SyncStatus => {
    const retries = of.retryAtMs().flatMap((atMs) => (atMs === null ? [] : [atMs - clock.monotonic()]));
    return statusOf({
      ...view(),
      isPaused: of.isPaused(),
      counts: parts.state.counts(),
      retryInMs: retries.length === 0 ? null : Math.max(0, Math.min(...retries)),
    });
  };

  const changed = () => {
    if (isDue || isClosed) return;
    clock.soon(tell);
    // Only now: a platform that refused once is asked again.
    isDue = true;
  };

  const tell = () => {
    isDue = false;
    if (isClosed) return;
    // Being connected is no progress: only something that moves ends a stall (SY3).
    if (session.phase === 'stalled') watchdog.look();
    const said = session.stands ? null : signalOf(view());
    const isOnlyConnected = said?.signal === 'at-head' || said?.signal === 'behind';
    if (said !== null && !(session.phase === 'stalled' && isOnlyConnected))
      session.signal(said.signal, said.reason ?? undefined);
    for (const look of [...settling]) look();
    watchdog.begin();
    if (listeners.size > 0) publish(statusNow());
  };

  /** The waiting time runs by itself: it alone is no news. */
  const publish = (status: SyncStatus) => {
    const text = JSON.stringify({ ...status, retryInMs: status.retryInMs !== null });
    if (text === told) return;
    told = text;
    for (const listener of [...listeners]) listener(status);
  };

  const watchdog = createWatchdog({
    clock,
    stallMs: parts.settings.stallMs,
    watch: () => watch(),
    kick: () => {
      parts.journal.write('watchdog', { did: 'kick' });
      of.kickAll();
    },
    stalled: (reason) => {
      if (session.phase === 'stalled') return;
      parts.journal.write('watchdog', { did: 'stalled', code: reason.code });
      session.signal('stalled', reason);
    },
    moved: () => session.signal('progress'),
  });

  const watch = (): Watched => {
    const logs = logViews();
    const open = logs.filter(({ log, facts }) => log.blocked === null && facts.pushRefused === null);
    const flowing = open.map(({ log }) => parts.state.flowing(log.log));
    const isWaiting = open.some(({ log, facts }, at) => (flowing[at] ?? 0) > 0 || isBehind(log, facts));
    return {
      hasWork: isWaiting && !of.isPaused() && !session.stands,
      isReachable: REACHABLE.has(session.phase),
      marker: logs.map(({ log, progress }) => `${log.head}/${progress?.head}/${progress?.cursor}`).join(),
      waiting: flowing.reduce((sum, count) => sum + count, 0),
      waitsFor: waitsForAll(logs),
    };
  };

  return {
    get status() {
      return statusNow();
    },
    changed,
    subscribe: (listener) => {
      listeners.add(listener);
      changed();
      return () => void listeners.delete(listener);
    },
    settle: (signal) => {
      const marks = new Map(
        lanes.all.map(({ facts }) => [
          facts.log,
          { handshake: facts.handshakeAsked, upTo: parts.state.newestFlowing(facts.log) ?? 0 },
        ]),
      );
      return settleWhen({
        view: () => settleView(marks),
        onChange: (look) => {
          settling.add(look);
          return () => void settling.delete(look);
        },
        signal,
      });
    },
    close: () => {
      watchdog.stop();
      for (const look of [...settling]) look();
      // A file that cannot be read any more ends all the same; whoever listens is told by whoever ends it.
      parts.edge.run(() => publish(statusNow()));
      isClosed = true;
      listeners.clear();
    },
  };

  function settleView(marks: ReadonlyMap<string, { readonly handshake: number; readonly upTo: number }>): SettleView {
    const isStopped = of.isPaused() || session.phase === 'stopped';
    return {
      attention: parts.state.counts().attention,
      obstacle: isStopped ? { code: 'closed' } : OBSTACLES.has(session.phase) ? session.reason : null,
      logs: logViews().map(({ log, facts }) => {
        const mark = marks.get(log.log) ?? { handshake: 0, upTo: 0 };
        const isFlowing = parts.state.isFlowing(log.log, mark.upTo);
        return {
          log: log.log,
          isFlowing,
          isAtHead: facts.handshakeAnswered > mark.handshake && log.stage === 'visible' && !isBehind(log, facts),
          obstacle: log.blocked ?? (isFlowing ? (facts.pushRefused?.fault ?? null) : null),
          waitsFor: facts.fault ?? session.reason ?? { code: 'ledger-unreachable' },
        };
      }),
    };
  }
}

const REACHABLE: ReadonlySet<SessionDriver['phase']> = new Set(['connecting', 'catching-up', 'live', 'stalled']);

/** Said of the whole replica, and not to be waited for. */
const OBSTACLES: ReadonlySet<SessionDriver['phase']> = new Set([
  'sign-in-needed',
  'other-account',
  'update-needed',
  'no-owner',
]);

function waitsForAll(logs: readonly LogView[]): Fault {
  const stuck = logs.find(({ facts }) => facts.fault !== null) ?? logs.find(({ facts }) => facts.activity !== 'idle');
  const { facts } = stuck ?? {};
  return {
    code: facts?.fault?.code ?? 'request-timeout',
    facts: { ...facts?.fault?.facts, log: facts?.log ?? null, activity: facts?.activity },
  };
}
