import type { CancelSignal, Fault } from '@holdfast/core';
import { faultOf } from './faults.ts';

/**
 * SY2: resolves when everything committed before the call is in the log and applied here, and every log is at the head that
 * the ledger named after the call. It never rejects because the ledger cannot be reached: it waits, until the caller gives
 * up, and says what stands in the way.
 */
export interface SettleReport {
  readonly settled: boolean;
  /** Entries on the desk that wait for a person. */
  readonly attention: number;
  /** What stands in the way, by log; empty if it settled. */
  readonly obstacles: readonly Obstacle[];
}

export interface Obstacle {
  readonly log: string | null;
  readonly fault: Fault;
}

export interface SettleView {
  readonly attention: number;
  readonly logs: readonly {
    readonly log: string;
    /** Work that was committed before the call is on its way. */
    readonly isFlowing: boolean;
    /** A handshake or page that was asked for after the call has named a head, and it is applied. */
    readonly isAtHead: boolean;
    /** What waits for a person, an operator or a decision: time alone does not help. */
    readonly obstacle: Fault | null;
    /** What it waits for at the moment. */
    readonly waitsFor: Fault;
  }[];
  /** Of the whole replica, likewise. */
  readonly obstacle: Fault | null;
}

export function settleWhen(parts: {
  readonly view: () => SettleView;
  readonly onChange: (look: () => void) => () => void;
  readonly signal: CancelSignal | undefined;
}): Promise<SettleReport> {
  const { signal } = parts;
  return new Promise((resolve) => {
    let stopListening = () => {};
    /** A file that cannot be read is in the way of everything: whoever waits is told so, and never waits for ever. */
    const seen = <T>(judge: (view: SettleView) => T): T | SettleReport => {
      try {
        return judge(parts.view());
      } catch (error) {
        return { settled: false, attention: 0, obstacles: [{ log: null, fault: faultOf(error) }] };
      }
    };
    const finish = (report: SettleReport) => {
      stopListening();
      signal?.removeEventListener('abort', giveUp);
      resolve(report);
    };
    const look = () => {
      const report = seen(reportOf);
      if (report !== null) finish(report);
    };
    const giveUp = () => finish(seen(unsettled));
    if (signal?.aborted === true) return giveUp();
    signal?.addEventListener('abort', giveUp);
    stopListening = parts.onChange(look);
    look();
  });
}

/** Null: not yet. */
export function reportOf(view: SettleView): SettleReport | null {
  if (view.obstacle !== null)
    return { settled: false, attention: view.attention, obstacles: [{ log: null, fault: view.obstacle }] };
  const isOpen = (log: SettleView['logs'][number]): boolean =>
    log.obstacle === null && (log.isFlowing || !log.isAtHead);
  if (view.logs.some(isOpen)) return null;
  const obstacles = view.logs.flatMap(({ log, obstacle }) => (obstacle === null ? [] : [{ log, fault: obstacle }]));
  return { settled: obstacles.length === 0, attention: view.attention, obstacles };
}

function unsettled(view: SettleView): SettleReport {
  const report = reportOf(view);
  if (report !== null) return report;
  const obstacles = view.logs
    .filter(({ obstacle, isFlowing, isAtHead }) => obstacle !== null || isFlowing || !isAtHead)
    .map(({ log, obstacle, waitsFor }) => ({ log, fault: obstacle ?? waitsFor }));
  return { settled: false, attention: view.attention, obstacles };
}
