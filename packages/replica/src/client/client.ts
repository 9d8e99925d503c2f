import {
  addressNameProblem,
  isAddressName,
  LIMITS,
  type Platform,
  type Schema,
  type SchemaData,
  schemaData,
} from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import { Link } from '../link/link.ts';
import type { OpenChannel, RunTimeTypesByName } from '../link/messages.ts';
import type { Status } from '../link/status.ts';
import { told } from './holdfast-error.ts';
import { LinkedReplica } from './linked-replica.ts';
import type { Replica } from './replica.ts';
import { createSubject } from './subject.ts';

export interface Account {
  /** The verified account that the ledger names. A replica belongs to it for ever. */
  readonly id: string;
  /** Asked before every request. */
  readonly token?: () => string | Promise<string>;
  /** Cookies speak: no token is sent. */
  readonly cookies?: boolean;
}

export type Session = 'none' | 'signed-in' | 'sign-in-needed' | 'other-account';

export interface WorkspaceOnDevice {
  readonly id: string;
  readonly name: string;
  readonly unsent: number;
  readonly attention: number;
}

/** What becomes of unsent work when somebody signs out. Without a choice nothing is done (AC2). */
export type SignOutChoice =
  | { readonly unsent: 'refuse' | 'keep' }
  | { readonly unsent: 'export'; readonly to: WritableStream<Uint8Array> };

export interface Client<S extends Schema> extends AsyncDisposable {
  /**
   * Opens a workspace on this device, offline or not. Opening it twice shares one host; each is closed by itself. Rejects
   * with `malformed` where no ledger would take the name: 1 to 128 visible ASCII characters without "/".
   */
  open(workspace: string): Promise<Replica<S>>;
  /** The workspaces that this account has on this device. */
  workspaces(): Promise<readonly WorkspaceOnDevice[]>;
  /** Fresh credentials of the same account: all replicas go on. Another account: what is open stops sending, and stays. */
  signIn(account: Account): Promise<void>;
  /** Rejects with `needs-attention`, and does nothing, where `unsent: 'refuse'` meets unsent work. */
  signOut(o: SignOutChoice): Promise<void>;
  readonly session: { readonly current: Session; subscribe(run: () => void): () => void };
  close(): Promise<void>;
}

/** Where replicas live and how their hosts are reached: a folder of this process, a worker, a daemon. */
export interface HostProvider {
  readonly platform: Platform;
  open(request: HostRequest): Promise<ProvidedHost>;
  workspaces(account: string): Promise<readonly WorkspaceOnDevice[]>;
}

export interface HostRequest {
  readonly schema: SchemaData;
  readonly ledger: string;
  readonly account: string;
  readonly workspace: string;
  readonly token: () => Promise<string | undefined>;
}

export interface ProvidedHost {
  readonly openChannel: OpenChannel;
  readonly status: Status;
  /** Delays of the tries to reach the next host; empty: this is the only one. */
  readonly reopenMs?: readonly number[];
  close(): Promise<void>;
}

interface OpenHost {
  readonly account: string;
  readonly workspace: string;
  readonly host: ProvidedHost;
  uses: number;
  phase: Status['phase'];
  types: RunTimeTypesByName;
  /** Pauses and resumes what this account may no longer send. */
  readonly control: Link;
}

export interface ClientParts<S extends Schema> {
  readonly schema: S;
  readonly ledger: string;
  readonly account: Account;
  readonly provider: HostProvider;
}

