import { describe, expect, test } from 'vitest';
import {
  accepted,
  at,
  codeOf,
  createWorkbench,
  must,
  pullFrom,
  pushOf,
  type Workbench,
  writeLocalCommitEntered,
} from './coordinator.fixture.ts';
import type { Coordinator } from './coordinator.ts';
import { movePermit, type Permit, viewPermit, WHOLE_WORKSPACE } from './coordinator-permit.ts';

const gateway = { ownerMode: 'browser-gateway' as const };

/** A permit in each row of PM6, of an owner for whom every step is a transaction of its own. */
const ROWS = [
  'issued-idle',
  'gateway-in-flight',
  'awaiting-rejected',
  'awaiting-accepted',
  'awaiting-unknown',
  'local-commit-entered',
  'released',
  'abandoned-clean',
  'abandoned-reconcile-required',
] as const;
type Row = (typeof ROWS)[number];

function permitIn(row: Row, operations: readonly string[] = ['r1', 'r2']) {
  const bench = createWorkbench({ mode: 'browser-gateway' });
  const coordinator = bench.host('one');
  let permit = must(coordinator.issue(pushOf(operations, gateway)));
  const step = (next: Permit): void => {
    permit = next;
  };
  if (row === 'abandoned-clean') step(must(coordinator.abandon(permit, { because: 'abandoned' })).permit);
  else if (row !== 'issued-idle') step(must(coordinator.start(permit)));
  if (row === 'awaiting-rejected') step(must(coordinator.storeAnswer(permit, { disposition: 'rejected' })));
  if (row === 'awaiting-unknown' || row === 'abandoned-reconcile-required')
    step(must(coordinator.storeAnswer(permit, { disposition: 'unknown' })));
  if (row === 'awaiting-accepted' || row === 'released' || row === 'local-commit-entered')
    step(must(coordinator.storeAnswer(permit, accepted(...operations))));
  if (row === 'abandoned-reconcile-required') step(must(coordinator.abandon(permit, { because: 'abandoned' })).permit);
  if (row === 'released') must(coordinator.acknowledge(permit, { withoutEffect: true }));
  if (row === 'local-commit-entered') writeLocalCommitEntered(bench, permit);
  return { bench, coordinator, permit };
}

const stateOf = (bench: Workbench): string => {
  const [row] = bench.rows('hf_permit');
  return `${row?.['state']} ${row?.['disposition']} ${row?.['reason'] ?? '-'}`;
};
const openOf = (coordinator: Coordinator): string[] =>
  coordinator.obligations.open().map((one) => `${one.identity} ${one.disposition} ${one.reason}`);

