import { LIMITS, type ServerFrame } from '@holdfast/core';

export type EventsFrame = Extract<ServerFrame, { type: 'events' }>;

/**
 * Frames that wait to be applied, per log, all logs of a socket together within one bound. Beyond it everything that
 * waits for that log is dropped, and its events are pulled instead: memory stays bounded however fast others write.
 */
export interface FrameBuffer {
  /** False: it did not fit, and nothing of this log waits any more. */
  add(frame: EventsFrame, bytes: number): boolean;
  /** What waits for this log, in order; it waits no longer. */
  take(log: string): readonly EventsFrame[];
  drop(log: string): void;
  readonly logs: readonly string[];
  readonly bytes: number;
}

export function createFrameBuffer(bytesMax: number = LIMITS.liveBufferBytesMax): FrameBuffer {
  const waiting = new Map<string, { readonly frames: EventsFrame[]; bytes: number }>();
  let total = 0;
  const drop = (log: string) => {
    total -= waiting.get(log)?.bytes ?? 0;
    waiting.delete(log);
  };
  return {
    add: (frame, bytes) => {
      if (total + bytes > bytesMax) {
        drop(frame.log);
        return false;
      }
      const of = waiting.get(frame.log) ?? { frames: [], bytes: 0 };
      waiting.set(frame.log, of);
      of.frames.push(frame);
      of.bytes += bytes;
      total += bytes;
      return true;
    },
    take: (log) => {
      const frames = waiting.get(log)?.frames ?? [];
      drop(log);
      return frames;
    },
    drop,
    get logs() {
      return [...waiting.keys()];
    },
    get bytes() {
      return total;
    },
  };
}
