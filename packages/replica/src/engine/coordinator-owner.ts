import {
  type Database,
  fail,
  isSteady,
  LIMITS,
  type Outcome,
  type OwnerMode,
  type OwnershipPlace,
  type OwnershipSignal,
  ownershipRow,
  type SqlRow,
  sourceOwner,
  stepOwnership,
  stepPermit,
} from '@holdfast/core';
import { type EndedPermit, endPermit, type Overtaken, overtake } from './coordinator-end.ts';
import type { CoordinatorParts } from './coordinator-parts.ts';
import { activePermits, readPlace } from './coordinator-permit.ts';
import { FaultError } from './fault-error.ts';

/**
 * Who may act: the generation, and the transfer between owners (OW1, OW2). Every step is one transaction, the caller's,
 * and can be repeated after a kill. Commits go on all the while.
 *
 * Owns the one row of `hf_coordinator`. Durable. Worst outcome: two owners at once; therefore the owner changes only
 * together with the generation, by compare-and-set.
 */
export interface Ownership {
  readonly generation: number;
  readonly hostInstance: string;
  readonly place: OwnershipPlace;
  /** The steady owner, or the one that hands over. */
  readonly owner: OwnerMode;
  /** Of a transfer under way; null otherwise. */
  readonly deadlineMs: number | null;
}

/**
 * PM8: a new run of the host. Afterwards nothing of an earlier one takes effect here, and, once the ledger has seen it,
 * there (LG8). RP2: the caller syncs this transaction to the medium before anything leaves.
 */
export function raiseGeneration(database: Database, hostInstance: string): number {
  const row = database
    .prepare(
      `UPDATE main.hf_coordinator SET generation = generation + 1, host_instance = ? WHERE one = 1 RETURNING generation`,
    )
    .get(hostInstance);
  return (row as SqlRow)['generation'] as number;
}

export function readOwnershipOf(database: Database): Ownership {
  const row = database
    .prepare(
      `SELECT generation, host_instance, mode, transition, transfer_target, transfer_phase, transfer_deadline
       FROM main.hf_coordinator WHERE one = 1`,
    )
    .get() as SqlRow;
  const place = readPlace(row);
  return {
    generation: row['generation'] as number,
    hostInstance: row['host_instance'] as string,
    place,
    owner: sourceOwner(place),
    deadlineMs: isSteady(place) ? null : ((row['transfer_deadline'] as number | null) ?? 0),
  };
}

export type TransferFaultCode = 'stale-generation' | 'permit-state-conflict';

export interface Drained {
  readonly ownership: Ownership;
  /** Never-started permits, abandoned clean by this call. */
  readonly abandoned: readonly EndedPermit[];
  /** Permits that are still to finish, or to expire into obligations. 0: only the switch is left. */
  readonly active: number;
}

export interface Transfer {
  /** No new permits from now on. Repeating it goes on with the transfer under way. */
  prepare(request: {
    readonly target: OwnerMode;
    readonly deadlineMs: number;
    readonly generation?: number;
  }): Outcome<Ownership, TransferFaultCode>;
  /** Call until `active` is 0. Abandons a bounded batch of never-started permits each time. */
  drain(claim?: Claim): Outcome<Drained, TransferFaultCode>;
  /** Generation + 1, new owner, idle. Only once drained. RP2: synced by the caller. */
  switch(claim?: Claim): Outcome<Ownership, TransferFaultCode>;
  /** Back to the source owner, under the same generation. What was abandoned stays so. */
  abort(claim?: Claim): Outcome<Ownership, TransferFaultCode>;
  /** After the deadline: ends what is active by PM6, then switches. A found local commit stays untouched. */
  force(claim?: Claim): Outcome<{ readonly ownership: Ownership; readonly overtaken: Overtaken }, TransferFaultCode>;
  current(): Ownership;
}

/** What the asking owner believes to be the present generation. */
export interface Claim {
  readonly generation?: number;
}

