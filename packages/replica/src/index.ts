import { channel } from 'node:diagnostics_channel';
import type { Logger, Schema } from '@holdfast/core';
import { nodePlatform } from './adapters/node/platform.ts';
import { type Account, type Client, createClientOver } from './client/client.ts';
import { HoldfastError, publicError } from './client/holdfast-error.ts';
import type { SyncSettings } from './engine/sync/settings.ts';
import type { Observer, Signal } from './host/observe.ts';
import { openNodeHost } from './node/open-host.ts';
import { fetchOf } from './node/platform-fetch.ts';
import { workspacesIn } from './node/replica-files.ts';
import { openWorkerHost, type WorkerLike } from './node/worker-client.ts';

export type {
  Account,
  Client,
  Session,
  SignOutChoice,
  WorkspaceOnDevice,
} from './client/client.ts';
export { has, many, matches, one } from './client/helpers.ts';
export { type ErrorCode, HoldfastError, isHoldfastError, type Retry } from './client/holdfast-error.ts';
export type { Live, LiveResult } from './client/live.ts';
export type { Query } from './client/query-compiler.ts';
export type {
  CommitOptions,
  Desk,
  DeskItem,
  ReadTx,
  Replica,
  ScopedUndo,
  Settled,
  Subject,
  Undo,
} from './client/replica.ts';
export type { EarlierWrite, Write } from './client/write.ts';
export type { Signal } from './host/observe.ts';
export type { JournalEntry, UndoState } from './link/messages.ts';
export type { LogStatus, Phase, Status } from './link/status.ts';
export type { WorkerLike } from './node/worker-client.ts';

export interface ClientOptions<S extends Schema> {
  readonly schema: S;
  /** The ledger's address, such as `https://sync.example.com`. */
  readonly ledger: string;
  readonly account: Account;
  /** Where replicas are kept: a folder, or `:memory:`, then nothing survives the process. */
  readonly dir?: string;
  /**
   * Runs the host in a worker whose file says `import '@holdfast/replica/worker'`. If it dies it is called again, a bounded
   * number of times: what waits is asked of the next one, and the status says `no-owner` meanwhile.
   */
  readonly worker?: () => WorkerLike;
  /** `file` (the default): this process, or its worker, holds the file. */
  readonly via?: 'file' | 'daemon';
  /** Goes on although another process has the replica open: that one is fenced off. */
  readonly takeOver?: boolean;
  /** Logs to follow from the start, besides `main`. */
  readonly logs?: readonly string[];
  /** The app's own `fetch`: for a login gateway in front of the ledger. Not with `worker`. */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * Each commit, query, live run and step of sync, with its milliseconds and counts, never payloads (TM1). A worker tells
   * them where somebody listens when it opens.
   */
  readonly observe?: (signal: Signal) => void;
  readonly logger?: Logger;
  readonly settings?: Partial<SyncSettings>;
}

/** Everything that `observe` is told is published here too, where somebody listens. */
export const DIAGNOSTICS_CHANNEL = 'holdfast';

/**
 * A client: the replicas of one account at one ledger, on this device. At rest until `open`.
 *
 * ```ts
 * await using client = createClient({ schema, dir: './replica', ledger: 'http://127.0.0.1:4800', account: { id: 'ana', token: () => getToken() } });
 * await using replica = await client.open('acme');
 * ```
 */
export function createClient<const S extends Schema>(options: ClientOptions<S>): Client<S> {
  const { schema, ledger, account, worker, via = 'file' } = options;
  checkAddress(ledger);
  const dir = options.dir ?? (worker === undefined ? undefined : ':memory:');
  if (via === 'daemon')
    throw unsupported('the daemon is not part of this version: give dir, for this process to hold the file');
  if (dir === undefined)
    throw unsupported(
      "give dir, the folder that replicas are kept in; or ':memory:', then nothing survives the process",
    );
  const shared = {
    ...(options.takeOver === undefined ? {} : { takeOver: options.takeOver }),
    ...(options.logs === undefined ? {} : { logs: options.logs }),
    ...(options.settings === undefined ? {} : { settings: options.settings }),
  };
  const told = {
    observe: observerOf(options.observe),
    ...(options.logger === undefined ? {} : { logger: options.logger }),
  };
  return createClientOver({
    schema,
    ledger,
    account,
    provider: {
      platform: nodePlatform,
      open: async (request) => {
        try {
          if (worker !== undefined) return await openWorkerHost(worker, { ...request, ...shared, ...told, dir });
          return openNodeHost({ ...request, ...shared, ...told, dir, ...fetchOption(options) });
        } catch (cause) {
          throw publicError(cause);
        }
      },
      workspaces: async (owner) =>
        dir === ':memory:' ? [] : workspacesIn(dir, { ledger: ledger.replace(/\/+$/, ''), account: owner }),
    },
  });
}

const fetchOption = ({ fetch, account }: ClientOptions<Schema>) => {
  if (fetch !== undefined) return { fetch: fetchOf(fetch, account.cookies === true ? 'include' : undefined) };
  return {};
};

/** The app's own observer, and whoever subscribes to the channel, now or later. Unobserved it costs one comparison. */
function observerOf(observe: ClientOptions<Schema>['observe']): Observer {
  const diagnostics = channel(DIAGNOSTICS_CHANNEL);
  const observer = (signal: Signal) => {
    observe?.(signal);
    if (diagnostics.hasSubscribers) diagnostics.publish(signal);
  };
  return Object.assign(observer, { isListening: () => observe !== undefined || diagnostics.hasSubscribers });
}

const unsupported = (reason: string) => new HoldfastError({ code: 'bad-setting', facts: { reason } });

/** What no request could ever be sent to is found here, not by retries that go on for ever. */
function checkAddress(ledger: unknown): void {
  const url = typeof ledger === 'string' ? URL.parse(ledger) : null;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return;
  const given = typeof ledger === 'string' ? JSON.stringify(ledger) : typeof ledger;
  throw unsupported(`ledger is ${given}, and must be an http or https address, such as "http://127.0.0.1:4800"`);
}
