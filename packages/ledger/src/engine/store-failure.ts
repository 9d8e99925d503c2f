import { type Refused, refusedBy } from './answer.ts';
import { StoreFault } from './store-port.ts';

/** How a store's failure is told to whoever asked. Never a word of its own: no path, no SQL (S18). */
export function refusedByStore(cause: unknown): Refused {
  if (!(cause instanceof StoreFault)) return refusedBy('internal');
  switch (cause.code) {
    case 'full':
      return refusedBy('internal', {
        status: 507,
        message: 'This ledger has no space left. Reading goes on.',
        retryAfterMs: 30_000,
      });
    case 'busy':
      return refusedBy('internal', { status: 503, retryAfterMs: 1_000 });
    case 'closed':
      return refusedBy('shutting-down', { retryAfterMs: 1_000 });
    case 'replaced':
    case 'too-new':
    case 'damaged':
      return refusedBy('internal', {
        status: 503,
        message: 'The store of this workspace cannot be trusted now. Nothing was accepted.',
        retryAfterMs: 60_000,
      });
    case 'failed':
      return refusedBy('internal');
  }
}

/** Whether nothing of it can be in the store. */
export const isRolledBack = (cause: unknown): boolean => !(cause instanceof StoreFault) || cause.isRolledBack;

/** Whether it may have been about one operation, not about the store as it is now. */
export const isPerhapsTheirs = (cause: unknown): boolean => !(cause instanceof StoreFault) || cause.code === 'failed';
