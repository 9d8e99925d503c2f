import type { Clock, Random } from '@holdfast/core';
import { createLogFacts, type LogFacts } from './facts.ts';
import { createLoop, type Loop, type Trigger, type Verdict } from './loop.ts';

/** One log's loop, with what is known of it. Lanes are independent: one that waits or fails holds back no other. */
export interface Lane {
  readonly facts: LogFacts;
  readonly loop: Loop;
  /** As it was when it was looked at last. */
  wasBlocked: boolean;
}

export interface Lanes {
  get(log: string): Lane | undefined;
  readonly all: readonly Lane[];
  /** Makes lanes for what is followed, and ends the others. */
  reconcile(logs: readonly string[]): void;
  kick(trigger: Trigger): void;
  setRunning(isRunning: boolean): void;
  stop(): void;
  ended(): Promise<unknown>;
}

export function createLanes(parts: {
  readonly clock: Clock;
  readonly random: Random;
  readonly run: (lane: Lane, triggers: readonly Trigger[]) => Promise<Verdict>;
  readonly onFault: (lane: Lane, error: unknown) => boolean;
  readonly onGone: (log: string) => void;
  readonly changed: () => void;
}): Lanes {
  const lanes = new Map<string, Lane>();
  let isRunning = false;

  const create = (log: string): Lane => {
    const lane: Lane = {
      facts: createLogFacts(log),
      wasBlocked: false,
      loop: createLoop({
        clock: parts.clock,
        random: parts.random,
        run: (triggers) => parts.run(lane, triggers),
        onFault: (error) => parts.onFault(lane, error),
        onState: parts.changed,
      }),
    };
    if (!isRunning) lane.loop.pause();
    return lane;
  };

  return {
    get: (log) => lanes.get(log),
    get all() {
      return [...lanes.values()];
    },
    reconcile: (logs) => {
      const followed = new Set(logs);
      for (const [log, lane] of lanes) {
        if (followed.has(log)) continue;
        lane.loop.stop();
        lanes.delete(log);
        parts.onGone(log);
      }
      for (const log of logs) {
        if (lanes.has(log)) continue;
        const lane = create(log);
        lanes.set(log, lane);
        lane.loop.kick('follow');
      }
    },
    kick: (trigger) => {
      for (const { loop } of lanes.values()) loop.kick(trigger);
    },
    setRunning: (running) => {
      if (running === isRunning) return;
      isRunning = running;
      for (const { loop } of lanes.values()) {
        if (running) loop.resume();
        else loop.pause();
      }
    },
    stop: () => {
      for (const { loop } of lanes.values()) loop.stop();
    },
    ended: () => Promise.all([...lanes.values()].map(({ loop }) => loop.ended())),
  };
}
