import type { Fetch, OpenSocket, Socket, WireRequest, WireResponse } from '@holdfast/core';
import type { SeededRandom } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

/**
 * The network between one device and the ledger, on virtual time. Everything that a real network does to a request can
 * happen to it: delay, loss on the way there or back, doubling, one-way and two-way partition, a half-open socket, a login
 * page instead of an answer, a body cut short.
 */
export interface NetworkRules {
  /** False: nothing from the device reaches the ledger. */
  toLedger: boolean;
  /** False: nothing from the ledger reaches the device. */
  fromLedger: boolean;
  /** One way, in milliseconds: drawn evenly from this range. */
  delayMs: readonly [min: number, max: number];
  /** Probability, per message and direction, to be lost. */
  loss: number;
  /** Probability that a request is delivered twice. */
  doubling: number;
  /** Probability that an answer comes `lateMs` later than it should. */
  lateness: number;
  lateMs: number;
  /** Probability that an answer is cut in the middle. */
  truncation: number;
  /** A captive portal: every request is answered with its page, status 200. */
  portal: boolean;
  /** Refused at once, as by an operating system that knows the device is offline: no byte left. */
  offline: boolean;
}

/**
 * What happens once to the next request of a kind, whatever the probabilities say. `lost`: it never arrives. `answer-lost`:
 * it arrives and does its work, its answer does not come back. `doubled`: it arrives twice. `answer-late`: its answer
 * comes `lateMs` later than it should. `answer-cut`: half of the answer comes.
 */
export type Mishap = 'lost' | 'answer-lost' | 'doubled' | 'answer-late' | 'answer-cut';

/** A request by what it is for; `any` is the next one, whichever. */
export type RequestKind = 'push' | 'events' | 'entities' | 'handshake' | 'any';

export const MISHAPS: readonly Mishap[] = ['lost', 'answer-lost', 'doubled', 'answer-late', 'answer-cut'];
export const REQUEST_KINDS: readonly RequestKind[] = ['push', 'events', 'entities', 'handshake', 'any'];

export interface LedgerEndpoint {
  fetch: Fetch;
  /** A socket as the ledger sees it. `closed` is called at most once. */
  accept(
    url: string,
    peer: { send(text: string): void; close(reason: string): void },
  ): {
    message(text: string): void;
    closed(): void;
  };
  readonly up: boolean;
}

export interface DeviceNetwork {
  readonly rules: NetworkRules;
  readonly fetch: Fetch;
  readonly openSocket: OpenSocket;
  /** Cuts every open connection now; their requests get no answer. */
  cut(): void;
  /** Each call is for one request; several wait in order. */
  next(mishap: Mishap, kind: RequestKind): void;
  readonly counts: NetworkCounts;
}

export interface NetworkCounts {
  requests: number;
  lost: number;
  doubled: number;
  late: number;
  truncated: number;
  frames: number;
}

export const CALM: NetworkRules = {
  toLedger: true,
  fromLedger: true,
  delayMs: [1, 1],
  loss: 0,
  doubling: 0,
  lateness: 0,
  lateMs: 0,
  truncation: 0,
  portal: false,
  offline: false,
};

/** How late a late answer is where the rules do not say. */
const LATE_MS = 5_000;

const isOfKind = (url: string, kind: Exclude<RequestKind, 'any'>): boolean =>
  new URL(url).pathname.endsWith(`/${kind}`);

const PORTAL_PAGE = '<!doctype html><title>Welcome</title><form action="/login">Accept our terms to go online.</form>';

class ConnectionRefused extends Error {
  override readonly name = 'ConnectionRefused';
  readonly noByteLeft = true;
}

