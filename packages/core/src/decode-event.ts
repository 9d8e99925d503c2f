import { canonical } from './canonical.ts';
import {
  atLeast,
  byTag,
  type Check,
  decode,
  exactly,
  listOf,
  oneOfTexts,
  open,
  optional,
  recordOf,
  text,
  textWhere,
  whole,
  yes,
} from './decode-check.ts';
import type { Change, EntityState, ErasedEvent, EventDraft, MergeRule, StoredEvent } from './events.ts';
import { type Fault, fail, type Outcome, ok } from './faults.ts';
import { isDigest, isId, isInstant, isSalt, isUuidV7 } from './ids.ts';
import { found, type Json, problemIn } from './json.ts';
import { LIMITS } from './limits.ts';
import { utf8Length } from './utf8.ts';

/**
 * Events in two measures. A new draft is read strictly: what is accepted once stays for ever. An event that a ledger
 * accepted is read by its structure only, because another version may have had other limits (F129); fold is total.
 */

export const id = textWhere(isId, `an id (1 to ${LIMITS.idLengthMax} visible ASCII characters)`);
export const uuid = textWhere(isUuidV7, 'a UUID of version 7');
export const digestText = textWhere(isDigest, '64 lower-case hex digits');
export const instant = textWhere(isInstant, 'an instant like 2026-11-30T00:00:00.000Z');
const salt = textWhere(isSalt, '32 lower-case hex digits');

/** Types and fields on the wire. Names of a schema are narrower (SC7); `holdfast.entity-type` and others' are not. */
const nameUpTo = (max: number): Check<string> =>
  textWhere(
    (value): value is string => typeof value === 'string' && value.length <= max && /^[A-Za-z][\w.-]*$/.test(value),
    `a letter, then letters, digits, ".", "-" or "_", at most ${max} in all,`,
  );
export const wireName = nameUpTo(LIMITS.nameLengthMax);
/** An entity type, a dot, and what was done. */
const eventType = nameUpTo(2 * LIMITS.nameLengthMax + 1);

// ── changes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A value of a field or an element of a set. `null` is none: absent, or `unset`, says it (JS4). */
const value: Check<Json> = (json, depth) =>
  json === null ? found('null is not a value; unset says that there is none') : problemIn(json, depth);

function changeOf(field: Check<string>, max: number): Check<Change> {
  const byField = <T>(check: Check<T>) => recordOf(check, { key: field, max });
  const fields = byField(value);
  /** A rule that this code does not know is kept: whoever reads it asks a person. */
  const rules = optional(byField(text as Check<MergeRule>));
  return byTag<Change>('op', {
    create: exactly({ op: oneOfTexts('create'), fields }),
    update: exactly({
      op: oneOfTexts('update'),
      set: optional(fields),
      unset: optional(listOf(field, max)),
      inc: optional(byField(whole(Number.MIN_SAFE_INTEGER))),
      add: optional(byField(listOf(value))),
      remove: optional(byField(listOf(value))),
      rules,
    }),
    put: exactly({ op: oneOfTexts('put'), set: fields, rules }),
    delete: exactly({ op: oneOfTexts('delete') }),
    restore: exactly({ op: oneOfTexts('restore'), fields }),
  });
}

const newChange = changeOf(wireName, LIMITS.fieldsPerEntityMax);
const acceptedChange = changeOf(text, Number.MAX_SAFE_INTEGER);

export const decodeChange = (json: unknown): Outcome<Change, 'invalid-event'> =>
  decode('invalid-event', newChange, json, { depth: 1 });

// ── drafts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const newDraft: Check<EventDraft> = exactly({
  id: uuid,
  type: eventType,
  entityType: wireName,
  entityId: id,
  change: newChange,
  base: whole(0),
  prior: optional(uuid),
  at: instant,
  salt,
  meta: optional(open),
});

/** Depth counts from the draft: where it stands in a message does not make its values shallower. */
export const draft: Check<EventDraft> = (json) => newDraft(json, 0);

/** A draft and its canonical text, made once: what is stored, hashed and told later are these bytes. */
export interface DecodedDraft {
  readonly draft: EventDraft;
  readonly text: string;
}

export function decodeEventDraft(json: unknown): Outcome<DecodedDraft, 'invalid-event' | 'too-large'> {
  const decoded = decode('invalid-event', draft, json);
  if (!decoded.ok) return decoded;
  const written = canonical(json as Json);
  const tooLarge = eventSizeFault(written, '');
  return tooLarge === null ? ok({ draft: decoded.value, text: written }) : { ok: false, fault: tooLarge };
}

/** LG6: one event is too large, with the limit. */
export function eventSizeFault(draftText: string, path: string): Fault<'too-large'> | null {
  const max = LIMITS.eventBytesMax;
  if (draftText.length * 3 <= max) return null;
  const bytes = utf8Length(draftText);
  return bytes <= max ? null : fail('too-large', { path, limit: 'eventBytesMax', max, found: bytes }).fault;
}

// ── what a ledger tells ─────────────────────────────────────────────────────────────────────────────────────────────

const ENVELOPE = {
  version: whole(1),
  entityVersion: whole(1),
  actor: text,
  recordedAt: instant,
  requestId: id,
  actionId: id,
  replicaId: id,
  index: whole(0),
  count: whole(1),
  assigned: optional(open),
  origin: optional(exactly({ actor: text, recordedAt: instant })),
} as const;

/** The key sets of events are fixed even in answers: the chain is over exactly these. */
const wholeEvent: Check<StoredEvent> = exactly({
  id,
  type: text,
  entityType: text,
  entityId: id,
  change: acceptedChange,
  base: whole(0),
  prior: optional(id),
  at: text,
  salt,
  meta: optional(open),
  ...ENVELOPE,
});
const erasedEvent: Check<ErasedEvent> = exactly({ ...ENVELOPE, leaf: digestText, erased: yes });

export const storedEvent: Check<StoredEvent | ErasedEvent> = (json) =>
  typeof json === 'object' && json !== null && Object.hasOwn(json, 'erased')
    ? erasedEvent(json, 0)
    : wholeEvent(json, 0);

export const decodeStoredEvent = (json: unknown): Outcome<StoredEvent | ErasedEvent, 'malformed'> =>
  decode('malformed', storedEvent, json);

export const entityState: Check<EntityState> = atLeast({
  type: text,
  id,
  version: whole(1),
  fields: recordOf(value),
  createdBy: text,
  createdAt: instant,
  updatedBy: text,
  updatedAt: instant,
  arrival: whole(1),
});

export const decodeEntityState = (json: unknown): Outcome<EntityState, 'malformed'> =>
  decode('malformed', entityState, json, { depth: -1 });
