import { canonical } from './canonical.ts';
import {
  listOf,
  member,
  objectAt,
  objectOf,
  oneOfTexts,
  open,
  optional,
  type Read,
  recordOf,
  text,
  textWhere,
  unreadable,
  whole,
} from './decode-read.ts';
import {
  type Change,
  DRAFT_KEYS,
  ENVELOPE_KEYS,
  type EntityState,
  type Envelope,
  type ErasedEvent,
  type EventDraft,
  type MergeRule,
  type StoredEvent,
} from './events.ts';
import { isDigest, isId, isInstant, isSalt, isUuidV7 } from './ids.ts';
import type { Json, JsonObject } from './json.ts';
import { LIMITS } from './limits.ts';
import { utf8Length } from './utf8.ts';

export const id = textWhere(isId, 'an id (1 to 128 visible ASCII characters)');
export const uuid = textWhere(isUuidV7, 'a UUID of version 7');
export const digestText = textWhere(isDigest, '64 lower-case hex digits');
export const instant = textWhere(isInstant, 'an instant like 2026-11-30T00:00:00.000Z');
const salt = textWhere(isSalt, '32 lower-case hex digits');

/** Field and type names on the wire: visible, bounded, and never a key that reaches a prototype (S16). */
const isWireName = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length > 0 &&
  value.length <= 2 * LIMITS.nameLengthMax &&
  /^[A-Za-z][\w.-]*$/.test(value);
export const wireName = textWhere(
  isWireName,
  `a name of at most ${2 * LIMITS.nameLengthMax} letters, digits, ".", "-" and "_"`,
);

/** Values by field. `null` is not a value of a field (JS4). */
const fields: Read<JsonObject> = (json, path) => {
  const object = objectAt(json, path);
  for (const field in object) {
    wireName(field, member(path, field));
    if (object[field] === null) unreadable(member(path, field), 'null is not a value; say unset');
  }
  return object;
};

const byField =
  <T>(read: Read<T>): Read<Readonly<Record<string, T>>> =>
  (json, path) => {
    const record = recordOf(read)(json, path);
    for (const field in record) wireName(field, member(path, field));
    return record;
  };

const element: Read<Json> = (json, path) =>
  json === undefined || json === null ? unreadable(path, 'null is no element') : json;
/** A rule that this code does not know is kept: whoever reads it asks a person. */
const rules = byField(text) as Read<Readonly<Record<string, MergeRule>>>;

const CHANGES: Readonly<Record<Change['op'], Read<Change>>> = {
  create: objectOf({ op: oneOfTexts('create'), fields }),
  restore: objectOf({ op: oneOfTexts('restore'), fields }),
  delete: objectOf({ op: oneOfTexts('delete') }),
  put: objectOf({ op: oneOfTexts('put'), set: fields, rules: optional(rules) }),
  update: (json, path) => {
    const change = UPDATE(json, path);
    const touched = [change.set, change.inc, change.add, change.remove].flatMap((part) => Object.keys(part ?? {}));
    const names = [...touched, ...(change.unset ?? [])];
    const isSetChange = (field: string) =>
      Object.hasOwn(change.add ?? {}, field) && Object.hasOwn(change.remove ?? {}, field);
    const twice = names.find((field, at) => names.indexOf(field) !== at && !isSetChange(field));
    if (twice !== undefined) unreadable(member(path, twice), 'one change touches a field in one way');
    return change;
  },
};

const UPDATE = objectOf({
  op: oneOfTexts('update'),
  set: optional(fields),
  unset: optional(listOf(wireName, LIMITS.fieldsPerEntityMax)),
  inc: optional(byField(whole(Number.MIN_SAFE_INTEGER))),
  add: optional(byField(listOf(element))),
  remove: optional(byField(listOf(element))),
  rules: optional(rules),
});

export const change: Read<Change> = (json, path) => {
  const op = oneOfTexts('create', 'update', 'put', 'delete', 'restore')(objectAt(json, path)['op'], member(path, 'op'));
  return CHANGES[op](json, path);
};

const DRAFT = objectOf({
  id: uuid,
  type: wireName,
  entityType: wireName,
  entityId: id,
  change,
  base: whole(0),
  prior: optional(uuid),
  at: instant,
  salt,
  meta: optional(open),
});

/** A draft and its canonical text, made once: what is stored, hashed and told later are these bytes. */
export interface DecodedDraft {
  readonly draft: EventDraft;
  readonly text: string;
}

export const draftWithText: Read<DecodedDraft> = (json, path) => {
  const draft = DRAFT(json, path);
  const written = canonical(json as Json);
  if (written.length * 3 > LIMITS.eventBytesMax && utf8Length(written) > LIMITS.eventBytesMax)
    unreadable(path, `an event holds at most ${LIMITS.eventBytesMax} bytes`);
  return { draft, text: written };
};

const ENVELOPE_SHAPE = {
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
  origin: optional(objectOf({ actor: text, recordedAt: instant }, { lenient: true })),
} as const;

const STORED_KEYS: ReadonlySet<string> = new Set([...DRAFT_KEYS, ...ENVELOPE_KEYS]);
const LENIENT_ENVELOPE = objectOf(ENVELOPE_SHAPE, { lenient: true });
const LENIENT_DRAFT = objectOf(
  {
    id,
    type: text,
    entityType: text,
    entityId: id,
    change: open,
    base: whole(0),
    prior: optional(id),
    at: text,
    salt,
    meta: optional(open),
  },
  { lenient: true },
);

/**
 * An event as a ledger tells it. Key sets are fixed, because the chain is over exactly these; what the change says is for
 * fold to read, which is total.
 */
export const storedEvent: Read<StoredEvent | ErasedEvent> = (json, path) => {
  const object = objectAt(json, path);
  if (object['erased'] === true)
    return {
      ...LENIENT_ENVELOPE(json, path),
      leaf: digestText(object['leaf'], member(path, 'leaf')),
      erased: true,
    } as ErasedEvent;
  objectAt(json, path, STORED_KEYS);
  LENIENT_ENVELOPE(json, path);
  const draft = LENIENT_DRAFT(json, path);
  change(draft.change, member(path, 'change'));
  return object as unknown as StoredEvent;
};

export const envelope: Read<Envelope> = LENIENT_ENVELOPE as Read<Envelope>;

export const entityState: Read<EntityState> = objectOf(
  {
    type: text,
    id,
    version: whole(1),
    fields: open,
    createdBy: text,
    createdAt: instant,
    updatedBy: text,
    updatedAt: instant,
    arrival: whole(1),
  },
  { lenient: true },
);
