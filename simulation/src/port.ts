import type { SeededRandom, VirtualTime } from '@holdfast/replica/testing';
import type { Port } from '../../packages/replica/src/link/port.ts';
import type { Thread } from './thread.ts';

/** The two ends of a message channel on virtual time. Messages are cloned, come in their order, and none is lost; a frozen page hears them late. */
export interface PortPair {
  readonly page: Port;
  readonly host: Port;
  /** Whoever held this end is gone. What it had posted still arrives; then the other end is closed. */
  kill(end: 'page' | 'host'): void;
}

export interface PortParts {
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  /** Where the page hears what was posted to it. */
  readonly thread: Thread;
}

/** A message takes so long, in milliseconds. */
const DELAYS_MS = [0, 0, 1, 3] as const;

type Heard = Parameters<Port['addEventListener']>[0];

export function createPortPair({ time, random, thread }: PortParts): PortPair {
  const ends = { page: createEnd(), host: createEnd() };
  const over = (end: 'page' | 'host') => (end === 'page' ? 'host' : 'page');
  const arrivesAtMs = { page: 0, host: 0 };

  const send = (from: 'page' | 'host', type: Heard, data?: unknown): void => {
    const to = over(from);
    arrivesAtMs[to] = Math.max(arrivesAtMs[to], time.elapsedMs + random.pick(DELAYS_MS));
    const hear = () => {
      if (!ends[to].isOver) ends[to].hear(type, data);
    };
    time.at(arrivesAtMs[to] - time.elapsedMs, to === 'page' ? () => thread.run(hear) : hear);
  };
  const close = (end: 'page' | 'host'): void => {
    if (ends[end].isOver) return;
    ends[end].isOver = true;
    send(end, 'close');
  };
  const portOf = (end: 'page' | 'host'): Port => ({
    postMessage: (message) => {
      if (!ends[end].isOver) send(end, 'message', structuredClone(message));
    },
    addEventListener: (type, run) => void ends[end].listeners.push({ type, run }),
    removeEventListener: (type, run) => ends[end].forget(type, run),
    close: () => close(end),
  });
  return { page: portOf('page'), host: portOf('host'), kill: close };
}

function createEnd() {
  type Listener = { readonly type: Heard; readonly run: (event: { readonly data?: unknown }) => void };
  const listeners: Listener[] = [];
  return {
    isOver: false,
    listeners,
    hear: (type: Heard, data: unknown): void => {
      for (const one of [...listeners]) if (one.type === type) one.run({ data });
    },
    forget: (type: Heard, run: Listener['run']): void => {
      const at = listeners.findIndex((one) => one.type === type && one.run === run);
      if (at >= 0) listeners.splice(at, 1);
    },
  };
}
