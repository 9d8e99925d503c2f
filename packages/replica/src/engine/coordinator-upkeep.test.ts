import { LIMITS } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { accepted, at, createWorkbench, must, pullFrom, pushOf, type Workbench } from './coordinator.fixture.ts';
import type { Coordinator } from './coordinator.ts';

const DAY = 86_400_000;
const KEEP = { kept: 3, keptMs: 7 * DAY, batch: 4 };

function completed(coordinator: Coordinator, count: number): void {
  for (let n = 0; n < count; n += 1) {
    const permit = must(coordinator.issueAndStart(pushOf([`r${n}`])));
    must(coordinator.applyAnswered(permit, accepted(`r${n}`), () => undefined));
  }
}

function owed(coordinator: Coordinator, operations: readonly string[]): void {
  for (const operation of operations) {
    const permit = must(coordinator.issueAndStart(pushOf([operation])));
    must(coordinator.abandon(permit, { because: 'no-answer', reason: 'abandoned' }));
  }
}

const numbers = (bench: Workbench): unknown[] => bench.rows('hf_permit').map((row) => row['number']);

describe('retention', () => {
  test('[PM14] the limits are 7 days, 1,000 of each, in batches of 250', () => {
    expect([LIMITS.permitsKeptMs, LIMITS.permitsKept, LIMITS.permitPruneBatch]).toEqual([7 * DAY, 1_000, 250]);
  });

  test('[PM14] ended permits go oldest first, after 7 days, but for the last ones, in batches', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    completed(coordinator, 10);
    bench.time.wallMs += 7 * DAY;
    expect(coordinator.prune(KEEP)).toEqual({ obligations: 0, permits: 0, more: false });
    bench.time.wallMs += 1;
    expect(coordinator.prune(KEEP)).toEqual({ obligations: 0, permits: 4, more: true });
    expect(coordinator.prune(KEEP)).toEqual({ obligations: 0, permits: 3, more: false });
    expect(numbers(bench)).toEqual([8, 9, 10]);
    expect(bench.rows('hf_permit_operation').map((row) => row['request_id'])).toEqual(['r7', 'r8', 'r9']);
    expect(must(coordinator.issue(pullFrom(at(1)))).number).toBe(11);
  });

  test('[PM14] never an open one, nor a permit that an obligation names', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const open = must(coordinator.issueAndStart(pullFrom(at(1))));
    owed(coordinator, ['x']);
    completed(coordinator, 6);
    bench.time.wallMs += 30 * DAY;
    coordinator.prune({ ...KEEP, batch: 100 });
    expect(numbers(bench)).toEqual([1, 2, 6, 7, 8]);
    expect(coordinator.permit(open.permitId)?.state).toBe('gateway-in-flight');
    expect(coordinator.obligations.open()).toHaveLength(1);
  });

  test('[PM14 PM7] an open obligation stays, however old, and however many closed ones came after it', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    owed(coordinator, ['open', 'a', 'b', 'c', 'd', 'e']);
    const closed = coordinator.obligations.open().filter(({ identity }) => identity !== 'open');
    must(
      coordinator.obligations.close(
        closed.map(({ id }) => id),
        { kind: 'test' },
      ),
    );
    bench.time.wallMs += 30 * DAY;
    while (coordinator.prune(KEEP).more);
    expect(coordinator.obligations.open().map(({ identity }) => identity)).toEqual(['open']);
    expect(bench.rows('hf_obligation').map((row) => row['identity'])).toEqual(['open', 'c', 'd', 'e']);
  });

  test('[PM14 PM7] an obligation that was owed again names the newest permit, and the earlier one may go', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    owed(coordinator, ['x', 'x']);
    completed(coordinator, 3);
    bench.time.wallMs += 30 * DAY;
    coordinator.prune(KEEP);
    expect(numbers(bench)).toEqual([2, 3, 4, 5]);
  });

  test('[PM14] closed obligations go first, and count into the batch', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    owed(coordinator, ['a', 'b', 'c', 'd', 'e', 'f']);
    must(
      coordinator.obligations.close(
        coordinator.obligations.open().map(({ id }) => id),
        { kind: 'test' },
      ),
    );
    completed(coordinator, 3);
    bench.time.wallMs += 30 * DAY;
    expect(coordinator.prune(KEEP)).toEqual({ obligations: 3, permits: 1, more: true });
    expect(coordinator.prune(KEEP)).toEqual({ obligations: 0, permits: 2, more: false });
    expect(bench.rows('hf_obligation').map((row) => row['identity'])).toEqual(['d', 'e', 'f']);
    expect(numbers(bench)).toEqual([4, 5, 6, 7, 8, 9]);
  });

  test('[PM14] nothing while the clock reads earlier than the newest record', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    completed(coordinator, 10);
    bench.time.wallMs += 20 * DAY;
    completed(coordinator, 1);
    bench.time.wallMs -= 5 * DAY;
    const before = bench.dump();
    expect(coordinator.prune(KEEP)).toEqual({ obligations: 0, permits: 0, more: false });
    expect(bench.dump()).toBe(before);
    bench.time.wallMs += 5 * DAY;
    expect(coordinator.prune(KEEP).permits).toBe(4);
    owed(coordinator, ['x']);
    bench.time.wallMs += 1;
    must(
      coordinator.obligations.close(
        coordinator.obligations.open().map(({ id }) => id),
        { kind: 'test' },
      ),
    );
    bench.time.wallMs -= 1;
    expect(coordinator.prune(KEEP).permits).toBe(0);
  });

  test('[PM14] the newest permit stays in any case, since it carries the last number', () => {
    const coordinator = createWorkbench().host('one');
    expect(() => coordinator.prune({ ...KEEP, kept: 0 })).toThrow();
  });
});

