import type { Database } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import {
  accepted,
  at,
  codeOf,
  createWorkbench,
  failingAt,
  must,
  pullFrom,
  pushOf,
  transactionOn,
  type Workbench,
  writeLocalCommitEntered,
} from './coordinator.fixture.ts';
import type { Coordinator } from './coordinator.ts';
import type { Permit } from './coordinator-permit.ts';

const gateway = { ownerMode: 'browser-gateway' as const };

/** Something that the work changes, so that half an apply would show. */
function withWork(bench: Workbench) {
  bench.database.exec('CREATE TABLE work (done TEXT)');
  return {
    run: (database: Database = bench.database) => void database.prepare(`INSERT INTO work VALUES ('done')`).run(),
    count: () => bench.database.prepare('SELECT * FROM work').all().length,
  };
}

function answeredPermits(coordinator: Coordinator, count: number): Permit[] {
  return Array.from({ length: count }, (_, n) => {
    const permit = must(coordinator.issue(pushOf([`r${n}`], gateway)));
    must(coordinator.start(permit));
    return must(coordinator.storeAnswer(permit, accepted(`r${n}`)));
  });
}

const rejected = { disposition: 'rejected' as const };
const states = (bench: Workbench): unknown[] => bench.rows('hf_permit').map((row) => row['state']);

