import { expect, test } from 'vitest';
import {
  accepted,
  at,
  codeOf,
  createWorkbench,
  must,
  pullFrom,
  pushOf,
} from '../../packages/replica/src/engine/coordinator.fixture.ts';
import type { Permit } from '../../packages/replica/src/engine/coordinator-permit.ts';
import { createBench } from '../../packages/replica/src/engine/sync/bench.fixture.ts';

const gateway = { ownerMode: 'browser-gateway' as const };
const POINTS = ['issued', 'started', 'answered'] as const;

// Seen to fail with coordinator-permit.ts finding a permit by its command, whatever its id.
test('[I19 I20] lease without fence; same name, stale attempt: an old attempt resumes at each await and changes nothing of the new one', () => {
  for (const paused of POINTS)
    for (const reached of POINTS) {
      const bench = createWorkbench({ mode: 'browser-gateway' });
      const tab = bench.host('the tab');
      const issue = () => must(tab.issue(pullFrom(at(1), { ...gateway, class: 'dispatch', commandId: 'c1' })));
      const advance = (permit: Permit, to: (typeof POINTS)[number]) => {
        if (to !== 'issued') must(tab.start(permit));
        if (to === 'answered') must(tab.storeAnswer(permit, { disposition: 'accepted' }));
      };
      const old = issue();
      advance(old, paused);
      // The attempt stalls past its deadline; the same tab, under the same name, is given the command again.
      bench.time.monotonicMs += 1_000_000;
      bench.time.wallMs += 1_000_000;
      expect(tab.expire([]).ended.map(({ permit }) => permit.permitId)).toEqual([old.permitId]);
      const next = issue();
      expect(next.permitId).not.toBe(old.permitId);
      advance(next, reached);
      const before = bench.dump();
      const answer = { disposition: 'accepted' } as const;
      // Some of it says again what is so already; none of it may change a row or let an effect happen.
      tab.start(old);
      tab.storeAnswer(old, answer);
      tab.storeAnswer(old, { disposition: 'rejected' });
      expect(tab.applyAnswered(old, answer, () => expect.fail('a late answer took effect')).ok).toBe(false);
      tab.acknowledge(old, { answer, withoutEffect: true });
      tab.abandon(old, { because: 'never-sent' });
      expect(bench.dump()).toBe(before);
      expect(tab.permit(next.permitId)?.endedAt).toBeNull();
    }
});

// Seen to fail with request.ts giving up no request for its silence.
test('[I19 I20] lease without fence; same name, stale attempt: a push that was given up is answered after its successor', async () => {
  const bench = createBench();
  try {
    // Without a socket, on which its own events would come first.
    const ana = bench.device('ana', { settings: { live: false } });
    ana.sync.start();
    const isLive = () => ana.sync.status.phase === 'live' && ana.sync.status.unsent === 0;
    await bench.until('live', isLive);
    let held = 0;
    ana.script = (url, request, forward) => {
      if (!url.includes('/push') || held > 0) return undefined;
      held += 1;
      const late = forward(url, request);
      return new Promise((resolve, reject) => {
        bench.time.at(120_000, () => void late.then(resolve, reject));
      });
    };
    ana.create('sent twice');
    await bench.until('the successor is done', isLive, 110_000);
    const rows = () => JSON.stringify([ana.titles(), ana.owed(), ana.state.counts(), ana.state.log('main')?.chain]);
    const before = rows();
    await bench.time.advance(120_000);
    expect([held, rows()]).toEqual([1, before]);
    expect(ana.state.log('main')?.head).toBe(1);
    expect(ana.owed()).toEqual([]);
  } finally {
    bench.close();
  }
});

// Seen to fail with coordinator-end.ts sweeping up whatever was issued up to this instant, by `issued_at`.
test('[I19] recovery sweep adopts work just started: only earlier generations are recovered', () => {
  const bench = createWorkbench();
  const first = bench.host('one');
  const left = must(first.issueAndStart(pushOf(['r1'])));
  const second = bench.process('two');
  bench.transaction(() => second.raiseGeneration());
  // The first work of this run begins in the very instant of the sweep, before it and after it.
  const before = must(second.issueAndStart(pushOf(['r2'])));
  const { ended } = bench.transaction(() => second.settleEarlierInstances());
  const after = must(second.issueAndStart(pushOf(['r3'])));
  expect(new Set([left.issuedAt, before.issuedAt, after.issuedAt]).size).toBe(1);
  expect(ended.map(({ permit, queueAgain }) => [permit.permitId, queueAgain])).toEqual([[left.permitId, ['r1']]]);
  expect(bench.transaction(() => second.settleEarlierInstances()).ended).toEqual([]);
  for (const [permit, request] of [
    [before, 'r2'],
    [after, 'r3'],
  ] as const)
    expect(codeOf(second.applyAnswered(permit, accepted(request), () => undefined))).toBe('ok');
  expect(second.obligations.open().map(({ identity }) => identity)).toEqual(['r1']);
});
