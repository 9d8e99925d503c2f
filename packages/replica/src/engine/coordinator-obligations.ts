import {
  assert,
  canonical,
  type Database,
  type Disposition,
  type EndReason,
  fail,
  isRefetchClass,
  type Json,
  type JsonObject,
  liesAtOrBehind,
  type ObligationAction,
  type OperationClass,
  type Outcome,
  obligationsOf,
  readDisposition,
  readObligationAction,
  readOperationClass,
  type SqlRow,
} from '@holdfast/core';
import { type Permit, type PermitView, readBoundary, readOutcomes, type StoredPermit } from './coordinator-permit.ts';

/**
 * What is owed after permits ended without a known outcome (PM7).
 *
 * Owns `hf_obligation`. Durable. Worst outcome: an obligation closed without evidence, because then nobody asks again;
 * therefore closing takes evidence, in the transaction that records it, and is never changed afterwards.
 */
export interface Obligation {
  readonly id: number;
  readonly generation: number;
  readonly log: string;
  readonly class: OperationClass;
  readonly action: ObligationAction;
  /** Request id or command id; empty for a refetch. */
  readonly identity: string;
  readonly disposition: Disposition;
  readonly boundary: Json | undefined;
  readonly reason: string;
  /** How often the same was owed. */
  readonly count: number;
  readonly createdAt: string;
  readonly lastAt: string;
  readonly closedAt: string | null;
  /** Canonical JSON. */
  readonly evidence: string | null;
}

/** Why nothing is owed any more. `kind` names what was seen. */
export type Evidence = JsonObject & { readonly kind: string };

const OPEN = `INSERT INTO main.hf_obligation
  (permit, generation, log, class, action, identity, disposition, boundary, reason, count, created_at, last_at)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?10)
  ON CONFLICT (identity, log, class, action, ifnull(boundary, ''), disposition, reason) WHERE closed_at IS NULL
  DO UPDATE SET permit = excluded.permit, generation = excluded.generation, count = count + 1, last_at = excluded.last_at`;

/** In the transaction that ends the permit as owed. Equal open ones stay one, with a count. */
export function openObligations(database: Database, ended: StoredPermit, reason: EndReason, instant: string): void {
  const { permit, seq, storedBoundary } = ended;
  for (const owed of obligationsOf(permit))
    database
      .prepare(OPEN)
      .run(
        seq,
        permit.generation,
        permit.log,
        owed.class,
        owed.action,
        owed.identity,
        permit.disposition,
        storedBoundary,
        reason,
        instant,
      );
}

const COLUMNS = `seq, generation, log, class, action, identity, disposition, boundary, reason, count, created_at, last_at,
  closed_at, evidence`;

export function listObligations(database: Database, filter: { readonly log?: string; readonly limit: number }) {
  const rows =
    filter.log === undefined
      ? database
          .prepare(`SELECT ${COLUMNS} FROM main.hf_obligation WHERE closed_at IS NULL ORDER BY +seq LIMIT ?`)
          .all(filter.limit)
      : database
          .prepare(`SELECT ${COLUMNS} FROM main.hf_obligation WHERE closed_at IS NULL AND log = ? ORDER BY seq LIMIT ?`)
          .all(filter.log, filter.limit);
  return rows.map(readObligation);
}

/** Open replays of these request ids or command ids. */
export const obligationsFor = (database: Database, identities: readonly string[]): readonly Obligation[] =>
  database
    .prepare(
      `SELECT ${COLUMNS} FROM main.hf_obligation
       WHERE closed_at IS NULL AND identity <> '' AND identity IN (SELECT value FROM json_each(?)) ORDER BY seq`,
    )
    .all(JSON.stringify(identities))
    .map(readObligation);

function readObligation(row: SqlRow): Obligation {
  const identity = row['identity'] as string;
  return {
    id: row['seq'] as number,
    generation: row['generation'] as number,
    log: row['log'] as string,
    class: readOperationClass(row['class'], identity === '' ? 'nothing' : 'operations'),
    action: readObligationAction(row['action']),
    identity,
    disposition: readDisposition(row['disposition']),
    boundary: readBoundary(row['boundary'] as string | null),
    reason: row['reason'] as string,
    count: row['count'] as number,
    createdAt: row['created_at'] as string,
    lastAt: row['last_at'] as string,
    closedAt: row['closed_at'] as string | null,
    evidence: row['evidence'] as string | null,
  };
}

/**
 * Closes the whole list or nothing. Closing again with the same evidence changes nothing.
 * Faults: `not-found`, `permit-state-conflict` (closed before with other evidence).
 */