export function createDeviceNetwork(parts: {
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly ledger: () => LedgerEndpoint;
  readonly rules?: Partial<NetworkRules>;
}): DeviceNetwork {
  const { time, random, ledger } = parts;
  const rules: NetworkRules = { ...CALM, ...parts.rules };
  const mishaps: { readonly mishap: Mishap; readonly kind: RequestKind }[] = [];
  const counts: NetworkCounts = { requests: 0, lost: 0, doubled: 0, late: 0, truncated: 0, frames: 0 };
  const open = new Set<() => void>();

  const delay = (): number => rules.delayMs[0] + random.below(rules.delayMs[1] - rules.delayMs[0] + 1);
  const isLost = (isMeant = false): boolean => {
    const lost = random.chance(rules.loss) || isMeant;
    if (lost) counts.lost += 1;
    return lost;
  };

  const takeMishap = (url: string): Mishap | null => {
    const at = mishaps.findIndex(({ kind }) => kind === 'any' || isOfKind(url, kind));
    return at < 0 ? null : (mishaps.splice(at, 1)[0]?.mishap ?? null);
  };

  const fetch: Fetch = (url, request) =>
    new Promise<WireResponse>((resolve, reject) => {
      counts.requests += 1;
      let isOver = false;
      const over = (settle: () => void) => {
        if (isOver) return;
        isOver = true;
        open.delete(cutThis);
        settle();
      };
      const cutThis = () => over(() => reject(new Error('The connection was cut.')));
      open.add(cutThis);
      request.signal.addEventListener('abort', () => over(() => reject(new Error('The request was given up.'))));
      if (rules.offline || !ledger().up) {
        time.at(delay(), () => over(() => reject(new ConnectionRefused('No route to the ledger.'))));
        return;
      }
      if (rules.portal) {
        time.at(delay(), () => over(() => resolve(page(200, 'text/html; charset=utf-8', PORTAL_PAGE))));
        return;
      }
      const mishap = takeMishap(url);
      const answer = (response: WireResponse) => {
        const late = random.chance(rules.lateness) || mishap === 'answer-late';
        if (late) counts.late += 1;
        time.at(delay() + (late ? rules.lateMs || LATE_MS : 0), () => {
          if (!rules.fromLedger || isLost(mishap === 'answer-lost')) return;
          over(() => resolve(response));
        });
      };
      const deliver = (isCopy: boolean) => {
        if (!rules.toLedger || isLost(mishap === 'lost')) return;
        arrive(url, request, mishap === 'answer-cut').then(
          (response) => (isCopy ? undefined : answer(response)),
          () => (isCopy ? undefined : over(() => reject(new Error('The connection was reset.')))),
        );
      };
      time.at(delay(), () => deliver(false));
      if (random.chance(rules.doubling) || mishap === 'doubled') {
        counts.doubled += 1;
        time.at(delay() * 2 + rules.lateMs, () => deliver(true));
      }
    });

  const arrive = async (url: string, request: WireRequest, isCut: boolean): Promise<WireResponse> => {
    const response = await ledger().fetch(url, { ...request, signal: NEVER });
    if (!random.chance(rules.truncation) && !isCut) return response;
    counts.truncated += 1;
    const text = await response.text();
    return { ...facts(response), text: () => Promise.resolve(text.slice(0, random.below(text.length + 1))) };
  };

  const openSocket: OpenSocket = (url, events) => {
    let state: 'opening' | 'open' | 'closed' = 'opening';
    let peer: ReturnType<LedgerEndpoint['accept']> | null = null;
    const close = (reason: string) => {
      if (state === 'closed') return;
      state = 'closed';
      open.delete(cutThis);
      peer?.closed();
      events.closed(reason);
    };
    const cutThis = () => close('cut');
    open.add(cutThis);
    time.at(delay() * 2, () => {
      if (state !== 'opening') return;
      if (rules.offline || rules.portal || !rules.toLedger || !rules.fromLedger || !ledger().up)
        return close('refused');
      state = 'open';
      peer = ledger().accept(url, {
        send: (text) => toDevice(text),
        close: (reason) => void time.at(delay(), () => (rules.fromLedger ? close(reason) : undefined)),
      });
      events.open();
    });
    // A stream keeps its order: nothing arrives before what was sent earlier.
    let toDeviceAtMs = 0;
    let toLedgerAtMs = 0;
    const toDevice = (text: string) => {
      counts.frames += 1;
      toDeviceAtMs = Math.max(toDeviceAtMs, time.elapsedMs + delay());
      time.at(toDeviceAtMs - time.elapsedMs, () => {
        if (state === 'open' && rules.fromLedger && !rules.offline) events.message(text);
      });
    };
    const socket: Socket = {
      bufferedBytes: 0,
      send: (text) => {
        toLedgerAtMs = Math.max(toLedgerAtMs, time.elapsedMs + delay());
        time.at(toLedgerAtMs - time.elapsedMs, () => {
          if (state === 'open' && rules.toLedger && !rules.offline) peer?.message(text);
        });
      },
      close: () => {
        time.at(0, () => close('closed here'));
      },
    };
    return socket;
  };

  return {
    rules,
    fetch,
    openSocket,
    counts,
    cut: () => {
      for (const one of [...open]) one();
    },
    next: (mishap, kind) => void mishaps.push({ mishap, kind }),
  };
}

/** The ledger goes on with a request whose sender has given up: that is what makes outcomes unknown. */
const NEVER = { aborted: false, addEventListener: () => undefined, removeEventListener: () => undefined };

const page = (status: number, type: string, body: string): WireResponse => ({
  status,
  headers: { get: (name) => (name.toLowerCase() === 'content-type' ? type : null) },
  text: () => Promise.resolve(body),
});

const facts = (response: WireResponse) => ({
  status: response.status,
  headers: response.headers,
  ...(response.redirected === undefined ? {} : { redirected: response.redirected }),
});
