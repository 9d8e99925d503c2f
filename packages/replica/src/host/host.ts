import type { Database, Fault, FaultCode, JsonObject, Platform } from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import type { LocalChange, ReplicaState } from '../engine/replica-state.ts';
import type { EntityModel } from '../engine/schema-model.ts';
import type { SyncEngine } from '../engine/sync/sync-engine.ts';
import type { ChannelEvents, OpenChannel } from '../link/messages.ts';
import type { Status } from '../link/status.ts';
import { Caller } from './caller.ts';
import { type HostPlace, publicStatus } from './host-status.ts';
import { createLiveQueries } from './live-queries.ts';
import { createObserve, type Observer } from './observe.ts';
import { createQueryRunner } from './query-runner.ts';
import { createWaiters } from './waiters.ts';

/** What a host needs of the sync engine. */
export type HostSync = Pick<
  SyncEngine,
  'edge' | 'status' | 'subscribe' | 'settle' | 'kick' | 'credentialsChanged' | 'pause' | 'resume' | 'close'
>;

export interface HostParts {
  readonly database: Database;
  readonly state: ReplicaState;
  readonly sync: HostSync;
  readonly platform: Platform;
  readonly place: HostPlace;
  /** An entity type as this file's tables are made: those of the schema, and those added at run time. */
  readonly model: (type: string) => EntityModel | null;
  /** Permits, obligations and whatever else is for tools only. */
  readonly inspect?: () => JsonObject;
  readonly observe?: Observer;
  /** What the host holds besides, to let go of at the end: locks, connections. */
  readonly release?: () => void;
}

/**
 * The host of one replica: whoever holds its file open and answers everybody who uses it.
 *
 * Owns the state, the sync engine and the callers. What must survive is in the file; callers keep what was not answered
 * and ask the next host (CM5). After `close`, or when another host has taken over, every caller is told so once.
 */
export interface Host {
  /** The call transport: messages are handed over as they are, answers may come during `send`. */
  readonly openChannel: OpenChannel;
  /** After the end: `stopped`, with the reason and what was unsent then. Throws it where that could not be read any more. */
  readonly status: Status;
  /** SY4: ends within the bound of the sync engine, then closes the file. */
  close(): Promise<void>;
  /** Resolves when the host has ended, with the reason. */
  readonly ended: Promise<Fault>;
}

