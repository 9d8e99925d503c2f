import { MessageChannel } from 'node:worker_threads';
import type { HostRequest, ProvidedHost } from '../client/client.ts';
import { FaultError } from '../engine/fault-error.ts';
import { openPortChannel, type Port } from '../link/port.ts';
import type { Status } from '../link/status.ts';
import { type FromWorker, isHoldfastMessage, type OpenInWorker, type ToWorker } from './worker-messages.ts';

/** The part of a worker that is used: of `node:worker_threads`, or of a browser. */
export interface WorkerLike {
  postMessage(message: any, transfer?: any): void;
  terminate(): unknown;
  on?(event: 'message' | 'error' | 'exit', run: (value: any) => void): unknown;
  addEventListener?(event: 'message' | 'error', run: (event: any) => void): void;
}

/**
 * A host in a worker. Rejects with what the worker could not open. One worker hosts one replica; it ends with its host.
 */
export function openWorkerHost(
  create: () => WorkerLike,
  request: HostRequest & Pick<OpenInWorker, 'dir' | 'takeOver' | 'logs' | 'settings'>,
): Promise<ProvidedHost> {
  const { token, ...open } = request;
  const worker = create();
  const send = (message: ToWorker, transfer: readonly unknown[] = []) => worker.postMessage(message, transfer);
  const ports = new Set<Port>();
  const { promise: ended, resolve: sayEnded } = Promise.withResolvers<void>();

  const answerToken = async (number: number) => {
    try {
      send({ holdfast: 'token', number, token: (await token()) ?? null, failed: false });
    } catch {
      send({ holdfast: 'token', number, token: null, failed: true });
    }
  };
  const provided = (status: Status): ProvidedHost => ({
    status,
    openChannel: (events) => {
      const { port1, port2 } = new MessageChannel();
      ports.add(port1 as unknown as Port);
      send({ holdfast: 'connect', port: port2 }, [port2]);
      return openPortChannel(port1 as unknown as Port)(events);
    },
    close: async () => {
      send({ holdfast: 'close' });
      await ended;
      await worker.terminate();
    },
  });

  return new Promise((resolve, reject) => {
    const lost = (cause: unknown) => {
      sayEnded();
      for (const port of ports) port.close();
      reject(new FaultError({ code: 'no-owner', facts: { reason: String(cause) } }));
    };
    listen(worker, {
      message: (message) => {
        switch (message.holdfast) {
          case 'ready':
            return resolve(provided(message.status));
          case 'refused':
            void worker.terminate();
            return reject(new FaultError(message.fault));
          case 'token':
            return void answerToken(message.number);
          case 'closed':
            return sayEnded();
        }
      },
      lost,
    });
    send({ holdfast: 'open', open });
  });
}

function listen(
  worker: WorkerLike,
  on: { readonly message: (message: FromWorker) => void; readonly lost: (cause: unknown) => void },
): void {
  const heard = (message: unknown) => {
    if (isHoldfastMessage(message)) on.message(message as FromWorker);
  };
  if (worker.on !== undefined) {
    worker.on('message', heard);
    worker.on('error', on.lost);
    worker.on('exit', (code) => on.lost(`the worker ended with ${code}`));
    return;
  }
  worker.addEventListener?.('message', ({ data }) => heard(data));
  worker.addEventListener?.('error', ({ message }) => on.lost(message));
}
