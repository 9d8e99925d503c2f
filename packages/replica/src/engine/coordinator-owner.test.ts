import { describe, expect, test } from 'vitest';
import {
  accepted,
  around,
  at,
  codeOf,
  createWorkbench,
  must,
  pullFrom,
  pushOf,
  type Workbench,
} from './coordinator.fixture.ts';
import type { Coordinator } from './coordinator.ts';

const gateway = { ownerMode: 'browser-gateway' as const };

describe('start of a host', () => {
  test('[PM8 I23] every run raises the generation, and settles what earlier ones left', () => {
    const bench = createWorkbench();
    const first = bench.host('one');
    const idle = must(first.issue(pushOf(['r1'])));
    const flying = must(first.issueAndStart(pushOf(['r2', 'r3'])));
    const second = bench.process('two');
    expect(second.raiseGeneration()).toBe(2);
    const { ended } = second.settleEarlierInstances();
    expect(ended.map(({ permit, queueAgain }) => [permit.permitId, permit.state, queueAgain])).toEqual([
      [idle.permitId, 'abandoned-clean', ['r1']],
      [flying.permitId, 'abandoned-reconcile-required', ['r2', 'r3']],
    ]);
    expect(second.settleEarlierInstances().ended).toEqual([]);
    expect(second.obligations.open().map(({ identity, generation }) => [identity, generation])).toEqual([
      ['r2', 1],
      ['r3', 1],
    ]);
  });

  test('[PM8 F164 I19] a sweep in the very instant of a start does not take what this run just began', () => {
    const bench = createWorkbench();
    const first = bench.host('one');
    must(first.issueAndStart(pushOf(['r1'])));
    const second = bench.process('two');
    second.raiseGeneration();
    const begun = must(second.issueAndStart(pushOf(['r2'])));
    // Same wall time, same monotonic time: only the generation tells them apart.
    expect(second.settleEarlierInstances().ended.map(({ queueAgain }) => queueAgain)).toEqual([['r1']]);
    expect(second.permit(begun.permitId)?.state).toBe('gateway-in-flight');
  });

  test('[PM8] expiry leaves out what this process is working on, and takes it when it no longer is', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issueAndStart(pushOf(['r1'])));
    bench.time.monotonicMs += 1_000_000;
    expect(coordinator.expire([permit.permitId]).ended).toEqual([]);
    expect(coordinator.expire([]).ended.map(({ queueAgain }) => queueAgain)).toEqual([['r1']]);
  });

  test('[I19 F11] a host that was outranked without knowing starts nothing, applies nothing and expires nothing', () => {
    const bench = createWorkbench();
    const first = bench.host('one');
    const idle = must(first.issue(pushOf(['r1'])));
    const second = bench.host('two');
    const theirs = must(second.issueAndStart(pushOf(['r2'])));
    bench.time.monotonicMs += 1_000_000;
    const before = bench.dump();
    expect(codeOf(first.issue(pushOf(['r3'])))).toBe('stale-generation');
    expect(codeOf(first.start(idle))).toBe('stale-generation');
    expect(codeOf(first.applyAnswered(theirs, accepted('r2'), () => undefined))).toBe('stale-generation');
    expect(codeOf(first.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1 }))).toBe('stale-generation');
    expect(first.expire([]).ended).toEqual([]);
    expect(bench.dump()).toBe(before);
  });

  test('[F161 I19] an answer that comes after a takeover changes no row', () => {
    for (const answer of [accepted('r1'), { disposition: 'rejected' as const }]) {
      const bench = createWorkbench();
      const first = bench.host('one');
      const permit = must(first.issueAndStart(pushOf(['r1'])));
      bench.host('two');
      const before = bench.dump();
      expect(first.storeAnswer(permit, answer).ok).toBe(false);
      expect(first.applyAnswered(permit, answer, () => expect.fail('applied')).ok).toBe(false);
      expect(first.acknowledge(permit, { answer, withoutEffect: true }).ok).toBe(false);
      expect(first.abandon(permit, { because: 'never-sent' }).ok).toBe(false);
      expect(first.abandon(permit, { because: 'apply-not-committed', ...answer }).ok).toBe(false);
      expect(bench.dump()).toBe(before);
    }
  });

  test('[F162 I19] an old attempt under the same name is another permit: it moves nothing of the new one', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const stalled = must(coordinator.issue(pushOf(['r1'], gateway)));
    must(coordinator.start(stalled));
    bench.time.monotonicMs += 1_000_000;
    coordinator.expire([]);
    const again = must(coordinator.issue(pushOf(['r1'], gateway)));
    must(coordinator.start(again));
    const before = bench.dump();
    expect(codeOf(coordinator.start(stalled))).toBe('permit-state-conflict');
    expect(codeOf(coordinator.storeAnswer(stalled, accepted('r1')))).toBe('permit-state-conflict');
    expect(codeOf(coordinator.acknowledge(stalled, { withoutEffect: true }))).toBe('permit-state-conflict');
    must(coordinator.abandon(stalled, { because: 'abandoned' }));
    expect(bench.dump()).toBe(before);
  });

  test('[F163] a sweep that works from an old list ends nothing twice, and owes nothing twice', () => {
    const bench = createWorkbench();
    const first = bench.host('one');
    const kept = must(first.issueAndStart(pushOf(['r1'])));
    must(first.issueAndStart(pushOf(['r2'])));
    const other = bench.process('one');
    let isSwept = false;
    // As soon as the list is read, another sweep does the whole work.
    const slow = around(bench.database, (run) => {
      const result = run();
      if (Array.isArray(result) && result.length === 2 && !isSwept) {
        isSwept = true;
        other.expire([kept.permitId]);
      }
      return result;
    });
    const swept = bench.process('one', slow).expire([]);
    expect(swept.ended.map(({ queueAgain }) => queueAgain)).toEqual([['r1']]);
    expect(first.obligations.open().map(({ identity, count }) => [identity, count])).toEqual([
      ['r2', 1],
      ['r1', 1],
    ]);
  });

  test('[F170] a permit of another run is refused by the instance, whatever else is right about it', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issue(pushOf(['r1'])));
    const before = bench.dump();
    expect(codeOf(coordinator.start({ ...permit, hostInstance: 'two' }))).toBe('host-instance-mismatch');
    expect(codeOf(coordinator.abandon({ ...permit, hostInstance: 'two' }, { because: 'abandoned' }))).toBe(
      'host-instance-mismatch',
    );
    expect(bench.dump()).toBe(before);
  });
});

