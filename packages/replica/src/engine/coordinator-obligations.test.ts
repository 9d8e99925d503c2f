import type { Json } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { accepted, at, codeOf, createWorkbench, must, pullFrom, pushOf } from './coordinator.fixture.ts';
import type { Coordinator } from './coordinator.ts';
import type { PermitRequest } from './coordinator-issue.ts';
import { WHOLE_WORKSPACE } from './coordinator-permit.ts';

/** A request whose outcome nobody knows. */
function lose(coordinator: Coordinator, request: PermitRequest, reason: 'abandoned' | 'expired' = 'abandoned'): void {
  const permit = must(coordinator.issueAndStart(request));
  must(coordinator.abandon(permit, { because: 'no-answer', reason }));
}

/** A request that is answered and applied. */
function complete(coordinator: Coordinator, request: PermitRequest, work: () => unknown = () => undefined): number {
  const permit = must(coordinator.issueAndStart(request));
  return must(coordinator.applyAnswered(permit, accepted(...(request.operations ?? [])), work)).settled;
}

const handshake = (boundary: Json): PermitRequest => pullFrom(boundary, { class: 'handshake', log: WHOLE_WORKSPACE });
const open = (coordinator: Coordinator) => coordinator.obligations.open();

describe('opening', () => {
  test('[PM7 I21] a push owes one replay per operation, everything else one refetch', () => {
    const coordinator = createWorkbench().host('one');
    lose(coordinator, pushOf(['r1', 'r2']));
    lose(coordinator, pullFrom(at(4)));
    lose(coordinator, pullFrom(null, { class: 'dispatch', commandId: 'c1' }));
    expect(open(coordinator)).toMatchObject([
      { class: 'push', identity: 'r1', action: 'replay-operation-then-reconcile', boundary: at(5), count: 1 },
      { class: 'push', identity: 'r2', action: 'replay-operation-then-reconcile', disposition: 'unknown' },
      { class: 'pull', identity: '', action: 'refetch-from-committed-cursor', boundary: at(4), log: 'main' },
      { class: 'dispatch', identity: 'c1', action: 'replay-operation-then-reconcile', boundary: null },
    ]);
    expect(coordinator.obligations.forOperations(['r2', 'c1', 'x', '']).map(({ identity }) => identity)).toEqual([
      'r2',
      'c1',
    ]);
    expect(coordinator.obligations.open({ log: 'team' })).toEqual([]);
    expect(coordinator.obligations.open({ limit: 2 })).toHaveLength(2);
  });

  test('[PM7] equal open ones stay one, with a count and the last time; a closed one is not opened again', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    lose(coordinator, pullFrom(at(4)));
    bench.time.wallMs += 5_000;
    lose(coordinator, pullFrom(at(4)));
    lose(coordinator, pullFrom(at(5)));
    lose(coordinator, pullFrom(at(5), { log: 'team' }));
    lose(coordinator, pullFrom(at(5)), 'expired');
    lose(coordinator, pullFrom(null));
    lose(coordinator, pullFrom(null));
    expect(open(coordinator).map((one) => [one.log, one.boundary, one.reason, one.count])).toEqual([
      ['main', at(4), 'abandoned', 2],
      ['main', at(5), 'abandoned', 1],
      ['team', at(5), 'abandoned', 1],
      ['main', at(5), 'expired', 1],
      ['main', null, 'abandoned', 2],
    ]);
    expect(open(coordinator)[0]).toMatchObject({
      createdAt: '2026-11-30T00:00:00.000Z',
      lastAt: '2026-11-30T00:00:05.000Z',
    });
    complete(coordinator, pullFrom(at(9)));
    lose(coordinator, pullFrom(at(9)));
    expect(open(coordinator).map(({ log, count }) => [log, count])).toEqual([
      ['team', 1],
      ['main', 1],
    ]);
  });
});

