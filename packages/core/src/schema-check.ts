import { keptKind, presenceOf, shownDefault, wireName } from './field-facts.ts';
import type { Json } from './json.ts';
import { sameValue } from './order.ts';
import type { EntityData, FieldData, SchemaData } from './schema-data.ts';
import type { SchemaSnapshot } from './schema-snapshot.ts';

/** One difference between the schema that devices in the field have and the one that is about to be shipped (SC2). */
export interface SchemaChange {
  /** `issue`, or `issue.estimate`, by name in code. */
  readonly what: string;
  /** `added, optional`, `integer → text`. */
  readonly change: string;
  readonly verdict: 'safe' | 'refused';
  /** A refusal says the way out. Empty where nothing needs saying. */
  readonly why: string;
}

/**
 * Compares a schema with the committed snapshot. Refused is what apps or rows that are out there could not bear: a row
 * without a value that its reader's schema promises, a value that its column cannot hold, an id that is derived in
 * another way. Fields are matched by wire name; names in code are free.
 */
export function checkSchema(snapshot: SchemaSnapshot, schema: SchemaData): readonly SchemaChange[] {
  const before = snapshot.schema.entities;
  const after = schema.entities;
  const changes: SchemaChange[] = [];
  for (const [type, entity] of Object.entries(after)) {
    const old = own(before, type);
    if (old === undefined) changes.push(...entityAdded(type, entity, snapshot));
    else changes.push(...entityChanged(type, old, entity, own(snapshot.retired, type) ?? {}));
  }
  for (const type of Object.keys(before))
    if (!Object.hasOwn(after, type)) changes.push(safe(type, 'removed', 'its records stay, hidden'));
  return changes;
}

const safe = (what: string, change: string, why = ''): SchemaChange => ({ what, change, verdict: 'safe', why });
const refused = (what: string, change: string, why: string): SchemaChange => ({
  what,
  change,
  verdict: 'refused',
  why,
});
const own = <V>(of: Readonly<Record<string, V>>, key: string): V | undefined =>
  Object.hasOwn(of, key) ? of[key] : undefined;

// ── entities ────────────────────────────────────────────────────────────────────────────────────────────────────────

function entityAdded(type: string, entity: EntityData, { schema, retired }: SchemaSnapshot): readonly SchemaChange[] {
  const known = [...Object.keys(schema.entities), ...Object.keys(retired)];
  const near = known.find((name) => name !== type && name.toLowerCase() === type.toLowerCase());
  if (near !== undefined)
    return [refused(type, 'added', `devices have "${near}", which differs only in case. Use another name.`)];
  const old = own(retired, type);
  if (old === undefined) return [safe(type, 'added')];
  // It was there before: records of then are still out there.
  return [
    safe(type, 'added again', 'records of before are shown again'),
    ...Object.entries(entity.fields).flatMap(([name, data]) => {
      const was = own(old, wireName(name, data));
      const isAsBefore = was !== undefined && keptKind(was) === keptKind(data);
      return isAsBefore ? [] : [fieldAdded(`${type}.${name}`, name, data, Object.keys(old), old)];
    }),
  ];
}

function entityChanged(
  type: string,
  before: EntityData,
  after: EntityData,
  retired: Readonly<Record<string, FieldData>>,
): readonly SchemaChange[] {
  const changes: SchemaChange[] = [];
  const [old, now] = [byWire(before), byWire(after)];
  const wires = [...old.keys(), ...Object.keys(retired)];
  for (const [wire, { name, data }] of now) {
    const was = old.get(wire);
    const what = `${type}.${name}`;
    if (was === undefined) changes.push(fieldAdded(what, name, data, wires, retired));
    else changes.push(...fieldChanged(what, was, { name, data }));
  }
  for (const [wire, { name, data }] of old) if (!now.has(wire)) changes.push(fieldRemoved(`${type}.${name}`, data));
  return [...changes, ...wholeChanged(type, before, after)];
}

interface Named {
  readonly name: string;
  readonly data: FieldData;
}
const byWire = (entity: EntityData): ReadonlyMap<string, Named> =>
  new Map(Object.entries(entity.fields).map(([name, data]) => [wireName(name, data), { name, data }]));

const inWire = (names: readonly string[] | undefined, { fields }: EntityData): string =>
  (names ?? []).map((name) => wireName(name, fields[name] ?? { kind: 'json' })).join(', ');

function wholeChanged(type: string, before: EntityData, after: EntityData): readonly SchemaChange[] {
  const changes: SchemaChange[] = [];
  if ((before.local === true) !== (after.local === true))
    changes.push(
      refused(
        type,
        after.local === true ? 'made local' : 'no longer local',
        'what devices hold of it was made under the other promise. Use a new entity and copy with a commit.',
      ),
    );
  const [oldKey, newKey] = [inWire(before.key, before), inWire(after.key, after)];
  if (oldKey !== newKey)
    changes.push(
      refused(
        type,
        `key ${oldKey || 'none'} → ${newKey || 'none'}`,
        'ids derived in two ways make two records of one thing. Use a new entity and copy with a commit.',
      ),
    );
  const [oldWay, newWay] = [before.editedWhileDeleted ?? 'keep', after.editedWhileDeleted ?? 'keep'];
  if (oldWay !== newWay)
    changes.push(safe(type, `editedWhileDeleted ${oldWay} → ${newWay}`, 'each device decides as its own app says'));
  for (const sentence of Object.keys(after.rules ?? {}))
    if (!isSame(after.rules?.[sentence], before.rules?.[sentence]))
      changes.push(
        safe(
          type,
          `rule "${sentence}" ${before.rules?.[sentence] === undefined ? 'added' : 'changed'}`,
          'records that break it are shown; only new changes must keep it',
        ),
      );
  for (const sentence of Object.keys(before.rules ?? {}))
    if (after.rules?.[sentence] === undefined) changes.push(safe(type, `rule "${sentence}" removed`));
  const indexes = new Set((before.index ?? []).map((columns) => inWire(columns, before)));
  for (const columns of (after.index ?? []).map((one) => inWire(one, after)))
    if (!indexes.has(columns)) changes.push(safe(type, `index ${columns} added`));
  const [oldSearch, newSearch] = [inWire(before.search, before), inWire(after.search, after)];
  if (oldSearch !== newSearch) changes.push(safe(type, `search ${oldSearch || 'none'} → ${newSearch || 'none'}`));
  return changes;
}

