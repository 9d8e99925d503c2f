import {
  assert,
  fail,
  type Json,
  LIMITS,
  mayStart,
  type OperationClass,
  type Outcome,
  type OwnerMode,
  type PermitStanding,
  stepPermit,
} from '@holdfast/core';
import { clampDurationMs } from './coordinator-deadlines.ts';
import { type PermitFaultCode, permittedStep } from './coordinator-fence.ts';
import { type CoordinatorParts, instantOf, isLogActive } from './coordinator-parts.ts';
import {
  boundaryText,
  movePermit,
  type Permit,
  type PermitRef,
  type PermitView,
  type StoredPermit,
  viewPermit,
} from './coordinator-permit.ts';

/** Issue and start (PM1, PM3, PM4). Both run inside the caller's transaction; a refusal changes nothing. */
export interface PermitRequest {
  /** Given by a caller that may have to ask again; a new id otherwise. */
  readonly permitId?: string;
  readonly log: string;
  readonly class: OperationClass;
  /** The position the request starts from; one per log for a handshake; null for the beginning. */
  readonly boundary: Json;
  /** Request ids, for a push and only for a push. */
  readonly operations?: readonly string[];
  /** For a dispatch and only for a dispatch. */
  readonly commandId?: string;
  /** Silence after which the permit is overdue. Default `LIMITS.requestSilenceMs`. */
  readonly deadlineMs?: number;
  /** Who performs the request. Default `host`. */
  readonly ownerMode?: OwnerMode;
  /** What a gateway believes to be the present generation. */
  readonly generation?: number;
}

const ISSUED = { state: 'issued-idle', disposition: 'not-started' } as const;

/** `issued-idle`. Re-issue with the same id and input returns the permit as it now is, even ended, unchecked (PM1). */
export const issue = (parts: CoordinatorParts, request: PermitRequest): Outcome<Permit, PermitFaultCode> =>
  issueAs(parts, request, ISSUED);

/** Mode `host`: issue and start in one (PM10). From the commit of this transaction on the outcome is unknown (PM3). */
export function issueAndStart(parts: CoordinatorParts, request: PermitRequest): Outcome<Permit, PermitFaultCode> {
  const owner = request.ownerMode ?? 'host';
  if (owner !== 'host')
    return fail('permits-disabled', { owner, reason: 'a gateway starts in a transaction of its own' });
  const step = stepPermit({ ...ISSUED, class: request.class }, 'start');
  if (step.move !== 'to') return fail('permit-state-conflict', { class: request.class });
  return issueAs(parts, request, step);
}

/** PM3: from here a request may leave, and its outcome is unknown until an answer is stored. */
export function start(parts: CoordinatorParts, ref: PermitRef): Outcome<Permit, PermitFaultCode> {
  const view = viewPermit(parts.database, ref.permitId, ref.log);
  const permitted = permittedStep(view, {
    ref,
    actingInstance: parts.hostInstance,
    signals: ['start'],
    depth: 'start',
    isLogActive: isLogActive(parts, view.stored?.permit.log ?? ref.log),
    overdueMs: parts.deadlines.overdueMs(ref.permitId, parts.clock.monotonic()),
  });
  if (!permitted.ok) return permitted;
  const { made, stored } = permitted.value;
  if (made) return { ok: true, value: stored.permit };
  const moved = movePermit(parts.database, stored, permitted.value.step, { instant: instantOf(parts), isEnd: false });
  return moved === null ? fail('permit-state-conflict', { permit: ref.permitId }) : { ok: true, value: moved.permit };
}

function issueAs(
  parts: CoordinatorParts,
  request: PermitRequest,
  standing: Pick<PermitStanding, 'state' | 'disposition'>,
): Outcome<Permit, PermitFaultCode> {
  checkForm(request);
  const permitId = request.permitId ?? parts.newId();
  const view = viewPermit(parts.database, permitId, request.log);
  if (view.stored !== null && isSameInput(view, view.stored, request)) return { ok: true, value: view.stored.permit };
  const fault = refusalAtIssue(parts, view, request);
  return fault ?? { ok: true, value: insert(parts, view, { ...request, permitId }, standing) };
}