describe('closing', () => {
  test('[PM7] the result of a replay closes it, in whatever group it was sent', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    lose(coordinator, pushOf(['r1', 'r2', 'r3']));
    const replay = must(coordinator.issueAndStart(pushOf(['r3', 'r1'], { boundary: at(8) })));
    const outcomes = [
      { requestId: 'r1', outcome: { status: 'accepted', firstVersion: 6 } },
      { requestId: 'r3', outcome: { status: 'refused', code: 'version-conflict' } },
    ];
    must(coordinator.applyAnswered(replay, { disposition: 'accepted', outcomes }, () => undefined));
    expect(open(coordinator).map(({ identity }) => identity)).toEqual(['r2']);
    expect(bench.rows('hf_obligation').map((row) => row['evidence'])).toEqual([
      `{"kind":"replay-result","outcome":{"firstVersion":6,"status":"accepted"},"permit":"${replay.permitId}"}`,
      null,
      `{"kind":"replay-result","outcome":{"code":"version-conflict","status":"refused"},"permit":"${replay.permitId}"}`,
    ]);
  });

  test('[PM7] own events that pass ingest close it; a replay that comes after them changes nothing', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    lose(coordinator, pushOf(['r1', 'r2']));
    const pull = must(coordinator.issueAndStart(pullFrom(at(5))));
    must(
      coordinator.applyAnswered(pull, accepted(), () =>
        coordinator.settleByConfirmed([
          { requestId: 'r1', version: 6 },
          { requestId: 'other', version: 7 },
        ]),
      ),
    );
    expect(open(coordinator).map(({ identity }) => identity)).toEqual(['r2']);
    expect(complete(coordinator, pushOf(['r1', 'r2']))).toBe(1);
    expect(bench.rows('hf_obligation')[0]?.['evidence']).toBe('{"kind":"confirmed","version":6}');
    expect(coordinator.settleByConfirmed([{ requestId: 'r1', version: 6 }])).toBe(0);
  });

  test('[PM7 F171] a request that was refused as a whole answers nothing, and closes nothing', () => {
    const coordinator = createWorkbench().host('one');
    lose(coordinator, pushOf(['r1']));
    const replay = must(coordinator.issueAndStart(pushOf(['r1'])));
    must(coordinator.applyAnswered(replay, { disposition: 'rejected' }, () => undefined));
    lose(coordinator, pullFrom(at(5)));
    const pull = must(coordinator.issueAndStart(pullFrom(at(5))));
    must(coordinator.applyAnswered(pull, { disposition: 'rejected' }, () => undefined));
    lose(coordinator, handshake(null));
    const shake = must(coordinator.issueAndStart(handshake(null)));
    must(coordinator.acknowledge(shake, { answer: { disposition: 'rejected' } }));
    must(coordinator.acknowledge(must(coordinator.issue(handshake(null)))));
    expect(open(coordinator)).toHaveLength(3);
  });

  test('[PM7] a push without effect is acknowledged, and settles alike', () => {
    const coordinator = createWorkbench().host('one');
    lose(coordinator, pushOf(['r1']));
    const replay = must(coordinator.issueAndStart(pushOf(['r1'])));
    must(coordinator.acknowledge(replay, { answer: accepted('r1'), withoutEffect: true }));
    expect(open(coordinator)).toEqual([]);
  });

  test('[PM7] a dispatch closes by the result of its replay', () => {
    const coordinator = createWorkbench().host('one');
    const dispatch = pullFrom(at(1), { class: 'dispatch', commandId: 'c1' });
    lose(coordinator, dispatch);
    complete(coordinator, { ...dispatch, commandId: 'c2' });
    complete(coordinator, pushOf(['c1']));
    expect(open(coordinator)).toHaveLength(1);
    complete(coordinator, dispatch);
    expect(open(coordinator)).toEqual([]);
  });

  test('[PM7] a completed request closes those of its class and log, at its boundary or behind it', () => {
    const coordinator = createWorkbench().host('one');
    for (const boundary of [null, at(3), at(5), at(6), { ...at(5), chain: 'another' }])
      lose(coordinator, pullFrom(boundary));
    lose(coordinator, pullFrom(at(3), { log: 'team' }));
    lose(coordinator, pullFrom(at(3), { class: 'bootstrap' }));
    lose(coordinator, handshake({ main: at(3) }));
    expect(complete(coordinator, pullFrom(at(5)))).toBe(3);
    expect(open(coordinator).map(({ class: one, log, boundary }) => [one, log, boundary])).toEqual([
      ['pull', 'main', at(6)],
      ['pull', 'main', { ...at(5), chain: 'another' }],
      ['pull', 'team', at(3)],
      ['bootstrap', 'main', at(3)],
      ['handshake', WHOLE_WORKSPACE, { main: at(3) }],
    ]);
    const shaken = must(coordinator.issueAndStart(handshake({ main: at(5), team: at(1) })));
    must(coordinator.acknowledge(shaken, { answer: accepted() }));
    expect(open(coordinator).map(({ class: one }) => one)).not.toContain('handshake');
  });

  test('[PM7] never one of a later generation', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const first = bench.host('one');
    const gateway = { ownerMode: 'browser-gateway' as const, class: 'handshake' as const };
    const permit = must(first.issue(pullFrom(at(5), gateway)));
    must(first.start(permit));
    must(first.storeAnswer(permit, accepted()));
    // A generation that forgot to settle what came before: the answer is late, and may be acknowledged (PM3).
    const lost = must(first.issue(pullFrom(at(5), gateway)));
    must(first.start(lost));
    must(first.abandon(lost, { because: 'no-answer', reason: 'abandoned' }));
    const second = bench.process('two');
    second.raiseGeneration();
    const later = must(second.issue(pullFrom(at(5), gateway)));
    must(second.start(later));
    must(second.abandon(later, { because: 'no-answer', reason: 'abandoned' }));
    expect(must(first.acknowledge(permit)).settled).toBe(0);
    // The later one is equal to an earlier one: together they are of the later generation.
    expect(second.obligations.open().map(({ count, generation }) => [count, generation])).toEqual([[2, 2]]);
  });

  test('[PM7 PM13] a boundary of a form that cannot be compared closes with its equal', () => {
    const coordinator = createWorkbench().host('one');
    lose(coordinator, pullFrom('somewhere'));
    lose(coordinator, pullFrom({ b: [1], a: 2 }));
    complete(coordinator, pullFrom({ b: [2], a: 2 }));
    expect(open(coordinator)).toHaveLength(2);
    complete(coordinator, pullFrom({ a: 2, b: [1] }));
    complete(coordinator, pullFrom('somewhere'));
    expect(open(coordinator)).toEqual([]);
  });

  test('[PM7] a group of mixed classes closes no refetch', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const answered = (request: PermitRequest) => {
      const permit = must(coordinator.issue({ ...request, ownerMode: 'browser-gateway' }));
      must(coordinator.start(permit));
      return must(coordinator.storeAnswer(permit, accepted(...(request.operations ?? []))));
    };
    const lost = must(coordinator.issue(pullFrom(at(5), { ownerMode: 'browser-gateway' })));
    must(coordinator.start(lost));
    must(coordinator.abandon(lost, { because: 'no-answer', reason: 'abandoned' }));
    const mixed = [answered(pullFrom(at(5))), answered(pullFrom(at(5), { class: 'bootstrap' }))];
    expect(must(coordinator.applyGroup({ permits: mixed, boundary: null }, () => null)).settled).toBe(0);
    const pulls = [answered(pullFrom(at(5))), answered(pullFrom(at(5)))];
    expect(must(coordinator.applyGroup({ permits: pulls, boundary: null }, () => null)).settled).toBe(1);
  });

  test('[PM7] closing again with other evidence is refused, with the same it changes nothing', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    lose(coordinator, pushOf(['r1', 'r2']));
    const [one, two] = open(coordinator).map(({ id }) => id) as [number, number];
    const evidence = { kind: 'accepted-there', version: 9, acceptedUnder: 'r0' };
    expect(must(coordinator.obligations.close([one], evidence)).closed).toBe(1);
    const before = bench.dump();
    bench.time.wallMs += 1;
    expect(
      must(coordinator.obligations.close([one], { acceptedUnder: 'r0', version: 9, kind: 'accepted-there' })),
    ).toEqual({ closed: 0 });
    expect(codeOf(coordinator.obligations.close([two, one], { kind: 'confirmed', version: 9 }))).toBe(
      'permit-state-conflict',
    );
    expect(codeOf(coordinator.obligations.close([two, 999], evidence))).toBe('not-found');
    expect(bench.dump()).toBe(before);
    expect(bench.rows('hf_obligation')[0]?.['evidence']).toBe(
      '{"acceptedUnder":"r0","kind":"accepted-there","version":9}',
    );
    expect(must(coordinator.obligations.close([two, one, two], evidence)).closed).toBe(1);
  });

  test('[PM5 PM7] an apply that is undone closes nothing', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    lose(coordinator, pushOf(['r1']));
    const replay = must(coordinator.issueAndStart(pushOf(['r1'])));
    coordinator.applyAnsweredOrAbandon(
      bench.transaction,
      { permit: replay, answer: accepted('r1'), queueAgain: () => undefined },
      () => {
        throw new Error('no room');
      },
    );
    expect(open(coordinator).map(({ disposition, reason }) => [disposition, reason])).toEqual([
      ['unknown', 'abandoned'],
      ['accepted', 'apply-not-committed'],
    ]);
    complete(coordinator, pushOf(['r1']));
    expect(open(coordinator)).toEqual([]);
  });
});