describe('issue', () => {
  test('[PM1] a permit records what it was issued for, and permits of a generation are numbered', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const first = must(coordinator.issue(pushOf(['r1', 'r2'], { deadlineMs: 4_000 })));
    const second = must(coordinator.issue(pullFrom(at(5))));
    expect([first.number, second.number, first.generation]).toEqual([1, 2, 1]);
    expect(coordinator.permit(first.permitId)).toEqual(first);
    expect(first).toMatchObject({
      log: 'main',
      hostInstance: 'one',
      ownerMode: 'host',
      class: 'push',
      boundary: at(5),
      operations: ['r1', 'r2'],
      state: 'issued-idle',
      disposition: 'not-started',
      issuedAt: '2026-11-30T00:00:00.000Z',
      dueAt: '2026-11-30T00:00:04.000Z',
      endedAt: null,
    });
    const next = bench.host('two');
    expect(must(next.issue(pullFrom(at(5))))).toMatchObject({ generation: 2, number: 1 });
  });

  test('[PM1] re-issue with the same id and input returns the permit as it now is, even ended, and checks nothing', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const request = pushOf(['r1', 'r2'], { permitId: 'mine' });
    const permit = must(coordinator.issueAndStart(request));
    must(coordinator.abandon(permit, { because: 'never-sent' }));
    bench.inactive.add('main');
    const before = bench.dump();
    const again = must(coordinator.issueAndStart({ ...request, operations: ['r2', 'r1'], deadlineMs: -1 }));
    expect(again).toMatchObject({ permitId: 'mine', state: 'abandoned-clean' });
    expect(bench.dump()).toBe(before);
  });

  test('[PM1 F162] the same id for anything else, or by a newer run, is another permit, and refused', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const request = pushOf(['r1'], { permitId: 'mine' });
    must(coordinator.issue(request));
    const before = bench.dump();
    for (const other of [
      { ...request, operations: ['r2'] },
      { ...request, operations: ['r1', 'r2'] },
      { ...request, boundary: at(6) },
      { ...request, log: 'team' },
      pullFrom(at(5), { permitId: 'mine' }),
    ])
      expect(codeOf(coordinator.issue(other))).toBe('permit-identity-conflict');
    expect(bench.dump()).toBe(before);
    expect(codeOf(bench.host('two').issue(request))).toBe('permit-identity-conflict');
  });

  test('[PM1] a command, an owner and a generation are part of what a permit was issued for', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const dispatch = pullFrom(at(1), { class: 'dispatch', commandId: 'c1', permitId: 'mine' });
    must(coordinator.issue(dispatch));
    expect(codeOf(coordinator.issue({ ...dispatch, commandId: 'c2' }))).toBe('permit-identity-conflict');
    expect(codeOf(coordinator.issue({ ...dispatch, ...gateway }))).toBe('permit-identity-conflict');
    must(coordinator.abandon(must(coordinator.issue(dispatch)), { because: 'abandoned' }));
    const there = must(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 0 }));
    must(coordinator.transfer.force({ generation: there.generation }));
    must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 0 }));
    must(coordinator.transfer.force());
    expect(codeOf(coordinator.issue(dispatch))).toBe('permit-identity-conflict');
    expect(codeOf(coordinator.issue({ ...dispatch, generation: 1 }))).toBe('ok');
  });

  test('[PM1] what is about the whole workspace needs no active log', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    bench.inactive.add(WHOLE_WORKSPACE);
    const handshake = { class: 'handshake', log: WHOLE_WORKSPACE } as const;
    expect(codeOf(coordinator.issueAndStart(pullFrom({ main: at(1) }, handshake)))).toBe('ok');
  });

  test('[PM2] at issue each refusal has its code, in the order of the list, and changes nothing', () => {
    const bench = createWorkbench();
    const outranked = bench.host('zero');
    const coordinator = bench.host('one');
    const found = must(coordinator.issueAndStart(pullFrom(at(1), { log: 'main' })));
    must(coordinator.issue(pushOf(['r1'], { permitId: 'taken', log: 'main' })));
    writeLocalCommitEntered(bench, found);
    bench.inactive.add('main');
    must(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1_000 }));
    // Everything is wrong with it; each time the first of what is wrong is mended.
    const request = { ...pushOf(['r2'], { permitId: 'taken', log: 'main' }), deadlineMs: 0, generation: 1 };
    const before = bench.dump();
    expect(codeOf(coordinator.issue(request))).toBe('local-commit-invariant');
    must(coordinator.repairLocalCommit(found.permitId));
    const repaired = bench.dump();
    expect(codeOf(coordinator.issue(request))).toBe('permit-identity-conflict');
    expect(codeOf(coordinator.issue({ ...request, permitId: 'new' }))).toBe('permit-expired');
    expect(codeOf(coordinator.issue({ ...request, permitId: 'new', deadlineMs: 9 }))).toBe('stale-generation');
    const now = { ...request, permitId: 'new', deadlineMs: 9, generation: 2 };
    expect(codeOf(outranked.issue(now))).toBe('stale-generation');
    expect(codeOf(coordinator.issue(now))).toBe('inactive-log');
    bench.inactive.clear();
    expect(codeOf(coordinator.issue(now))).toBe('permits-disabled');
    expect(bench.dump()).toBe(repaired);
    expect(before).not.toBe(repaired);
    must(coordinator.transfer.abort());
    expect(codeOf(coordinator.issue({ ...now, ...gateway }))).toBe('permits-disabled');
    expect(codeOf(coordinator.issue(now))).toBe('ok');
  });

  test('[PM4] a push names its operations, a dispatch its command, no other class anything', () => {
    const coordinator = createWorkbench().host('one');
    for (const wrong of [
      pushOf([]),
      pushOf(['r1', 'r1']),
      pullFrom(null, { operations: ['r1'] }),
      pullFrom(null, { commandId: 'c' }),
      pullFrom(null, { class: 'dispatch' }),
    ])
      expect(() => coordinator.issue(wrong)).toThrow();
    expect(must(coordinator.issue(pullFrom(null, { class: 'dispatch', commandId: 'c1' }))).commandId).toBe('c1');
  });

  test('[PM10] a gateway starts in a transaction of its own; a local apply is never started', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    expect(codeOf(coordinator.issueAndStart(pullFrom(null, gateway)))).toBe('permits-disabled');
    const local = must(coordinator.issue(pullFrom(null, { ...gateway, class: 'local-apply' })));
    expect(codeOf(coordinator.start(local))).toBe('permit-state-conflict');
    const host = createWorkbench().host('one');
    expect(codeOf(host.issueAndStart(pullFrom(null, { class: 'local-apply' })))).toBe('permit-state-conflict');
  });
});

