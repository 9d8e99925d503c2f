import {
  type CancelSignal,
  type Fault,
  type Fetch,
  LIMITS,
  type Logger,
  type OpenSocket,
  type Platform,
} from '@holdfast/core';
import type { Coordinator } from '../coordinator.ts';
import type { ReplicaState } from '../replica-state.ts';
import { runCycle } from './cycle.ts';
import { createEdge, type Edge, guardedSocket } from './edge.ts';
import { sawHead } from './facts.ts';
import { createFaults } from './faults.ts';
import { createJournal, messageOf } from './journal.ts';
import { createLanes, type Lane } from './lanes.ts';
import { runLedgerCycle, settleOld } from './ledger-cycle.ts';
import { createLiveSocket } from './live-socket.ts';
import { createLoop, type Trigger, type Verdict } from './loop.ts';
import { createWorking, type Observe, type SyncParts, type Token } from './parts.ts';
import { createPermits } from './permits.ts';
import { createReporter } from './reporter.ts';
import { createBackoff } from './retry.ts';
import { createSession } from './session.ts';
import { SYNC_SETTINGS, type SyncSettings } from './settings.ts';
import type { SettleReport } from './settle.ts';
import { createSignIn } from './sign-in.ts';
import type { SyncStatus } from './status.ts';
import { startUpkeep } from './upkeep.ts';
import { createWhole } from './whole.ts';

/**
 * The sync engine of one replica (6.5). One loop asks where the replica stands; one lane per log recovers, pulls and
 * pushes; one socket tells of what happens. Everything durable is in the replica's file: this holds what a run of the host
 * has learned, and a restart learns again. Worst outcome of a defect here: work that waits; never work that is lost.
 *
 * At rest until `start()`. Deterministic for given ports: time, timers, randomness, network come in; only microtasks and
 * the clock's timers are used.
 */
export interface SyncEngine {
  start(): void;
  /** Something may have changed: look now (SY1). `online`, `visible` and `manual` end waiting times (OB4). */
  kick(trigger: Trigger): void;
  /** SY4: requests in flight end, no other starts. */
  pause(): void;
  resume(): void;
  /** SY2. Never rejects. */
  settle(signal?: CancelSignal): Promise<SettleReport>;
  /** The app has fresh credentials (AC1). Goes on in place. */
  credentialsChanged(): void;
  /** Whether a person could be told something now. An app without tabs never calls it. */
  presence(now: { readonly visible: boolean; readonly online: boolean }): void;
  /** SY4: as pause; what is in flight is applied, or owed after 5 s. Resolves when nothing is written any more. */
  close(): Promise<void>;
  readonly status: SyncStatus;
  subscribe(listener: (status: SyncStatus) => void): () => void;
  /** How the platform calls this engine, and whatever else runs for this replica. */
  readonly edge: Edge;
}

export interface SyncOptions {
  readonly state: ReplicaState;
  readonly coordinator: Coordinator;
  readonly fetch: Fetch;
  readonly openSocket: OpenSocket;
  readonly platform: Platform;
  readonly ledgerUrl: string;
  readonly workspace: string;
  /** Asked before every request. Absent, or undefined: no bearer token is sent (cookies). */
  readonly token?: Token;
  readonly settings?: Partial<SyncSettings>;
  readonly observe?: Observe;
  readonly logger?: Logger;
  /** Told once per expiry, when there is somebody to tell (AC1). */
  readonly onSignInNeeded?: (fault: Fault | null) => void;
}

