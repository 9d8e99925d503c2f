import type { Fault, Fetch, Logger, OpenSocket, Platform, SchemaData } from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { createNodeFetch } from '../adapters/node/fetch.ts';
import { type FileLock, lockFile, lockWhenFree } from '../adapters/node/file-lock.ts';
import { nodePlatform } from '../adapters/node/platform.ts';
import { isAfterPowerLoss } from '../adapters/node/power-loss.ts';
import { createNodeOpenSocket } from '../adapters/node/socket.ts';
import { inFaults } from '../engine/database-fault.ts';
import { FaultError } from '../engine/fault-error.ts';
import type { SyncSettings } from '../engine/sync/settings.ts';
import { type ComposedHost, composeHost } from '../host/compose.ts';
import type { Observer } from '../host/observe.ts';
import { makeFolder, replicaFile } from './replica-files.ts';

export interface NodeHostOptions {
  /** A folder, or `:memory:`: then nothing survives the process. */
  readonly dir: string;
  readonly schema: SchemaData;
  readonly ledger: string;
  readonly account: string;
  readonly workspace: string;
  readonly token: () => string | undefined | Promise<string | undefined>;
  /** Goes on although another process has the replica open: that one is fenced off by the generation. */
  readonly takeOver?: boolean;
  readonly logs?: readonly string[];
  readonly platform?: Platform;
  readonly fetch?: Fetch;
  readonly openSocket?: OpenSocket;
  readonly settings?: Partial<SyncSettings>;
  readonly observe?: Observer;
  readonly logger?: Logger;
  readonly onSignInNeeded?: (fault: Fault | null) => void;
}

/**
 * Hosts a replica in this process: lock, file, engine, sync.
 *
 * Throws `FaultError`: `replica-in-use` with the holder's pid, `replica-too-new`, `replica-damaged`, `other-account`,
 * `storage-full`, `bad-setting`, `engine-fault`. The file stays where it is, whatever is wrong with it, and its lock is let go.
 */
export function openNodeHost(options: NodeHostOptions): ComposedHost {
  const platform = options.platform ?? nodePlatform;
  const isMemory = options.dir === ':memory:';
  if (!isMemory) makeFolder(options.dir);
  const file = isMemory ? ':memory:' : replicaFile(options.dir, options, platform.digest);
  const lock = isMemory ? null : takeLock(file, platform, options.takeOver === true);
  const network = options.fetch === undefined ? createNodeFetch() : null;
  const release = () => {
    network?.close();
    lock?.release();
  };
  try {
    return composeHost({
      ...options,
      isAfterPowerLoss: !isMemory && isAfterPowerLoss(file),
      database: openNodeDatabase({ file }),
      platform,
      fetch: options.fetch ?? (network?.fetch as Fetch),
      openSocket: options.openSocket ?? createNodeOpenSocket(),
      place: { storage: isMemory ? 'memory' : 'durable', host: 'here' },
      release,
    });
  } catch (cause) {
    release();
    throw inFaults(cause);
  }
}

function takeLock(file: string, { clock }: Platform, isForced: boolean): FileLock {
  const self = { pid: process.pid, since: new Date(clock.now()).toISOString() };
  const attempt = lockFile(file, self);
  if (attempt.ok) return attempt.lock;
  if (isForced) return lockWhenFree(file, self, clock);
  throw new FaultError({ code: 'replica-in-use', facts: { ...attempt.holder } });
}