describe('inspection', () => {
  test('[PM15] it shows owner, generation, active permits by state, what is owed, and how many end clean', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    for (let n = 0; n < 3; n += 1) must(coordinator.issue(pullFrom(at(n))));
    must(coordinator.issueAndStart(pullFrom(at(9))));
    const refused = must(coordinator.issueAndStart(pullFrom(at(9))));
    must(coordinator.storeAnswer(refused, { disposition: 'rejected' }));
    owed(coordinator, ['r1']);
    completed(coordinator, 1);
    expect(coordinator.inspect()).toMatchObject({
      ownership: { generation: 1, hostInstance: 'one', place: 'host', owner: 'host' },
      activeByState: { 'issued-idle': 3, 'gateway-in-flight': 1, 'gateway-complete-awaiting-apply': 1 },
      hasMore: false,
      cleanCount: 4,
      openObligations: 1,
      foundLocalCommits: [],
    });
    const two = coordinator.inspect({ limit: 2 });
    expect([two.permits.map(({ number }) => number), two.hasMore]).toEqual([[1, 2], true]);
    expect(coordinator.inspect({ limit: 5 }).hasMore).toBe(false);
  });

  test('[PM15] it lists 100 unless asked, and of one generation only', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    for (let n = 0; n < 101; n += 1) must(coordinator.issue(pullFrom(at(n))));
    const seen = coordinator.inspect();
    expect([seen.permits.length, seen.hasMore]).toEqual([100, true]);
    const next = bench.process('two');
    next.raiseGeneration();
    expect(next.inspect()).toMatchObject({ permits: [], cleanCount: 0, activeByState: { 'issued-idle': 101 } });
  });

  test('[PM15] a limit outside 1 to 500 is the error of the caller', () => {
    const coordinator = createWorkbench().host('one');
    for (const limit of [0, -1, 501, 1.5, Number.NaN]) expect(() => coordinator.inspect({ limit })).toThrow('1 to 500');
    expect(coordinator.inspect({ limit: 500 }).permits).toEqual([]);
  });
});
