import {
  decodeRequestRefusal,
  type Fault,
  HEADERS,
  type Json,
  LIMITS,
  PROTOCOL,
  parseJson,
  type RequestRefusal,
} from '@holdfast/core';
import { retryAfterMs } from './retry.ts';

/**
 * LG10: is this the ledger speaking? Only an answer with the protocol header, our permit's number, JSON and, where the
 * route has one, the log's identity counts. Everything else leaves the outcome unknown, whatever its status says.
 */
export interface Expected {
  /** The number that the ledger echoes. */
  readonly permit: number;
  /** The route names a log, so a success names its identity. */
  readonly namesLog: boolean;
  /** What we know of that log; null before the first contact. */
  readonly identity: string | null;
  readonly nowMs: number;
}

export interface Received {
  readonly status: number;
  readonly redirected: boolean;
  header(name: string): string | null;
  readonly text: string;
}

export type Answer =
  /** 2xx, vouched for. `identity` is what the log header says. */
  | { readonly kind: 'answered'; readonly body: Json; readonly identity: string | null }
  /** The ledger refused the whole request before it judged anything. */
  | { readonly kind: 'refused'; readonly refusal: RequestRefusal }
  | Unknown
  /** The transport proves that no byte left this device. */
  | { readonly kind: 'never-sent'; readonly fault: Fault };

export interface Unknown {
  readonly kind: 'unknown';
  readonly fault: Fault;
  readonly retryAfterMs?: number | null;
  /** It looks like a sign-in page or a gateway in front of the ledger (AC1). */
  readonly signIn?: true;
  /** 413 from whoever: the next grouping is half as many bytes. */
  readonly tooLarge?: true;
}

export function readAnswer(received: Received, expected: Expected): Answer {
  const { status } = received;
  if (received.redirected || status === 0 || (status >= 300 && status < 400))
    return unknown('network-untrusted', { status, why: 'redirect' }, { signIn: true });
  const isJson = /^application\/json\s*(;|$)/i.test(received.header('content-type') ?? '');
  const why = isJson ? strangerBy(received, expected) : 'not-json';
  if (why !== null) return stranger(received, expected, why);

  const parsed = parseJson(received.text, { bytesMax: LIMITS.bodyBytesMax, depthMax: LIMITS.jsonDepthMax + 16 });
  if (!parsed.ok) return unknown('answer-malformed', { status, why: parsed.fault.code });
  if (status >= 200 && status < 300)
    return { kind: 'answered', body: parsed.value, identity: received.header(HEADERS.logIdentity) };

  const refusal = decodeRequestRefusal(parsed.value);
  if (!refusal.ok) return unknown('answer-malformed', { status, ...refusal.fault.facts });
  // 5xx and 429 say nothing definite: the work may have been done before the answer went wrong.
  if (status >= 500 || status === 429)
    return {
      kind: 'unknown',
      fault: { code: refusal.value.code, facts: { status } },
      retryAfterMs: retryAfterMs(received.header('retry-after'), expected.nowMs),
    };
  return { kind: 'refused', refusal: refusal.value };
}

/** The first mark that is missing, or null. */
function strangerBy(received: Received, expected: Expected): string | null {
  const protocol = Number(received.header(HEADERS.protocol) ?? Number.NaN);
  // A refusal may come from a ledger that speaks only another version: `update-needed` must still be heard.
  if (!Number.isInteger(protocol) || protocol < 1) return 'no-protocol';
  if (received.status < 300 && (protocol < PROTOCOL.min || protocol > PROTOCOL.max)) return 'other-protocol';
  if (received.header(HEADERS.permit) !== String(expected.permit)) return 'permit-not-echoed';
  const identity = received.header(HEADERS.logIdentity);
  if (expected.namesLog && identity === null && received.status < 300) return 'no-log-identity';
  if (identity !== null && expected.identity !== null && identity !== expected.identity) return 'other-log-identity';
  return null;
}

/** Somebody between us and the ledger answered: a proxy, a portal, a login page. Nothing of it is believed. */
function stranger(received: Received, expected: Expected, why: string): Unknown {
  const { status } = received;
  const facts = { status, why };
  const waitMs = retryAfterMs(received.header('retry-after'), expected.nowMs);
  if (status === 413) return unknown('too-large', facts, { tooLarge: true });
  if (status === 401) return unknown('network-untrusted', facts, { signIn: true });
  if (status >= 500 || status === 429) return unknown('ledger-unreachable', facts, { retryAfterMs: waitMs });
  const isPage = /^text\/html/i.test(received.header('content-type') ?? '');
  return unknown('network-untrusted', facts, isPage ? { signIn: true, retryAfterMs: waitMs } : {});
}

function unknown(code: Fault['code'], facts: Fault['facts'], more: Partial<Unknown> = {}): Unknown {
  return { ...more, kind: 'unknown', fault: { code, ...(facts ? { facts } : {}) } };
}