describe('steps', () => {
  test('[PM2] on a permit each refusal has its code, in the order of the list, and changes nothing', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issue(pullFrom(at(1), { deadlineMs: 500 })));
    const other = must(coordinator.issue(pullFrom(at(1))));
    bench.inactive.add('main');
    must(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1_000 }));
    bench.time.monotonicMs += 600;
    const ref = { permitId: 'nobody', log: 'team', generation: 7, hostInstance: 'else' };
    const wrong = bench.dump();
    expect(codeOf(coordinator.start(ref))).toBe('permit-not-found');
    expect(codeOf(coordinator.start({ ...ref, permitId: permit.permitId }))).toBe('host-instance-mismatch');
    const named = { ...ref, permitId: permit.permitId, hostInstance: 'one' };
    expect(codeOf(coordinator.start(named))).toBe('stale-generation');
    expect(codeOf(coordinator.start({ ...named, generation: 1 }))).toBe('inactive-log');
    expect(bench.dump()).toBe(wrong);
    bench.inactive.clear();
    const ended = must(coordinator.abandon(other, { because: 'abandoned' })).permit;
    expect(codeOf(coordinator.start(ended))).toBe('permit-state-conflict');
    const before = bench.dump();
    expect(codeOf(coordinator.start({ ...named, generation: 1 }))).toBe('permits-disabled');
    must(coordinator.transfer.abort());
    expect(codeOf(coordinator.start({ ...named, generation: 1 }))).toBe('permit-expired');
    bench.time.monotonicMs -= 600;
    expect(codeOf(coordinator.start({ ...named, generation: 1 }))).toBe('permit-identity-conflict');
    const found = must(coordinator.issue(pullFrom(at(1))));
    writeLocalCommitEntered(bench, found);
    expect(codeOf(coordinator.start(permit))).toBe('local-commit-invariant');
    expect(bench.rows('hf_permit')[0]).toMatchObject({ state: 'issued-idle', disposition: 'not-started' });
    expect(before).not.toBe(wrong);
  });

  test('[PM2] a stale owner that meets a transfer: an equal generation is disabled, another one stale', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    must(coordinator.transfer.prepare({ target: 'browser-gateway', deadlineMs: 1_000 }));
    expect(codeOf(coordinator.issue(pullFrom(null, { generation: 1 })))).toBe('permits-disabled');
    expect(codeOf(coordinator.issue(pullFrom(null, { generation: 0 })))).toBe('stale-generation');
  });

  test('[PM2] a step already made is returned, whatever else has become wrong since, and changes nothing', () => {
    const { bench, coordinator, permit } = permitIn('gateway-in-flight');
    must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 1_000 }));
    bench.time.monotonicMs += 1_000_000;
    const before = bench.dump();
    expect(must(coordinator.start({ ...permit, log: 'other' })).state).toBe('gateway-in-flight');
    expect(bench.dump()).toBe(before);
    must(coordinator.storeAnswer(permit, accepted('r1', 'r2')));
    const answered = bench.dump();
    must(coordinator.storeAnswer(permit, accepted('r1', 'r2')));
    must(coordinator.start(permit));
    expect(bench.dump()).toBe(answered);
    expect(codeOf(coordinator.storeAnswer(permit, { disposition: 'rejected' }))).toBe('permit-state-conflict');
    expect(bench.dump()).toBe(answered);
  });

  test('[PM2 F163] a write from an old reading changes no row', () => {
    const { bench, coordinator, permit } = permitIn('gateway-in-flight');
    const { stored } = viewPermit(bench.database, permit.permitId, 'main');
    must(coordinator.storeAnswer(permit, accepted('r1', 'r2')));
    const before = bench.dump();
    const late = { state: 'gateway-complete-awaiting-apply', disposition: 'rejected' } as const;
    expect(stored && movePermit(bench.database, stored, late, { instant: 'now', isEnd: false })).toBeNull();
    expect(bench.dump()).toBe(before);
  });

  test('[PM3] starting makes the outcome unknown in the same write', () => {
    const { bench } = permitIn('gateway-in-flight');
    expect(stateOf(bench)).toBe('gateway-in-flight unknown -');
  });

  test('[PM3] an owner that drains, is late, or whose log was left can still record what it learned', () => {
    const { bench, coordinator, permit } = permitIn('gateway-in-flight');
    bench.inactive.add('main');
    bench.time.monotonicMs += 1_000_000;
    must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 1_000 }));
    must(coordinator.storeAnswer(permit, accepted('r1', 'r2')));
    expect(stateOf(bench)).toBe('gateway-complete-awaiting-apply accepted -');
    must(coordinator.acknowledge(permit, { withoutEffect: true }));
    expect(stateOf(bench)).toBe('released accepted -');
  });

  test('[PM4] an answer that does not name every operation exactly once is no answer', () => {
    const { bench, coordinator, permit } = permitIn('gateway-in-flight');
    const before = bench.dump();
    for (const outcomes of [accepted(), accepted('r1'), accepted('r1', 'r1'), accepted('r1', 'r2', 'r3')])
      expect(codeOf(coordinator.storeAnswer(permit, outcomes))).toBe('permit-identity-conflict');
    expect(codeOf(coordinator.storeAnswer(permit, accepted('r1', 'x')))).toBe('permit-identity-conflict');
    expect(bench.dump()).toBe(before);
    must(coordinator.storeAnswer(permit, accepted('r2', 'r1')));
    expect(bench.rows('hf_permit_operation').map((row) => row['outcome'])).toEqual([
      '{"status":"accepted"}',
      '{"status":"accepted"}',
    ]);
  });

  test('[PM12] a deadline is a duration: wall clocks may jump, bytes extend it, a named maximum ends it', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issueAndStart(pullFrom(at(1), { deadlineMs: 10_000 })));
    bench.time.wallMs += 365 * 86_400_000;
    expect(coordinator.expire([]).ended).toEqual([]);
    for (let at = 0; at < 29; at += 1) {
      bench.time.monotonicMs += 10_000;
      coordinator.bytesArrived(permit.permitId);
      expect(coordinator.expire([]).ended).toEqual([]);
    }
    // 290 s: whatever still arrives, 300 s are the end.
    bench.time.monotonicMs += 9_000;
    coordinator.bytesArrived(permit.permitId);
    bench.time.monotonicMs += 1_000;
    expect(coordinator.expire([]).ended).toEqual([]);
    bench.time.monotonicMs += 1;
    expect(coordinator.expire([]).ended.map(({ permit: { reason } }) => reason)).toEqual(['expired']);
  });

  test('[PM12] no deadline is longer than the named maximum, and one that is forgotten is over', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const long = must(coordinator.issueAndStart(pullFrom(at(1), { deadlineMs: 86_400_000 })));
    expect(long.dueAt).toBe('2026-11-30T00:05:00.000Z');
    bench.time.monotonicMs += 300_000;
    expect(coordinator.expire([]).ended).toEqual([]);
    bench.time.monotonicMs += 1;
    expect(coordinator.expire([]).ended).toHaveLength(1);
    for (let n = 0; n < 1_001; n += 1) must(coordinator.issue(pullFrom(at(n))));
    expect(coordinator.expire([]).ended.map(({ permit }) => permit.boundary)).toEqual([at(0)]);
  });

  test('[PM12 F165] a deadline ends a silent permit; an answer that came in time but was read late is applied', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issueAndStart(pushOf(['r1'], { deadlineMs: 1_000 })));
    bench.time.monotonicMs += 5_000;
    expect(must(coordinator.applyAnswered(permit, accepted('r1'), () => 'applied')).result).toBe('applied');
  });

  test('[PM13] what this code cannot read counts as the careful one: it may have left, and ends as owed', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    must(coordinator.issueAndStart(pushOf(['r1'])));
    bench.database.exec(`UPDATE hf_permit SET state = 'teleported', disposition = 'perhaps', class = 'gossip',
      owner_mode = 'cloud', boundary = '{broken'`);
    expect(coordinator.inspect().permits[0]).toMatchObject({
      state: 'gateway-in-flight',
      disposition: 'unknown',
      class: 'push',
      boundary: undefined,
    });
    bench.host('two');
    expect(openOf(coordinator)).toEqual(['r1 unknown host-restarted']);
  });
});

