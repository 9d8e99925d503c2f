import {
  canonical,
  type Database,
  type Disposition,
  type EndReason,
  type Json,
  type JsonObject,
  type OperationClass,
  type OwnerMode,
  type OwnershipPlace,
  type PermitState,
  type PermitStep,
  readDisposition,
  readOperationClass,
  readOwnerMode,
  readOwnership,
  readPermitState,
  type SqlRow,
} from '@holdfast/core';

/**
 * Permits as they stand in the file: reading, and the compare-and-set by which alone they move (PM2).
 *
 * Owns `hf_permit` and `hf_permit_operation`. Durable. Worst outcome: a late or foreign owner moves a permit; therefore
 * every write names permit, log, generation, host instance and the state it was read in. Invariant: `ended_at` is NULL
 * exactly while the state is not terminal.
 */

/** What names a permit to its owner. A gateway sends it back with everything it asks. */
export interface PermitRef {
  readonly permitId: string;
  readonly log: string;
  readonly generation: number;
  readonly hostInstance: string;
}

export interface Permit extends PermitRef {
  /** Counts up within its generation; the ledger checks and echoes it (LG8, LG10). */
  readonly number: number;
  readonly ownerMode: OwnerMode;
  readonly class: OperationClass;
  /** Where the request starts from: a position, one per log, or null for the beginning. Undefined if unreadable. */
  readonly boundary: Json | undefined;
  /** Request ids of a push. */
  readonly operations: readonly string[];
  /** Of a dispatch. */
  readonly commandId: string | null;
  readonly state: PermitState;
  readonly disposition: Disposition;
  readonly reason: string | null;
  /** Instants are for people (PM12). */
  readonly issuedAt: string;
  readonly dueAt: string;
  readonly movedAt: string;
  readonly endedAt: string | null;
}

/** A permit with what its row says word for word, for the compare-and-set. */
export interface StoredPermit {
  readonly seq: number;
  readonly permit: Permit;
  readonly storedState: string;
  readonly storedBoundary: string | null;
}

/** One look at everything that the checks of one step need. */
export interface PermitView {
  readonly stored: StoredPermit | null;
  readonly generation: number;
  readonly hostInstance: string;
  readonly place: OwnershipPlace;
  /** A `local-commit-entered` of this log is in the file: other code wrote it (PM10). */
  readonly hasFoundLocalCommit: boolean;
  /** Some obligation is open. */
  readonly isOwing: boolean;
  /** The highest number given in the present generation. */
  readonly lastNumber: number;
}

/** `hf_permit.log` of a request that is about all followed logs: a handshake. Always active; no log has this name. */
export const WHOLE_WORKSPACE = '*';

const PERMIT_COLUMNS = `p.seq, p.permit_id, p.log, p.generation, p.number, p.host_instance, p.owner_mode, p.class,
  p.command_id, p.boundary, p.state, p.disposition, p.reason, p.issued_at, p.due_at, p.moved_at, p.ended_at,
  (SELECT json_group_array(o.request_id) FROM main.hf_permit_operation o WHERE o.permit = p.seq) AS operations`;

const VIEW = `SELECT ${PERMIT_COLUMNS},
  c.generation AS now_generation, c.host_instance AS now_host_instance,
  c.mode, c.transition, c.transfer_target, c.transfer_phase,
  EXISTS (SELECT 1 FROM main.hf_permit b
    WHERE b.log = ?2 AND b.state = 'local-commit-entered' AND b.ended_at IS NULL) AS found_local_commit,
  EXISTS (SELECT 1 FROM main.hf_obligation WHERE closed_at IS NULL) AS owing,
  (SELECT iif(n.generation = c.generation, n.number, 0) FROM main.hf_permit n ORDER BY n.seq DESC LIMIT 1) AS last_number
  FROM main.hf_coordinator c LEFT JOIN main.hf_permit p ON p.permit_id = ?1 WHERE c.one = 1`;

export function viewPermit(database: Database, permitId: string, log: string): PermitView {
  const row = database.prepare(VIEW).get(permitId, log) as SqlRow;
  return {
    stored: row['seq'] === null ? null : readStored(row),
    generation: row['now_generation'] as number,
    hostInstance: row['now_host_instance'] as string,
    place: readPlace(row),
    hasFoundLocalCommit: row['found_local_commit'] === 1,
    isOwing: row['owing'] === 1,
    lastNumber: (row['last_number'] as number | null) ?? 0,
  };
}

export const readPlace = (row: SqlRow): OwnershipPlace =>
  readOwnership({
    mode: row['mode'],
    transition: row['transition'],
    target: row['transfer_target'],
    phase: row['transfer_phase'],
  });

