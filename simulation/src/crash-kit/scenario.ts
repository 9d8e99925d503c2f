import type { Schema } from '@holdfast/core';
import type { Bench, Side } from './bench.ts';

/**
 * A piece of work that a failure may strike anywhere. `work` is what the host or the app does, and does again after a
 * failure: every call of it is one that may be repeated.
 */
export interface Scenario {
  readonly name: string;
  /** Under whose SQLite the failures are put. */
  readonly side: Side;
  /** Ana's app, from the work on. */
  readonly opensBy?: Schema;
  /** What the files hold when the work begins. Whoever is started here is killed afterwards. */
  readonly prepare: (bench: Bench) => Promise<void>;
  /** Opening Ana's file, or starting the ledger, is part of the work; else it is done before anything fails. */
  readonly isOpeningPartOfIt?: boolean;
  readonly work: (bench: Bench) => Promise<void> | void;
}

/** Ana is at the head of a log with a project and two issues. */
export async function withLog(bench: Bench): Promise<void> {
  const { ana } = bench;
  ana.start();
  bench.commit(ana, 'first', [
    { do: 'create', entity: 'project', id: 'p1', fields: { name: 'P' } },
    { do: 'create', entity: 'issue', id: 'i1', fields: { title: 'A', status: 'todo', project: 'p1' } },
    { do: 'create', entity: 'issue', id: 'i2', fields: { title: 'B', status: 'todo' } },
  ]);
  await settled(bench);
}

export async function settled(bench: Bench): Promise<void> {
  if (!(await bench.rest())) throw new Error('The bench does not come to rest.');
}

/** Of Ana's network: nothing goes, nothing comes. */
export function offline(bench: Bench, isOffline: boolean): void {
  const { network, engine } = bench.ana;
  network.rules.offline = isOffline;
  if (isOffline) network.cut();
  else engine?.sync.kick('online');
}
