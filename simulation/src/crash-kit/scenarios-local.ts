import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { offline, type Scenario, settled, withLog } from './scenario.ts';
import { widerSchema } from './schema.ts';

const commit: Scenario = {
  name: 'commit',
  side: 'replica',
  prepare: withLog,
  work: (bench) =>
    void bench.commit(
      bench.ana,
      'much',
      [
        {
          do: 'create',
          entity: 'issue',
          id: 'i3',
          fields: { title: 'C'.repeat(5_000), status: 'todo', project: 'p1' },
        },
        { do: 'update', entity: 'issue', id: 'i1', inc: { votes: 2 }, add: { labels: ['x'] } },
        { do: 'delete', entity: 'project', id: 'p1' },
      ],
      'Much at once',
    ),
};

const widening: Scenario = {
  name: 'widening',
  side: 'replica',
  opensBy: widerSchema,
  isOpeningPartOfIt: true,
  prepare: async (bench) => {
    await withLog(bench);
    offline(bench, true);
    bench.commit(bench.ana, 'unsent', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'A2' } }]);
  },
  work: () => undefined,
};

/** Two devices of one field: one of them waits for a person. */
async function withConflict(bench: Bench): Promise<void> {
  await withLog(bench);
  const ben = bench.device('ben');
  ben.start();
  await settled(bench);
  offline(bench, true);
  bench.commit(bench.ana, 'mine', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'Ana' } }], 'Rename');
  bench.commit(bench.ana, 'later', [{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
  bench.commit(ben, 'theirs', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'Ben' } }]);
  await settledWith(bench, ben.name);
  offline(bench, false);
  await settled(bench);
  const waiting = bench.ana.engine?.state.desk() ?? [];
  if (waiting.length !== 1) throw new Error(`the clash did not reach the desk: ${JSON.stringify(waiting)}`);
}

async function settledWith(bench: Bench, name: string): Promise<void> {
  const { engine } = bench.device(name);
  await bench.until(() => engine?.state.flowing('main') === 0);
}

const resolve: Scenario = {
  name: 'resolve',
  side: 'replica',
  prepare: withConflict,
  work: ({ ana }) => {
    const entry = ana.engine?.state.desk().find(({ needs }) => needs === 'answer');
    // Decided already, and the person was not told.
    if (entry === undefined) return;
    const outcome = ana.engine?.state.resolve({ ids: [entry.id], choice: 'mine', revision: entry.revision });
    if (outcome?.ok !== true) throw new Error(JSON.stringify(outcome));
  },
};

const undo: Scenario = {
  name: 'undo',
  side: 'replica',
  prepare: async (bench) => {
    await withLog(bench);
    bench.commit(
      bench.ana,
      'to undo',
      [
        { do: 'update', entity: 'issue', id: 'i1', set: { title: 'A2' }, inc: { votes: 3 }, add: { labels: ['x'] } },
        { do: 'delete', entity: 'issue', id: 'i2' },
      ],
      'Tidy up',
    );
    await settled(bench);
  },
  work: ({ ana }) => {
    const state = ana.engine?.state;
    if (state?.undoState('main').can !== true) return;
    const outcome = state.undo('main', { skipChanged: false });
    if (!outcome.ok) throw new Error(JSON.stringify(outcome));
  },
};

const packFile = (bench: Bench): string => join(bench.folder, 'unsent.pack');

/** A device of hers is given up: its unsent work comes by a pack, after a part of it had been accepted. */
const unpack: Scenario = {
  name: 'unpack',
  side: 'replica',
  prepare: async (bench) => {
    await withLog(bench);
    const old = bench.device('old', 'ana');
    old.start();
    await settled(bench);
    old.network.rules.fromLedger = false;
    bench.commit(old, 'accepted', [{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
    await bench.until(() => old.network.counts.requests > 0 && (bench.ana.engine?.state.log('main')?.head ?? 0) > 3);
    old.network.rules.offline = true;
    old.network.cut();
    bench.commit(old, 'unsent', [
      { do: 'update', entity: 'issue', id: 'i1', add: { labels: ['packed'] } },
      { do: 'create', entity: 'issue', id: 'i9', fields: { title: 'Packed', status: 'todo' } },
    ]);
    writeFileSync(packFile(bench), old.engine?.state.pack() as Uint8Array);
    old.crash();
    await settled(bench);
  },
  work: (bench) => {
    const outcome = bench.ana.engine?.state.unpack(readFileSync(packFile(bench)));
    if (outcome?.ok !== true) throw new Error(JSON.stringify(outcome));
  },
};

export const localScenarios: readonly Scenario[] = [commit, widening, resolve, undo, unpack];