export function createTransfer(parts: CoordinatorParts): Transfer {
  const { database } = parts;
  /** When the deadline began on this run's clock. A later run gives a transfer it found the full time again (PM12). */
  let begunAtMs = parts.clock.monotonic();

  const step = (
    signal: OwnershipSignal,
    claim: Claim,
    deadlineMs?: number,
  ): Outcome<{ readonly before: Ownership; readonly after: Ownership }, TransferFaultCode> => {
    const before = readOwnershipOf(database);
    if (isStaleClaim(parts, before, claim))
      return fail('stale-generation', { held: claim.generation ?? null, newest: before.generation });
    const next = stepOwnership(before.place, signal);
    if (next.move === 'refused') return fail('permit-state-conflict', { ownership: before.place, signal });
    if (next.move === 'stay') return { ok: true, value: { before, after: before } };
    const generation = before.generation + (next.effects.includes('raise-generation') ? 1 : 0);
    const after = {
      ...before,
      generation,
      place: next.place,
      owner: sourceOwner(next.place),
      deadlineMs: isSteady(next.place) ? null : (deadlineMs ?? before.deadlineMs),
    };
    write(database, before, after);
    return { ok: true, value: { before, after } };
  };

  return {
    prepare: ({ target, deadlineMs, ...claim }) => {
      const moved = step(target === 'host' ? 'prepare-host' : 'prepare-browser', claim, deadlineMs);
      if (!moved.ok) return moved;
      if (moved.value.after.place !== moved.value.before.place) begunAtMs = parts.clock.monotonic();
      return { ok: true, value: moved.value.after };
    },
    drain: (claim = {}) => {
      const draining = step('drain', claim);
      if (!draining.ok) return draining;
      const abandoned = abandonNeverStarted(parts);
      const active = countActive(database);
      if (active > 0) return { ok: true, value: { ownership: draining.value.after, abandoned, active } };
      const drained = step('drained', claim);
      return drained.ok ? { ok: true, value: { ownership: drained.value.after, abandoned, active } } : drained;
    },
    switch: (claim = {}) => afterOf(step('switch', claim)),
    abort: (claim = {}) => afterOf(step('abort', claim)),
    force: (claim = {}) => {
      const before = readOwnershipOf(database);
      const remainingMs = (before.deadlineMs ?? 0) - (parts.clock.monotonic() - begunAtMs);
      if (before.deadlineMs !== null && remainingMs > 0 && !isStaleClaim(parts, before, claim))
        return fail('permit-state-conflict', { ownership: before.place, remainingMs });
      const forced = step('force', claim);
      if (!forced.ok) return forced;
      const permits = activePermits(database, '1', [], LIMITS.permitPruneSweep);
      return {
        ok: true,
        value: { ownership: forced.value.after, overtaken: overtake(parts, permits, 'forced-switch') },
      };
    },
    current: () => readOwnershipOf(database),
  };
}

const afterOf = (
  moved: Outcome<{ readonly after: Ownership }, TransferFaultCode>,
): Outcome<Ownership, TransferFaultCode> => (moved.ok ? { ok: true, value: moved.value.after } : moved);

const isStaleClaim = (parts: CoordinatorParts, now: Ownership, claim: Claim): boolean =>
  now.hostInstance !== parts.hostInstance || (claim.generation ?? now.generation) !== now.generation;

function abandonNeverStarted(parts: CoordinatorParts): readonly EndedPermit[] {
  const idle = activePermits(parts.database, `p.state = 'issued-idle'`, [], LIMITS.permitPruneBatch);
  const ended: EndedPermit[] = [];
  for (const stored of idle) {
    const step = stepPermit(stored.permit, 'abandon');
    if (step.move !== 'to') continue;
    const end = endPermit(parts, stored, step, 'drained-not-started');
    if (end !== null) ended.push(end);
  }
  return ended;
}

const countActive = (database: Database): number =>
  (
    database.prepare('SELECT count(*) AS active FROM main.hf_permit WHERE ended_at IS NULL').get() as {
      readonly active: number;
    }
  ).active;

function write(database: Database, before: Ownership, after: Ownership): void {
  const row = ownershipRow(after.place);
  const { changes } = database
    .prepare(
      `UPDATE main.hf_coordinator SET generation = ?, mode = ?, transition = ?, transfer_target = ?, transfer_phase = ?,
       transfer_deadline = ? WHERE one = 1 AND generation = ? AND host_instance = ?`,
    )
    .run(
      after.generation,
      row.mode,
      row.transition,
      row.target,
      row.phase,
      after.deadlineMs,
      before.generation,
      before.hostInstance,
    );
  if (changes !== 1) throw new FaultError({ code: 'stale-generation', facts: { held: before.generation } });
}
