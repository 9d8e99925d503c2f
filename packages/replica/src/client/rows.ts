import { fromColumn, type Json } from '@holdfast/core';
import type { Origin, RawRow, RawValue } from '../link/messages.ts';

/** Rows as an app sees them: one object each, every value as the schema types it (SC3, LQ4). */
export function rowMaker<O>(columns: readonly Origin[]): (row: RawRow) => O {
  const names = columns.map(({ name }) => name);
  const decoders = columns.map(({ kind }) => (kind === undefined ? plainOf : (value: RawValue) => kindOf(value, kind)));
  return (row) => {
    const made: Record<string, unknown> = {};
    for (let at = 0; at < names.length; at += 1) {
      const value = row[at] as RawValue;
      const decode = decoders[at] as (value: RawValue) => unknown;
      made[names[at] as string] = decode === plainOf && typeof value !== 'object' ? value : decode(value);
    }
    return made as O;
  };
}

const kindOf = (value: RawValue, kind: NonNullable<Origin['kind']>): Json | null =>
  value === null || value instanceof Uint8Array ? (plainOf(value) as Json) : fromColumn(value, { kind });

/** Bytes are what `many` and `one` made; everything else is what it is. */
const plainOf = (value: RawValue): unknown => (value instanceof Uint8Array ? JSON.parse(UTF8.decode(value)) : value);

const UTF8 = new TextDecoder();
