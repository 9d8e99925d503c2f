import type { Fault } from '@holdfast/core';
import type { SyncParts } from './parts.ts';
import type { SessionDriver } from './session.ts';

/**
 * AC1: expiry is found by an answer. The ledger's own 401 stops the loop at once, unless the app has another credential at
 * hand. A login page or a redirect is somebody else's word: believed the second time, told once like any expiry, and
 * doubted on, by one handshake now and then, because a portal goes away without anybody signing in.
 */
export interface SignIn {
  /** `again`: the app has another credential. `retry`: later. `stands`: until there are fresh credentials. */
  found(of: {
    readonly fault: Fault;
    readonly suspected: boolean;
    readonly token: string | undefined;
  }): Promise<'again' | 'retry' | 'stands'>;
  /** The ledger answered as ledger. */
  worked(): void;
  /** The app has fresh credentials. */
  fresh(): void;
  /** The loop stands only because of somebody else's word. */
  readonly isSuspected: boolean;
}

export function createSignIn(parts: Pick<SyncParts, 'token' | 'journal'>, session: SessionDriver): SignIn {
  let hasRefreshed = false;
  let suspicions = 0;
  let isSuspected = false;

  const reset = () => {
    hasRefreshed = false;
    suspicions = 0;
    isSuspected = false;
  };

  const hasOther = async (used: string | undefined): Promise<boolean> => {
    if (hasRefreshed) return false;
    hasRefreshed = true;
    try {
      const fresh = await parts.token();
      return fresh !== undefined && fresh !== '' && fresh !== used;
    } catch {
      return false;
    }
  };

  const expire = (fault: Fault, suspected: boolean) => {
    isSuspected = suspected;
    if (!session.stands) parts.journal.write('expired', { code: fault.code, suspected });
    session.signal('expired', fault);
  };

  return {
    found: async ({ fault, suspected, token }) => {
      if (!suspected) {
        if (await hasOther(token)) return 'again';
        expire(fault, false);
        return 'stands';
      }
      suspicions += 1;
      if (suspicions > 1 || fault.facts?.['status'] === 401) expire(fault, true);
      else session.signal('unreachable', fault);
      return 'retry';
    },
    fresh: () => reset(),
    worked: () => {
      reset();
      if (session.phase === 'sign-in-needed') session.signal('credentials');
    },
    get isSuspected() {
      return isSuspected;
    },
  };
}
