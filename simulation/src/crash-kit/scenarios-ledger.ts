import { offline, type Scenario, withLog } from './scenario.ts';

/** Three operations of one push, in one group. */
const append: Scenario = {
  name: 'ledger-append',
  side: 'ledger',
  prepare: async (bench) => {
    await withLog(bench);
    offline(bench, true);
    const { ana } = bench;
    bench.commit(ana, 'one', [{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
    bench.commit(ana, 'two', [{ do: 'create', entity: 'comment', id: 'c1', fields: { issue: 'i1', text: 'x' } }]);
    bench.commit(ana, 'three', [{ do: 'delete', entity: 'issue', id: 'i2' }]);
  },
  work: async (bench) => {
    offline(bench, false);
    await bench.rest();
  },
};

/** The workspace and its first log come into being by the first request. */
const creation: Scenario = {
  name: 'ledger-creation',
  side: 'ledger',
  prepare: async (bench) => {
    bench.ana.network.rules.offline = true;
    bench.ana.start();
    bench.commit(bench.ana, 'first', [
      { do: 'create', entity: 'issue', id: 'i1', fields: { title: 'A', status: 'todo' } },
    ]);
    await bench.time.advance(10);
  },
  work: async (bench) => {
    offline(bench, false);
    await bench.rest();
  },
};

export const ledgerScenarios: readonly Scenario[] = [append, creation];
