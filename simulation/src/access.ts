import type { WireRequest } from '@holdfast/core';
import type { TestEndpoint } from '@holdfast/replica/testing';

/**
 * Who may do what at the ledger of a world, apart from what a token says. Lives as long as the world, like an identity
 * provider. Accounts are those that tokens name: `account/role/session`.
 */
export interface LedgerAccess {
  /** Tokens that it takes no more. */
  readonly revoked: Set<string>;
  /** Accounts that may read and no longer write. */
  readonly readers: Set<string>;
  /** Of an account, the one log that it may know of no more. */
  readonly lost: ReadonlyMap<string, string>;
  lose(account: string, log: string): void;
}

type Doors = Pick<TestEndpoint, 'fetch' | 'accept'>;
type Frame = { readonly type: string; readonly token?: string; readonly log?: string };
type Standings = { readonly logs: readonly { readonly log: string }[] };

/** The doors of a ledger behind these grants. A log that is lost is answered for as one that is absent (LG11). */
export function createLedgerAccess(doors: Doors): LedgerAccess & { readonly doors: Doors } {
  const revoked = new Set<string>();
  const readers = new Set<string>();
  const lost = new Map<string, string>();
  const sockets = new Map<() => void, string>();

  const fetch: Doors['fetch'] = async (url, request) => {
    const token = /^Bearer (.+)$/.exec(request.headers['authorization'] ?? '')?.[1] ?? '';
    const asked = { ...request, headers: { ...request.headers, authorization: `Bearer ${granted(token)}` } };
    const log = lost.get(accountOf(token));
    if (log === undefined) return doors.fetch(url, asked);
    if (url.includes(`/logs/${log}/`)) return doors.fetch(url.replace(/\/logs\/.*$/, '/absent'), GET(asked));
    if (!url.endsWith('/handshake')) return doors.fetch(url, asked);
    return handshakeWithout(log, url, asked);
  };

  const handshakeWithout = async (log: string, url: string, request: WireRequest): ReturnType<Doors['fetch']> => {
    const body = JSON.parse(request.body ?? '{}') as Standings;
    const others = body.logs.filter((one) => one.log !== log);
    const response = await doors.fetch(url, { ...request, body: JSON.stringify({ ...body, logs: others }) });
    if (response.status !== 200 || others.length === body.logs.length) return response;
    const answer = JSON.parse(await response.text()) as Standings;
    const text = JSON.stringify({ ...answer, logs: [...answer.logs, { log, status: 'not-allowed' }] });
    return { status: 200, headers: response.headers, text: () => Promise.resolve(text) };
  };

  const accept: Doors['accept'] = (url, peer) => {
    let account = '';
    const inner = doors.accept(url, peer);
    const end = () => peer.close('the grants changed');
    return {
      message: (text) => {
        const frame = JSON.parse(text) as Frame;
        if (frame.type === 'hello') {
          account = accountOf(frame.token ?? '');
          sockets.set(end, account);
          return inner.message(JSON.stringify({ ...frame, token: granted(frame.token ?? '') }));
        }
        if (frame.type === 'follow' && frame.log === lost.get(account))
          return peer.send(JSON.stringify({ type: 'forbidden', log: frame.log }));
        inner.message(text);
      },
      closed: () => {
        sockets.delete(end);
        inner.closed();
      },
    };
  };

  /** What the token is worth: nothing, less than it says, or what it says. */
  const granted = (token: string): string => {
    if (revoked.has(token)) return '';
    return readers.has(accountOf(token)) ? token.replace('/writer/', '/reader/') : token;
  };

  return {
    revoked,
    readers,
    lost,
    lose: (account, log) => {
      lost.set(account, log);
      for (const [end, of] of [...sockets]) if (of === account) end();
    },
    doors: { fetch, accept },
  };
}

const accountOf = (token: string): string => token.slice(0, Math.max(0, token.indexOf('/')));

const GET = ({ body: _, ...request }: WireRequest): WireRequest => ({ ...request, method: 'GET' });
