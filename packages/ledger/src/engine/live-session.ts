import {
  type ClientFrame,
  decodeClientFrame,
  LIMITS,
  parseJson,
  type RequestRefusalCode,
  randomHex,
  type ServerFrame,
} from '@holdfast/core';
import { andThen, type MaybePromise, type Refused, refusedBy } from './answer.ts';
import { fenceProblem } from './append.ts';
import type { Actor, LiveAccess, LiveConnection, LiveSocket } from './engine.ts';
import { commonProtocol } from './handshake.ts';
import type { LiveParts } from './live.ts';
import { type FollowedLog, followLog } from './live-log.ts';
import { loggedError } from './logged-error.ts';

/** `hello` must come within this, or the socket ends (S33). */
const HELLO_MS = 5_000;
/** Messages that may wait while `hello` is looked at. */
const WAITING_MAX = 32;
/** Messages a second, however small (S35). */
const MESSAGES_PER_SECOND_MAX = 200;

/** The window of events, and as much again: one frame may be larger than what is left of the window. */
const UNREAD_BYTES_MAX = 2 * LIMITS.socketWindowBytesMax;

/** Codes of the closing handshake; the reason says the same in words. */
export const CLOSE = {
  goingAway: 1001,
  malformed: 1008,
  unauthenticated: 4401,
  outranked: 4409,
  silent: 4408,
} as const;

/**
 * One socket (5.4). Owns its subscriptions and nothing that lasts. States: waiting for `hello`, admitting, open, closed;
 * the last absorbs. Driven by messages, by the hub's tick, and by appends.
 */
export interface LiveSession extends LiveConnection {
  readonly workspace: string;
  /** Null until `hello` was accepted. */
  readonly replica: { readonly id: string; readonly generation: number } | null;
  /** The verified account; null until `hello` was accepted. */
  readonly account: string | null;
  readonly logs: number;
  /** Time has passed: pings, silence, expiry, revocation. */
  tick(nowMs: number): void;
  end(code: number, frame: ServerFrame): void;
}

interface Admitted {
  readonly actor: Actor;
  readonly replica: { readonly id: string; readonly generation: number; readonly instance: string };
}