describe('apply in mode host', () => {
  test('[PM10] a request costs two transactions, and the states passed inside them are not written', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const work = withWork(bench);
    bench.database.exec(`CREATE TABLE seen (state TEXT);
      CREATE TRIGGER a AFTER INSERT ON hf_permit BEGIN INSERT INTO seen VALUES (new.state); END;
      CREATE TRIGGER b AFTER UPDATE ON hf_permit BEGIN INSERT INTO seen VALUES (new.state); END;`);
    const permit = bench.transaction(() => must(coordinator.issueAndStart(pushOf(['r1']))));
    bench.transaction(() => must(coordinator.applyAnswered(permit, accepted('r1'), () => work.run())));
    expect(bench.database.prepare('SELECT state FROM seen').all()).toEqual([
      { state: 'gateway-in-flight' },
      { state: 'released' },
    ]);
    expect(work.count()).toBe(1);
    expect(coordinator.permit(permit.permitId)).toMatchObject({ disposition: 'accepted', reason: null });
  });

  test('[PM10] each of the two transactions runs three statements of the coordinator', () => {
    const bench = createWorkbench();
    bench.host('one');
    const counted = failingAt(bench.database, -1, 'once');
    const coordinator = bench.process('one', counted.database);
    const permit = must(coordinator.issueAndStart(pushOf(['r1', 'r2'])));
    expect(counted.count.ran).toBe(3);
    must(coordinator.applyAnswered(permit, accepted('r1', 'r2'), () => undefined));
    expect(counted.count.ran).toBe(6);
    const pull = must(coordinator.issueAndStart(pullFrom(at(1))));
    must(coordinator.applyAnswered(pull, accepted(), () => undefined));
    expect(counted.count.ran).toBe(10);
  });

  test('[PM2 PM5] applying twice runs the work once', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const permit = must(coordinator.issueAndStart(pullFrom(at(1))));
    must(coordinator.applyAnswered(permit, accepted(), () => work.run()));
    const before = bench.dump();
    expect(must(coordinator.applyAnswered(permit, accepted(), () => work.run()))).toMatchObject({ isNew: false });
    expect([work.count(), bench.dump()]).toEqual([1, before]);
  });

  test('[PM6] a rejected request is released with its outbox change, and settles nothing', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const lost = must(coordinator.issueAndStart(pushOf(['r1'])));
    must(coordinator.abandon(lost, { because: 'no-answer', reason: 'abandoned' }));
    const replay = must(coordinator.issueAndStart(pushOf(['r1'])));
    expect(must(coordinator.applyAnswered(replay, rejected, () => work.run())).settled).toBe(0);
    expect([work.count(), coordinator.obligations.open().length]).toEqual([1, 1]);
    expect(coordinator.permit(replay.permitId)).toMatchObject({ state: 'released', disposition: 'rejected' });
  });

  test('[PM4] an answer that does not name every operation exactly once is not applied', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const permit = must(coordinator.issueAndStart(pushOf(['r1', 'r2'])));
    const before = bench.dump();
    for (const answer of [accepted('r1'), accepted('r1', 'r2', 'r2'), accepted('r1', 'r3')])
      expect(codeOf(coordinator.applyAnswered(permit, answer, () => work.run()))).toBe('permit-identity-conflict');
    expect([work.count(), bench.dump()]).toEqual([0, before]);
  });

  test('[PM5 F08] failing work undoes all, and the permit is abandoned in a transaction of its own', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const permit = must(coordinator.issueAndStart(pushOf(['r1'])));
    const queued: string[] = [];
    const failure = new Error('no room');
    const outcome = coordinator.applyAnsweredOrAbandon(
      bench.transaction,
      { permit, answer: accepted('r1'), queueAgain: (ids) => void queued.push(...ids) },
      () => {
        work.run();
        throw failure;
      },
    );
    expect(outcome).toMatchObject({ ok: false, fault: { code: 'apply-not-committed', facts: { cause: failure } } });
    expect([work.count(), queued]).toEqual([0, ['r1']]);
    expect(coordinator.permit(permit.permitId)).toMatchObject({
      state: 'abandoned-reconcile-required',
      disposition: 'accepted',
      reason: 'apply-not-committed',
    });
    expect(coordinator.obligations.open()).toMatchObject([{ identity: 'r1', disposition: 'accepted' }]);
    expect(bench.rows('hf_permit_operation')[0]?.['outcome']).toBe('{"status":"accepted"}');
  });

  test('[PM5] a rejected request whose outbox change fails ends clean, and its operations are queued again', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issueAndStart(pushOf(['r1'])));
    const queued: string[] = [];
    coordinator.applyAnsweredOrAbandon(
      bench.transaction,
      { permit, answer: rejected, queueAgain: (ids) => void queued.push(...ids) },
      () => {
        throw new Error('no room');
      },
    );
    expect([states(bench), queued, coordinator.obligations.open()]).toEqual([['abandoned-clean'], ['r1'], []]);
  });

  test('[PM5] work that returns a promise is refused, and nothing of it stays', async () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const permit = must(coordinator.issueAndStart(pullFrom(at(1))));
    const outcome = coordinator.applyAnsweredOrAbandon(
      bench.transaction,
      { permit, answer: accepted(), queueAgain: () => undefined },
      async () => work.run(),
    );
    expect(outcome).toMatchObject({ fault: { facts: { cause: { fault: { code: 'async-callback' } } } } });
    expect([work.count(), states(bench)]).toEqual([0, ['abandoned-reconcile-required']]);
  });

  test('[PM5] a permit that something ended during the work is not released over it: all is undone', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const permit = must(coordinator.issueAndStart(pullFrom(at(1))));
    const before = bench.dump();
    expect(() =>
      bench.transaction(() =>
        coordinator.applyAnswered(permit, accepted(), () => {
          work.run();
          must(coordinator.abandon(permit, { because: 'no-answer', reason: 'abandoned' }));
        }),
      ),
    ).toThrow('permit-state-conflict');
    expect([work.count(), bench.dump()]).toEqual([0, before]);
  });

  test('[PM5] what could not be abandoned either stays in flight, and expires into an obligation', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issueAndStart(pushOf(['r1'])));
    const full = <T>(): T => {
      throw new Error('disk full');
    };
    const outcome = coordinator.applyAnsweredOrAbandon(
      full,
      { permit, answer: accepted('r1'), queueAgain: () => undefined },
      () => undefined,
    );
    expect(outcome).toMatchObject({ fault: { facts: { abandoned: false } } });
    expect(states(bench)).toEqual(['gateway-in-flight']);
    bench.time.monotonicMs += 1_000_000;
    expect(coordinator.expire([]).ended).toHaveLength(1);
  });

  test('[PM5] the call that opens transactions of its own is not made inside one', () => {
    const bench = createWorkbench();
    const coordinator = bench.host('one');
    const permit = must(coordinator.issueAndStart(pullFrom(at(1))));
    const request = { permit, answer: accepted(), queueAgain: () => undefined };
    expect(() =>
      bench.transaction(() => coordinator.applyAnsweredOrAbandon(bench.transaction, request, () => undefined)),
    ).toThrow('transaction of its own');
  });
});

