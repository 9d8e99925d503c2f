import { canonical } from './canonical.ts';
import { isPlainObject, type Json, jsonProblem } from './json.ts';
import type { FieldData } from './schema-data.ts';
import { asSet } from './sets.ts';
import { type Issue, valueIssue } from './validate.ts';

/** What a commit was given for a field, in the one form that events hold, or what is wrong with it. */
export type Written = { readonly value: Json } | { readonly issue: Issue };

export function writtenValue(given: unknown, data: FieldData, path: Issue['path']): Written {
  const value = inOneForm(given, data);
  const issue = valueIssue(value, data, path);
  if (issue !== null) return { issue };
  if (data.kind === 'setOf') return { value: asSet(value as readonly Json[]) };
  // A copy: what the caller does to its object afterwards is not part of this commit.
  return { value: typeof value === 'object' ? (JSON.parse(canonical(value as Json)) as Json) : (value as Json) };
}

function inOneForm(given: unknown, data: FieldData): unknown {
  if (Object.is(given, -0)) return 0;
  if (data.kind === 'time') return instantOf(given);
  if (data.kind === 'setOf' && Array.isArray(given)) return given.map((one) => inOneForm(one, data.of ?? data));
  return given;
}

/** ISO 8601 with a time and a zone. A date alone, or a local time, would mean another instant on another device. */
const INSTANT_WITH_ZONE = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

function instantOf(given: unknown): unknown {
  if (given instanceof Date) return isoOf(given) ?? String(given);
  const parts = typeof given === 'string' ? INSTANT_WITH_ZONE.exec(given) : null;
  if (parts === null) return given;
  const day = `${parts[1]}T00:00:00.000Z`;
  // Some engines read February 30 as March 2: then it is left as it is, and refused.
  return isoOf(new Date(day)) === day ? (isoOf(new Date(given as string)) ?? given) : given;
}

const isoOf = (date: Date): string | null => (Number.isNaN(date.getTime()) ? null : date.toISOString());

/** What a row showed of a field, or undefined where it is no value: the row was made by hand. */
export function seenValue(shown: unknown): Json | undefined {
  const value = shown instanceof Date ? isoOf(shown) : shown;
  return jsonProblem(value) === null ? (value as Json) : undefined;
}

// ── places of ranked rows (SC10) ────────────────────────────────────────────────────────────────────────────────────

export const PLACE_EXPECTED = '{ at: "start" or "end" } or { after, before } is expected';

/**
 * A place as it crosses the link: the end, or both neighbours with id and rank as drawn. Only the host knows their
 * present ranks. Null where it is no place.
 */
export function placeOf(given: unknown): { readonly [side: string]: Json } | null {
  if (!isPlainObject(given)) return null;
  const { at, after, before } = given;
  if (at !== undefined) return at === 'start' || at === 'end' ? { at } : null;
  const [low, high] = [neighbour(after), neighbour(before)];
  return low === undefined || high === undefined ? null : { after: low, before: high };
}

function neighbour(row: unknown): Json | undefined {
  if (row === null) return null;
  if (typeof row !== 'object') return undefined;
  const { id, rank } = row as { readonly id?: unknown; readonly rank?: unknown };
  const side = { ...(typeof id === 'string' ? { id } : {}), ...(typeof rank === 'string' ? { rank } : {}) };
  return Object.keys(side).length === 0 ? undefined : side;
}
