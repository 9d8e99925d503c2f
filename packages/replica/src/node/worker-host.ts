import type { MessagePort } from 'node:worker_threads';
import type { Logger } from '@holdfast/core';
import { faultOf } from '../host/caller.ts';
import type { ComposedHost } from '../host/compose.ts';
import type { Signal } from '../host/observe.ts';
import { type Port, servePort } from '../link/port.ts';
import { openNodeHost } from './open-host.ts';
import { type FromWorker, isHoldfastMessage, type OpenInWorker, type ToWorker } from './worker-messages.ts';

/** Hosts one replica in this worker, for the page that created it. */
export function serveWorker(page: MessagePort): void {
  let host: ComposedHost | null = null;
  const send = (message: FromWorker) => page.postMessage(message);
  const tokens = createTokens((number) => send({ holdfast: 'token', number }));

  const open = ({ isObserved, ...options }: OpenInWorker) => {
    const logger: Logger = (...said) => send({ holdfast: 'log', said });
    const observe = (signal: Signal) => send({ holdfast: 'signal', signal });
    try {
      host = openNodeHost({ ...options, token: tokens.ask, logger, ...(isObserved ? { observe } : {}) });
      send({ holdfast: 'ready', status: host.status });
    } catch (cause) {
      send({ holdfast: 'refused', fault: faultOf(cause) });
    }
  };

  page.on('message', (message: unknown) => {
    if (!isHoldfastMessage(message)) return;
    const asked = message as ToWorker;
    switch (asked.holdfast) {
      case 'open':
        return open(asked.open);
      case 'connect':
        if (host !== null) servePort(asked.port as Port, host.openChannel);
        return;
      case 'token':
        return tokens.answered(asked);
      case 'close':
        void host?.close().then(
          () => send({ holdfast: 'closed' }),
          () => send({ holdfast: 'closed' }),
        );
    }
  });
}

/** Credentials are the page's: it is asked before each request. */
function createTokens(ask: (number: number) => void) {
  const waiting = new Map<number, { resolve: (token: string | undefined) => void; reject: (cause: Error) => void }>();
  let number = 0;
  return {
    ask: () =>
      new Promise<string | undefined>((resolve, reject) => {
        number += 1;
        waiting.set(number, { resolve, reject });
        ask(number);
      }),
    answered: ({ number: of, token, failed }: Extract<ToWorker, { holdfast: 'token' }>) => {
      const one = waiting.get(of);
      waiting.delete(of);
      if (failed === null) one?.resolve(token ?? undefined);
      else one?.reject(new Error(failed));
    },
  };
}
