import type { Clock, Digest, Logger, Random } from '@holdfast/core';
import type { EngineLimits, LiveAccess, LiveConnection, LiveSocket } from './engine.ts';
import type { FanOut } from './fan-out.ts';
import { CLOSE, createLiveSession, type LiveSession } from './live-session.ts';
import type { Proven } from './proven.ts';
import type { Reader } from './read.ts';
import type { LedgerStore } from './store-port.ts';

export interface LiveParts {
  readonly store: LedgerStore;
  readonly reader: Reader;
  readonly fanOut: FanOut;
  readonly proven: Proven;
  readonly clock: Clock;
  readonly random: Random;
  readonly digest: Digest;
  readonly limits: EngineLimits;
  readonly logger: Logger;
}

/** All sockets of this process, and the one timer that looks after them. */
export interface Live {
  connect(workspace: string, socket: LiveSocket, access: LiveAccess): LiveConnection;
  /** RT3: a later host instance speaks for this replica. */
  outranked(workspace: string, replica: string, generation: number): void;
  readonly sockets: number;
  close(): void;
}

const TICK_MS = 1_000;
/** Everybody comes back after a restart, but not in one moment (F80). */
const RETURN_MIN_MS = 500;
const RETURN_SPREAD_MS = 4_500;

export function createLive(parts: LiveParts): Live {
  const sessions = new Set<LiveSession>();
  let cancelTick: (() => void) | null = null;
  let isClosed = false;

  const tick = (): void => {
    cancelTick = sessions.size === 0 || isClosed ? null : parts.clock.timer(TICK_MS, tick);
    const nowMs = parts.clock.monotonic();
    for (const session of [...sessions]) session.tick(nowMs);
  };

  /** One's own earlier socket does not count: it is about to be replaced. */
  const mayEnter = (workspace: string, account: string, replica: string): boolean => {
    let open = 0;
    for (const other of sessions)
      if (other.account === account && (other.replica?.id !== replica || other.workspace !== workspace)) open += 1;
    return open < parts.limits.socketsPerAccountMax;
  };

  /** A replica has one socket: what the old one still waits for, the new one asked for again. */
  const admitted = (session: LiveSession): void => {
    const own = session.replica;
    for (const other of [...sessions]) {
      if (other === session || own === null || other.replica?.id !== own.id || other.workspace !== session.workspace)
        continue;
      const isOutranked = other.replica.generation < own.generation;
      other.end(CLOSE.outranked, { type: 'session-ending', reason: isOutranked ? 'stale-generation' : 'replaced' });
    }
  };

  const goingAway = () => ({
    type: 'going-away' as const,
    retryMs: RETURN_MIN_MS + Math.floor(parts.random.unit() * RETURN_SPREAD_MS),
  });

  return {
    connect: (workspace, socket, access) => {
      const session = createLiveSession(workspace, socket, access, parts, {
        mayEnter: (account, replica) => mayEnter(workspace, account, replica),
        admitted,
        closed: (gone) => sessions.delete(gone),
      });
      if (isClosed) {
        session.end(CLOSE.goingAway, goingAway());
        return session;
      }
      sessions.add(session);
      cancelTick ??= parts.clock.timer(TICK_MS, tick);
      return session;
    },
    outranked: (workspace, replica, generation) => {
      for (const session of [...sessions])
        if (
          session.workspace === workspace &&
          session.replica?.id === replica &&
          session.replica.generation < generation
        )
          session.end(CLOSE.outranked, { type: 'session-ending', reason: 'stale-generation' });
    },
    get sockets() {
      return sessions.size;
    },
    close: () => {
      isClosed = true;
      cancelTick?.();
      for (const session of [...sessions]) session.end(CLOSE.goingAway, goingAway());
    },
  };
}
