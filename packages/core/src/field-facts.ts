import { fromColumn, toColumn } from './columns.ts';
import type { Json } from './json.ts';
import type { FieldData } from './schema-data.ts';
import type { Presence } from './schema-types.ts';

/** What follows from a field's data, asked in many places and answered here. */

/** The name of a field in events. */
export const wireName = (name: string, data: FieldData): string => data.wire ?? name;

/** What a wire name keeps for ever: its kind, what its set holds, and where its ref points (SC2). */
export const keptKind = ({ kind, of, to }: FieldData): string =>
  kind === 'setOf' && of !== undefined ? `setOf(${keptKind(of)})` : kind === 'ref' ? `ref(${to})` : kind;

export function presenceOf(data: FieldData): Presence {
  if (data.kind === 'serial') return 'assigned';
  if (data.optional === true) return 'optional';
  return shownDefault(data) === undefined ? 'required' : 'defaulted';
}

/** The rank of a row that was never placed: the middle of all keys. */
export const MIDDLE_RANK = 'U';

/** What a field shows where no event set it: its default, an empty set, a count of 0; otherwise nothing. */
export function shownDefault(data: FieldData): Json | undefined {
  if (data.default !== undefined) return data.default;
  if (data.kind === 'setOf') return [];
  if (data.kind === 'counter') return 0;
  return data.kind === 'rank' ? MIDDLE_RANK : undefined;
}

/**
 * What a row shows for a value that an event set: the value, or, where the column cannot hold it, null, or what `oneOf`
 * says instead (SC5). `undefined` is a field that no event set.
 */
export function shownValue(value: Json | undefined, data: FieldData): Json {
  const wanted = value === undefined ? shownDefault(data) : value;
  if (wanted === undefined) return null;
  const column = toColumn(wanted, data);
  if (column === undefined || column === null) return data.kind === 'oneOf' ? (data.otherwise ?? null) : null;
  return fromColumn(column, data);
}
