import type { Schema } from '@holdfast/core';
import type { Replica, Settled } from '@holdfast/replica';

/** A ledger that does not answer is not waited for: the work is durable here. */
const OFFLINE_MS = 3_000;

/** As `settle()`, but for at most `ms`, and not for a ledger that is away: then `isGivenUp`. */
export async function settleWithin<S extends Schema>(
  replica: Replica<S>,
  ms: number,
): Promise<Settled & { readonly isGivenUp: boolean }> {
  const giveUp = new AbortController();
  const overall = setTimeout(() => giveUp.abort(), ms);
  const offline = setInterval(() => {
    if (replica.status.current.phase === 'offline') giveUp.abort();
  }, OFFLINE_MS);
  try {
    const settled = await replica.settle({ signal: giveUp.signal });
    return { ...settled, isGivenUp: giveUp.signal.aborted && !settled.settled };
  } catch {
    return { settled: false, attention: 0, obstacles: [], isGivenUp: true };
  } finally {
    clearTimeout(overall);
    clearInterval(offline);
  }
}
