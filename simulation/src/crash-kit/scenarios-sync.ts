import { tamper } from '@holdfast/replica/testing/engine';
import type { Bench } from './bench.ts';
import { offline, type Scenario, settled, withLog } from './scenario.ts';

/** Offline work of Ana, and what Ben ordered meanwhile; then she dies, and her next start finds both. */
async function apart(bench: Bench, ofAna: () => void, ofBen: (bench: Bench) => void): Promise<void> {
  await withLog(bench);
  const ben = bench.device('ben');
  ben.start();
  await settled(bench);
  offline(bench, true);
  ofAna();
  ofBen(bench);
  await bench.until(() => ben.engine?.state.flowing('main') === 0);
}

const online = async (bench: Bench): Promise<void> => {
  offline(bench, false);
  await bench.rest();
};

const ingest: Scenario = {
  name: 'ingest',
  side: 'replica',
  // Ben's events are read, her own come back between them: the answer to her push was lost, and another waits.
  prepare: async (bench) => {
    await withLog(bench);
    const ben = bench.device('ben');
    ben.start();
    await settled(bench);
    bench.ana.network.rules.fromLedger = false;
    bench.commit(bench.ana, 'sent', [{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
    await bench.until(() => (ben.engine?.state.log('main')?.head ?? 0) === 4);
    offline(bench, true);
    bench.commit(bench.ana, 'unsent', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'A2' } }]);
    bench.commit(ben, 'theirs', [
      { do: 'update', entity: 'issue', id: 'i1', set: { status: 'done' }, inc: { votes: 5 } },
      { do: 'create', entity: 'issue', id: 'i9', fields: { title: 'Ben', status: 'todo' } },
      { do: 'delete', entity: 'project', id: 'p1' },
    ]);
    await bench.until(() => ben.engine?.state.flowing('main') === 0);
  },
  work: online,
};

const rebase: Scenario = {
  name: 'rebase',
  side: 'replica',
  prepare: (bench) =>
    apart(
      bench,
      () => {
        const { ana } = bench;
        bench.commit(ana, 'a1', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'A2' } }], 'Rename');
        bench.commit(ana, 'a2', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'A3' }, inc: { votes: 1 } }]);
        bench.commit(ana, 'a3', [{ do: 'update', entity: 'issue', id: 'i2', set: { status: 'done' } }]);
      },
      () =>
        void bench.commit(bench.device('ben'), 'b1', [
          { do: 'delete', entity: 'issue', id: 'i1' },
          { do: 'update', entity: 'issue', id: 'i2', set: { status: 'done', title: 'B2' } },
        ]),
    ),
  work: online,
};

/** One push, three answers: accepted, refused because an issue is gone, a clash. */
const answers: Scenario = {
  name: 'push-answers',
  side: 'replica',
  prepare: (bench) =>
    apart(
      bench,
      () => {
        const { ana } = bench;
        bench.commit(ana, 'kept', [
          { do: 'create', entity: 'issue', id: 'i5', fields: { title: 'E', status: 'todo' } },
        ]);
        bench.commit(ana, 'refused', [
          { do: 'create', entity: 'comment', id: 'c1', fields: { issue: 'i2', text: '?' } },
        ]);
        bench.commit(ana, 'clash', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'Ana' } }]);
      },
      () => {
        const ben = bench.device('ben');
        bench.commit(ben, 'b1', [{ do: 'delete', entity: 'issue', id: 'i2' }]);
        bench.commit(ben, 'b2', [{ do: 'update', entity: 'issue', id: 'i1', set: { title: 'Ben' } }]);
      },
    ),
  work: online,
};

const bootstrap: Scenario = {
  name: 'bootstrap',
  side: 'replica',
  prepare: async (bench) => {
    const ben = bench.device('ben');
    ben.start();
    for (let at = 0; at < 5; at += 1)
      bench.commit(ben, `b${at}`, [
        { do: 'create', entity: 'issue', id: `i${at}`, fields: { title: `T${at}`.repeat(1_500), status: 'todo' } },
      ]);
    await settled(bench);
    bench.ana.network.rules.offline = true;
    bench.ana.start();
    bench.commit(bench.ana, 'before', [
      { do: 'create', entity: 'issue', id: 'mine', fields: { title: 'Before the first state', status: 'todo' } },
    ]);
  },
  work: online,
};

/** Her confirmed state is not what the log says, for whatever reason; unsent work stands on it. */
const repair: Scenario = {
  name: 'repair',
  side: 'replica',
  prepare: async (bench) => {
    await withLog(bench);
    offline(bench, true);
    bench.commit(bench.ana, 'unsent', [{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
    tamper(
      bench.ana.engine?.state,
      `UPDATE main.issue SET status = 'done' WHERE _id = 'i2'; UPDATE main.hf_log SET signature = '${'1'.repeat(64)}'`,
    );
  },
  work: online,
};

/** No answer comes; what was sent becomes owed; the answer is asked for, and comes. */
const unknown: Scenario = {
  name: 'unknown-outcome',
  side: 'replica',
  prepare: async (bench) => {
    await withLog(bench);
    offline(bench, true);
    bench.commit(bench.ana, 'owed', [{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
    bench.commit(bench.ana, 'owed, too', [{ do: 'update', entity: 'issue', id: 'i2', set: { title: 'B2' } }]);
  },
  work: async (bench) => {
    const { ana } = bench;
    offline(bench, false);
    await bench.until(() => sending(bench) > 0, 30_000);
    ana.network.rules.fromLedger = false;
    await bench.until(() => (ana.engine?.coordinator.obligations.open().length ?? 1) > 0, 5 * 60_000);
    ana.network.rules.fromLedger = true;
    await bench.rest();
  },
};

const sending = ({ ana }: Bench): number => ana.engine?.state.counts().sending ?? 0;

/** The host died while its push was on the way. The next one takes over, and finds a permit of an earlier instance. */
const takeOver: Scenario = {
  name: 'take-over',
  side: 'replica',
  isOpeningPartOfIt: true,
  prepare: async (bench) => {
    await withLog(bench);
    bench.ana.network.rules.fromLedger = false;
    bench.commit(bench.ana, 'on its way', [{ do: 'update', entity: 'issue', id: 'i1', inc: { votes: 1 } }]);
    await bench.until(() => sending(bench) > 0);
    await bench.time.advance(20);
  },
  work: async (bench) => {
    await bench.rest();
  },
};

export const syncScenarios: readonly Scenario[] = [ingest, rebase, answers, bootstrap, repair, unknown, takeOver];
