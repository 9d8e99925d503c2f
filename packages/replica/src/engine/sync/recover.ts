import type { LogFacts } from './facts.ts';
import type { SyncParts } from './parts.ts';
import { pushOnce } from './push.ts';
import type { Step } from './step.ts';

/**
 * Operations whose outcome is not known are asked about before anything else is sent: the stored bytes again under the
 * same request ids, held or not, due or not (PM7, OB3). The ledger returns the first acceptance, or judges them now; their
 * obligations close with whatever it says. A replay may group them otherwise than the first time.
 */
export async function recoverOnce(
  parts: SyncParts,
  facts: LogFacts,
  retryInMs: (retryAfterMs: number | null) => number,
): Promise<Step> {
  closeAnswered(parts, facts.log);
  const nowMs = parts.platform.clock.monotonic();
  const owed = parts.permits
    .owed(facts.log)
    .operations.filter((requestId) => facts.sizes.waitsUntilMs(requestId) <= nowMs);
  if (owed.length === 0) return { step: 'nothing' };
  return pushOnce(parts, facts, retryInMs, owed);
}

/** A page or frame with an operation's own events can pass while its push is on the way, which is then owed in vain. */
function closeAnswered(parts: SyncParts, log: string): void {
  const answered = parts.state.answeredSince(parts.permits.owed(log).operations);
  if (answered.length > 0) parts.write(() => parts.permits.answeredSince(answered));
}