describe('what ends a permit', () => {
  /** The table of PM6: state, disposition and reason afterwards, and what is owed. `refused` and `same` change nothing. */
  const OWED = (how: string, reason: string): string[] => [
    `abandoned-reconcile-required ${how} ${reason}`,
    `r1 ${how} ${reason}`,
    `r2 ${how} ${reason}`,
  ];
  const TABLE: Record<Row, { release: string[] | string; abandon: string[] | string; overtaken: string[] | string }> = {
    'issued-idle': {
      release: ['released not-started -'],
      abandon: ['abandoned-clean not-started abandoned'],
      overtaken: ['abandoned-clean not-started REASON'],
    },
    'gateway-in-flight': { release: 'refused', abandon: 'refused', overtaken: OWED('unknown', 'REASON') },
    'awaiting-rejected': {
      release: ['released rejected -'],
      abandon: ['abandoned-clean rejected abandoned'],
      overtaken: ['abandoned-clean rejected REASON'],
    },
    'awaiting-accepted': {
      release: 'refused',
      abandon: OWED('accepted', 'abandoned'),
      overtaken: OWED('accepted', 'REASON'),
    },
    'awaiting-unknown': {
      release: 'refused',
      abandon: OWED('unknown', 'abandoned'),
      overtaken: OWED('unknown', 'REASON'),
    },
    'local-commit-entered': { release: 'refused', abandon: 'refused', overtaken: 'same' },
    released: { release: 'same', abandon: 'same', overtaken: 'same' },
    'abandoned-clean': { release: 'refused', abandon: 'same', overtaken: 'same' },
    'abandoned-reconcile-required': { release: 'refused', abandon: 'same', overtaken: 'same' },
  };

  const after = (bench: Workbench, coordinator: Coordinator): string[] => [stateOf(bench), ...openOf(coordinator)];

  function expectCell(
    cell: string[] | string,
    seen: { before: string; after: string; code: string; rows: string[] },
  ): void {
    if (typeof cell === 'string') {
      expect(seen.after).toBe(seen.before);
      expect(seen.code).toBe(cell === 'refused' ? 'permit-state-conflict' : 'ok');
    } else {
      expect(seen.code).toBe('ok');
      expect(seen.rows).toEqual(cell);
    }
  }

  test.each(ROWS)('[PM6] release of a permit that is %s', (row) => {
    const { bench, coordinator, permit } = permitIn(row);
    const before = bench.dump();
    const code = codeOf(coordinator.acknowledge(permit));
    expectCell(TABLE[row].release, { before, after: bench.dump(), code, rows: after(bench, coordinator) });
  });

  test.each(ROWS)('[PM6] abandoning a permit that is %s', (row) => {
    const { bench, coordinator, permit } = permitIn(row);
    const before = bench.dump();
    const code = codeOf(coordinator.abandon(permit, { because: 'abandoned' }));
    expectCell(TABLE[row].abandon, { before, after: bench.dump(), code, rows: after(bench, coordinator) });
  });

  const OVERTAKERS = [
    [
      'expired',
      (bench: Workbench, coordinator: Coordinator) => {
        bench.time.monotonicMs += 1_000_000;
        return coordinator.expire([]);
      },
    ],
    [
      'host-restarted',
      (bench: Workbench) => {
        const next = bench.process('two');
        next.raiseGeneration();
        return next.settleEarlierInstances();
      },
    ],
    [
      'forced-switch',
      (bench: Workbench, coordinator: Coordinator) => {
        must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 1_000 }));
        bench.time.monotonicMs += 1_001;
        return must(coordinator.transfer.force()).overtaken;
      },
    ],
  ] as const;

  test.each(OVERTAKERS.flatMap(([reason, run]) => ROWS.map((row) => [reason, row, run] as const)))(
    '[PM6 F160] %s for a permit that is %s',
    (reason, row, run) => {
      const { bench, coordinator } = permitIn(row);
      const before = JSON.stringify([bench.rows('hf_permit'), bench.rows('hf_obligation')]);
      const { ended, untouched } = run(bench, coordinator);
      const cell = TABLE[row].overtaken;
      const expected = typeof cell === 'string' ? cell : cell.map((text) => text.replace('REASON', reason));
      const now = JSON.stringify([bench.rows('hf_permit'), bench.rows('hf_obligation')]);
      expectCell(expected, { before, after: now, code: 'ok', rows: after(bench, coordinator) });
      expect(ended.map(({ queueAgain }) => queueAgain)).toEqual(typeof cell === 'string' ? [] : [['r1', 'r2']]);
      expect(untouched.map(({ state }) => state)).toEqual(row === 'local-commit-entered' ? [row] : []);
    },
  );

  test('[PM6] the transport proves that no byte left: clean, and nothing is owed', () => {
    const { bench, coordinator, permit } = permitIn('gateway-in-flight');
    const ended = must(coordinator.abandon(permit, { because: 'never-sent' }));
    expect(after(bench, coordinator)).toEqual(['abandoned-clean unknown never-sent']);
    expect(ended.queueAgain).toEqual(['r1', 'r2']);
    for (const row of ROWS.filter((one) => one.startsWith('awaiting') || one.startsWith('local')))
      expect(codeOf(permitIn(row).coordinator.abandon(permit, { because: 'never-sent' }))).not.toBe('ok');
  });

  test('[PM6 PM5] accepted is released without apply for a handshake, and for a push without effect', () => {
    const push = permitIn('awaiting-accepted');
    must(push.coordinator.acknowledge(push.permit, { withoutEffect: true }));
    expect(stateOf(push.bench)).toBe('released accepted -');
    for (const operationClass of ['handshake', 'pull', 'bootstrap', 'repair', 'dispatch'] as const) {
      const bench = createWorkbench();
      const coordinator = bench.host('one');
      const command = operationClass === 'dispatch' ? { commandId: 'c1' } : {};
      const permit = must(coordinator.issueAndStart(pullFrom(at(1), { class: operationClass, ...command })));
      const code = codeOf(coordinator.acknowledge(permit, { answer: accepted(), withoutEffect: true }));
      expect([operationClass, code]).toEqual([
        operationClass,
        operationClass === 'handshake' ? 'ok' : 'permit-state-conflict',
      ]);
    }
  });

  test('[PM6] no answer in mode host: unknown and owed, with the reason that the owner gives', () => {
    for (const reason of ['abandoned', 'expired'] as const) {
      const bench = createWorkbench();
      const coordinator = bench.host('one');
      const permit = must(coordinator.issueAndStart(pushOf(['r1'])));
      const ended = must(coordinator.abandon(permit, { because: 'no-answer', reason }));
      expect(ended.queueAgain).toEqual(['r1']);
      expect(after(bench, coordinator)).toEqual([
        `abandoned-reconcile-required unknown ${reason}`,
        `r1 unknown ${reason}`,
      ]);
      const before = bench.dump();
      expect(must(coordinator.abandon(permit, { because: 'no-answer', reason })).queueAgain).toEqual([]);
      expect(bench.dump()).toBe(before);
    }
  });

  test('[F160 PM10] a found local commit blocks its log only, until a person lets it be repaired', () => {
    const { bench, coordinator, permit } = permitIn('local-commit-entered');
    expect(codeOf(coordinator.issue(pullFrom(at(1), gateway)))).toBe('local-commit-invariant');
    expect(codeOf(coordinator.issue(pullFrom(at(1), { ...gateway, log: 'team' })))).toBe('ok');
    expect(coordinator.foundLocalCommits().map(({ permitId }) => permitId)).toEqual([permit.permitId]);
    const next = bench.host('two');
    expect(next.inspect().foundLocalCommits).toHaveLength(1);
    expect(must(next.repairLocalCommit(permit.permitId)).queueAgain).toEqual(['r1', 'r2']);
    expect(openOf(next)).toEqual(['r1 accepted abandoned', 'r2 accepted abandoned']);
    expect(codeOf(next.issue(pullFrom(at(1), gateway)))).toBe('ok');
    expect(codeOf(next.repairLocalCommit(permit.permitId))).toBe('permit-state-conflict');
    expect(codeOf(next.repairLocalCommit('nobody'))).toBe('permit-not-found');
  });
});
