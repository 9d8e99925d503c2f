import type { Fault } from '@holdfast/core';
import { FaultError } from './engine/fault-error.ts';
import type { Inspection } from './inspect.ts';
import { openForRepair } from './open-for-repair.ts';

/** A permit that was found in a local commit, and what was ended with it. */
export interface EndedLocalCommit {
  readonly permitId: string;
  readonly log: string;
  readonly class: string;
  /** Request ids that are asked about again. */
  readonly operations: readonly string[];
}

/**
 * PM10: the way out of a log that is blocked with `local-commit-invariant`, after a person decided. Takes the file over under
 * a new generation, ends each such permit as owed, queues its operations again under their request ids, and lets the log go
 * on. Nothing unsent leaves the outbox.
 *
 * Throws `FaultError` `replica-in-use` while another process has the replica open.
 */
export const endLocalCommits = (file: string, of: Pick<Inspection, 'owner' | 'schema'>): readonly EndedLocalCommit[] =>
  openForRepair(file, of, ({ state, coordinator }) =>
    coordinator.foundLocalCommits().map((permit) => {
      const ended = coordinator.repairLocalCommit(permit.permitId);
      if (!ended.ok) throw new FaultError(ended.fault);
      const fault: Fault = { code: 'local-commit-invariant' };
      state.markUnknown(ended.value.queueAgain, fault, null);
      if (state.log(permit.log)?.blocked?.code === fault.code) state.block(permit.log, null);
      return { permitId: permit.permitId, log: permit.log, class: permit.class, operations: ended.value.queueAgain };
    }),
  );

/**
 * ST2: lets go what is held by a batch that the file does not have any more, as an earlier version left it. Action ids, in
 * the order in which they stand in the outbox. What a person has put in the place of what it needs, it needs instead; what
 * was given up, it does without, as if the decision were made now. Whether it still holds the ledger judges.
 *
 * Throws `FaultError` `replica-in-use` while another process has the replica open.
 */
export const releaseHeld = (file: string, of: Pick<Inspection, 'owner' | 'schema'>): readonly string[] =>
  openForRepair(file, of, ({ state }) => state.releaseHeld());