/** What a class must and must not name (PM4). Anything else is a defect of the caller. */
function checkForm({ class: operationClass, operations, commandId }: PermitRequest): void {
  const names = operations?.length ?? 0;
  assert(operationClass === 'push' ? names > 0 : names === 0, 'a push permit, and no other, lists operations');
  assert(new Set(operations).size === names, 'an operation is listed once');
  assert(
    (operationClass === 'dispatch') === (commandId !== undefined),
    'a dispatch permit, and no other, names a command',
  );
}

/** The generation names the run of the host, too: each run raises it (PM8). */
function isSameInput(view: PermitView, { permit, storedBoundary }: StoredPermit, request: PermitRequest): boolean {
  const operations = new Set(request.operations);
  return (
    permit.log === request.log &&
    permit.class === request.class &&
    permit.generation === (request.generation ?? view.generation) &&
    permit.ownerMode === (request.ownerMode ?? 'host') &&
    permit.commandId === (request.commandId ?? null) &&
    storedBoundary === boundaryText(request.boundary) &&
    permit.operations.length === operations.size &&
    permit.operations.every((requestId) => operations.has(requestId))
  );
}

function refusalAtIssue(parts: CoordinatorParts, view: PermitView, request: PermitRequest) {
  const generation = request.generation ?? view.generation;
  const owner = request.ownerMode ?? 'host';
  if (view.hasFoundLocalCommit) return fail('local-commit-invariant', { log: request.log });
  if (view.stored !== null) return fail('permit-identity-conflict', { permit: view.stored.permit.permitId });
  if ((request.deadlineMs ?? 1) <= 0) return fail('permit-expired', { deadlineMs: request.deadlineMs });
  if (generation !== view.generation || !isOurs(parts, view))
    return fail('stale-generation', { held: generation, newest: view.generation });
  if (!isLogActive(parts, request.log)) return fail('inactive-log', { log: request.log });
  if (!mayStart(view.place, owner)) return fail('permits-disabled', { owner, ownership: view.place });
  return null;
}

/** False for a host that was outranked and does not know it yet. */
const isOurs = (parts: CoordinatorParts, view: PermitView): boolean => view.hostInstance === parts.hostInstance;

function insert(
  parts: CoordinatorParts,
  view: PermitView,
  request: PermitRequest & { readonly permitId: string },
  standing: Pick<PermitStanding, 'state' | 'disposition'>,
): Permit {
  const durationMs = clampDurationMs(request.deadlineMs ?? LIMITS.requestSilenceMs);
  const issuedAt = instantOf(parts);
  const permit: Permit = {
    permitId: request.permitId,
    log: request.log,
    generation: view.generation,
    number: view.lastNumber + 1,
    hostInstance: view.hostInstance,
    ownerMode: request.ownerMode ?? 'host',
    class: request.class,
    boundary: request.boundary,
    operations: request.operations ?? [],
    commandId: request.commandId ?? null,
    state: standing.state,
    disposition: standing.disposition,
    reason: null,
    issuedAt,
    dueAt: instantOf(parts, durationMs),
    movedAt: issuedAt,
    endedAt: null,
  };
  insertPermit(parts, permit);
  parts.deadlines.begin(permit.permitId, durationMs, parts.clock.monotonic());
  return permit;
}

const INSERT = `INSERT INTO main.hf_permit (permit_id, log, generation, number, host_instance, owner_mode, class,
  command_id, boundary, state, disposition, issued_at, due_at, moved_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

function insertPermit({ database }: CoordinatorParts, permit: Permit): void {
  const { lastInsertRowid } = database
    .prepare(INSERT)
    .run(
      permit.permitId,
      permit.log,
      permit.generation,
      permit.number,
      permit.hostInstance,
      permit.ownerMode,
      permit.class,
      permit.commandId,
      boundaryText(permit.boundary ?? null),
      permit.state,
      permit.disposition,
      permit.issuedAt,
      permit.dueAt,
      permit.movedAt,
    );
  if (permit.operations.length > 0)
    database
      .prepare('INSERT INTO main.hf_permit_operation (permit, request_id) SELECT ?1, value FROM json_each(?2)')
      .run(lastInsertRowid, JSON.stringify(permit.operations));
}
