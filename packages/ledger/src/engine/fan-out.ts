import type { Logger } from '@holdfast/core';
import type { ThroughOf } from './attest.ts';
import type { LogRef } from './engine.ts';
import { endOfPage, lastVersionOf, type PageEnd, type PageEvent, pageBounds } from './event-page.ts';
import type { AcceptedOperation } from './log-in-work.ts';
import { loggedError } from './logged-error.ts';
import { epochOf, type PageText, partMark, type Reader } from './read.ts';
import { entityKey, type LogRow } from './store-port.ts';
import { Tail } from './tail.ts';

/**
 * The end of every log that this process works on, and who listens there (5.4). Owns tails and subscriptions; derived and
 * bounded. The worst outcome is a subscriber that was told nothing: frames are hints, and `ready`, positions and the
 * handshake prove what a replica has.
 */
export interface FanOut {
  channel(ref: LogRef, log: LogRow): Channel;
  /** What a durable group did: told to all subscribers of the log. */
  appended(ref: LogRef, log: LogRow, accepted: readonly AcceptedOperation[]): Channel;
  /** Another node appended: what it wrote is read and told. */
  appendedElsewhere(ref: LogRef): Promise<void>;
  subscribe(channel: Channel, subscriber: Subscriber): void;
  unsubscribe(channel: Channel, subscriber: Subscriber): void;
  readonly subscriptions: number;
}

export interface Channel {
  readonly ref: LogRef;
  readonly subscribers: Set<Subscriber>;
  identity: string;
  epoch: string;
  head: number;
  tail: Tail;
}

/** One log of one socket. */
export interface Subscriber {
  /** The version up to which it was told everything; null while it is being caught up. */
  at: number | null;
  /** Says whether it took the frame. */
  take(frame: Frame): boolean;
  /** Frames passed it by while `at` was behind: it must catch up again. */
  fellBehind(): void;
}

/** Some events in a row, written once for everybody. */
export interface Frame {
  /** It continues this version. */
  readonly after: number;
  readonly to: number;
  readonly text: string;
  readonly bytes: number;
}

/** Channels nobody listens to, kept for their tails. */
const IDLE_CHANNELS_MAX = 64;

export function createFanOut(parts: {
  readonly reader: Reader;
  readonly throughOf: ThroughOf;
  readonly logger: Logger;
}): FanOut {
  /** In order of use, the oldest first. */
  const channels = new Map<string, Channel>();
  let subscriptions = 0;

  const channel = (ref: LogRef, log: LogRow): Channel => {
    const key = entityKey(ref.workspace, ref.log);
    let found = channels.get(key);
    if (found === undefined) {
      const { identity, head } = log;
      found = { ref, subscribers: new Set(), identity, epoch: epochOf(log), head, tail: new Tail(head) };
    }
    channels.delete(key);
    channels.set(key, found);
    forgetIdle();
    return found;
  };

  const forgetIdle = (): void => {
    let idle = 0;
    for (const { subscribers } of channels.values()) if (subscribers.size === 0) idle += 1;
    for (const [key, { subscribers }] of channels) {
      if (idle <= IDLE_CHANNELS_MAX) return;
      if (subscribers.size > 0) continue;
      channels.delete(key);
      idle -= 1;
    }
  };

  const tell = (target: Channel, frames: Iterable<Frame>): void => {
    if (target.subscribers.size === 0) return;
    for (const frame of frames)
      for (const subscriber of target.subscribers) {
        if (subscriber.at === null || subscriber.at >= frame.to) continue;
        if (subscriber.at !== frame.after) subscriber.fellBehind();
        else if (subscriber.take(frame)) subscriber.at = frame.to;
      }
  };

  const appended = (ref: LogRef, log: LogRow, accepted: readonly AcceptedOperation[]): Channel => {
    const target = channel(ref, log);
    target.identity = log.identity;
    target.epoch = epochOf(log);
    if (target.tail.head !== log.head) target.tail = new Tail(log.head);
    target.tail.add(accepted);
    const before = target.head;
    const last = accepted[accepted.length - 1];
    target.head = last === undefined ? log.head : lastVersionOf(last.row);
    if (before < log.head)
      for (const subscriber of target.subscribers) if (subscriber.at !== null) subscriber.fellBehind();
    if (last !== undefined) tell(target, framesOf(target, accepted, parts.throughOf));
    return target;
  };

  return {
    channel,
    appended,
    appendedElsewhere: async (ref) => {
      const target = channels.get(entityKey(ref.workspace, ref.log));
      if (target === undefined) return;
      try {
        for (;;) {
          const page = await parts.reader.page(ref, target.head, pageBounds(undefined));
          if (page === undefined || page.events === '') return;
          target.tail = new Tail(page.through.version);
          const after = target.head;
          target.head = page.through.version;
          tell(target, [frameOf(target, page, after)]);
        }
      } catch (cause) {
        parts.logger('warn', 'What another node appended could not be read.', {
          ...ref,
          error: loggedError(cause),
        });
      }
    },
    subscribe: (target, subscriber) => {
      // A channel that was forgotten in between comes back with its first listener.
      channels.set(entityKey(target.ref.workspace, target.ref.log), target);
      target.subscribers.add(subscriber);
      subscriptions += 1;
    },
    unsubscribe: (target, subscriber) => {
      if (target.subscribers.delete(subscriber)) subscriptions -= 1;
    },
    get subscriptions() {
      return subscriptions;
    },
  };
}

/** RT1: each page of what a group accepted, written once. */
function* framesOf(channel: Channel, accepted: readonly AcceptedOperation[], throughOf: ThroughOf): Generator<Frame> {
  let rest = accepted;
  let after = (accepted[0] as AcceptedOperation).row.firstVersion - 1;
  while (rest.length > 0) {
    const end = endOfPage(
      rest.map(({ row }) => row),
      after,
      pageBounds(undefined),
    ) as PageEnd;
    const events: PageEvent[] = [];
    for (const operation of rest)
      for (const event of operation.events) if (event.version > after && event.version <= end.to) events.push(event);
    const last = events[events.length - 1] as PageEvent;
    const texts = events.map(({ text }) => text).join(',');
    const through = throughOf(channel.identity, last.version, last.chain);
    yield frameOf(channel, { events: texts, through, end, bytes: texts.length }, after);
    after = end.to;
    const done = after;
    rest = rest.filter(({ row }) => lastVersionOf(row) > done);
  }
}

export function frameOf(
  channel: Channel,
  page: Pick<PageText, 'events' | 'through' | 'end' | 'bytes'>,
  after: number,
): Frame {
  const text = `{"epoch":${JSON.stringify(channel.epoch)},"events":[${page.events}],"log":${JSON.stringify(channel.ref.log)}${partMark(page.end)},"through":${JSON.stringify(page.through)},"type":"events"}`;
  return { after, to: page.through.version, text, bytes: text.length };
}