/** Active permits in the order of their issue. `where` is SQL of this module's callers, never input. */
export function activePermits(
  database: Database,
  where: string,
  parameters: readonly (string | number)[],
  limit: number,
): readonly StoredPermit[] {
  return database
    .prepare(
      `SELECT ${PERMIT_COLUMNS} FROM main.hf_permit p WHERE p.ended_at IS NULL AND ${where} ORDER BY p.seq LIMIT ?`,
    )
    .all(...parameters, limit)
    .map(readStored);
}

function readStored(row: SqlRow): StoredPermit {
  const operations = row['operations'] === '[]' ? [] : (JSON.parse(row['operations'] as string) as string[]);
  const commandId = row['command_id'] as string | null;
  const storedBoundary = row['boundary'] as string | null;
  return {
    seq: row['seq'] as number,
    storedState: row['state'] as string,
    storedBoundary,
    permit: {
      permitId: row['permit_id'] as string,
      log: row['log'] as string,
      generation: row['generation'] as number,
      number: row['number'] as number,
      hostInstance: row['host_instance'] as string,
      ownerMode: readOwnerMode(row['owner_mode']),
      class: readOperationClass(row['class'], operations.length > 0 ? 'operations' : commandId ? 'command' : 'nothing'),
      boundary: readBoundary(storedBoundary),
      operations,
      commandId,
      state: readPermitState(row['state']),
      disposition: readDisposition(row['disposition']),
      reason: row['reason'] as string | null,
      issuedAt: row['issued_at'] as string,
      dueAt: row['due_at'] as string,
      movedAt: row['moved_at'] as string,
      endedAt: row['ended_at'] as string | null,
    },
  };
}

export const boundaryText = (boundary: Json): string | null => (boundary === null ? null : canonical(boundary));

/** Undefined for a text that is no JSON: it then lies nowhere (PM13). */
export function readBoundary(text: string | null): Json | undefined {
  if (text === null) return null;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

const MOVE = `UPDATE main.hf_permit SET state = ?, disposition = ?, reason = ?, moved_at = ?, ended_at = ?
  WHERE permit_id = ? AND log = ? AND generation = ? AND host_instance = ? AND state = ? AND ended_at IS NULL`;

/** The compare-and-set. Null: the row is no longer as it was read; nothing changed. */
export function movePermit(
  database: Database,
  stored: StoredPermit,
  to: { readonly state: PermitState; readonly disposition: Disposition; readonly reason?: EndReason },
  at: { readonly instant: string; readonly isEnd: boolean },
): StoredPermit | null {
  const { permit } = stored;
  const reason = to.reason ?? null;
  const endedAt = at.isEnd ? at.instant : null;
  const { changes } = database
    .prepare(MOVE)
    .run(
      to.state,
      to.disposition,
      reason,
      at.instant,
      endedAt,
      permit.permitId,
      permit.log,
      permit.generation,
      permit.hostInstance,
      stored.storedState,
    );
  if (changes !== 1) return null;
  const moved: Permit = {
    ...permit,
    state: to.state,
    disposition: to.disposition,
    reason,
    movedAt: at.instant,
    endedAt,
  };
  return { ...stored, permit: moved, storedState: to.state };
}

/** What the ledger said of one operation of a push: its status and what belongs to it. */
export interface OperationOutcome {
  readonly requestId: string;
  readonly outcome: JsonObject;
}

export function writeOutcomes(database: Database, seq: number, outcomes: readonly OperationOutcome[]): void {
  if (outcomes.length === 0) return;
  const byRequest = Object.fromEntries(outcomes.map(({ requestId, outcome }) => [requestId, canonical(outcome)]));
  database
    .prepare(
      // Materialized, so that it gets an index: else each operation is compared with every result.
      `WITH result AS MATERIALIZED (SELECT key, value FROM json_each(?1))
       UPDATE main.hf_permit_operation SET outcome = result.value FROM result
       WHERE hf_permit_operation.permit = ?2 AND hf_permit_operation.request_id = result.key`,
    )
    .run(JSON.stringify(byRequest), seq);
}

export function readOutcomes(database: Database, seq: number): readonly OperationOutcome[] {
  return database
    .prepare('SELECT request_id, outcome FROM main.hf_permit_operation WHERE permit = ? AND outcome IS NOT NULL')
    .all(seq)
    .map((row) => ({
      requestId: row['request_id'] as string,
      outcome: JSON.parse(row['outcome'] as string) as JsonObject,
    }));
}

/** A state that a step leads to, as `movePermit` takes it. */
export type Move = Extract<PermitStep, { readonly move: 'to' }>;