export function closeObligations(
  database: Database,
  ids: readonly number[],
  evidence: Evidence,
  instant: string,
): Outcome<{ readonly closed: number }, 'not-found' | 'permit-state-conflict'> {
  const text = evidenceText(evidence);
  const wanted = [...new Set(ids)];
  const found = database
    .prepare(`SELECT ${COLUMNS} FROM main.hf_obligation WHERE seq IN (SELECT value FROM json_each(?))`)
    .all(JSON.stringify(wanted))
    .map(readObligation);
  if (found.length !== wanted.length) return fail('not-found', { obligations: wanted.length - found.length });
  const other = found.find((one) => one.closedAt !== null && one.evidence !== text);
  if (other !== undefined) return fail('permit-state-conflict', { obligation: other.id });
  return { ok: true, value: { closed: closeAll(database, found, text, instant) } };
}

/** Own events passed ingest: what was owed for their operations is answered. */
export function settleByConfirmed(
  database: Database,
  confirmed: readonly { readonly requestId: string; readonly version: number }[],
  instant: string,
): number {
  if (confirmed.length === 0 || !isOwing(database)) return 0;
  let closed = 0;
  for (const { requestId, version } of confirmed)
    closed += closeReplays(database, 'push', requestId, { kind: 'confirmed', version }, instant);
  return closed;
}

/**
 * What a completed group settles: push and dispatch by the results of the replay; the rest those of their class whose
 * boundary is the one they started from or lies behind it, never of a later generation. A group of mixed classes settles
 * none of the latter.
 */
export function settleByCompleted(
  database: Database,
  view: PermitView,
  group: readonly StoredPermit[],
  instant: string,
): number {
  if (!view.isOwing) return 0;
  let closed = 0;
  for (const stored of group) closed += settleReplays(database, stored, instant);
  const classes = new Set(group.map(({ permit }) => permit.class));
  if (classes.size !== 1) return closed;
  for (const { permit, storedBoundary } of group)
    if (isRefetchClass(permit.class)) closed += settleRefetches(database, permit, storedBoundary, instant);
  return closed;
}

function settleReplays(database: Database, { permit, seq }: StoredPermit, instant: string): number {
  const permitId = permit.permitId;
  if (permit.class === 'dispatch')
    return closeReplays(
      database,
      'dispatch',
      permit.commandId ?? '',
      { kind: 'replay-result', permit: permitId },
      instant,
    );
  if (permit.class !== 'push') return 0;
  let closed = 0;
  for (const { requestId, outcome } of readOutcomes(database, seq))
    closed += closeReplays(database, 'push', requestId, { kind: 'replay-result', permit: permitId, outcome }, instant);
  return closed;
}

function closeReplays(
  database: Database,
  operationClass: OperationClass,
  identity: string,
  evidence: Evidence,
  instant: string,
): number {
  if (identity === '') return 0;
  const { changes } = database
    .prepare(
      `UPDATE main.hf_obligation SET closed_at = ?1, evidence = ?2
       WHERE closed_at IS NULL AND identity = ?3 AND class = ?4`,
    )
    .run(instant, evidenceText(evidence), identity, operationClass);
  return changes;
}

function settleRefetches(database: Database, permit: Permit, storedBoundary: string | null, instant: string): number {
  const behind = openRefetches(database, permit)
    .filter((one) => one.class === permit.class)
    .filter((one) => isSameText(one, storedBoundary) || liesAtOrBehind(one.boundary, permit.boundary));
  const evidence = { kind: 'completed', permit: permit.permitId, boundary: permit.boundary ?? null };
  return closeAll(database, behind, evidenceText(evidence), instant);
}

const isSameText = (one: Obligation, storedBoundary: string | null): boolean =>
  one.boundary !== undefined && storedBoundary !== null && canonical(one.boundary) === storedBoundary;

/** Of the permit's log, and of another name, of its generation and earlier ones (PM7, PM9). */
export const openRefetches = (database: Database, permit: Permit, alsoOf = permit.log): readonly Obligation[] =>
  database
    .prepare(
      `SELECT ${COLUMNS} FROM main.hf_obligation
       WHERE closed_at IS NULL AND identity = '' AND log IN (?, ?) AND generation <= ?`,
    )
    .all(permit.log, alsoOf, permit.generation)
    .map(readObligation);

export const hasOpenDispatch = (database: Database, log: string): boolean =>
  database
    .prepare(`SELECT 1 FROM main.hf_obligation WHERE closed_at IS NULL AND log = ? AND class = 'dispatch' LIMIT 1`)
    .get(log) !== undefined;

export function closeAll(
  database: Database,
  obligations: readonly Obligation[],
  evidence: string,
  instant: string,
): number {
  let closed = 0;
  for (const { id } of obligations)
    closed += database
      .prepare('UPDATE main.hf_obligation SET closed_at = ?, evidence = ? WHERE seq = ? AND closed_at IS NULL')
      .run(instant, evidence, id).changes;
  return closed;
}

export function evidenceText(evidence: Evidence): string {
  assert(evidence.kind !== '', 'evidence names its kind');
  return canonical(evidence);
}

const isOwing = (database: Database): boolean =>
  database.prepare('SELECT 1 FROM main.hf_obligation WHERE closed_at IS NULL LIMIT 1').get() !== undefined;
