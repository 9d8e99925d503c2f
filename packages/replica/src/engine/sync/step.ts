import type { Fault } from '@holdfast/core';
import type { AskedAs, Exchange } from './request.ts';
import type { Trouble } from './trouble.ts';

/** What one step of a log's cycle came to. */
export type Step =
  /** The answer was applied. `moved`: something here is other than before. */
  | { readonly step: 'done'; readonly moved: boolean }
  | {
      readonly step: 'trouble';
      readonly trouble: Trouble;
      /** Absent where nothing was asked. */
      readonly as?: AskedAs;
      /** The delay is drawn already, because the same instant is stored with the operations (OB4). */
      readonly inMs?: number;
    }
  /** Paused, closed or signed out before it began. */
  | { readonly step: 'held' }
  /** There was nothing to ask. */
  | { readonly step: 'nothing' };

export const done = (moved: boolean): Step => ({ step: 'done', moved });

export const troubled = (trouble: Trouble, as?: AskedAs): Step => ({ step: 'trouble', trouble, ...(as ? { as } : {}) });

export const ask = (fault: Fault): Step => troubled({ next: 'ask', fault });

export const later = (fault: Fault): Step => troubled({ next: 'retry', fault, retryAfterMs: null });

/** A request that never began. An app that cannot give a credential is asked again later. */
export function notStarted(why: Extract<Exchange, { started: false }>['why']): Step {
  if (why === 'no-token') return later({ code: 'token-failed' });
  return { step: why };
}
