import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

/**
 * A child process that answers questions over its IPC channel, one by one. Killed means killed: SIGKILL, no goodbye.
 */
export interface Child<Asks extends Record<string, { send: unknown; answer: unknown }>> {
  readonly pid: number;
  ask<N extends keyof Asks & string>(what: N, send: Asks[N]['send']): Promise<Asks[N]['answer']>;
  /** Asks without waiting for the answer. */
  tell<N extends keyof Asks & string>(what: N, send: Asks[N]['send']): void;
  onEvent(listener: (event: { readonly event: string; readonly facts: Record<string, unknown> }) => void): void;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

interface Answer {
  readonly id: number;
  readonly answer?: unknown;
  readonly error?: string;
}

export function startChild<A extends Record<string, { send: unknown; answer: unknown }>>(
  module: URL,
  args: readonly string[],
): Child<A> {
  const child: ChildProcess = fork(module, [...args], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const waiting = new Map<number, { resolve: (value: never) => void; reject: (cause: Error) => void }>();
  const listeners: ((event: { event: string; facts: Record<string, unknown> }) => void)[] = [];
  let lastId = 0;
  child.on('message', (message: Answer | { event: string; facts: Record<string, unknown> }) => {
    if ('event' in message) {
      for (const listener of listeners) listener(message);
      return;
    }
    const one = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error !== undefined) one?.reject(new Error(message.error));
    else one?.resolve(message.answer as never);
  });
  child.on('exit', (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`The process ended (${signal ?? code}).`));
    waiting.clear();
  });
  const ended = once(child, 'exit');
  const send = (what: string, data: unknown): number => {
    lastId += 1;
    child.send({ id: lastId, what, send: data });
    return lastId;
  };
  return {
    pid: child.pid as number,
    ask: (what, data) =>
      new Promise((resolve, reject) => {
        waiting.set(send(what, data), { resolve: resolve as never, reject });
      }),
    tell: (what, data) => {
      const id = send(what, data);
      waiting.set(id, { resolve: () => undefined, reject: () => undefined });
    },
    onEvent: (listener) => void listeners.push(listener),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** The other side: answers each question in turn; ends when the parent has gone. */
export function serveParent<A extends Record<string, { send: unknown; answer: unknown }>>(
  answers: {
    readonly [N in keyof A]: (send: A[N]['send']) => Promise<A[N]['answer']> | A[N]['answer'];
  },
  close: () => Promise<void>,
): void {
  process.on('message', (message: { id: number; what: keyof A & string; send: never }) => {
    Promise.resolve()
      .then(() => answers[message.what](message.send))
      .then(
        (answer) => process.send?.({ id: message.id, answer }),
        (cause: unknown) =>
          process.send?.({
            id: message.id,
            error:
              cause instanceof Error
                ? `${cause.message} ${JSON.stringify((cause as { issues?: unknown }).issues ?? '')}`
                : String(cause),
          }),
      );
  });
  process.on('disconnect', () => void close().finally(() => process.exit(0)));
}
