import {
  type Database,
  type Fetch,
  type OpenSocket,
  type Platform,
  randomHex,
  type SchemaData,
  uuidv7,
} from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { type Coordinator, createCoordinator } from '../engine/coordinator.ts';
import { raisedOnMedium } from '../engine/file.ts';
import { type Examination, examine } from '../engine/inspect.ts';
import { type OpenedState, openReplicaState } from '../engine/state.ts';
import type { SyncSettings } from '../engine/sync/settings.ts';
import { createSyncEngine, type SyncEngine } from '../engine/sync/sync-engine.ts';

export { DatabaseFault } from '../engine/database-fault.ts';
export { type FailHow, FailingDatabase, FailPlan } from './failing-database.ts';
export { contentsOf } from './file-contents.ts';
export { tamper } from './tamper.ts';
export { openNodeDatabase };

/** The engines of one device, composed as a host composes them, on ports of a test: no link, no client, no lock. */
export interface EngineDevice {
  readonly database: Database;
  readonly state: OpenedState;
  readonly coordinator: Coordinator;
  readonly sync: SyncEngine;
  examine(): Examination;
  close(): Promise<void>;
  /** As after SIGKILL. Whoever calls it has stopped the clock and cut the network. */
  abandon(): void;
}

export interface EngineDeviceOptions {
  readonly file: string;
  readonly schema: SchemaData;
  readonly account: string;
  readonly workspace?: string;
  /** Followed from the start, besides `main`. */
  readonly logs?: readonly string[];
  readonly platform: Platform;
  readonly fetch: Fetch;
  readonly openSocket: OpenSocket;
  readonly settings?: Partial<SyncSettings>;
  readonly database?: Database;
  /** See `FileOwner`. */
  readonly isAfterPowerLoss?: boolean;
  /** What the device shows for itself; its account's name unless given. */
  readonly token?: () => string;
}

const LEDGER = 'http://ledger.test';

export function createEngineDevice(options: EngineDeviceOptions): EngineDevice {
  const { platform, account, workspace = 'world' } = options;
  const database = options.database ?? openNodeDatabase({ file: options.file });
  const hostInstance = randomHex(platform.random, 16);
  const state = openReplicaState({
    database,
    platform,
    schema: options.schema,
    ledger: LEDGER,
    account,
    workspace,
    hostInstance,
    isAfterPowerLoss: options.isAfterPowerLoss === true,
    ...(options.logs === undefined ? {} : { logs: options.logs }),
  });
  const coordinator = createCoordinator({
    database,
    clock: platform.clock,
    newId: () => uuidv7(platform.clock.now(), platform.random),
    hostInstance,
    isActive: (log) => log === '*' || state.log(log) !== undefined,
  });
  const generation = raisedOnMedium(database, () => coordinator.raiseGeneration());
  state.takeOver(generation);
  const sync = createSyncEngine({
    state,
    coordinator,
    fetch: options.fetch,
    openSocket: options.openSocket,
    platform,
    ledgerUrl: LEDGER,
    workspace,
    token: options.token ?? (() => account),
    ...(options.settings === undefined ? {} : { settings: options.settings }),
  });
  let isOpen = true;
  return {
    database,
    state,
    coordinator,
    sync,
    examine: () => examine(state.store),
    close: async () => {
      await sync.close();
      if (isOpen) database.close();
      isOpen = false;
    },
    abandon: () => {
      isOpen = false;
      if (database.inTransaction) database.exec('ROLLBACK');
      database.close();
    },
  };
}