describe('apply of groups', () => {
  test('[PM5] a group is applied, settled and released together, and its work gets a copy', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const permits = answeredPermits(coordinator, 3);
    const applied = must(
      coordinator.applyGroup({ permits, boundary: at(9) }, (group) => {
        for (const permit of group) Object.assign(permit, { log: 'team', generation: 9 });
        (group as Permit[]).pop();
        return at(9);
      }),
    );
    expect(applied.permits.map(({ state, log }) => [state, log])).toEqual([
      ['released', 'main'],
      ['released', 'main'],
      ['released', 'main'],
    ]);
    expect(must(coordinator.applyGroup({ permits, boundary: at(9) }, () => at(1))).isNew).toBe(false);
  });

  test('[PM5] another boundary than announced undoes all, and the whole group is abandoned', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const permits = answeredPermits(coordinator, 2);
    const queued: string[] = [];
    const outcome = coordinator.applyGroupOrAbandon(
      bench.transaction,
      { permits, boundary: at(9), queueAgain: (ids) => void queued.push(...ids) },
      () => {
        work.run();
        return at(8);
      },
    );
    expect(codeOf(outcome)).toBe('apply-not-committed');
    expect(work.count()).toBe(0);
    expect(bench.rows('hf_permit').map((row) => row['reason'])).toEqual(['apply-not-committed', 'apply-not-committed']);
    expect(queued).toEqual(['r0', 'r1']);
    expect(coordinator.obligations.open()).toHaveLength(2);
  });

  test('[PM5] a group names each permit once; all share log, boundary, owner and generation', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const [first, second] = answeredPermits(coordinator, 2) as [Permit, Permit];
    const answered = (more: Parameters<typeof pullFrom>[1], from = at(5)): Permit => {
      const permit = must(coordinator.issue(pullFrom(from, { ...gateway, ...more })));
      must(coordinator.start(permit));
      return must(coordinator.storeAnswer(permit, accepted()));
    };
    const otherLog = answered({ log: 'team' });
    const otherBoundary = answered({}, at(6));
    const before = bench.dump();
    for (const permits of [
      [first, first],
      [first, otherLog],
      [otherBoundary, first],
      [first, second, otherLog],
    ])
      expect(codeOf(coordinator.applyGroup({ permits, boundary: null }, () => null))).toBe('permit-identity-conflict');
    expect(codeOf(coordinator.applyGroup({ permits: [{ ...first, log: 'team' }], boundary: null }, () => null))).toBe(
      'permit-identity-conflict',
    );
    expect(bench.dump()).toBe(before);
    const missing = { ...first, permitId: 'nobody' };
    expect(codeOf(coordinator.applyGroup({ permits: [otherLog, first, missing], boundary: null }, () => null))).toBe(
      'permit-not-found',
    );
    expect(bench.dump()).toBe(before);
  });

  test('[PM5] a group that is applied in part, not answered, or unknown, is refused whole', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const [first, second] = answeredPermits(coordinator, 2) as [Permit, Permit];
    must(coordinator.applyGroup({ permits: [first], boundary: null }, () => null));
    const silent = must(coordinator.issue(pushOf(['x'], gateway)));
    must(coordinator.start(silent));
    const before = bench.dump();
    for (const permits of [
      [first, second],
      [second, silent],
    ])
      expect(codeOf(coordinator.applyGroup({ permits, boundary: null }, () => null))).toBe('permit-state-conflict');
    must(coordinator.storeAnswer(silent, { disposition: 'unknown' }));
    expect(codeOf(coordinator.applyGroup({ permits: [silent], boundary: null }, () => null))).toBe(
      'permit-state-conflict',
    );
    expect(JSON.parse(before)[1][0].state).toBe('released');
    expect(coordinator.permit(second.permitId)?.state).toBe('gateway-complete-awaiting-apply');
  });

  test('[PM5 OW1] the source owner may enter while a transfer prepares or drains; the new one never for it', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const [first, second, third] = answeredPermits(coordinator, 3) as [Permit, Permit, Permit];
    must(coordinator.transfer.prepare({ target: 'host', deadlineMs: 1_000 }));
    must(coordinator.applyGroup({ permits: [first], boundary: null }, () => null));
    must(coordinator.transfer.drain());
    must(coordinator.applyGroup({ permits: [second], boundary: null }, () => null));
    bench.time.monotonicMs += 2_000;
    must(coordinator.transfer.force());
    const before = bench.dump();
    expect(codeOf(coordinator.applyGroup({ permits: [third], boundary: null }, () => null))).toBe('stale-generation');
    expect(bench.dump()).toBe(before);
  });

  test('[PM10] nothing is applied to a log in which a local commit was found', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const [first, second] = answeredPermits(coordinator, 2) as [Permit, Permit];
    writeLocalCommitEntered(bench, second);
    expect(codeOf(coordinator.applyGroup({ permits: [first], boundary: null }, () => null))).toBe(
      'local-commit-invariant',
    );
  });

  test('[PM11] a local apply has no request: issued, entered, released', () => {
    const bench = createWorkbench({ mode: 'browser-gateway' });
    const coordinator = bench.host('one');
    const work = withWork(bench);
    const permit = must(coordinator.issue(pullFrom(at(5), { ...gateway, class: 'local-apply' })));
    const applied = must(
      coordinator.applyGroup({ permits: [permit], boundary: at(7) }, () => {
        work.run();
        return at(7);
      }),
    );
    expect(applied.permits[0]).toMatchObject({ state: 'released', disposition: 'not-started' });
    const failing = must(coordinator.issue(pullFrom(at(7), { ...gateway, class: 'local-apply' })));
    coordinator.applyGroupOrAbandon(
      bench.transaction,
      { permits: [failing], boundary: at(8), queueAgain: () => undefined },
      () => {
        throw new Error('a bad frame');
      },
    );
    expect(coordinator.permit(failing.permitId)).toMatchObject({
      state: 'abandoned-clean',
      reason: 'apply-not-committed',
    });
    expect(coordinator.obligations.open()).toEqual([]);
  });
});

