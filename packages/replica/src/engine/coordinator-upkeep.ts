import {
  assert,
  type Database,
  fail,
  LIMITS,
  mayStart,
  type Outcome,
  type PermitState,
  type SqlRow,
} from '@holdfast/core';
import { type PermitFaultCode, permittedStep } from './coordinator-fence.ts';
import { closeAll, evidenceText, hasOpenDispatch, openRefetches } from './coordinator-obligations.ts';
import { type Ownership, readOwnershipOf } from './coordinator-owner.ts';
import { type CoordinatorParts, instantOf } from './coordinator-parts.ts';
import { activePermits, type Permit, type PermitRef, viewPermit, WHOLE_WORKSPACE } from './coordinator-permit.ts';

/** Repair settlement (PM9), retention (PM14) and inspection (PM15). */

/**
 * A repair has fetched everything of its log: refetch obligations of its generation and earlier ones close, in the
 * caller's transaction, the one that swaps. Only by the steady owner, alone: no other active permit, no open dispatch.
 */
export function settleByRepair(
  parts: CoordinatorParts,
  ref: PermitRef,
): Outcome<{ readonly closed: number }, PermitFaultCode> {
  const { database } = parts;
  const view = viewPermit(database, ref.permitId, ref.log);
  const fenced = permittedStep(view, {
    ref,
    actingInstance: parts.hostInstance,
    signals: [],
    depth: 'enter',
    isLogActive: true,
  });
  if (!fenced.ok) return fenced;
  const { permit } = fenced.value.stored;
  const hasWorked = permit.state !== 'issued-idle' && !permit.state.startsWith('abandoned');
  if (permit.class !== 'repair' || !hasWorked) return fail('permit-state-conflict', { state: permit.state });
  if (!mayStart(view.place, permit.ownerMode)) return fail('permits-disabled', { ownership: view.place });
  if (hasOpenDispatch(database, permit.log)) return fail('permit-state-conflict', { reason: 'a dispatch is open' });
  const others = activePermits(
    database,
    'p.log IN (?, ?) AND p.permit_id <> ?',
    [permit.log, WHOLE_WORKSPACE, permit.permitId],
    1,
  );
  if (others.length > 0) return fail('permit-state-conflict', { reason: 'another permit is active' });
  const evidence = { kind: 'repaired', permit: permit.permitId, boundary: permit.boundary ?? null };
  // Handshakes too: what they asked about is fetched whole, and after an adopted history no later one lies ahead of them.
  const settled = openRefetches(database, permit, WHOLE_WORKSPACE);
  const closed = closeAll(database, settled, evidenceText(evidence), instantOf(parts));
  return { ok: true, value: { closed } };
}

// ── Retention ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Pruned {
  readonly obligations: number;
  readonly permits: number;
  /** Another call has more to do. */
  readonly more: boolean;
}

export interface Retention {
  readonly kept: number;
  readonly keptMs: number;
  readonly batch: number;
}

export const RETENTION: Retention = {
  kept: LIMITS.permitsKept,
  keptMs: LIMITS.permitsKeptMs,
  batch: LIMITS.permitPruneBatch,
};

/**
 * One batch, in the caller's transaction: closed obligations first, then ended permits that no obligation names. Called
 * until `more` is false, at most `LIMITS.permitPruneSweep` rows at a time, at start and hourly. Nothing while the clock
 * reads earlier than the newest record: a clock that is wrong once must not delete what proves something.
 */
export function prune(parts: CoordinatorParts, retention: Retention = RETENTION): Pruned {
  const { database } = parts;
  assert(retention.kept >= 1, 'the newest permit stays: it carries the last number');
  if (instantOf(parts) < newestInstant(database)) return { obligations: 0, permits: 0, more: false };
  const before = instantOf(parts, -retention.keptMs);
  const obligations = pruneObligations(database, before, retention);
  const permits = prunePermits(database, before, { ...retention, batch: retention.batch - obligations });
  return { obligations, permits, more: obligations + permits >= retention.batch };
}

const newestInstant = (database: Database): string =>
  ((
    database
      .prepare(
        `SELECT max(at) AS newest FROM (SELECT max(moved_at) AS at FROM main.hf_permit
         UNION ALL SELECT max(ifnull(closed_at, last_at)) FROM main.hf_obligation)`,
      )
      .get() as SqlRow
  )['newest'] as string | null) ?? '';

