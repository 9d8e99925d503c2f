import type { Json, StoredEvent } from '@holdfast/core';
import type { Violation } from './violation.ts';

/**
 * What a log says, worked out in the plainest way, with nothing of the engine: no rules, no columns, no signatures. Events
 * were judged before they came here, so each is simply done.
 */
export interface PlainNote {
  title: Json;
  status: Json;
  level: number;
  body: Json;
  tags: readonly string[];
  votes: number;
}

export const foldPlainly = (events: readonly StoredEvent[]): ReadonlyMap<string, PlainNote> =>
  new Map([...foldFields(events, 'note')].map(([id, fields]) => [id, noteOf(fields)]));

/** The fields of every live entity of one type, by id. */
export function foldFields(events: readonly StoredEvent[], type: string): ReadonlyMap<string, Record<string, Json>> {
  const entities = new Map<string, Record<string, Json>>();
  for (const { entityType, entityId, entityVersion, change } of events) {
    if (entityType !== type) continue;
    // Equal creates count as one: what came of the first stands.
    if (change.op === 'create' && entityVersion > 1) continue;
    if (change.op === 'delete') entities.delete(entityId);
    else if (change.op === 'create' || change.op === 'restore') entities.set(entityId, { ...change.fields });
    else doChange(entities.get(entityId), change);
  }
  return entities;
}

function doChange(note: Record<string, Json> | undefined, change: StoredEvent['change']): void {
  if (note === undefined || change.op === 'delete' || change.op === 'create' || change.op === 'restore') return;
  for (const [field, value] of Object.entries(change.set ?? {})) {
    const isMax = change.rules?.[field] === 'max' && typeof note[field] === 'number';
    note[field] = isMax ? Math.max(note[field] as number, value as number) : value;
  }
  if (change.op === 'put') return;
  for (const field of change.unset ?? []) delete note[field];
  for (const [field, by] of Object.entries(change.inc ?? {})) note[field] = ((note[field] as number) ?? 0) + by;
  for (const field of new Set([...Object.keys(change.remove ?? {}), ...Object.keys(change.add ?? {})])) {
    const elements = new Set((note[field] ?? []) as string[]);
    for (const element of change.remove?.[field] ?? []) elements.delete(element as string);
    for (const element of change.add?.[field] ?? []) elements.add(element as string);
    note[field] = [...elements];
  }
}

const noteOf = (fields: Record<string, Json>): PlainNote => ({
  title: fields['title'] ?? null,
  status: fields['status'] ?? 'open',
  level: (fields['level'] as number | undefined) ?? 0,
  body: fields['body'] ?? null,
  tags: [...((fields['tags'] ?? []) as string[])].sort(),
  votes: (fields['votes'] as number | undefined) ?? 0,
});

/** A row of the table `note` as an app reads it. */
export const noteOfRow = (row: Readonly<Record<string, unknown>>): PlainNote => ({
  ...noteOf(row as Record<string, Json>),
  tags: [...(JSON.parse((row['tags'] as string | null) ?? '[]') as string[])].sort(),
});

/** I12: what an app sees on a device with nothing of its own is what the log says. */
export function compareNotes(
  device: string,
  seen: ReadonlyMap<string, PlainNote>,
  said: ReadonlyMap<string, PlainNote>,
): Violation[] {
  return [...new Set([...seen.keys(), ...said.keys()])].flatMap((id) => {
    const [one, other] = [JSON.stringify(seen.get(id)), JSON.stringify(said.get(id))];
    if (one === other) return [];
    return [{ invariant: 'I12', device, what: `note ${id} is shown as ${one}, and the log says ${other}` }];
  });
}

/** I10: the events of each entity are numbered 1, 2, 3 …, and none was made on a version that did not stand before it. */
export function checkEntityChains(events: readonly StoredEvent[]): Violation[] {
  const versions = new Map<string, number>();
  return events.flatMap(({ entityType, entityId, entityVersion, base, version }) => {
    const key = `${entityType} ${entityId}`;
    const before = versions.get(key) ?? 0;
    versions.set(key, before + 1);
    if (entityVersion === before + 1 && base <= before) return [];
    const what = `version ${version} is ${key} at ${entityVersion} on ${base}, after ${before}`;
    return [{ invariant: 'I10', what }];
  });
}

/** I17: what a device committed on one entity stands in the log in the order in which it was committed. */
export function checkOwnOrder(
  device: string,
  committed: Iterable<string>,
  events: readonly StoredEvent[],
): Violation[] {
  const order = new Map([...committed].map((action, at) => [action, at]));
  const last = new Map<string, number>();
  return events.flatMap(({ actionId, entityType, entityId, version }) => {
    const at = order.get(actionId);
    if (at === undefined) return [];
    const key = `${entityType} ${entityId}`;
    const before = last.get(key) ?? -1;
    last.set(key, at);
    if (at >= before) return [];
    return [
      { invariant: 'I17', device, what: `version ${version} of ${key} was committed before what stands before it` },
    ];
  });
}