describe('transfer', () => {
  test('[OW1] prepare, drain, switch: no new permits, never-started ones abandoned, then a new owner', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const idle = must(coordinator.issue(pushOf(['r1'], gateway)));
    const flying = must(coordinator.issue(pullFrom(at(1), gateway)));
    must(coordinator.start(flying));
    expect(must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 9_000 }))).toMatchObject({
      place: 'to-host-preparing',
      owner: 'browser-gateway',
      generation: 1,
      deadlineMs: 9_000,
    });
    expect(codeOf(coordinator.issue(pullFrom(at(1), gateway)))).toBe('permits-disabled');
    expect(codeOf(coordinator.start(idle))).toBe('permits-disabled');
    expect(codeOf(coordinator.transfer.switch())).toBe('permit-state-conflict');
    const drained = must(coordinator.transfer.drain());
    expect(drained.abandoned.map(({ permit, queueAgain }) => [permit.reason, queueAgain])).toEqual([
      ['drained-not-started', ['r1']],
    ]);
    expect([drained.active, drained.ownership.place]).toEqual([1, 'to-host-draining']);
    expect(codeOf(coordinator.transfer.switch())).toBe('permit-state-conflict');
    must(coordinator.storeAnswer(flying, accepted()));
    must(coordinator.applyGroup({ permits: [flying], boundary: null }, () => null));
    expect(must(coordinator.transfer.drain())).toMatchObject({ active: 0, ownership: { place: 'to-host-switching' } });
    expect(must(coordinator.transfer.switch())).toMatchObject({ place: 'host', generation: 2, deadlineMs: null });
    expect(codeOf(coordinator.issueAndStart(pullFrom(at(2))))).toBe('ok');
    expect(codeOf(coordinator.issue(pullFrom(at(2), { ...gateway, generation: 1 })))).toBe('stale-generation');
    expect(codeOf(coordinator.issue(pullFrom(at(2), gateway)))).toBe('permits-disabled');
  });

  test('[OW1] drain works in bounded batches', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    for (let n = 0; n < 300; n += 1) must(coordinator.issue(pullFrom(at(n))));
    must(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1_000 }));
    const first = must(coordinator.transfer.drain());
    expect([first.abandoned.length, first.active]).toEqual([250, 50]);
    const second = must(coordinator.transfer.drain());
    expect([second.abandoned.length, second.active]).toEqual([50, 0]);
  });

  test('[OW1] in flight while draining: it finishes, or expires into an obligation, and then the switch goes on', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const flying = must(coordinator.issue(pushOf(['r1'], gateway)));
    must(coordinator.start(flying));
    must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 600_000 }));
    expect(must(coordinator.transfer.drain()).active).toBe(1);
    bench.time.monotonicMs += 100_000;
    coordinator.expire([]);
    expect(must(coordinator.transfer.drain()).active).toBe(0);
    must(coordinator.transfer.switch());
    expect(coordinator.obligations.open().map(({ identity }) => identity)).toEqual(['r1']);
  });

  test('[OW1] abort gives it back under the same generation; what was abandoned stays so', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const idle = must(coordinator.issue(pushOf(['r1'], gateway)));
    for (const steps of [0, 1, 2]) {
      must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 1_000 }));
      for (let step = 0; step < steps; step += 1) must(coordinator.transfer.drain());
      expect(must(coordinator.transfer.abort())).toMatchObject({ place: 'browser-gateway', generation: 1 });
    }
    expect(coordinator.permit(idle.permitId)?.state).toBe('abandoned-clean');
    expect(codeOf(coordinator.issue(pullFrom(at(1), gateway)))).toBe('ok');
    expect(must(coordinator.transfer.abort()).place).toBe('browser-gateway');
  });

  test('[OW1] force waits for the deadline, then ends what is active and switches', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const idle = must(coordinator.issue(pushOf(['r1'], gateway)));
    const flying = must(coordinator.issue(pushOf(['r2'], gateway)));
    must(coordinator.start(flying));
    expect(codeOf(coordinator.transfer.force())).toBe('permit-state-conflict');
    must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 5_000 }));
    bench.time.monotonicMs += 4_999;
    // Asking again goes on with the transfer; it does not begin the time anew.
    must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 5_000 }));
    const before = bench.dump();
    expect(codeOf(coordinator.transfer.force())).toBe('permit-state-conflict');
    expect(bench.dump()).toBe(before);
    bench.time.monotonicMs += 1;
    const forced = must(coordinator.transfer.force());
    expect(forced.ownership).toMatchObject({ place: 'host', generation: 2 });
    expect(forced.overtaken.ended.map(({ permit }) => [permit.permitId, permit.state, permit.reason])).toEqual([
      [idle.permitId, 'abandoned-clean', 'forced-switch'],
      [flying.permitId, 'abandoned-reconcile-required', 'forced-switch'],
    ]);
    const after = bench.dump();
    expect(codeOf(coordinator.storeAnswer(flying, accepted('r2')))).toBe('permit-state-conflict');
    expect(codeOf(coordinator.start(idle))).toBe('stale-generation');
    expect(bench.dump()).toBe(after);
  });

  test('[OW1 F168] a host that is killed in the middle of a transfer goes on with it; nobody waits for the dead', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const first = bench.host('one');
    const flying = must(first.issue(pushOf(['r1'], gateway)));
    must(first.start(flying));
    must(first.transfer.prepare({ target: 'host', deadlineMs: 600_000 }));
    must(first.transfer.drain());
    const second = bench.host('two');
    expect(second.transfer.current()).toMatchObject({ place: 'to-host-draining', generation: 2 });
    expect(codeOf(second.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1 }))).toBe('permit-state-conflict');
    expect(must(second.transfer.prepare({ target: 'host', deadlineMs: 1 })).deadlineMs).toBe(600_000);
    expect(must(second.transfer.drain()).active).toBe(0);
    expect(must(second.transfer.switch())).toMatchObject({ place: 'host', generation: 3 });
    expect(second.obligations.open().map(({ identity }) => identity)).toEqual(['r1']);
  });

  test('[OW1] a claim of another generation moves nothing', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const before = bench.dump();
    expect(codeOf(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1, generation: 0 }))).toBe(
      'stale-generation',
    );
    expect(bench.dump()).toBe(before);
    must(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1, generation: 1 }));
    const prepared = bench.dump();
    for (const step of ['drain', 'switch', 'abort', 'force'] as const)
      expect(coordinator.transfer[step]({ generation: 2 })).toMatchObject({ fault: { code: 'stale-generation' } });
    expect(bench.dump()).toBe(prepared);
  });

  test('[OW2 I23] over every order of transfers and restarts, at most one owner may start, and generations grow', () => {
    const steps = ['to-host', 'to-browser', 'drain', 'switch', 'abort', 'force', 'restart'] as const;
    const places = new Set<string>();
    const search = (bench: Workbench): void => {
      const undone = <T>(work: () => T): T => {
        bench.database.exec('SAVEPOINT branch');
        try {
          return work();
        } finally {
          bench.database.exec('ROLLBACK TO branch; RELEASE branch');
        }
      };
      const visit = (coordinator: Coordinator, depth: number): void => {
        const { generation, owner, place } = coordinator.transfer.current();
        places.add(place);
        expect(startersOf(coordinator, undone).length).toBeLessThanOrEqual(1);
        if (depth === 0) return;
        for (const step of steps)
          undone(() => {
            bench.time.monotonicMs += 10;
            const next = step === 'restart' ? restarted(bench, `run-${depth}`) : coordinator;
            if (step === 'to-host') next.transfer.prepare({ target: 'host', deadlineMs: 5 });
            else if (step === 'to-browser') next.transfer.prepare({ target: 'browser-gateway', deadlineMs: 5 });
            else if (step !== 'restart') next.transfer[step]();
            const now = next.transfer.current();
            expect(now.generation).toBeGreaterThanOrEqual(generation);
            if (now.owner !== owner) expect(now.generation).toBeGreaterThan(generation);
            visit(next, depth - 1);
          });
      };
      const first = bench.host('run');
      // Something in flight, so that a drain takes until it is settled.
      must(first.start(must(first.issue(pullFrom(null, { ownerMode: first.transfer.current().owner })))));
      visit(first, 4);
    };
    search(createWorkbench());
    search(createWorkbench({ mode: 'browser-gateway' }));
    expect(places.size).toBe(8);
  });
});

function restarted(bench: Workbench, instance: string): Coordinator {
  const coordinator = bench.process(instance);
  coordinator.raiseGeneration();
  coordinator.settleEarlierInstances();
  return coordinator;
}

const startersOf = (coordinator: Coordinator, undone: <T>(work: () => T) => T): readonly string[] =>
  (['host', 'browser-gateway'] as const).filter((ownerMode) =>
    undone(() => {
      const issued = coordinator.issue(pullFrom(null, { ownerMode }));
      return issued.ok && coordinator.start(issued.value).ok;
    }),
  );
