import { MessageChannel } from 'node:worker_threads';
import type { Fault, Logger } from '@holdfast/core';
import type { HostRequest, ProvidedHost } from '../client/client.ts';
import { FaultError } from '../engine/fault-error.ts';
import type { Observer } from '../host/observe.ts';
import type { OpenChannel } from '../link/messages.ts';
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
 * Delays before each try to reach a host in a new worker, after one died. A worker that dies within `LIVED_MS` of the link
 * spends one of them, so none is started for ever.
 */
const REOPEN_MS: readonly number[] = [20, 100, 500, 2_000, 5_000, 10_000, 30_000];

export type WorkerHostRequest = HostRequest &
  Pick<OpenInWorker, 'dir' | 'takeOver' | 'logs' | 'settings'> & {
    readonly logger?: Logger;
    /** Whether it listens is asked once per worker, when that opens. */
    readonly observe?: Observer;
  };

/**
 * A host in a worker. Rejects with what the worker could not open, or `no-owner` where there is no worker. One worker hosts
 * one replica; it ends with its host. If the worker dies, whoever has a channel is told, and the next channel is to a host in
 * a new worker, on the same file.
 */
export async function openWorkerHost(
  create: () => WorkerLike,
  request: WorkerHostRequest,
  reopenMs = REOPEN_MS,
): Promise<ProvidedHost> {
  let running = first(create, request);
  let isClosed = false;
  const status = await running.ready;
  // Whoever took the replica since keeps it: only the first worker was asked to take it over.
  const again = { ...request, takeOver: false };
  return {
    status,
    // What was in memory died with the worker: an empty replica is no next host of it.
    reopenMs: request.dir === ':memory:' ? [] : reopenMs,
    openChannel: (events) => {
      try {
        if (running.isOver && !isClosed) {
          running = run(create, again);
          // Whoever waits for it is told by his channel.
          running.ready.catch(() => undefined);
        }
        return running.openChannel(events);
      } catch (cause) {
        // The app could not create a worker: that channel ends as soon as its owner has it.
        void Promise.resolve().then(() => events.tell({ tell: 'end', fault: noOwner(cause) }));
        return { send: () => undefined, close: () => undefined };
      }
    },
    close: async () => {
      isClosed = true;
      await running.close();
    },
  };
}

/** An app that cannot create a worker is told so in the words of every other failure. */
function first(create: () => WorkerLike, request: WorkerHostRequest): Running {
  try {
    return run(create, request);
  } catch (cause) {
    throw new FaultError(noOwner(cause));
  }
}

const noOwner = (cause: unknown): Fault => ({ code: 'no-owner', facts: { reason: String(cause) } });

/** One worker, from its start to its death. */
interface Running {
  readonly ready: Promise<Status>;
  readonly isOver: boolean;
  readonly openChannel: OpenChannel;
  close(): Promise<void>;
}

function run(create: () => WorkerLike, request: WorkerHostRequest): Running {
  const { token, logger, observe, ...open } = request;
  const worker = create();
  const send = (message: ToWorker, transfer: readonly unknown[] = []) => worker.postMessage(message, transfer);
  const channels = new Set<(fault: Fault) => void>();
  const { promise: ended, resolve: sayEnded } = Promise.withResolvers<void>();
  const { promise: ready, resolve: sayReady, reject: refuse } = Promise.withResolvers<Status>();
  let end: Fault | null = null;

  const answerToken = async (number: number) => {
    try {
      send({ holdfast: 'token', number, token: (await token()) ?? null, failed: null });
    } catch (cause) {
      send({ holdfast: 'token', number, token: null, failed: cause instanceof Error ? cause.message : String(cause) });
    }
  };
  const over = (fault: Fault) => {
    if (end !== null) return;
    end = fault;
    void worker.terminate();
    sayEnded();
    refuse(new FaultError(fault));
    for (const tell of [...channels]) tell(fault);
  };
  listen(worker, {
    message: (message) => {
      switch (message.holdfast) {
        case 'ready':
          return sayReady(message.status);
        case 'refused':
          return over(message.fault);
        case 'token':
          return void answerToken(message.number);
        case 'log':
          return unharmed(() => logger?.(...message.said));
        case 'signal':
          return unharmed(() => observe?.(message.signal));
        case 'closed':
          return sayEnded();
      }
    },
    lost: (cause) => over(noOwner(cause)),
  });
  const isObserved = observe !== undefined && observe.isListening?.() !== false;
  send({ holdfast: 'open', open: { ...open, isObserved } });

  const openChannel: OpenChannel = (events) => {
    const { port1, port2 } = new MessageChannel();
    // The worker opens before it connects: messages arrive in order.
    send({ holdfast: 'connect', port: port2 }, [port2]);
    let isEnded = false;
    const channel = openPortChannel(port1 as unknown as Port)({
      tell: (tell) => {
        if (tell.tell === 'end') isEnded = true;
        events.tell(tell);
      },
      closed: () => {
        channels.delete(die);
        // A host says that it ends. A port that closes without it is a worker's death, seen before its `exit`.
        if (isEnded) return events.closed();
        over(noOwner('the worker closed its port'));
        events.tell({ tell: 'end', fault: end as Fault });
      },
    });
    const close = () => {
      channels.delete(die);
      channel.close();
    };
    const die = (fault: Fault) => {
      close();
      events.tell({ tell: 'end', fault });
    };
    channels.add(die);
    return { send: channel.send, close };
  };

  return {
    ready,
    get isOver() {
      return end !== null;
    },
    openChannel,
    close: async () => {
      if (end === null) send({ holdfast: 'close' });
      await ended;
      await worker.terminate();
    },
  };
}

/** The app's own logger or observer: what it throws is no fault of what it is told of. */
function unharmed(tell: () => void): void {
  try {
    tell();
  } catch {
    // As in the page's own host.
  }
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