describe('killed at every statement', () => {
  /** What may be found afterwards, by running the scenario to its end, to its beginning, or to what recovery leaves. */
  function everyStatement(
    prepare: (bench: Workbench) => readonly Permit[],
    act: (
      coordinator: Coordinator,
      transaction: <T>(work: () => T) => T,
      permits: readonly Permit[],
      db: Database,
    ) => void,
    how: 'once' | 'kill',
  ): { before: string; after: string; found: string[]; statements: number } {
    const found: string[] = [];
    for (let n = 1; ; n += 1) {
      const bench = createWorkbench({ mode: 'browser-gateway' });
      bench.host('one');
      bench.database.exec('CREATE TABLE work (done TEXT)');
      const permits = prepare(bench);
      const dump = (): string => bench.dump() + JSON.stringify(bench.database.prepare('SELECT * FROM work').all());
      const before = dump();
      const failing = failingAt(bench.database, n, how);
      // Statements of the transaction itself fail too: BEGIN and COMMIT are prepared by the wrapped database.
      try {
        act(bench.process('one', failing.database), transactionOn(failing.database), permits, failing.database);
      } catch {
        // The process died; what it left is looked at.
      }
      if (bench.database.inTransaction) bench.database.exec('ROLLBACK');
      const now = dump();
      if (failing.count.ran < n) return { before, after: now, found, statements: n - 1 };
      found.push(now);
    }
  }

  const asHost = { ownerMode: 'host' as const };
  const toHost = (bench: Workbench): Coordinator => {
    bench.database.exec(`UPDATE hf_coordinator SET mode = 'host'`);
    return bench.process('one');
  };

  test('[PM10 F01] issue and start leave all or nothing', () => {
    const run = everyStatement(
      (bench) => {
        toHost(bench);
        return [];
      },
      (coordinator, transaction) => transaction(() => must(coordinator.issueAndStart(pushOf(['r1', 'r2'], asHost)))),
      'kill',
    );
    expect(run.statements).toBeGreaterThanOrEqual(5);
    expect(run.after).not.toBe(run.before);
    for (const state of run.found) expect([run.before, run.after]).toContain(state);
  });

  const owing = (bench: Workbench): readonly Permit[] => {
    const coordinator = toHost(bench);
    const lost = must(coordinator.issueAndStart(pushOf(['r1', 'r2'])));
    must(coordinator.abandon(lost, { because: 'no-answer', reason: 'abandoned' }));
    return [must(coordinator.issueAndStart(pushOf(['r1', 'r2'])))];
  };

  test('[PM5 PM7 PM10 F03] answer, apply, settle and release leave all or nothing', () => {
    const run = everyStatement(
      owing,
      (coordinator, transaction, [permit], database) =>
        transaction(() =>
          coordinator.applyAnswered(permit as Permit, accepted('r1', 'r2'), () =>
            database.prepare(`INSERT INTO work VALUES ('done')`).run(),
          ),
        ),
      'kill',
    );
    expect(run.statements).toBeGreaterThanOrEqual(8);
    expect(
      JSON.parse(run.after.slice(0, run.after.lastIndexOf('[')))[3].every(
        (row: { closed_at: string }) => row.closed_at,
      ),
    ).toBe(true);
    for (const state of run.found) expect([run.before, run.after]).toContain(state);
  });

  test('[PM5] one failing statement of an apply leaves all, or nothing and what is owed', () => {
    let owedOnly = 0;
    const run = everyStatement(
      owing,
      (coordinator, transaction, [permit], database) => {
        coordinator.applyAnsweredOrAbandon(
          transaction,
          { permit: permit as Permit, answer: accepted('r1', 'r2'), queueAgain: () => undefined },
          () => database.prepare(`INSERT INTO work VALUES ('done')`).run(),
        );
      },
      'once',
    );
    for (const state of run.found) {
      if (state === run.after) continue;
      owedOnly += 1;
      expect(state).toContain('"reason":"apply-not-committed"');
      expect(state.endsWith('[]')).toBe(true);
    }
    expect(owedOnly).toBe(run.statements);
  });

  test('[PM5] a group leaves all or nothing', () => {
    const run = everyStatement(
      (bench) => answeredPermits(bench.process('one'), 3),
      (coordinator, transaction, permits, database) =>
        transaction(() =>
          coordinator.applyGroup({ permits, boundary: at(9) }, () => {
            database.prepare(`INSERT INTO work VALUES ('done')`).run();
            return at(9);
          }),
        ),
      'kill',
    );
    expect(run.statements).toBeGreaterThanOrEqual(8);
    for (const state of run.found) expect([run.before, run.after]).toContain(state);
  });

  test('[PM6 I21] ending as owed leaves the permit and its obligations, or neither', () => {
    const run = everyStatement(
      (bench) => [must(toHost(bench).issueAndStart(pushOf(['r1', 'r2', 'r3'])))],
      (coordinator, transaction, [permit]) =>
        transaction(() => coordinator.abandon(permit as Permit, { because: 'no-answer', reason: 'expired' })),
      'kill',
    );
    expect(run.statements).toBe(7);
    for (const state of run.found) expect([run.before, run.after]).toContain(state);
  });

  test('[PM8 F160] a start that is killed leaves the old generation, or the new one with everything settled', () => {
    const run = everyStatement(
      (bench) => [
        must(bench.process('one').issue(pushOf(['r1'], gateway))),
        ...answeredPermits(bench.process('one'), 2),
      ],
      (coordinator, transaction) =>
        transaction(() => {
          coordinator.raiseGeneration();
          coordinator.settleEarlierInstances();
        }),
      'kill',
    );
    for (const state of run.found) expect([run.before, run.after]).toContain(state);
    expect(run.after).not.toContain('gateway-complete-awaiting-apply');
  });

  const transferStep = (coordinator: Coordinator, step: 'prepare' | 'drain' | 'switch' | 'abort' | 'force'): void => {
    const { transfer } = coordinator;
    if (step === 'prepare') must(transfer.prepare({ target: 'host', deadlineMs: 0 }));
    if (step === 'drain') must(transfer.drain());
    if (step === 'switch') must(transfer.switch());
    if (step === 'abort') must(transfer.abort());
    if (step === 'force') must(transfer.force());
  };

  test.each([
    ['prepare', []],
    ['drain', ['prepare']],
    ['switch', ['prepare', 'drain']],
    ['abort', ['prepare', 'drain']],
    ['force', ['prepare']],
  ] as const)('[OW1 F167] a transfer killed in %s stands where it stood, or one step on', (step, done) => {
    const run = everyStatement(
      (bench) => {
        const coordinator = bench.process('one');
        const idle = must(coordinator.issue(pushOf(['r1'], gateway)));
        for (const one of done) transferStep(coordinator, one);
        return [idle];
      },
      (coordinator, transaction) => transaction(() => transferStep(coordinator, step)),
      'kill',
    );
    expect(run.after).not.toBe(run.before);
    for (const state of run.found) expect([run.before, run.after]).toContain(state);
  });
});
