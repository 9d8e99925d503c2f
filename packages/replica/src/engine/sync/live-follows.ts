import type { ClientFrame, ServerFrame } from '@holdfast/core';
import { createFrameBuffer, type EventsFrame } from './frame-buffer.ts';
import type { LiveHooks } from './live-socket.ts';
import type { SyncParts } from './parts.ts';
import { ingestPage, type PageOutcome } from './pull.ts';

/**
 * The logs that one connection follows. Frames that wait are applied together, one transaction per log (RT6); PM11: they
 * need no permit, the transaction itself checks the generation. A gap stops applying until pages were pulled and the log
 * is followed again.
 */
export interface Follows {
  /** The ledger took our hello: what was to be followed is followed now. */
  welcome(): void;
  follow(log: string): void;
  unfollow(log: string): void;
  held(log: string, version: number): void;
  covers(log: string): boolean;
  take(frame: LogFrame, bytes: number): void;
  gap(log: string): void;
  stop(): void;
}

type LogFrame = Extract<ServerFrame, { readonly log: string }>;

interface Follow {
  /** `wanted`: not welcome yet. `asked`: no `ready` yet. `pulling`: what is missing is on its way by HTTP. */
  state: 'wanted' | 'asked' | 'ready' | 'pulling';
  /** The position that was named. */
  fromVersion: number;
  ackedVersion: number;
  cancelCatchUp: () => void;
}

type FollowHooks = Pick<LiveHooks, 'behind' | 'doubt' | 'alive'> & { send(frame: ClientFrame): void };

