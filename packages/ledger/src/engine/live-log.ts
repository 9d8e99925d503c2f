import { chainStart, type Digest, LIMITS, type Position, type ServerFrame } from '@holdfast/core';
import { andThen, type MaybePromise } from './answer.ts';
import type { LogRef } from './engine.ts';
import { pageBounds } from './event-page.ts';
import { type Channel, type FanOut, type Frame, frameOf, type Subscriber } from './fan-out.ts';
import { epochOf, type Reader } from './read.ts';
import type { LedgerStore, MetLog } from './store-port.ts';

/** One followed log of one socket: where it stands, and what it is told. */
export interface FollowedLog {
  readonly log: string;
  readonly isStopped: boolean;
  /** Ends it without a word. */
  stop(): void;
}

export interface FollowParts {
  readonly store: LedgerStore;
  readonly reader: Reader;
  readonly fanOut: FanOut;
  readonly digest: Digest;
}

/** What a followed log asks of its socket. */
export interface FollowOutlet {
  send(frame: ServerFrame): void;
  /** False where the window is full: nothing was sent (RT2). */
  offer(text: string, bytes: number): boolean;
  /** The subscription has ended by itself. */
  ended(log: string): void;
  failed(cause: unknown): void;
}

/**
 * Follows a log from a position (5.4): subscribe, then read the head, then `ready`, then what lies between, then every
 * append. What cannot be told in order ends in `resync-required`, and the replica pulls.
 */
export function followLog(
  ref: LogRef,
  replica: string,
  position: Position,
  parts: FollowParts,
  outlet: FollowOutlet,
): FollowedLog {
  const { log } = ref;
  let channel: Channel | null = null;
  let isStopped = false;
  let isCatchingUp = false;

  const subscriber: Subscriber = {
    at: null,
    take: (frame: Frame) => {
      if (outlet.offer(frame.text, frame.bytes)) return true;
      resync('slow', channel?.head ?? frame.to);
      return false;
    },
    fellBehind: () => catchUp(),
  };

  const stop = (): void => {
    isStopped = true;
    if (channel !== null) parts.fanOut.unsubscribe(channel, subscriber);
  };

  const end = (frame: ServerFrame): void => {
    stop();
    outlet.send(frame);
    outlet.ended(log);
  };

  const resync = (reason: 'too-far-behind' | 'slow' | 'history-changed', head: number): void =>
    end({ type: 'resync-required', log, head, reason });

  /** From where the subscriber stands to the head, page by page; frames that arrive meanwhile are read, not lost. */
  const catchUp = (from: number | null = subscriber.at): void => {
    if (isCatchingUp || isStopped || from === null) return;
    subscriber.at = null;
    isCatchingUp = true;
    const step = (at: number): MaybePromise<void> => {
      const target = channel;
      if (isStopped || target === null) return;
      if (at >= target.head) {
        subscriber.at = at;
        isCatchingUp = false;
        return;
      }
      return andThen(parts.reader.page(ref, at, pageBounds(undefined)), (page) => {
        if (isStopped) return;
        if (page === undefined || page.events === '') return resync('too-far-behind', target.head);
        const frame = frameOf(target, page, at);
        if (!outlet.offer(frame.text, frame.bytes)) return resync('slow', target.head);
        return step(frame.to);
      });
    };
    guard(() => step(from));
  };

  const guard = (run: () => MaybePromise<void>): void => {
    const failed = (cause: unknown): void => {
      stop();
      outlet.failed(cause);
    };
    try {
      const running = run();
      if (running instanceof Promise) running.catch(failed);
    } catch (cause) {
      failed(cause);
    }
  };

  guard(() =>
    andThen(parts.store.log(ref), (row) => {
      if (isStopped) return;
      if (row === undefined) return end({ type: 'forbidden', log });
      // Subscribed before the head is read: an append in between finds the subscriber.
      channel = parts.fanOut.channel(ref, row);
      parts.fanOut.subscribe(channel, subscriber);
      return andThen(standing(parts.store, ref, replica, position.version), (met) => {
        if (isStopped) return;
        if (met === undefined) return end({ type: 'forbidden', log });
        const { identity, head, chain, state, movedTo } = met.log;
        if (state === 'deleted') return end({ type: 'deleted', log });
        if (state === 'sealed') return end({ type: 'moved', log, ...(movedTo === null ? {} : { to: movedTo }) });
        const known = position.version === 0 ? chainStart(identity, parts.digest) : met.chains.get(position.version);
        if (known !== position.chain) return resync('history-changed', head);
        if (head - position.version > LIMITS.socketCatchUpEventsMax) return resync('too-far-behind', head);
        outlet.send({ type: 'ready', log, epoch: epochOf(met.log), head, chain });
        catchUp(position.version);
      });
    }),
  );

  return {
    log,
    get isStopped() {
      return isStopped;
    },
    stop,
  };
}

/** Head and the chain at one version, in one snapshot. Changes nothing. */
const standing = (
  store: LedgerStore,
  { workspace, log }: LogRef,
  replica: string,
  version: number,
): MaybePromise<MetLog | undefined> =>
  store.meet(
    workspace,
    { replica, logs: [{ log, versions: version === 0 ? [] : [version], signatureAt: null }] },
    (state) => ({
      value: state?.logs.get(log),
      write: null,
    }),
  );
