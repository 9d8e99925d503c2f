import type { Database } from '@holdfast/core';
import type { Violation } from './violation.ts';

/**
 * What the rows of a device's file may never do, seen by triggers of its connection: a permit moves as PM6 lists and rests
 * once it ended (I19, I20), a generation only grows (I23), a batch is not rebased for ever (I16). The moves are written down
 * here once more, so that a grid that is wrong is not held against itself.
 */
const AWAITING = 'gateway-complete-awaiting-apply';
const MOVES: Readonly<Record<string, readonly string[]>> = {
  'issued-idle': ['gateway-in-flight', 'local-commit-entered', 'released', 'abandoned-clean'],
  // One transaction may take several steps, of which only the last is written (PM10).
  'gateway-in-flight': [AWAITING, 'released', 'abandoned-clean', 'abandoned-reconcile-required'],
  [AWAITING]: ['local-commit-entered', 'released', 'abandoned-clean', 'abandoned-reconcile-required'],
  'local-commit-entered': ['released', 'abandoned-reconcile-required'],
};
const REBASES_MAX = 8;

export interface RowWatch {
  /** Permits that ended as owed since it was asked last. */
  takeOwing(): readonly number[];
}

export function watchRows(database: Database, found: (violation: Omit<Violation, 'device'>) => void): RowWatch {
  const rebases = new Map<string, number>();
  let owing: number[] = [];
  database.function('world_permit', (seq, from, to, wasEnded) => {
    if (wasEnded === 1) found({ invariant: 'I19', what: `permit ${seq} had ended as ${from}, and became ${to}` });
    else if (from !== to && MOVES[`${from}`]?.includes(`${to}`) !== true)
      found({ invariant: 'I20', what: `permit ${seq} went from ${from} to ${to}` });
    if (to === 'abandoned-reconcile-required') owing.push(seq as number);
    return null;
  });
  database.function('world_generation', (before, after) => {
    found({ invariant: 'I23', what: `the generation went from ${before} back to ${after}` });
    return null;
  });
  database.function('world_rebased', (action, isAutomatic) => {
    const times = isAutomatic === 1 ? (rebases.get(`${action}`) ?? 0) + 1 : 0;
    rebases.set(`${action}`, times);
    if (times > REBASES_MAX) found({ invariant: 'I16', what: `${action} was rebased ${times} times` });
    return null;
  });
  database.exec(TRIGGERS);
  return {
    takeOwing: () => {
      const taken = owing;
      owing = [];
      return taken;
    },
  };
}

const TRIGGERS = `
CREATE TEMP TRIGGER IF NOT EXISTS world_permit AFTER UPDATE OF state, disposition, ended_at ON main.hf_permit
WHEN old.state <> new.state OR old.disposition <> new.disposition OR old.ended_at IS NOT new.ended_at BEGIN
  SELECT world_permit(old.seq, old.state, new.state, old.ended_at IS NOT NULL);
END;
CREATE TEMP TRIGGER IF NOT EXISTS world_generation AFTER UPDATE OF generation ON main.hf_coordinator
WHEN new.generation < old.generation BEGIN SELECT world_generation(old.generation, new.generation); END;
CREATE TEMP TRIGGER IF NOT EXISTS world_rebased AFTER UPDATE OF request_id ON main.hf_outbox
WHEN old.request_id <> new.request_id BEGIN SELECT world_rebased(new.action_id, old.state = 'waiting'); END;`;

/** I21: permits that ended with an unknown outcome, of which nothing says what is owed. */
export function owedNothing(database: Database, permits: readonly number[]): readonly string[] {
  return permits.flatMap((seq) => {
    const permit = database.prepare('SELECT class, log FROM main.hf_permit WHERE seq = ?').get(seq);
    // Its end was undone, with the transaction that it was part of.
    if (permit === undefined) return [];
    const ended = database.prepare(
      "SELECT 1 FROM main.hf_permit WHERE seq = ? AND state = 'abandoned-reconcile-required'",
    );
    if (ended.get(seq) === undefined) return [];
    const missing = database
      .prepare(
        permit['class'] === 'push'
          ? `SELECT count(*) AS n FROM main.hf_permit_operation p WHERE p.permit = ?1
             AND NOT EXISTS (SELECT 1 FROM main.hf_obligation o WHERE o.identity = p.request_id)`
          : `SELECT NOT EXISTS (SELECT 1 FROM main.hf_obligation o
             WHERE o.log = p.log AND o.class = CASE p.class WHEN 'local-apply' THEN 'pull' ELSE p.class END) AS n
             FROM main.hf_permit p WHERE p.seq = ?1`,
      )
      .get(seq);
    return (missing?.['n'] as number) === 0
      ? []
      : [`permit ${seq}, a ${permit['class']}, ended without an answer, and nothing is owed`];
  });
}