export function createFollows(parts: SyncParts, hooks: FollowHooks): Follows {
  const { clock } = parts.platform;
  const follows = new Map<string, Follow>();
  const buffer = createFrameBuffer();
  let isWelcome = false;
  let isDue = false;
  let isStopped = false;

  const ask = (log: string, follow: Follow) => {
    const position = positionOf(parts, log);
    if (!isWelcome || position === null) return;
    follow.state = 'asked';
    follow.fromVersion = position.version;
    follow.ackedVersion = position.version;
    hooks.send({ type: 'follow', log, position });
  };

  const follow = (log: string) => {
    const known = follows.get(log);
    if (known === undefined) {
      const fresh: Follow = { state: 'wanted', fromVersion: 0, ackedVersion: 0, cancelCatchUp: () => {} };
      follows.set(log, fresh);
      ask(log, fresh);
    } else if (known.state === 'pulling' || known.state === 'wanted') ask(log, known);
  };

  const forget = (log: string) => {
    follows.get(log)?.cancelCatchUp();
    follows.delete(log);
    buffer.drop(log);
  };

  const stopApplying = (log: string, head: number) => {
    const known = follows.get(log);
    if (known === undefined) return;
    known.cancelCatchUp();
    known.state = 'pulling';
    buffer.drop(log);
    hooks.behind(log, head);
  };

  const take = (frame: LogFrame, bytes: number) => {
    const known = follows.get(frame.log);
    if (known === undefined) return;
    switch (frame.type) {
      case 'ready':
        return ready(known, frame);
      case 'events':
        if (known.state === 'pulling') return;
        // PG2: parts are pulled, where the first ones can wait for the last.
        if (frame.part !== undefined || !buffer.add(frame, bytes))
          return stopApplying(frame.log, frame.through.version);
        return applySoon(frame.log);
      case 'resync-required':
        if (frame.reason === 'history-changed') {
          forget(frame.log);
          return hooks.doubt(frame.log, { code: 'history-changed' });
        }
        return stopApplying(frame.log, frame.head);
      default:
        forget(frame.log);
        return hooks.doubt(frame.log, { code: frame.type === 'forbidden' ? 'not-allowed' : frame.type });
    }
  };

  const ready = (known: Follow, { log, epoch, head, chain }: Extract<LogFrame, { type: 'ready' }>) => {
    const mine = parts.state.log(log);
    if (mine === undefined) return forget(log);
    const isOther = epoch !== mine.epoch || head < known.fromVersion || (head === mine.head && chain !== mine.chain);
    if (isOther) {
      forget(log);
      return hooks.doubt(log, { code: 'history-changed', facts: { head, ours: mine.head } });
    }
    known.state = 'ready';
    if (mine.head < head) awaitCatchUp(known, log, head);
    hooks.alive(log, false);
  };

  /** RT5: what is missing comes on the socket. Compared with the state, not counted (F86). */
  const awaitCatchUp = (known: Follow, log: string, head: number) => {
    known.cancelCatchUp();
    known.cancelCatchUp = clock.timer(parts.settings.catchUpMs, () => {
      if ((parts.state.log(log)?.head ?? head) < head) stopApplying(log, head);
    });
  };

  /**
   * Frames that came together are applied together. Where own work is on its way, its answer is close, too, and brings the
   * same events: they wait for one more turn, so that both are one transaction more often than two.
   */
  const applySoon = (log: string) => {
    if (isDue) return;
    isDue = true;
    if (parts.state.flowing(log) > 0) clock.soon(applyAll);
    else void Promise.resolve().then(() => parts.edge.run(applyAll));
  };

  const applyAll = () => {
    isDue = false;
    if (isStopped) return;
    for (const log of buffer.logs) apply(log, buffer.take(log));
  };

  const apply = (log: string, frames: readonly EventsFrame[]) => {
    const mine = parts.state.log(log);
    const last = frames.at(-1);
    if (mine === undefined || last === undefined) return;
    // An own push has brought them already: nothing to write.
    if (last.through.version <= mine.head) return hooks.alive(log, false);
    if (frames.some((frame) => frame.epoch !== mine.epoch)) {
      forget(log);
      return hooks.doubt(log, { code: 'history-changed', facts: { epoch: last.epoch } });
    }
    const outcome = applyTogether(log, frames);
    if (!outcome.ok) return stopApplying(log, last.through.version);
    acknowledge(log, outcome.value.head);
    hooks.alive(log, true);
  };

  const applyTogether = (log: string, frames: readonly EventsFrame[]): PageOutcome => {
    const startedMs = clock.monotonic();
    let outcome: PageOutcome = { ok: false, fault: { code: 'page-gap' } };
    let events = 0;
    try {
      parts.write(() => {
        for (const frame of frames) {
          outcome = ingestPage(parts, log, { ...frame, head: frame.through.version });
          if (!outcome.ok) break;
          events += outcome.value.applied;
        }
      });
    } catch (error) {
      // The socket's callbacks are no loop: what went wrong here is met again, and counted, by the pull.
      parts.logger('error', 'Frames could not be applied.', { log, error: String(error) });
      return { ok: false, fault: { code: 'engine-fault' } };
    }
    parts.observe({ name: 'sync.frames', ms: clock.monotonic() - startedMs, frames: frames.length, events });
    return outcome;
  };

  const acknowledge = (log: string, version: number) => {
    const known = follows.get(log);
    if (known === undefined || known.state === 'wanted' || version <= known.ackedVersion) return;
    known.ackedVersion = version;
    hooks.send({ type: 'ack', log, version });
  };

  return {
    welcome: () => {
      isWelcome = true;
      for (const [log, known] of follows) ask(log, known);
    },
    follow,
    unfollow: (log) => {
      if (follows.has(log) && isWelcome) hooks.send({ type: 'unfollow', log });
      forget(log);
    },
    held: acknowledge,
    covers: (log) => follows.get(log)?.state === 'ready',
    take,
    gap: (log) => stopApplying(log, parts.state.log(log)?.head ?? 0),
    stop: () => {
      isStopped = true;
      for (const log of [...follows.keys()]) forget(log);
    },
  };
}

function positionOf(parts: SyncParts, name: string) {
  const log = parts.state.log(name);
  if (log === undefined || log.stage !== 'visible' || log.epoch === null) return null;
  return { epoch: log.epoch, version: log.head, chain: log.chain };
}
