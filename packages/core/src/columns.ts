import { canonical } from './canonical.ts';
import { isInstant } from './ids.ts';
import type { Json } from './json.ts';
import type { SqlValue } from './ports.ts';
import type { FieldData } from './schema-data.ts';
import { isSet } from './sets.ts';

/**
 * Columns are a view of what events said (SC5). A value goes to its column only if it reads back the same; otherwise it
 * stays beside the columns and the column is NULL, or, for `oneOf`, what the schema shows instead.
 */
export function columnType(data: FieldData): 'TEXT' | 'INTEGER' | 'REAL' {
  switch (data.kind) {
    case 'integer':
    case 'flag':
    case 'counter':
    case 'serial':
      return 'INTEGER';
    case 'number':
      return 'REAL';
    default:
      return 'TEXT';
  }
}

/** The column's value for a field's value, or undefined where the column cannot hold it exactly. */
export function toColumn(value: Json, data: FieldData): SqlValue | undefined {
  switch (data.kind) {
    case 'text':
    case 'ref':
    case 'rank':
      return typeof value === 'string' ? value : undefined;
    case 'time':
      return isInstant(value) ? value : undefined;
    case 'oneOf':
      return typeof value === 'string' && data.values?.includes(value) === true ? value : undefined;
    case 'integer':
    case 'counter':
    case 'serial':
      return typeof value === 'number' && Number.isSafeInteger(value) ? value + 0 : undefined;
    case 'number':
      return typeof value === 'number' ? value + 0 : undefined;
    case 'flag':
      return typeof value === 'boolean' ? Number(value) : undefined;
    case 'setOf':
      return isSet(value) ? canonical(value) : undefined;
    case 'json':
      return canonical(value);
  }
}

/** What a column says, as the schema types it. NULL is an absent value and is not asked here. */
export function fromColumn(column: Exclude<SqlValue, null>, data: Pick<FieldData, 'kind'>): Json {
  switch (data.kind) {
    case 'flag':
      return column === 1;
    case 'setOf':
    case 'json':
      return JSON.parse(column as string) as Json;
    default:
      return column as string | number;
  }
}