const isSame = (a: unknown, b: unknown): boolean => sameValue(a as Json | undefined, b as Json | undefined);

// ── fields ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const PRESENCE = { optional: 'optional', defaulted: 'with a default', assigned: 'numbered by the ledger' } as const;

function fieldAdded(
  what: string,
  name: string,
  data: FieldData,
  known: readonly string[],
  retired: Readonly<Record<string, FieldData>>,
): SchemaChange {
  const wire = wireName(name, data);
  const near = known.find((other) => other !== wire && other.toLowerCase() === wire.toLowerCase());
  if (near !== undefined)
    return refused(what, 'added', `devices have "${near}", which differs only in case. Use another name.`);
  const was = own(retired, wire);
  if (was !== undefined && keptKind(was) !== keptKind(data))
    return refused(what, `added, was ${keptKind(was)}`, keepsItsKind(wire));
  const presence = presenceOf(data);
  if (presence === 'required')
    return refused(
      what,
      'added, required, no default',
      'old events cannot have it. Give it a default or make it optional.',
    );
  return safe(what, `added, ${PRESENCE[presence]}`, was === undefined ? '' : 'values of before are shown again');
}

function fieldRemoved(what: string, data: FieldData): SchemaChange {
  return presenceOf(data) === 'required'
    ? refused(
        what,
        'removed, was required',
        'apps before this one need it in every new record. Give it a default first, and remove it a version later.',
      )
    : safe(what, 'removed', 'its values stay, hidden');
}

const keepsItsKind = (wire: string): string =>
  `a wire name keeps its kind for ever. Use wire: '${wire}2' and copy with a commit.`;

function fieldChanged(what: string, before: Named, after: Named): readonly SchemaChange[] {
  const [old, now] = [before.data, after.data];
  const wire = wireName(after.name, now);
  if (keptKind(old) !== keptKind(now))
    return [refused(what, `${keptKind(old)} → ${keptKind(now)}`, keepsItsKind(wire))];
  const changes: SchemaChange[] = [];
  if (before.name !== after.name) changes.push(safe(what, `renamed in code, wire ${wire}`));
  const presence = presenceChanged(what, old, now);
  if (presence !== null) changes.push(presence);
  changes.push(...valuesChanged(what, old.of ?? old, now.of ?? now));
  const [oldMax, newMax] = [old.max ?? Number.POSITIVE_INFINITY, now.max ?? Number.POSITIVE_INFINITY];
  if (newMax < oldMax) changes.push(safe(what, `max ${oldMax} → ${newMax}`, 'longer texts that are there stay'));
  if (newMax > oldMax)
    changes.push(
      safe(what, `max ${oldMax} → ${newMax}`, 'apps before this one show longer texts, and cannot write them'),
    );
  const [oldClash, newClash] = [old.onClash ?? 'ask', now.onClash ?? 'ask'];
  if (oldClash !== newClash)
    changes.push(
      safe(what, `onClash ${oldClash} → ${newClash}`, 'while both versions are in use a clash asks a person'),
    );
  const [oldDelete, newDelete] = [old.onDelete ?? 'keep', now.onDelete ?? 'keep'];
  if (oldDelete !== newDelete)
    changes.push(safe(what, `onDelete ${oldDelete} → ${newDelete}`, 'each device decides as its own app says'));
  return changes;
}

/** Who promises more than rows can keep: the new app about old rows, or the old app about new rows. */
function presenceChanged(what: string, old: FieldData, now: FieldData): SchemaChange | null {
  const [was, is] = [presenceOf(old), presenceOf(now)];
  if (was !== is && is === 'required')
    return refused(what, `${was} → required`, 'records that are there may lack it. Give it a default.');
  if (was === 'required' && is === 'optional')
    return refused(
      what,
      'required → optional',
      'apps before this one need it in every record. Give it a default, and make it optional a version later.',
    );
  if (was !== is) return safe(what, `${was} → ${is}`);
  return isSame(shownDefault(old), shownDefault(now))
    ? null
    : safe(
        what,
        `default ${JSON.stringify(shownDefault(old))} → ${JSON.stringify(shownDefault(now))}`,
        'records that never set it show the default of the app that reads them',
      );
}

function valuesChanged(what: string, old: FieldData, now: FieldData): readonly SchemaChange[] {
  const [before, after] = [old.values ?? [], now.values ?? []];
  const quoted = (value: string | undefined): string => JSON.stringify(value ?? null);
  return [
    ...after
      .filter((value) => !before.includes(value))
      .map((value) => safe(what, `value ${quoted(value)} added`, `apps before this one show ${quoted(old.otherwise)}`)),
    ...before
      .filter((value) => !after.includes(value))
      .map((value) =>
        safe(what, `value ${quoted(value)} removed`, `records that have it show ${quoted(now.otherwise)}`),
      ),
    ...(old.otherwise === now.otherwise
      ? []
      : [safe(what, `otherwise ${quoted(old.otherwise)} → ${quoted(now.otherwise)}`)]),
  ];
}
