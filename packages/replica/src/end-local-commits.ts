import { type Fault, randomHex, uuidv7 } from '@holdfast/core';
import { openNodeDatabase } from './adapters/node/database.ts';
import { lockFile } from './adapters/node/file-lock.ts';
import { nodePlatform } from './adapters/node/platform.ts';
import { createCoordinator } from './engine/coordinator.ts';
import { FaultError } from './engine/fault-error.ts';
import { raisedOnMedium } from './engine/file.ts';
import { openReplicaState } from './engine/state.ts';
import type { Inspection } from './inspect.ts';

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
export function endLocalCommits(
  file: string,
  { owner, schema }: Pick<Inspection, 'owner' | 'schema'>,
): readonly EndedLocalCommit[] {
  const { clock, random } = nodePlatform;
  const attempt = lockFile(file, {
    pid: process.pid,
    since: new Date(clock.now()).toISOString(),
    what: 'holdfast doctor',
  });
  if (!attempt.ok) throw new FaultError({ code: 'replica-in-use', facts: { ...attempt.holder } });
  const database = openNodeDatabase({ file });
  try {
    const hostInstance = randomHex(random, 16);
    const state = openReplicaState({ database, platform: nodePlatform, schema, ...owner, hostInstance });
    const coordinator = createCoordinator({
      database,
      clock,
      newId: () => uuidv7(clock.now(), random),
      hostInstance,
      isActive: (log) => state.log(log) !== undefined,
    });
    state.takeOver(raisedOnMedium(database, () => coordinator.raiseGeneration()));
    return state.write(() =>
      coordinator.foundLocalCommits().map((permit) => {
        const ended = coordinator.repairLocalCommit(permit.permitId);
        if (!ended.ok) throw new FaultError(ended.fault);
        const fault: Fault = { code: 'local-commit-invariant' };
        state.markUnknown(ended.value.queueAgain, fault, null);
        if (state.log(permit.log)?.blocked?.code === fault.code) state.block(permit.log, null);
        return { permitId: permit.permitId, log: permit.log, class: permit.class, operations: ended.value.queueAgain };
      }),
    );
  } finally {
    database.close();
    attempt.lock.release();
  }
}