export function openHost(parts: HostParts): Host {
  const { state, sync, platform } = parts;
  const { edge } = sync;
  const { clock } = edge;
  const observe = createObserve(clock, parts.observe);
  const runner = createQueryRunner({
    database: parts.database,
    digest: platform.digest,
    model: parts.model,
    observe,
  });
  const isPartial = () => state.logs().some((log) => log.stage !== 'visible');
  const live = createLiveQueries({ runner, clock, observe, isPartial });
  const waiters = createWaiters(state);
  const callers = new Set<Caller>();
  const { promise: ended, resolve: sayEnded } = Promise.withResolvers<Fault>();
  let end: Fault | null = null;
  /** After the end, for whoever asks late. */
  let last: Status | null = null;
  let isUndoDue = false;
  let closing: Promise<void> | null = null;

  const tellAll = (tell: Parameters<Caller['news']>[0]) => {
    for (const caller of callers) caller.news(tell);
  };
  const tellUndo = () => {
    isUndoDue = false;
    if (end !== null || callers.size === 0) return;
    const undo = state.undoState('main');
    for (const caller of callers) caller.undo(undo);
  };
  const tellUndoSoon = () => {
    if (isUndoDue) return;
    isUndoDue = true;
    clock.soon(tellUndo);
  };
  const onChange = (change: LocalChange) => {
    waiters.settled(change.settled);
    for (const caller of callers) caller.settled(change.settled);
    if (change.types) lookAgain();
    live.changed(change);
    if (change.desk) tellAll({ tell: 'desk' });
    if (change.outbox) tellUndoSoon();
  };
  /** Tables came or became others: every query is looked at again, and every caller told (SC4). */
  const lookAgain = () => {
    runner.forget();
    live.forget();
    tellAll({ tell: 'types', types: state.types() });
  };
  edge.onMend(() => {
    isUndoDue = false;
    if (end !== null) return;
    lookAgain();
    tellAll({ tell: 'desk' });
    tellUndoSoon();
  });
  const stopListening = [
    // What is durable is not undone by whoever fails to tell of it.
    state.onChange((change) => edge.run(() => onChange(change))),
    sync.subscribe((status) => {
      tellAll({ tell: 'status', status: publicStatus(status, parts.place) });
      // Its loop has found it out. Who only reads never would, and what he sees would stay as it is for ever.
      if (status.phase !== 'stopped' || status.reason === null) return;
      const { reason } = status;
      if (OUTRANKED.has(reason.code)) endBy({ ...reason, code: 'outranked' });
      else if (reason.code === 'replica-gone') endBy(reason);
    }),
  ];

  const statusNow = () => publicStatus(sync.status, parts.place);
  /** The file is still open: what it says now is what is said of this host from here on. */
  const statusAtEnd = (fault: Fault): Status | null => {
    try {
      const { retryInMs: _, ...now } = statusNow();
      return { ...now, phase: 'stopped', reason: fault.code, activity: 'idle' };
    } catch {
      return null;
    }
  };
  const finish = (fault: Fault) => {
    if (end !== null) return;
    last = statusAtEnd(fault);
    end = fault;
    for (const stop of stopListening) stop();
    live.close();
    for (const caller of [...callers]) caller.end(fault);
    callers.clear();
    sayEnded(fault);
  };

  const close = async (fault: Fault): Promise<void> => {
    if (end !== null) return;
    finish(fault);
    try {
      await sync.close();
      // What was in flight may have come in the meantime.
      last = statusAtEnd(fault) ?? last;
    } finally {
      try {
        state.close();
      } finally {
        parts.release?.();
      }
    }
  };
  /** Nobody has asked for it: what fails on the way has nobody to tell. Every caller knows the reason of the end. */
  const endBy = (fault: Fault) => {
    closing ??= close(fault);
    closing.catch(() => undefined);
  };
  return {
    openChannel: (events: ChannelEvents) => {
      const caller = new Caller({
        events,
        state,
        sync,
        clock,
        runner,
        live,
        waiters,
        observe,
        inspect: () => ({ ...factsOf(state), ...parts.inspect?.() }),
        status: statusNow,
        undoIsDue: tellUndoSoon,
        mustEnd: endBy,
        left: (one) => void callers.delete(one),
      });
      if (end !== null) {
        const fault = end;
        clock.soon(() => caller.end(fault));
        return caller;
      }
      callers.add(caller);
      caller.welcome(() => ({
        status: publicStatus(sync.status, parts.place),
        undo: state.undoState('main'),
        types: state.types(),
        replicaId: state.identity.replicaId,
      }));
      return caller;
    },
    get status() {
      if (end === null) return statusNow();
      if (last === null) throw new FaultError(end);
      return last;
    },
    close: () => {
      closing ??= close({ code: 'closed' });
      return closing;
    },
    ended,
  };
}

/** Why a loop stops by itself: another host has this file now. */
const OUTRANKED: ReadonlySet<FaultCode> = new Set(['outranked', 'stale-generation', 'host-instance-mismatch']);

function factsOf(state: ReplicaState): JsonObject {
  const { replicaId, ledger, account, workspace, generation, hostInstance } = state.identity;
  return {
    identity: { replicaId, ledger, account, workspace, generation, hostInstance },
    counts: { ...state.counts() },
    types: state.typeFaults().map(({ code, facts }) => ({ code, ...facts })),
    logs: state.logs().map(({ blocked, ...log }) => ({ ...log, blocked: blocked === null ? null : blocked.code })),
  };
}