export function createClientOver<S extends Schema>(parts: ClientParts<S>): Client<S> {
  const { schema, provider } = parts;
  const { clock } = provider.platform;
  const data = schemaData(schema);
  const ledger = parts.ledger.replace(/\/+$/, '');
  const hosts = new Map<string, Promise<OpenHost>>();
  const opened = new Map<string, OpenHost>();
  const replicas = new Set<LinkedReplica<S>>();
  let account: Account | null = parts.account;
  let isClosed = false;

  // ── session ───────────────────────────────────────────────────────────────────────────────────────────────────────

  const sessionNow = (): Session => {
    if (account === null) return 'none';
    const phases = [...opened.values()].map((one) => (one.account === account?.id ? one.phase : 'other-account'));
    if (phases.includes('other-account')) return 'other-account';
    return phases.includes('sign-in-needed') ? 'sign-in-needed' : 'signed-in';
  };
  const session = createSubject<Session>('signed-in', clock);
  const look = () => {
    const now = sessionNow();
    if (now !== session.current) session.set(now);
  };

  // ── hosts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  const openHost = async (owner: string, workspace: string): Promise<OpenHost> => {
    const token = async () => (account?.id === owner ? await account.token?.() : undefined);
    const host = await provider.open({ schema: data, ledger, account: owner, workspace, token });
    const control = new Link({ open: host.openChannel, clock, ...reopening(host) });
    const { phase } = host.status;
    const one: OpenHost = { account: owner, workspace, host, uses: 0, phase, types: {}, control };
    const welcomed = Promise.withResolvers<void>();
    control.listen({
      welcome: ({ status, types }) => {
        one.types = types;
        saw(status);
        welcomed.resolve();
      },
      status: (status) => saw(status),
      types: (types) => {
        one.types = types;
      },
      ended: () => welcomed.resolve(),
    });
    const saw = ({ phase }: Status) => {
      one.phase = phase;
      look();
    };
    control.start();
    opened.set(keyOf(owner, workspace), one);
    // A host that never says a word is found out by what is asked of it.
    const stopWaiting = clock.timer(LIMITS.linkAnswerMs, () => welcomed.resolve());
    await welcomed.promise;
    stopWaiting();
    return one;
  };

  const hostOf = (owner: string, workspace: string): Promise<OpenHost> => {
    const key = keyOf(owner, workspace);
    const known = hosts.get(key);
    if (known !== undefined) return known;
    const opening = openHost(owner, workspace);
    hosts.set(key, opening);
    opening.catch(() => hosts.delete(key));
    return opening;
  };

  const release = async (one: OpenHost): Promise<void> => {
    one.uses -= 1;
    if (one.uses > 0) return;
    const key = keyOf(one.account, one.workspace);
    hosts.delete(key);
    opened.delete(key);
    one.control.close();
    await one.host.close();
    look();
  };

  const open = async (workspace: string): Promise<Replica<S>> => {
    if (isClosed) throw new FaultError({ code: 'closed' });
    if (account === null) throw new FaultError({ code: 'unauthenticated', facts: { reason: 'sign in first' } });
    // Every ledger refuses it: said here, before anything is written under a name that leads nowhere.
    if (!isAddressName(workspace)) throw new FaultError({ code: 'malformed', facts: addressNameProblem('workspace') });
    const owner = account.id;
    const one = await hostOf(owner, workspace);
    one.uses += 1;
    const replica = new LinkedReplica<S>({
      link: new Link({ open: one.host.openChannel, clock, ...reopening(one.host) }),
      schema,
      data,
      types: one.types,
      platform: provider.platform,
      workspace,
      account: owner,
      status: one.host.status,
      release: async () => {
        replicas.delete(replica);
        await release(one);
      },
    });
    replicas.add(replica);
    return replica;
  };

  const closeAll = async (): Promise<void> => {
    await Promise.all([...replicas].map((replica) => replica.close()));
  };

  // ── signing in and out ────────────────────────────────────────────────────────────────────────────────────────────

  const signIn = async (next: Account): Promise<void> => {
    account = next;
    for (const one of opened.values()) {
      // AC2: what belongs to somebody else is not sent, and not deleted.
      if (one.account !== next.id) await one.control.request('pause', {});
      else {
        await one.control.request('resume', {});
        await one.control.request('nudge', { why: 'credentials' });
      }
    }
    look();
  };

  const signOut = async (o: SignOutChoice): Promise<void> => {
    if (account === null) return;
    const owner = account.id;
    const unsent = await unsentOf(owner);
    if (o.unsent === 'refuse' && unsent.length > 0)
      throw new FaultError({
        code: 'needs-attention',
        facts: { reason: 'unsent-work', unsent: unsent.reduce((sum, one) => sum + one.unsent, 0), workspaces: unsent },
      });
    if (o.unsent === 'export') await exportAll(unsent, o.to);
    account = null;
    await closeAll();
    look();
  };

  /** Of every workspace of this account on the device, open or not. */
  const unsentOf = async (owner: string): Promise<readonly WorkspaceOnDevice[]> =>
    (await provider.workspaces(owner)).filter((one) => one.unsent > 0);

  const exportAll = async (unsent: readonly WorkspaceOnDevice[], to: WritableStream<Uint8Array>): Promise<void> => {
    const writer = to.getWriter();
    try {
      for (const { id } of unsent) {
        const replica = await open(id);
        await writer.write(await replica.pack());
        await replica.close();
      }
      await writer.close();
    } finally {
      writer.releaseLock();
    }
  };

  const close = async (): Promise<void> => {
    isClosed = true;
    await closeAll();
  };

  return {
    open: (workspace) => told(open(workspace)),
    workspaces: async () => (account === null ? [] : provider.workspaces(account.id)),
    signIn: (next) => told(signIn(next)),
    signOut: (o) => told(signOut(o)),
    session: {
      get current() {
        return sessionNow();
      },
      subscribe: (run) => session.subscribe(run),
    },
    close: () => told(close()),
    [Symbol.asyncDispose]: () => told(close()),
  };
}

const reopening = ({ reopenMs }: ProvidedHost) => (reopenMs === undefined ? {} : { reopenMs });
const keyOf = (account: string, workspace: string): string => JSON.stringify([account, workspace]);