const pruneObligations = (database: Database, before: string, { kept, batch }: Retention): number =>
  database
    .prepare(
      `DELETE FROM main.hf_obligation WHERE seq IN (
         SELECT seq FROM main.hf_obligation WHERE closed_at < ?1 AND seq <= (
           SELECT seq FROM main.hf_obligation WHERE closed_at IS NOT NULL ORDER BY seq DESC LIMIT 1 OFFSET ?2)
         ORDER BY seq LIMIT ?3)`,
    )
    .run(before, kept, batch).changes;

function prunePermits(database: Database, before: string, { kept, batch }: Retention): number {
  const gone = database
    .prepare(
      `SELECT p.seq FROM main.hf_permit p WHERE p.ended_at < ?1 AND p.seq <= (
         SELECT seq FROM main.hf_permit WHERE ended_at IS NOT NULL ORDER BY seq DESC LIMIT 1 OFFSET ?2)
       AND NOT EXISTS (SELECT 1 FROM main.hf_obligation o WHERE o.permit = p.seq)
       ORDER BY p.seq LIMIT ?3`,
    )
    .all(before, kept, batch)
    .map((row) => row['seq'] as number);
  if (gone.length === 0) return 0;
  const list = JSON.stringify(gone);
  database.prepare('DELETE FROM main.hf_permit_operation WHERE permit IN (SELECT value FROM json_each(?))').run(list);
  database.prepare('DELETE FROM main.hf_permit WHERE seq IN (SELECT value FROM json_each(?))').run(list);
  return gone.length;
}

// ── Inspection ──────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Inspection {
  readonly ownership: Ownership;
  /** Active ones of every generation. */
  readonly activeByState: Readonly<Partial<Record<PermitState, number>>>;
  /** The oldest active ones of the present generation. */
  readonly permits: readonly Permit[];
  readonly hasMore: boolean;
  /** Active ones of the present generation that end without owing anything. */
  readonly cleanCount: number;
  readonly openObligations: number;
  /** Found local commits, of any generation: their logs are blocked (PM10). */
  readonly foundLocalCommits: readonly Permit[];
}

/** One snapshot: call it inside a transaction. A limit outside 1 to 500 is the caller's error, and throws. */
export function inspect(parts: CoordinatorParts, options: { readonly limit?: number } = {}): Inspection {
  const limit = options.limit ?? LIMITS.permitListDefault;
  assert(
    Number.isInteger(limit) && limit >= 1 && limit <= LIMITS.permitListMax,
    `the limit is 1 to ${LIMITS.permitListMax}`,
  );
  const { database } = parts;
  const ownership = readOwnershipOf(database);
  const oldest = activePermits(database, 'p.generation = ?', [ownership.generation], limit + 1);
  return {
    ownership,
    activeByState: countByState(database),
    permits: oldest.slice(0, limit).map(({ permit }) => permit),
    hasMore: oldest.length > limit,
    cleanCount: countClean(database, ownership.generation),
    openObligations: countRow(database, 'SELECT count(*) AS n FROM main.hf_obligation WHERE closed_at IS NULL'),
    foundLocalCommits: foundLocalCommits(database),
  };
}

/** PM10: what other code left behind. Each blocks its log until a person lets it be repaired. */
export const foundLocalCommits = (database: Database): readonly Permit[] =>
  activePermits(database, `p.state = 'local-commit-entered'`, [], LIMITS.permitListMax).map(({ permit }) => permit);

/** PM6: never started, or refused by the ledger before it judged anything. */
const countClean = (database: Database, generation: number): number =>
  countRow(
    database,
    `SELECT count(*) AS n FROM main.hf_permit WHERE ended_at IS NULL AND generation = ? AND (state = 'issued-idle'
     OR (state = 'gateway-complete-awaiting-apply' AND disposition = 'rejected'))`,
    generation,
  );

const countRow = (database: Database, sql: string, ...parameters: readonly number[]): number =>
  (database.prepare(sql).get(...parameters) as { readonly n: number }).n;

function countByState(database: Database): Readonly<Partial<Record<PermitState, number>>> {
  const rows = database
    .prepare('SELECT state, count(*) AS n FROM main.hf_permit WHERE ended_at IS NULL GROUP BY state')
    .all();
  return Object.fromEntries(rows.map((row) => [row['state'], row['n']]));
}
