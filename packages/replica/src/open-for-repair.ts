import { randomHex, uuidv7 } from '@holdfast/core';
import { openNodeDatabase } from './adapters/node/database.ts';
import { lockFile } from './adapters/node/file-lock.ts';
import { nodePlatform } from './adapters/node/platform.ts';
import { type Coordinator, createCoordinator } from './engine/coordinator.ts';
import { FaultError } from './engine/fault-error.ts';
import { raisedOnMedium } from './engine/file.ts';
import { type OpenedState, openReplicaState } from './engine/state.ts';
import type { Inspection } from './inspect.ts';

/**
 * One repair that a person decided on, in one transaction: takes the file over under a new generation, as a host would, and
 * gives it back. Throws `FaultError` `replica-in-use` while another process has the replica open.
 */
export function openForRepair<T>(
  file: string,
  { owner, schema }: Pick<Inspection, 'owner' | 'schema'>,
  repair: (parts: { readonly state: OpenedState; readonly coordinator: Coordinator }) => T,
): T {
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
    return state.write(() => repair({ state, coordinator }));
  } finally {
    database.close();
    attempt.lock.release();
  }
}
