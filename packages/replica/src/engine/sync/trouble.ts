import { type Fault, RECOVERY, type RequestRefusal } from '@holdfast/core';
import type { Answer, Unknown } from './vouch.ts';

/** What an answer that is no answer leads to (the table of 6.4). Pure: the driver only does what it says. */
export type Trouble =
  /** Not known, or known to be of no use now: later, with the same bytes. */
  | { readonly next: 'retry'; readonly fault: Fault; readonly retryAfterMs: number | null }
  /** AC1. `suspected`: somebody else than the ledger says so, and may be wrong. */
  | { readonly next: 'sign-in'; readonly fault: Fault; readonly suspected: boolean }
  /** The request was too large for the ledger (`definite`) or for somebody on the way. */
  | { readonly next: 'shrink'; readonly fault: Fault; readonly definite: boolean }
  /** A handshake decides (DG5). */
  | { readonly next: 'ask'; readonly fault: Fault }
  /** RP1. */
  | { readonly next: 'renew'; readonly fault: Fault }
  /** Said of the whole replica: it waits, whatever its logs say. */
  | {
      readonly next: 'wait-whole';
      readonly phase: 'other-account' | 'update-needed' | 'blocked';
      readonly fault: Fault;
      /** The ledger took our replica id for one of the account that it names (LG8): this file's own can use it no more. */
      readonly isIdTaken?: true;
    }
  /** `stale-permit`: a new permit, at once. */
  | { readonly next: 'reissue'; readonly fault: Fault }
  /** The ledger could not read the request: an engine fault. */
  | { readonly next: 'unreadable'; readonly fault: Fault };

export function troubleOf(answer: Exclude<Answer, { kind: 'answered' }>): Trouble {
  if (answer.kind === 'never-sent') return { next: 'retry', fault: answer.fault, retryAfterMs: null };
  return answer.kind === 'unknown' ? unknownTrouble(answer) : refusalTrouble(answer.refusal);
}

function unknownTrouble({ fault, signIn, tooLarge, retryAfterMs }: Unknown): Trouble {
  if (tooLarge) return { next: 'shrink', fault, definite: false };
  if (signIn) return { next: 'sign-in', fault, suspected: true };
  return { next: 'retry', fault, retryAfterMs: retryAfterMs ?? null };
}

function refusalTrouble(refusal: RequestRefusal): Trouble {
  const fault: Fault = { code: refusal.code, facts: { answer: refusal.requestId, ...refusal.details } };
  switch (refusal.code) {
    case 'too-large':
      return { next: 'shrink', fault, definite: true };
    case 'other-account':
    case 'update-needed':
      return { next: 'wait-whole', phase: refusal.code, fault };
    case 'protocol-unsupported':
      return { next: 'wait-whole', phase: 'update-needed', fault };
    case 'origin-not-allowed':
      return { next: 'wait-whole', phase: 'blocked', fault };
    case 'quota-exceeded':
      return { next: 'retry', fault, retryAfterMs: null };
    case 'not-allowed':
    case 'not-found':
      return { next: 'ask', fault };
  }
  switch (RECOVERY[refusal.code]) {
    case 'sign-in':
      return { next: 'sign-in', fault, suspected: false };
    case 'renew':
      return { next: 'renew', fault };
    case 'reissue':
      return { next: 'reissue', fault };
    case 'check-position':
    case 'block':
      return { next: 'ask', fault };
    case 'park':
      return { next: 'unreadable', fault };
    default:
      // A code of a later ledger is definite, but says nothing that this code could act on.
      return { next: 'retry', fault, retryAfterMs: null };
  }
}