export function createSyncEngine(options: SyncOptions): SyncEngine {
  const { state } = options;
  const { random } = options.platform;
  const edge = createEdge(options.platform.clock, (error) => failedAtEdge(error));
  const { clock } = edge;
  const platform: Platform = { ...options.platform, clock };
  const logger = quiet(options.logger);
  const settings: SyncSettings = { ...SYNC_SETTINGS, ...options.settings };
  const working = createWorking();
  let mode: 'at-rest' | 'running' | 'paused' | 'closing' | 'closed' = 'at-rest';
  /** Depth of transactions that are our own: what they change wakes nobody. */
  let ownWrites = 0;
  /** Set while the time after a socket's end runs: no poll may come before it (F80). */
  let cancelReconnect = NOTHING;

  const parts: SyncParts = {
    state,
    permits: createPermits(options.coordinator),
    fetch: options.fetch,
    openSocket: guardedSocket(options.openSocket, edge),
    platform,
    edge,
    ledgerUrl: options.ledgerUrl.replace(/\/+$/, ''),
    workspace: options.workspace,
    token: options.token ?? (() => undefined),
    settings,
    observe: options.observe ?? (() => {}),
    logger,
    journal: createJournal(state, logger),
    write: (work) => {
      ownWrites += 1;
      try {
        return state.write(work);
      } finally {
        ownWrites -= 1;
      }
    },
    mayStart: (use) =>
      mode === 'running' && (!session.stands || (use === 'handshake' && signIn.isSuspected && isSignedOut())),
    working,
  };

  const session = createSession(
    {
      'stop-loop': () => applyMode(),
      'start-loop': () => applyMode(),
      kick: () => kickAll('watchdog'),
      'tell-sign-in-needed': () => options.onSignInNeeded?.(session.reason),
    },
    () => reporter.changed(),
  );
  const signIn = createSignIn(parts, session);
  const isSignedOut = () => session.phase === 'sign-in-needed';

  const whole = createWhole({
    parts,
    session,
    signIn,
    forgetProofs: () => forgetProofs(),
    askAgain: () => ledger.kick('proof'),
  });
  const faults = createFaults({ parts, session, stop: (fault) => stopByFault(fault) });

  const lanes = createLanes({
    clock,
    random,
    run: (lane) => runLane(lane),
    onFault: (lane, error) => faults.ofLane(lane, error),
    onGone: (log) => {
      live.unfollow(log);
      // Should somebody follow it again, what is still on the way would stand in the way of the new lane.
      working.cancelOf(log);
    },
    changed: () => reporter.changed(),
  });

  const ledger = createLoop({
    clock,
    random,
    run: (triggers) => runLedger(triggers),
    onFault: (error) => faults.ofLedger(error),
    onState: () => reporter.changed(),
  });

  const live = createLiveSocket(parts, {
    behind: (log, head) => {
      const lane = lanes.get(log);
      if (lane === undefined) return;
      sawHead(lane.facts, head);
      lane.facts.mustPull = true;
      lane.loop.kick('socket');
    },
    doubt: (log, fault) => {
      const lane = lanes.get(log);
      if (lane === undefined) return;
      lane.facts.isProven = false;
      lane.facts.fault = fault;
      ledger.kick('socket');
    },
    alive: (log, isApplied) => {
      const lane = lanes.get(log);
      if (lane === undefined) return;
      lane.facts.provenAtMs = clock.monotonic();
      sawHead(lane.facts, state.log(log)?.head ?? 0);
      // What waited for this head may have been judged, and be ready to go.
      if (isApplied && state.flowing(log) > 0) lane.loop.kick('socket');
      reporter.changed();
    },
    ended: ({ reason, inMs }) => {
      forgetProofs();
      session.signal('unreachable', { code: 'ledger-unreachable', facts: { socket: reason } });
      cancelReconnect();
      const stopTimer = clock.timer(inMs, () => {
        cancelReconnect = NOTHING;
        ledger.kick('socket');
      });
      cancelReconnect = () => {
        stopTimer();
        cancelReconnect = NOTHING;
      };
    },
    otherAccount: () => session.signal('other-account', { code: 'other-account' }),
  });

  const reporter = createReporter({
    parts,
    session,
    lanes,
    isCovered: (log) => live.covers(log),
    isPaused: () => mode === 'paused',
    retryAtMs: () => [ledger.retryAtMs, ...lanes.all.map(({ loop }) => loop.retryAtMs)],
    kickAll: () => kickAll('watchdog'),
  });

  // ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  const runLedger = (triggers: readonly Trigger[]): Promise<Verdict> =>
    runLedgerCycle(
      parts,
      {
        backoff: ledger.backoff,
        facts: () => lanes.all.map(({ facts }) => facts),
        mayAsk: (given) => whole.mayAsk(given) && (cancelReconnect === NOTHING || !given.every(isPoll)),
        // A log that is blocked is asked about until that is over, though a socket may still tell of it.
        covers: (log) => live.covers(log) && state.log(log)?.blocked === null,
        owes: (log) => lanes.get(log)?.loop.kick('proof'),
        begin: () => session.signal('begin'),
        whole: (trouble, as) => whole.ofLedger(trouble, as, ledger.backoff),
        unreachable: (trouble) => session.signal('unreachable', trouble.fault),
        worked: (logs) => {
          signIn.worked();
          // Whatever was said of the whole replica before, it is not so any more.
          session.signal('cleared');
          for (const { log } of logs) lanes.get(log)?.loop.kick('proof');
          reporter.changed();
        },
      },
      triggers,
    );

  const runLane = (lane: Lane): Promise<Verdict> =>
    runCycle(parts, lane.facts, {
      backoff: lane.loop.backoff,
      wantProof: () => ledger.kick('proof'),
      whole: (trouble, as) => whole.ofLane(trouble, as, lane.loop.backoff),
      unreachable: ({ fault }) => {
        if (fault.code !== 'quota-exceeded') session.signal('unreachable', fault);
      },
      atRest: (log) => {
        if (!settings.live || mode !== 'running' || session.stands) return;
        live.open();
        live.follow(log);
        live.held(log, state.log(log)?.head ?? 0);
      },
      stands: (log) => live.unfollow(log),
      changed: () => reporter.changed(),
    });

  // ── what happens from outside ─────────────────────────────────────────────────────────────────────────────────────

  const onLocalChange = (change: { readonly outbox: boolean; readonly logs: boolean; readonly desk: boolean }) => {
    if (change.outbox || change.desk) reporter.changed();
    if (ownWrites > 0) return;
    if (change.logs) reconcile();
    if (change.outbox) lanes.kick('commit');
  };

  /** Logs came or went, or a person decided something about one (HL4). */
  const reconcile = () => {
    const logs = state.logs();
    lanes.reconcile(logs.map(({ log }) => log));
    for (const { log, blocked } of logs) {
      const lane = lanes.get(log);
      if (lane === undefined) continue;
      if (lane.wasBlocked && blocked === null) lane.facts.isProven = false;
      // Told once; what it waits for from now on is another thing.
      if (blocked === null && lane.facts.fault?.code === 'history-changed') lane.facts.fault = null;
      lane.wasBlocked = blocked !== null;
      lane.loop.kick('follow');
    }
    // Who adopted it has decided, though nobody may answer for long.
    const isChanged = logs.some(({ blocked }) => blocked?.code === 'history-changed');
    if (session.phase === 'history-changed' && !isChanged) session.signal('cleared');
    reporter.changed();
  };

  const forgetProofs = () => {
    for (const { facts } of lanes.all) facts.isProven = false;
    reporter.changed();
  };

  const kickAll = (trigger: Trigger) => {
    ledger.kick(trigger);
    lanes.kick(trigger);
  };

  /** Work that a caller of ours set off: what fails in it is no business of his. */
  const attempt = (work: () => void) => {
    try {
      work();
    } catch (error) {
      faults.ofLedger(error);
    }
  };

  const applyMode = () => {
    const isRunning = mode === 'running' && !session.stands;
    if (!isRunning) {
      cancelReconnect();
      live.close();
    }
    lanes.setRunning(isRunning);
    const isProbing = mode === 'running' && isSignedOut() && signIn.isSuspected;
    if (isRunning || isProbing) ledger.resume();
    else ledger.pause();
    reporter.changed();
  };

  const stopByFault = (fault: Fault) => {
    session.signal('stop', fault);
    ledger.stop();
    lanes.stop();
  };

  const mending = createBackoff(random);
  /** Set while it waits to look at everything again. */
  let cancelMending: (() => void) | null = null;
  let failedAtMs = Number.NEGATIVE_INFINITY;

  /** What fails here is told by hand: through the edge it would come back here, again and again. */
  const byHand = (work: () => void) => {
    try {
      work();
    } catch (cause) {
      logger('error', 'A failure could not be told.', { error: messageOf(cause) });
    }
  };

  /** What was to be done is not known any more: after a while everything is looked at again, as after a start. */
  const failedAtEdge = (error: unknown) => {
    if (mode === 'closed') return;
    byHand(() => faults.ofLedger(error));
    // What was lost with it may be news: nobody may claim any more to know where the log stands (I30).
    byHand(forgetProofs);
    if (cancelMending !== null || mode === 'closing') return;
    if (clock.monotonic() - failedAtMs > LIMITS.retryMaxMs * 2) mending.reset();
    failedAtMs = clock.monotonic();
    cancelMending = clock.timer(mending.next(), () => {
      cancelMending = null;
      if (mode === 'closing' || mode === 'closed') return;
      live.close();
      reconcile();
      forgetProofs();
      applyMode();
      kickAll('watchdog');
      edge.mend();
    });
  };

  const stopListening = state.onChange((change) => edge.run(() => onLocalChange(change)));
  const stopUpkeep = { run: () => {} };
  const end = () => {
    mode = 'closed';
    // A timer that is left would keep the process alive.
    cancelMending?.();
    ledger.stop();
    lanes.stop();
    stopUpkeep.run();
    stopListening();
    session.signal('stop');
    reporter.close();
  };

  return {
    start: () => {
      if (mode !== 'at-rest') return;
      mode = 'running';
      // PM8: before anything else is asked.
      attempt(() => settleOld(parts, { of: 'earlier-instances' }));
      try {
        stopUpkeep.run = startUpkeep(parts);
        reconcile();
        applyMode();
        kickAll('start');
      } catch (cause) {
        // Whoever opened the file closes it now: nothing of ours may look into it afterwards.
        end();
        throw cause;
      }
    },
    kick: (trigger) => {
      if (mode !== 'running') return;
      if (ENDS_WAITING.has(trigger)) {
        attempt(() => parts.write(() => state.resetRetries()));
        live.backoff.reset();
        for (const { facts } of lanes.all) {
          facts.pushRefused = null;
          facts.sizes.forget();
        }
      }
      kickAll(trigger);
    },
    pause: () => {
      if (mode !== 'running') return;
      mode = 'paused';
      applyMode();
    },
    resume: () => {
      if (mode !== 'paused') return;
      mode = 'running';
      forgetProofs();
      applyMode();
      kickAll('manual');
    },
    settle: (signal) => {
      for (const { facts } of lanes.all) facts.isAskedAgain = true;
      const report = reporter.settle(signal);
      if (mode === 'running') kickAll('manual');
      return report;
    },
    credentialsChanged: () => {
      whole.credentials();
      if (mode === 'running') kickAll('credentials');
    },
    presence: (now) => session.presence(now),
    close: async () => {
      if (mode === 'closed' || mode === 'closing') return;
      mode = 'closing';
      ledger.stop();
      lanes.stop();
      stopUpkeep.run();
      applyMode();
      const ended = Promise.all([ledger.ended(), lanes.ended()]);
      const cancel = clock.timer(settings.closeMs, () => working.cancelAll());
      await ended;
      cancel();
      end();
    },
    get status() {
      return reporter.status;
    },
    subscribe: (listener) => reporter.subscribe(listener),
    edge,
  };
}

/** The app's logger; what it throws is its own, and disturbs nothing here. */
const quiet =
  (logger: Logger | undefined): Logger =>
  (level, message, facts) => {
    try {
      logger?.(level, message, facts);
    } catch {
      // There is nobody left to tell.
    }
  };

const NOTHING = (): void => {};

const isPoll = (trigger: Trigger): boolean => trigger === 'poll' || trigger === 'retry';

/** OB4: the network, or a person, says that waiting has no more reason. */
const ENDS_WAITING: ReadonlySet<Trigger> = new Set(['online', 'visible', 'manual', 'credentials']);
