import {
  type EntityFields,
  type EntityState,
  type EventDraft,
  foldChange,
  foldStored,
  type JsonObject,
  judgeEvent,
  type RefusalCode,
  RUN_TIME_TYPE,
  type StoredEvent,
  sameValue,
  theirsSince,
} from '@holdfast/core';
import type { Actor, Admit } from './engine.ts';
import type { EntityInWork, LogInWork } from './log-in-work.ts';
import { definitionProblem } from './run-time-type.ts';
import { numbered, type SerialFields, serialsOfDefinition, serialWritten } from './serials.ts';

/** Why an operation is refused: one of LG4's answers, with its facts. */
export interface EventRefusal {
  readonly code: RefusalCode;
  readonly message?: string;
  readonly details?: JsonObject;
}

export const refusal = (code: RefusalCode, details?: JsonObject, message?: string): EventRefusal => ({
  code,
  ...(message === undefined ? {} : { message }),
  ...(details === undefined ? {} : { details }),
});

export const isRefusal = (value: object): value is EventRefusal => 'code' in value;

/** What judging an event needs besides the log. */
export interface EventContext {
  readonly workspace: string;
  readonly actor: Actor;
  readonly recordedAt: string;
  readonly merge: 'fields' | 'author';
  readonly serials: SerialFields;
  readonly admit: Admit | undefined;
}

/** An event that is accepted if its operation is. */
export interface JudgedEvent {
  readonly entity: EntityInWork;
  readonly entityVersion: number;
  readonly assigned: JsonObject | undefined;
  /** Log version of the entity's event before it; 0 for none. */
  readonly previous: number;
}

/**
 * LG4 for one event, in its order: prior, base, theirs, clash; then fold (EV6), numbers (EV7) and `admit` (LG14). On
 * success the entity stands as after the event. `own` are the earlier events of the same operation, by id.
 */
export function judgeOne(
  log: LogInWork,
  draft: EventDraft,
  place: { readonly version: number; readonly path: string; readonly own: ReadonlyMap<string, EventDraft> },
  context: EventContext,
): JudgedEvent | EventRefusal {
  const entity = log.entity(draft.entityType, draft.entityId);
  const before = log.touch(entity);
  const missing = priorProblem(log, draft, place);
  if (missing !== null) return missing;
  if (draft.base > before.version)
    return refusal('base-ahead', { ...named(entity), base: draft.base, entityVersion: before.version });
  const verdict = verdictOf(entity, draft, context.merge);
  if (verdict === 'clash')
    return refusal('version-conflict', {
      ...named(entity),
      entityVersion: before.version,
      logVersion: before.lastVersion,
      event: draft.id,
    });
  const effect = verdict === 'apply' ? folded(log, entity, draft, place.path, context.serials) : null;
  if (effect !== null && isRefusal(effect)) return effect;
  return append(log, entity, draft, place.version, effect, context);
}

const named = ({ type, id }: EntityInWork): JsonObject => ({ type, id });

function priorProblem(
  log: LogInWork,
  { prior, entityType, entityId }: EventDraft,
  { own, path }: { readonly own: ReadonlyMap<string, EventDraft>; readonly path: string },
): EventRefusal | null {
  if (prior === undefined) return null;
  const found = own.get(prior) ?? log.event(prior);
  if (found === undefined) return refusal('prior-missing', { prior });
  return found.entityType === entityType && found.entityId === entityId
    ? null
    : refusal('invalid-event', { path: `${path}.prior`, reason: 'an event of another entity' });
}

function verdictOf(entity: EntityInWork, draft: EventDraft, merge: 'fields' | 'author'): 'apply' | 'same' | 'clash' {
  const { base } = draft;
  // The usual case: the author saw the newest version.
  if (base === entity.version) return 'apply';
  const oldest = entity.events[0];
  // Not all of them were read: more than anybody looks at (LG4's bound). The replica judges there.
  if (oldest === undefined || oldest.entityVersion > base + 1) return 'clash';
  const found = theirsSince(entity.events, { base, prior: draft.prior });
  if (found.isTooMany) return 'clash';
  if (found.theirs.length === 0) return 'apply';
  if (merge === 'author') return 'clash';
  const { verdict } = judgeEvent(
    draft.change,
    found.theirs.map((their) => their.change),
  );
  return verdict;
}

