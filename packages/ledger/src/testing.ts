import type { DatabaseSync } from 'node:sqlite';
import type { Logger, Platform, SchemaData } from '@holdfast/core';
import { roleIn } from './access/access.ts';
import { createEngine } from './engine/create-engine.ts';
import type { Actor, Admit, Engine, EngineLimits, LiveConnection, LiveSocket, Quota } from './engine/engine.ts';
import { createApp } from './http/app.ts';
import { createOrigins } from './http/origins.ts';
import { openSqliteStore } from './stores/sqlite/store.ts';
import { openDatabase } from './stores/sqlite/workspace-file.ts';

/**
 * A whole ledger in a test's own process: real engine, real SQLite store, real doors, on the clock it is given. A token is
 * the account's own name, `name/role` or `name/role/session`; every workspace is open to it until it is revoked. The role
 * `stranger` opens none, and `former` is a writer whose time has ended.
 */
export interface TestLedger {
  readonly engine: Engine;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  live(workspace: string, socket: LiveSocket): LiveConnection;
  close(): Promise<void>;
  /** As after SIGKILL: nothing is finished; the files are as they are. */
  abandon(): void;
}

export interface TestLedgerOptions {
  readonly folder: string;
  readonly platform: Platform;
  readonly schema?: SchemaData;
  readonly logger?: Logger;
  /** LG14: what this ledger refuses. */
  readonly admit?: Admit | undefined;
  readonly quota?: Quota | undefined;
  /** DG4: positions are signed with it. */
  readonly logKey?: Uint8Array | undefined;
  /** Asked of every token each time that it is shown. */
  readonly isRevoked?: (token: string) => boolean;
  readonly limits?: Partial<EngineLimits>;
  /** Stands between the store and each of its connections: a test gives what fails. */
  readonly through?: (connection: DatabaseSync) => DatabaseSync;
}

export function createTestLedger({
  folder,
  platform,
  schema,
  logger = () => undefined,
  admit,
  quota,
  logKey,
  isRevoked = () => false,
  limits = {},
  through = (connection) => connection,
}: TestLedgerOptions): TestLedger {
  const store = openSqliteStore({
    folder,
    platform,
    logger,
    open: (path, options) => through(openDatabase(path, options)),
  });
  const engine = createEngine({
    store,
    platform,
    logger,
    createOnFirstUse: true,
    limits,
    ...(schema === undefined ? {} : { schema }),
    ...(admit === undefined ? {} : { admit }),
    ...(quota === undefined ? {} : { quota }),
    ...(logKey === undefined ? {} : { logKey }),
  });
  const callerOf = (token: string | null) => {
    if (token === null || token === '' || isRevoked(token)) return null;
    const [account, role = 'writer'] = token.split('/');
    if (role === 'stranger') return { account: account as string, grants: {} };
    if (role === 'former') return { account: account as string, grants: { '*': 'writer' as const }, expiresAtMs: 0 };
    return { account: account as string, grants: { '*': role as Actor['role'] } };
  };
  let names = 0;
  const app = createApp({
    engine,
    access: { name: 'test', verify: ({ token }) => Promise.resolve(callerOf(token)) },
    origins: createOrigins([]),
    logger,
    newRequestId: () => {
      names += 1;
      return `answer-${names}`;
    },
    now: () => platform.clock.now(),
  });
  const actorOf = (token: string | null, workspace: string): Actor | null => {
    const caller = callerOf(token);
    const role = caller === null ? null : roleIn(caller, workspace);
    return caller === null || role === null ? null : { account: caller.account, role };
  };
  return {
    engine,
    fetch: app.fetch,
    live: (workspace, socket) =>
      engine.live(workspace, socket, { admit: (token) => actorOf(token ?? null, workspace) }),
    close: () => engine.close(),
    abandon: () => void store.close(),
  };
}
