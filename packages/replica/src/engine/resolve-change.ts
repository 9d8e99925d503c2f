import {
  type Change,
  canonical,
  type EventDraft,
  foldChange,
  type Json,
  type JsonObject,
  ownValue,
  type RecordedChange,
  sameValue,
} from '@holdfast/core';

/** What is there now, for saying an old intent again. */
export interface TodayParts {
  readonly fieldsOf: (type: string, id: string) => JsonObject | undefined;
  /** Of a deleted entity: what it was. */
  readonly lastFieldsOf: (type: string, id: string) => JsonObject | undefined;
  readonly fieldNamed: (name: string) => { readonly type: string; readonly id: string; readonly wire: string };
  /** The ledger numbers this field: nobody writes it. */
  readonly isNumbered: (type: string, wire: string) => boolean;
}

type OldEvent = Pick<EventDraft, 'type' | 'entityType' | 'entityId' | 'change'>;

/**
 * The intents of a batch that was set aside, said again on top of what is there now, by wire name. What is there already
 * is left out. `values` are a person's own choice for some fields (null: unset), and win over what the batch wrote; chosen
 * for an entity that the batch deleted, they keep it.
 */
export function recordedAsOfToday(
  parts: TodayParts,
  events: readonly OldEvent[],
  values: JsonObject,
): readonly RecordedChange[] {
  const chosen = chosenByEntity(parts, values);
  const states = new Map<string, JsonObject | undefined>();
  const recorded: RecordedChange[] = [];
  for (const event of events) {
    const { entityType: type, entityId: id } = event;
    const key = `${type} ${id}`;
    const now = states.has(key) ? states.get(key) : parts.fieldsOf(type, id);
    const own = chosen.get(key) ?? {};
    const change = asOfToday(event.change, now, parts.lastFieldsOf(type, id), own);
    if (change === null) continue;
    const folded = foldChange(now, change);
    // What cannot be said any more is said all the same: the commit refuses it, and nothing is given up in silence.
    if (folded.ok) states.set(key, folded.value);
    recorded.push(recordedOf(event, change, (wire) => parts.isNumbered(type, wire)));
  }
  return recorded;
}

function chosenByEntity({ fieldNamed }: TodayParts, values: JsonObject): ReadonlyMap<string, JsonObject> {
  const chosen = new Map<string, Record<string, Json>>();
  for (const [name, value] of Object.entries(values)) {
    const { type, id, wire } = fieldNamed(name);
    const key = `${type} ${id}`;
    chosen.set(key, { ...chosen.get(key), [wire]: value });
  }
  return chosen;
}

/** Null where nothing is left to say. */
function asOfToday(
  change: Change,
  now: JsonObject | undefined,
  last: JsonObject | undefined,
  chosen: JsonObject,
): Change | null {
  const hasChoice = Object.keys(chosen).length > 0;
  if (change.op === 'delete') {
    if (!hasChoice) return now === undefined ? null : { op: 'delete' };
    return now === undefined
      ? { op: 'restore', fields: withChoice(last ?? {}, chosen) }
      : differing({ op: 'update', ...choiceParts(chosen) }, now);
  }
  if (change.op === 'create' || change.op === 'restore') {
    const fields = withChoice(change.fields, chosen);
    return now === undefined
      ? { op: 'create', fields }
      : differing({ op: 'update', ...setAndUnset(fields, chosen) }, now);
  }
  if (now === undefined) {
    const folded = foldChange(last ?? {}, change.op === 'put' ? { op: 'update', set: change.set } : change);
    const fields = folded.ok ? (folded.value ?? {}) : (last ?? {});
    return { op: change.op === 'put' ? 'create' : 'restore', fields: withChoice(fields, chosen) };
  }
  const update: Update = change.op === 'put' ? { op: 'update', set: change.set } : change;
  const rest = without(update, Object.keys(chosen));
  const parts = choiceParts(chosen);
  return differing(
    {
      ...rest,
      set: { ...rest.set, ...parts.set },
      unset: [...(rest.unset ?? []), ...parts.unset],
    },
    now,
  );
}

type Update = Extract<Change, { op: 'update' }>;

const withChoice = (fields: JsonObject, chosen: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries({ ...fields, ...chosen }).filter(([, value]) => value !== null));

const choiceParts = (chosen: JsonObject): { readonly set: JsonObject; readonly unset: readonly string[] } => ({
  set: Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== null)),
  unset: Object.keys(chosen).filter((field) => chosen[field] === null),
});

const setAndUnset = (fields: JsonObject, chosen: JsonObject) => ({ set: fields, unset: choiceParts(chosen).unset });

function without(change: Update, fields: readonly string[]): Update {
  const rest = <V>(of: { readonly [field: string]: V } | undefined) =>
    Object.fromEntries(Object.entries(of ?? {}).filter(([field]) => !fields.includes(field)));
  return {
    op: 'update',
    set: rest(change.set),
    unset: (change.unset ?? []).filter((field) => !fields.includes(field)),
    inc: rest(change.inc),
    add: rest(change.add),
    remove: rest(change.remove),
  };
}

/** What of an update is not there yet; null for nothing. */
function differing(change: Update, now: JsonObject): Update | null {
  const set = Object.fromEntries(
    Object.entries(change.set ?? {}).filter(([field, value]) => !sameValue(ownValue(now, field), value)),
  );
  const unset = (change.unset ?? []).filter((field) => ownValue(now, field) !== undefined);
  const isIn = (field: string, element: Json): boolean => {
    const elements = ownValue(now, field);
    return Array.isArray(elements) && elements.some((one) => canonical(one as Json) === canonical(element));
  };
  const elements = (of: Update['add'], isWanted: (field: string, element: Json) => boolean) =>
    Object.fromEntries(
      Object.entries(of ?? {})
        .map(([field, list]) => [field, list.filter((element) => isWanted(field, element))] as const)
        .filter(([, list]) => list.length > 0),
    );
  const parts = {
    set,
    inc: Object.fromEntries(Object.entries(change.inc ?? {}).filter(([, by]) => by !== 0)),
    add: elements(change.add, (field, element) => !isIn(field, element)),
    remove: elements(change.remove, isIn),
  };
  const kept = Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));
  if (Object.keys(kept).length === 0 && unset.length === 0) return null;
  return { op: 'update', ...kept, ...(unset.length === 0 ? {} : { unset }) };
}

/** The verb stays where the change is still of its kind. */
function recordedOf(event: OldEvent, change: Change, isNumbered: (wire: string) => boolean): RecordedChange {
  const about = { entity: event.entityType, id: event.entityId };
  const settable = (fields: JsonObject | undefined): JsonObject =>
    Object.fromEntries(Object.entries(fields ?? {}).filter(([wire]) => !isNumbered(wire)));
  const word = event.type.slice(event.type.indexOf('.') + 1);
  const verb = change.op === event.change.op ? { verb: word } : {};
  switch (change.op) {
    case 'delete':
      return { do: 'delete', ...about, ...verb };
    case 'create':
      return { do: event.change.op === 'put' ? 'put' : 'create', ...about, fields: settable(change.fields) };
    case 'restore':
      return { do: 'restore', ...about, fields: settable(change.fields) };
    case 'put':
      return { do: 'put', ...about, fields: settable(change.set) };
    case 'update': {
      const { op: _op, rules: _rules, ...parts } = change;
      return {
        do: 'update',
        ...about,
        ...parts,
        ...(change.set === undefined ? {} : { set: settable(change.set) }),
        ...verb,
      };
    }
  }
}
