import type { TestLedger } from '@holdfast/ledger/testing';
import type { LedgerEndpoint } from './network.ts';

/** A test ledger as the network sees it: it can be up, down, killed in the middle of an answer. */
export interface TestEndpoint extends LedgerEndpoint {
  readonly current: TestLedger;
  start(): void;
  kill(): void;
}

export function createTestEndpoint(make: () => TestLedger): TestEndpoint {
  let ledger: TestLedger | null = null;
  const sockets = new Set<() => void>();
  return {
    get current() {
      if (ledger === null) throw new Error('The ledger is not running.');
      return ledger;
    },
    get up() {
      return ledger !== null;
    },
    start: () => {
      ledger ??= make();
    },
    kill: () => {
      ledger?.abandon();
      ledger = null;
      for (const close of [...sockets]) close();
      sockets.clear();
    },
    fetch: async (url, { method, headers, body }) => {
      const here = ledger;
      if (here === null) throw new Error('The ledger is not running.');
      const response = await here.fetch(
        new Request(url, { method, headers: { ...headers }, ...(body === undefined ? {} : { body }) }),
      );
      const text = await response.text();
      // Answered, and killed before the answer left.
      if (ledger !== here) throw new Error('The ledger was killed.');
      return { status: response.status, headers: response.headers, text: () => Promise.resolve(text) };
    },
    accept: (url, peer) => {
      const workspace = decodeURIComponent(/\/workspaces\/([^/]+)\/live/.exec(url)?.[1] ?? '');
      const close = () => peer.close('the ledger went away');
      if (ledger === null) {
        close();
        return { message: () => undefined, closed: () => undefined };
      }
      sockets.add(close);
      const connection = ledger.live(workspace, {
        send: (text) => peer.send(text),
        close: (_code, reason) => peer.close(reason),
        terminate: () => peer.close('terminated'),
        bufferedBytes: 0,
      });
      return {
        message: (text) => connection.message(text),
        closed: () => {
          sockets.delete(close);
          connection.closed();
        },
      };
    },
  };
}
