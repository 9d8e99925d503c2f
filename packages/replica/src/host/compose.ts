import {
  type Database,
  type Fault,
  type Fetch,
  type JsonObject,
  type Logger,
  type OpenSocket,
  type Platform,
  randomHex,
  type SchemaData,
  uuidv7,
} from '@holdfast/core';
import { type Coordinator, createCoordinator } from '../engine/coordinator.ts';
import { raisedOnMedium } from '../engine/file.ts';
import { type OpenedState, openReplicaState } from '../engine/state.ts';
import type { Token } from '../engine/sync/parts.ts';
import type { SyncSettings } from '../engine/sync/settings.ts';
import { createSyncEngine, type SyncEngine } from '../engine/sync/sync-engine.ts';
import { type Host, openHost } from './host.ts';
import type { HostPlace } from './host-status.ts';
import type { Observer } from './observe.ts';

/** Everything that a replica's host is made of: ports, and who it is for. The same for Node, a worker and a test world. */
export interface ComposedParts {
  readonly database: Database;
  readonly platform: Platform;
  readonly fetch: Fetch;
  readonly openSocket: OpenSocket;
  readonly schema: SchemaData;
  readonly ledger: string;
  readonly account: string;
  readonly workspace: string;
  readonly place: HostPlace;
  /** See `FileOwner`. */
  readonly isAfterPowerLoss?: boolean;
  readonly logs?: readonly string[];
  readonly token?: Token;
  readonly settings?: Partial<SyncSettings>;
  readonly observe?: Observer;
  readonly logger?: Logger;
  readonly onSignInNeeded?: (fault: Fault | null) => void;
  readonly release?: () => void;
}

export interface ComposedHost extends Host {
  readonly state: OpenedState;
  readonly sync: SyncEngine;
  readonly coordinator: Coordinator;
}

/**
 * Opens the file, takes it over under a new generation, and starts to sync (PM8, RP2). Throws `FaultError` where the file
 * cannot be opened: `replica-too-new`, `replica-damaged`, `other-account`; the database is closed then.
 */
export function composeHost(parts: ComposedParts): ComposedHost {
  const { database } = parts;
  try {
    return compose(parts);
  } catch (cause) {
    if (database.inTransaction) database.exec('ROLLBACK');
    database.close();
    throw cause;
  }
}

function compose(parts: ComposedParts): ComposedHost {
  const { database, platform } = parts;
  const { clock, random } = platform;
  const hostInstance = randomHex(random, 16);
  const { ledger, account, workspace, schema, logs } = parts;
  const state = openReplicaState({
    database,
    platform,
    schema,
    ledger,
    account,
    workspace,
    hostInstance,
    isAfterPowerLoss: parts.isAfterPowerLoss === true,
    ...(logs === undefined ? {} : { logs }),
  });
  const coordinator = createCoordinator({
    database,
    clock,
    newId: () => uuidv7(clock.now(), random),
    hostInstance,
    isActive: (log) => state.log(log) !== undefined,
  });
  const generation = raisedOnMedium(database, () => coordinator.raiseGeneration());
  state.takeOver(generation);
  const sync = createSyncEngine({
    state,
    coordinator,
    platform,
    fetch: parts.fetch,
    openSocket: parts.openSocket,
    ledgerUrl: ledger,
    workspace,
    ...optional(parts, ['token', 'settings', 'observe', 'logger', 'onSignInNeeded']),
  });
  const host = openHost({
    database,
    state,
    sync,
    platform,
    place: parts.place,
    model: (type) => state.store.tables.get(type)?.model ?? null,
    inspect: () => ({ coordinator: coordinator.inspect() as unknown as JsonObject }),
    ...optional(parts, ['observe', 'release']),
  });
  // Whoever opens it is told this first. A file that cannot say how it stands is not opened, and nothing began to work on it.
  void host.status;
  sync.start();
  return Object.assign(host, { state, sync, coordinator });
}

/** The named members that are there: an absent one and `undefined` are not the same. */
function optional<T, K extends keyof T>(parts: T, names: readonly K[]): Partial<Pick<T, K>> {
  return Object.fromEntries(
    names.filter((name) => parts[name] !== undefined).map((name) => [name, parts[name]]),
  ) as Partial<Pick<T, K>>;
}
