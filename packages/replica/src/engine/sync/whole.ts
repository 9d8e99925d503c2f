import { LIMITS } from '@holdfast/core';
import { ENDS_BACKOFF, type Trigger, type Verdict } from './loop.ts';
import type { SyncParts } from './parts.ts';
import type { AskedAs } from './request.ts';
import type { Backoff } from './retry.ts';
import type { SessionDriver } from './session.ts';
import { RENEWALS_MAX } from './settings.ts';
import type { SignIn } from './sign-in.ts';
import type { Trouble } from './trouble.ts';

/** What an answer says of the whole replica: who it is, who asks, what they both speak (AC1, AC2, RP1, LG12). */
export interface Whole {
  ofLedger(trouble: Trouble, as: AskedAs | undefined, backoff: Backoff): Promise<Verdict>;
  /** Asked again at once where the log stands, and not before its backoff for the work itself. */
  ofLane(trouble: Trouble, as: AskedAs | undefined, backoff: Backoff): Promise<Verdict>;
  /** Whether a handshake may be sent: a replica of another account sends nothing until somebody does something. */
  mayAsk(triggers: readonly Trigger[]): boolean;
  credentials(): void;
}

export function createWhole(of: {
  readonly parts: SyncParts;
  readonly session: SessionDriver;
  readonly signIn: SignIn;
  readonly forgetProofs: () => void;
  readonly askAgain: () => void;
}): Whole {
  const { parts, session, signIn, forgetProofs, askAgain } = of;
  let renewals = 0;

  /** What to do next: ask again at once, later, or not until something changes. */
  const found = async (trouble: Trouble, as: AskedAs | undefined): Promise<'again' | 'retry' | 'slowly' | 'stands'> => {
    forgetProofs();
    switch (trouble.next) {
      case 'sign-in':
        return signIn.found({ fault: trouble.fault, suspected: trouble.suspected, token: as?.token });
      case 'renew':
        return renew(trouble, as);
      case 'wait-whole':
        // The id is the other account's from now on (LG8): under it no work of this file would ever leave (AC2). Once for
        // each credential that is shown, since nothing is asked again before that.
        if (trouble.isIdTaken === true) renew(trouble, as);
        session.signal(trouble.phase, trouble.fault);
        return trouble.phase === 'other-account' ? 'stands' : 'slowly';
      default:
        return 'retry';
    }
  };

  /**
   * RP1. The file says whether it was outranked: then the transaction throws, and this host stops. Otherwise the file is a
   * copy or an old backup, and goes on under a new id; data, outbox and all other ids stay.
   */
  const renew = (trouble: Trouble, as: AskedAs | undefined): 'again' | 'slowly' => {
    parts.write(() => parts.journal.write('renew', { code: trouble.fault.code }));
    // Another request of ours found the same before, and the id that it asked under is gone.
    if (as !== undefined && as.replicaId !== parts.state.identity.replicaId) return 'again';
    if (trouble.next === 'renew') {
      if (renewals >= RENEWALS_MAX) {
        session.signal('blocked', trouble.fault);
        return 'slowly';
      }
      renewals += 1;
    }
    parts.state.renewReplicaId();
    return 'again';
  };

  return {
    ofLedger: async (trouble, as, backoff) => {
      switch (await found(trouble, as)) {
        case 'again':
          return { next: 'again' };
        case 'retry':
          return { next: 'retry', inMs: backoff.next() };
        case 'slowly':
          return { next: 'retry', inMs: LIMITS.retryMaxMs };
        case 'stands':
          return { next: 'idle' };
      }
    },
    ofLane: async (trouble, as, backoff) => {
      const next = await found(trouble, as);
      if (next === 'stands') return { next: 'idle' };
      askAgain();
      // A handshake may well come through while the work does not: it must not start it again each time.
      if (next === 'again') return { next: 'idle' };
      return { next: 'retry', inMs: next === 'retry' ? backoff.next() : LIMITS.retryMaxMs };
    },
    mayAsk: (triggers) => {
      if (session.stands) return session.phase === 'sign-in-needed' && signIn.isSuspected;
      return session.phase !== 'other-account' || triggers.some((trigger) => ENDS_BACKOFF.has(trigger));
    },
    credentials: () => {
      signIn.fresh();
      forgetProofs();
      session.signal('credentials');
    },
  };
}
