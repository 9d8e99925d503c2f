import type { Fault, JsonObject, OperationClass } from '@holdfast/core';
import type { Coordinator } from '../coordinator.ts';
import type { DefiniteAnswer } from '../coordinator-apply.ts';
import { type OperationOutcome, type Permit, WHOLE_WORKSPACE } from '../coordinator-permit.ts';
import { FaultError } from '../fault-error.ts';

/**
 * The coordinator, in the words of a request (7). Every call runs inside the caller's transaction; a refusal throws, and
 * so undoes it: a host that may not act changes nothing.
 */
export interface Permits {
  /** PM10 transaction 1: issued and started. From its commit on the outcome is unknown until an answer is stored (PM3). */
  start(request: PermitRequest): Permit;
  /** PM10 transaction 2: answer stored, local commit entered, `work`, obligations settled, released. */
  apply(permit: Permit, answer: PushOutcomes, work: () => void): void;
  /** A handshake: nothing to apply, obligations settled alike (PM5). */
  acknowledge(permit: Permit): void;
  /** The ledger refused the request before it judged any operation (PM4). `work` is what that means for the outbox. */
  reject(permit: Permit, work: () => void): void;
  /** The outcome is not known: owed from now on. */
  owe(permit: Permit): void;
  /** A definite answer that could not be applied: recorded, and asked for again (PM5). */
  oweAnswered(permit: Permit, answer: PushOutcomes): void;
  /** The transport proves that no byte left. */
  neverSent(permit: Permit): void;

  /** Own events passed ingest: their push obligations close (PM7). */
  confirmed(events: readonly { readonly requestId: string; readonly version: number }[]): void;
  /** Inside the work of the repair that swaps (PM9). */
  settleByRepair(permit: Permit): void;
  /** The state is whole: pages of it that were owed. In the transaction that makes it visible, or later where one ended late. */
  settleByFirstState(log: string): void;
  /** These stopped to wait for an answer: what was owed for them is known already. */
  answeredSince(operations: readonly { readonly requestId: string; readonly outcome: string }[]): void;
  /** What is open of this log. */
  owed(log: string): Owed;
  /** PM8, PM12: permits of earlier runs, and overdue ones that nobody works on. Their operations are queued again. */
  settleOld(
    old: { readonly of: 'earlier-instances' } | { readonly of: 'overdue'; readonly working: readonly string[] },
  ): {
    readonly queueAgain: readonly string[];
    /** Of the permits that ended: something may be owed to them now. */
    readonly logs: readonly string[];
    /** `local-commit-entered`, written by other code: these logs are blocked until a person looks (PM10). */
    readonly blocked: readonly string[];
  };
  /** PM14: one batch. True: there is more. */
  prune(): boolean;
}

export interface Owed {
  /** Request ids that push obligations name, each once. */
  readonly operations: readonly string[];
  readonly pull: boolean;
  /** A page of a state that is fetched whole. */
  readonly state: boolean;
}

export interface PermitRequest {
  readonly class: Exclude<OperationClass, 'dispatch' | 'local-apply'>;
  readonly log: string;
  /** Where the request starts from: a position, or one per log for a handshake; null before the first. */
  readonly boundary: JsonObject | null;
  /** Request ids of a push. */
  readonly operations?: readonly string[];
  /** Silence after which it is overdue (PM12). */
  readonly deadlineMs: number;
}

type Named = Pick<DefiniteAnswer, 'outcomes'>;

/** One per operation of a push, in any order; nothing for other classes (PM4). */
export type PushOutcomes = readonly OperationOutcome[];

export { type Permit, WHOLE_WORKSPACE };

/** What is owed of a state that is fetched whole: also for the repair of a log that was forgotten meanwhile. */
const BRINGS_STATE: ReadonlySet<string> = new Set(['bootstrap', 'repair']);

export function createPermits(coordinator: Coordinator): Permits {
  const done = (outcome: { readonly ok: boolean; readonly fault?: Fault }) => {
    if (!outcome.ok) throw new FaultError(outcome.fault ?? { code: 'engine-fault' });
  };
  return {
    start: (request) => {
      const issued = coordinator.issueAndStart(request);
      if (!issued.ok) throw new FaultError(issued.fault);
      return issued.value;
    },
    apply: (permit, outcomes, work) =>
      done(coordinator.applyAnswered(permit, { disposition: 'accepted', ...named(outcomes) }, work)),
    acknowledge: (permit) => done(coordinator.acknowledge(permit, { answer: { disposition: 'accepted' } })),
    reject: (permit, work) => done(coordinator.applyAnswered(permit, { disposition: 'rejected' }, work)),
    owe: (permit) => done(coordinator.abandon(permit, { because: 'no-answer', reason: 'abandoned' })),
    oweAnswered: (permit, outcomes) =>
      done(
        coordinator.abandon(permit, {
          because: 'apply-not-committed',
          disposition: 'accepted',
          ...named(outcomes),
        }),
      ),
    neverSent: (permit) => done(coordinator.abandon(permit, { because: 'never-sent' })),

    confirmed: (events) => void coordinator.settleByConfirmed(events),
    settleByRepair: (permit) => done(coordinator.settleByRepair(permit)),
    settleByFirstState: (log) => {
      const owed = coordinator.obligations.open({ log }).filter((one) => BRINGS_STATE.has(one.class));
      done(
        coordinator.obligations.close(
          owed.map(({ id }) => id),
          { kind: 'first-state' },
        ),
      );
    },
    answeredSince: (operations) => {
      for (const { requestId, outcome } of operations) {
        const owed = coordinator.obligations.forOperations([requestId]).filter((one) => one.class === 'push');
        const ids = owed.map(({ id }) => id);
        done(coordinator.obligations.close(ids, { kind: 'answered-since', outcome }));
      }
    },
    owed: (log) => {
      const open = coordinator.obligations.open({ log });
      const pushes = open.filter((one) => one.class === 'push');
      return {
        operations: [...new Set(pushes.map(({ identity }) => identity))],
        pull: open.some((one) => one.class === 'pull'),
        state: open.some((one) => BRINGS_STATE.has(one.class)),
      };
    },
    settleOld: (old) => {
      const { ended, untouched } =
        old.of === 'overdue' ? coordinator.expire(old.working) : coordinator.settleEarlierInstances();
      return {
        queueAgain: ended.flatMap(({ queueAgain }) => queueAgain),
        logs: [...new Set(ended.map(({ permit }) => permit.log))],
        blocked: untouched.map(({ log }) => log),
      };
    },
    prune: () => coordinator.prune().more,
  };
}

const named = (outcomes: PushOutcomes): Named => (outcomes.length === 0 ? {} : { outcomes });