describe('repair', () => {
  function owingBench() {
    const bench = createWorkbench();
    const first = bench.host('one');
    lose(first, pullFrom(at(9)));
    lose(first, pullFrom(at(3), { class: 'bootstrap' }));
    lose(first, pushOf(['r1']));
    lose(first, pullFrom(at(3), { log: 'team' }));
    const coordinator = bench.host('two');
    const repair = must(coordinator.issueAndStart(pullFrom(at(4), { class: 'repair' })));
    return { bench, coordinator, repair };
  }

  test('[PM9] it settles refetch obligations of its log, of this and earlier generations, and no replay', () => {
    const { coordinator, repair } = owingBench();
    must(
      coordinator.applyAnswered(repair, accepted(), () => {
        expect(must(coordinator.settleByRepair(repair))).toEqual({ closed: 2 });
      }),
    );
    expect(open(coordinator).map(({ class: one, log }) => [one, log])).toEqual([
      ['push', 'main'],
      ['pull', 'team'],
    ]);
  });

  test('[PM9] only by the steady owner, alone, with no open dispatch', () => {
    const { bench, coordinator, repair } = owingBench();
    const before = bench.dump();
    const pull = must(coordinator.issueAndStart(pullFrom(at(4))));
    expect(codeOf(coordinator.settleByRepair(repair))).toBe('permit-state-conflict');
    must(coordinator.applyAnswered(pull, accepted(), () => undefined));
    const elsewhere = must(coordinator.issueAndStart(pullFrom(at(4), { log: 'team' })));
    const shake = must(coordinator.issueAndStart(handshake(null)));
    expect(codeOf(coordinator.settleByRepair(repair))).toBe('permit-state-conflict');
    must(coordinator.acknowledge(shake, { answer: accepted() }));
    must(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 10 }));
    expect(codeOf(coordinator.settleByRepair(repair))).toBe('permits-disabled');
    must(coordinator.transfer.abort());
    lose(coordinator, pullFrom(null, { class: 'dispatch', commandId: 'c1' }));
    expect(codeOf(coordinator.settleByRepair(repair))).toBe('permit-state-conflict');
    complete(coordinator, pullFrom(null, { class: 'dispatch', commandId: 'c1' }));
    expect(must(coordinator.settleByRepair(repair)).closed).toBe(2);
    expect(elsewhere.log).toBe('team');
    expect(before).not.toBe('');
  });

  test('[PM9] not by another class, nor by a repair that never started, ended or belongs to an earlier run', () => {
    const { bench, coordinator, repair } = owingBench();
    must(coordinator.abandon(repair, { because: 'no-answer', reason: 'abandoned' }));
    expect(codeOf(coordinator.settleByRepair(repair))).toBe('permit-state-conflict');
    const idle = must(coordinator.issue(pullFrom(at(4), { class: 'repair' })));
    expect(codeOf(coordinator.settleByRepair(idle))).toBe('permit-state-conflict');
    must(coordinator.abandon(idle, { because: 'abandoned' }));
    const pull = must(coordinator.issueAndStart(pullFrom(at(4))));
    expect(codeOf(coordinator.settleByRepair(pull))).toBe('permit-state-conflict');
    const third = bench.host('three');
    expect(codeOf(third.settleByRepair(repair))).toBe('stale-generation');
    expect(open(third).filter(({ identity }) => identity === '').length).toBeGreaterThan(3);
  });
});