/** Fields after a change that takes effect, or why it cannot. */
function folded(
  log: LogInWork,
  entity: EntityInWork,
  draft: EventDraft,
  path: string,
  serials: SerialFields,
): { readonly fields: EntityFields } | EventRefusal {
  const outcome = foldChange(entity.state?.fields, draft.change);
  if (!outcome.ok) {
    const facts = outcome.fault.facts as JsonObject;
    return refusal('invalid-event', { ...facts, path: `${path}.${String(facts['path'])}` });
  }
  const fields = outcome.value;
  if (draft.entityType === RUN_TIME_TYPE) {
    const problem = definitionProblem(draft.entityId, { before: entity.state?.fields, after: fields }, log);
    if (problem !== null) return refusal('invalid-event', { path: `${path}.change`, reason: problem });
  }
  if (entity.state === undefined) return { fields };
  const written = serialWritten(draft.change, serialsFor(log, entity.type, serials));
  return written === undefined
    ? { fields }
    : refusal('invalid-event', { path: `${path}.change`, reason: 'the ledger numbers this field', field: written });
}

/** `effect` is what the change does to the fields; null for one that was accepted as the same. */
function append(
  log: LogInWork,
  entity: EntityInWork,
  draft: EventDraft,
  version: number,
  effect: { readonly fields: EntityFields } | null,
  context: EventContext,
): JudgedEvent | EventRefusal {
  const { state: before, lastVersion: previous } = entity;
  const entityVersion = entity.version + 1;
  const assigned = effect !== null && before === undefined ? numbersFor(log, entity, draft, context) : undefined;
  const place = { version, entityVersion, actor: context.actor.account, recordedAt: context.recordedAt };
  const after =
    effect !== null && assigned === undefined
      ? stateWith(before, draft, place, effect.fields)
      : foldStored(before, { ...draft, ...place, ...(assigned === undefined ? {} : { assigned }) } as StoredEvent);
  entity.state = after;
  entity.version = entityVersion;
  entity.lastVersion = version;
  entity.events.push({ id: draft.id, prior: draft.prior, entityVersion, change: draft.change });
  const notAdmitted = context.admit === undefined ? null : askAdmit(context.admit, log, draft, before, after, context);
  return notAdmitted ?? { entity, entityVersion, assigned, previous };
}

/** What `foldStored` gives for an event whose effect is known: its change need not be folded twice. */
function stateWith(
  before: EntityState | undefined,
  draft: EventDraft,
  {
    version,
    entityVersion,
    actor,
    recordedAt,
  }: Pick<StoredEvent, 'version' | 'entityVersion' | 'actor' | 'recordedAt'>,
  fields: EntityFields,
): EntityState | undefined {
  if (fields === undefined) return undefined;
  const made = before ?? { createdBy: actor, createdAt: recordedAt, arrival: version };
  return {
    type: draft.entityType,
    id: draft.entityId,
    version: entityVersion,
    fields,
    createdBy: made.createdBy,
    createdAt: made.createdAt,
    updatedBy: actor,
    updatedAt: recordedAt,
    arrival: made.arrival,
  };
}

function numbersFor(
  log: LogInWork,
  entity: EntityInWork,
  draft: EventDraft,
  context: EventContext,
): JsonObject | undefined {
  if (draft.change.op === 'delete') return undefined;
  const fields = serialsFor(log, entity.type, context.serials);
  if (fields.length === 0) return undefined;
  const { assigned, serials } = numbered(entity.type, fields, entity.assigned, log.serials);
  log.serials = serials;
  entity.assigned = { ...entity.assigned, ...assigned };
  return assigned;
}

/** A type's serial fields: from the configured schema, from the log in work, or as the store knows it. */
function serialsFor(log: LogInWork, type: string, serials: SerialFields): readonly string[] {
  if (serials.knows(type)) return serials.of(type);
  const defined = log.definition(type);
  if (defined !== undefined) return serialsOfDefinition(defined);
  return [];
}

function askAdmit(
  admit: Admit,
  log: LogInWork,
  draft: EventDraft,
  before: EntityState | undefined,
  after: EntityState | undefined,
  context: EventContext,
): EventRefusal | null {
  const answer: unknown = admit(
    {
      workspace: context.workspace,
      log: log.read.log.log,
      entityType: draft.entityType,
      entityId: draft.entityId,
      before,
      after,
      changed: changedFields(before?.fields, after?.fields),
      type: draft.type,
    },
    context.actor,
  );
  if (answer === undefined || answer === null) return null;
  if (typeof answer !== 'object' || 'then' in answer || !('reason' in answer))
    throw new TypeError('admit must return a refusal or nothing, and not later');
  const { reason, message, field, details } = answer as ReturnType<Admit> & object;
  return refusal(
    'not-admitted',
    { ...details, reason, event: draft.id, ...(field === undefined ? {} : { field }) },
    message,
  );
}

export function changedFields(before: JsonObject | undefined, after: JsonObject | undefined): readonly string[] {
  if (before === after) return [];
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const own = (fields: JsonObject | undefined, name: string) =>
    fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
  return [...names].filter((name) => !sameValue(own(before, name), own(after, name))).sort();
}
