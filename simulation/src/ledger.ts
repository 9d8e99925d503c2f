import { rmSync } from 'node:fs';
import type { Platform, SchemaData, WireResponse } from '@holdfast/core';
import { createTestLedger, type TestLedger } from '@holdfast/ledger/testing';
import type { LedgerEndpoint } from '@holdfast/replica/testing';

/** The ledger of a world: the real engine, store and doors on virtual time. It can stop, start, and wake up in the past. */
export interface WorldLedger extends LedgerEndpoint {
  readonly folder: string;
  start(): void;
  /** Killed: nothing is said, nothing is finished. */
  kill(): void;
  readonly current: TestLedger | null;
}

export function createWorldLedger(parts: {
  readonly folder: string;
  readonly platform: Platform;
  readonly schema: SchemaData;
}): WorldLedger {
  let ledger: TestLedger | null = null;
  const sockets = new Set<() => void>();
  return {
    folder: parts.folder,
    get current() {
      return ledger;
    },
    get up() {
      return ledger !== null;
    },
    start: () => {
      ledger ??= createTestLedger(parts);
    },
    kill: () => {
      ledger?.abandon();
      ledger = null;
      for (const close of [...sockets]) close();
      sockets.clear();
    },
    fetch: async (url, request): Promise<WireResponse> => {
      const here = ledger;
      if (here === null) throw new Error('The ledger is not running.');
      const response = await here.fetch(
        new Request(url, {
          method: request.method,
          headers: { ...request.headers },
          ...(request.body === undefined ? {} : { body: request.body }),
        }),
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

export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });
