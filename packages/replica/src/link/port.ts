import type { Ask, Channel, ChannelEvents, OpenChannel, Tell } from './messages.ts';

/** The part of a MessagePort that is used: of `node:worker_threads` and of browsers alike. */
export interface Port {
  postMessage(message: unknown): void;
  addEventListener(type: 'message' | 'close' | 'messageerror', run: (event: any) => void): void;
  removeEventListener(type: 'message' | 'close' | 'messageerror', run: (event: any) => void): void;
  start?(): void;
  close(): void;
}

/** The caller's end of a link over a port: messages are cloned, order is kept, a lost peer closes the channel. */
export const openPortChannel =
  (port: Port): OpenChannel =>
  (events) => {
    const end = attach<Tell>(port, {
      message: (tell) => events.tell(tell),
      closed: () => events.closed(),
    });
    return {
      send: (ask) => {
        if (!end.isOver) port.postMessage(ask);
      },
      close: () => end.close(),
    };
  };

/** The host's end. */
export function servePort(port: Port, openChannel: OpenChannel): { close(): void } {
  let channel: Channel | null = null;
  const end = attach<Ask>(port, {
    message: (ask) => channel?.send(ask),
    closed: () => channel?.close(),
  });
  const events: ChannelEvents = {
    tell: (tell) => {
      if (!end.isOver) port.postMessage(tell);
    },
    closed: () => end.close(),
  };
  channel = openChannel(events);
  return {
    close: () => {
      channel?.close();
      end.close();
    },
  };
}

function attach<M>(port: Port, on: { message(message: M): void; closed(): void }) {
  let isOver = false;
  const message = (event: { readonly data: M }) => {
    if (!isOver) on.message(event.data);
  };
  const closed = () => {
    if (isOver) return;
    stop();
    on.closed();
  };
  const stop = () => {
    isOver = true;
    port.removeEventListener('message', message);
    port.removeEventListener('close', closed);
    port.removeEventListener('messageerror', closed);
  };
  port.addEventListener('message', message);
  port.addEventListener('close', closed);
  port.addEventListener('messageerror', closed);
  port.start?.();
  return {
    get isOver() {
      return isOver;
    },
    close: () => {
      if (isOver) return;
      stop();
      port.close();
    },
  };
}