export function createLiveSession(
  workspace: string,
  socket: LiveSocket,
  access: LiveAccess,
  parts: LiveParts,
  hooks: {
    /** S35: false where this account has as many sockets as it may. */
    readonly mayEnter: (account: string, replica: string) => boolean;
    readonly admitted: (session: LiveSession) => void;
    readonly closed: (session: LiveSession) => void;
  },
): LiveSession {
  const { clock, random, limits, logger } = parts;
  let state: 'waiting' | 'admitting' | 'open' | 'closed' = 'waiting';
  let admitted: Admitted | null = null;
  const follows = new Map<string, FollowedLog>();
  const waiting: ClientFrame[] = [];
  const openedMs = clock.monotonic();
  let heardMs = openedMs;
  let pingedMs = openedMs;
  let checkedMs = openedMs;
  let isChecking = false;
  let second = 0;
  let messages = 0;

  const send = (frame: ServerFrame): void => {
    if (state === 'closed') return;
    // Events stay within the window (RT2). Whoever lets even answers pile up behind them asks, and never reads.
    if (socket.bufferedBytes > UNREAD_BYTES_MAX) return cut();
    socket.send(JSON.stringify(frame));
  };

  /** At once: a goodbye would wait behind what is not read. */
  const cut = (): void => {
    release();
    socket.terminate();
  };

  const release = (): void => {
    state = 'closed';
    for (const follow of follows.values()) follow.stop();
    follows.clear();
    waiting.length = 0;
    hooks.closed(session);
  };

  const end = (code: number, frame: ServerFrame): void => {
    if (state === 'closed') return;
    send(frame);
    release();
    socket.close(code, frame.type === 'refused' ? frame.code : 'reason' in frame ? frame.reason : frame.type);
  };

  const refuse = (code: number, { refusal }: Refused): void => {
    const { details } = refusal;
    end(code, {
      type: 'refused',
      code: refusal.code,
      message: refusal.message,
      ...(details === undefined ? {} : { details }),
    });
  };

  const refuseCode = (code: number, why: RequestRefusalCode): void => refuse(code, refusedBy(why));

  // ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

  const message = (text: string): void => {
    if (state === 'closed') return;
    heardMs = clock.monotonic();
    if (isTooMany()) return refuseCode(CLOSE.malformed, 'rate-limited');
    const json = parseJson(text, { bytesMax: LIMITS.socketFrameBytesMax, depthMax: LIMITS.jsonDepthMax });
    const frame = json.ok ? decodeClientFrame(json.value) : json;
    if (!frame.ok)
      return refuse(
        CLOSE.malformed,
        refusedBy('malformed', { details: { ...frame.fault.facts } as Record<string, string> }),
      );
    receive(frame.value);
  };

  /** Its length is at most 125 bytes, but its number is the peer's: an answer to each would wait without a bound. */
  const control = (): boolean => {
    if (state === 'closed') return false;
    if (isTooMany()) refuseCode(CLOSE.malformed, 'rate-limited');
    return state === 'open' && socket.bufferedBytes === 0;
  };

  const isTooMany = (): boolean => {
    const now = Math.floor(clock.monotonic() / 1_000);
    messages = now === second ? messages + 1 : 1;
    second = now;
    return messages > MESSAGES_PER_SECOND_MAX;
  };

  const receive = (frame: ClientFrame): void => {
    switch (state) {
      case 'waiting':
        if (frame.type === 'hello') guarded(() => admit(frame));
        else refuseCode(CLOSE.unauthenticated, 'unauthenticated');
        return;
      case 'admitting':
        if (waiting.length < WAITING_MAX) waiting.push(frame);
        else refuseCode(CLOSE.malformed, 'rate-limited');
        return;
      case 'open':
        return handle(frame, admitted as Admitted);
      case 'closed':
        return;
    }
  };

  const handle = (frame: ClientFrame, { replica }: Admitted): void => {
    switch (frame.type) {
      case 'hello':
        return refuseCode(CLOSE.malformed, 'malformed');
      case 'follow':
        return follow(frame);
      case 'unfollow':
        follows.get(frame.log)?.stop();
        follows.delete(frame.log);
        return;
      case 'ack':
        if (follows.has(frame.log)) parts.proven.note({ workspace, log: frame.log }, replica.id, frame.version);
        return;
      case 'ping':
        return send({ type: 'pong', nonce: frame.nonce });
      case 'pong':
        return;
    }
  };

  const follow = ({ log, position }: Extract<ClientFrame, { type: 'follow' }>): void => {
    follows.get(log)?.stop();
    follows.delete(log);
    if (follows.size >= LIMITS.handshakeLogsMax)
      return send({
        type: 'refused',
        code: 'too-large',
        message: `One socket follows at most ${LIMITS.handshakeLogsMax} logs.`,
      });
    const replica = (admitted as Admitted).replica.id;
    let own: FollowedLog | null = null;
    own = followLog({ workspace, log }, replica, position, parts, {
      send,
      offer,
      ended: () => {
        if (own === null || follows.get(log) === own) follows.delete(log);
      },
      failed: (cause) => {
        logger('warn', 'A log could not be followed.', {
          workspace,
          log,
          error: loggedError(cause),
        });
        end(CLOSE.goingAway, { type: 'going-away', retryMs: 1_000 });
      },
    });
    if (state === 'open' && !own.isStopped) follows.set(log, own);
  };

  /** RT2: one frame may always be on its way; more than the window never waits. */
  const offer = (text: string, bytes: number): boolean => {
    if (state === 'closed') return false;
    if (socket.bufferedBytes > 0 && socket.bufferedBytes + bytes > LIMITS.socketWindowBytesMax) return false;
    socket.send(text);
    return true;
  };

  // ── access ────────────────────────────────────────────────────────────────────────────────────────────────────────

  const admit = (hello: Extract<ClientFrame, { type: 'hello' }>): MaybePromise<void> => {
    state = 'admitting';
    const protocol = commonProtocol(hello.protocol);
    if (protocol === null) return refuseCode(CLOSE.malformed, 'update-needed');
    return andThen(access.admit(hello.token), (actor) => {
      if (state === 'closed') return;
      if (actor === null || hasExpired(actor, clock.now())) return refuseCode(CLOSE.unauthenticated, 'unauthenticated');
      return andThen(meetFence(actor, hello.replica), (refused) => {
        if (state === 'closed') return;
        if (refused !== null) return refuse(CLOSE.outranked, refused);
        if (!hooks.mayEnter(actor.account, hello.replica.id)) return refuseCode(CLOSE.malformed, 'rate-limited');
        admitted = { actor, replica: hello.replica };
        state = 'open';
        checkedMs = clock.monotonic();
        hooks.admitted(session);
        send({ type: 'welcome', protocol, account: actor.account, pingMs: limits.pingMs });
        for (const frame of waiting.splice(0)) receive(frame);
      });
    });
  };

  /** LG8 for a socket: it may raise the generation, like everything that speaks for a replica. */
  const meetFence = (actor: Actor, { id, generation, instance }: Admitted['replica']): MaybePromise<Refused | null> =>
    parts.store.meet(workspace, { replica: id, logs: [] }, (state) => {
      if (state === undefined) return { value: refusedBy('not-found'), write: null };
      const value = fenceProblem(state.fence, { account: actor.account, generation, instance });
      if (value !== null || state.fence?.generation === generation) return { value, write: null };
      const at = new Date(clock.now()).toISOString();
      return {
        value,
        write: { replica: id, account: actor.account, generation, instance, at, app: null, health: null, logs: [] },
      };
    });

  /** RT3. */
  const check = (nowMs: number): void => {
    const { actor } = admitted as Admitted;
    if (hasExpired(actor, clock.now()))
      return end(CLOSE.unauthenticated, { type: 'session-ending', reason: 'expired' });
    if (isChecking || access.stillAdmitted === undefined || nowMs - checkedMs < limits.accessCheckMs) return;
    isChecking = true;
    const done = (): void => {
      isChecking = false;
      checkedMs = clock.monotonic();
    };
    const still = access.stillAdmitted(actor);
    guarded(() =>
      andThen(still, (now) => {
        done();
        if (state !== 'open') return;
        if (now === null || now.account !== actor.account)
          return end(CLOSE.unauthenticated, { type: 'session-ending', reason: 'revoked' });
        admitted = { ...(admitted as Admitted), actor: now };
      }),
    );
  };

  const tick = (nowMs: number): void => {
    if (state === 'closed') return;
    if (state !== 'open') {
      if (nowMs - openedMs >= HELLO_MS) refuseCode(CLOSE.unauthenticated, 'unauthenticated');
      return;
    }
    // RT4: whoever is silent over two pings is gone, whatever its buffers say.
    if (nowMs - heardMs >= 2 * limits.pingMs) return cut();
    if (nowMs - pingedMs >= limits.pingMs) {
      pingedMs = nowMs;
      send({ type: 'ping', nonce: randomHex(random, 8) });
    }
    check(nowMs);
  };

  /** What fails on the way ends this socket, and nothing else. The replica comes back after one handshake. */
  const guarded = (run: () => MaybePromise<void>): void => {
    const failed = (cause: unknown): void => {
      logger('warn', 'A socket ended over a failure here.', {
        workspace,
        error: loggedError(cause),
      });
      end(CLOSE.goingAway, { type: 'going-away', retryMs: 1_000 });
    };
    try {
      const running = run();
      if (running instanceof Promise) running.catch(failed);
    } catch (cause) {
      failed(cause);
    }
  };

  const session: LiveSession = {
    workspace,
    get replica() {
      return admitted?.replica ?? null;
    },
    get account() {
      return admitted?.actor.account ?? null;
    },
    get logs() {
      return follows.size;
    },
    message,
    control,
    tick,
    end,
    closed: () => {
      if (state !== 'closed') release();
    },
  };
  return session;
}

const hasExpired = ({ expiresAtMs }: Actor, nowMs: number): boolean =>
  expiresAtMs !== undefined && expiresAtMs <= nowMs;
