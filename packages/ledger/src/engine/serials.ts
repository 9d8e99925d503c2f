import { type Change, type JsonObject, RUN_TIME_TYPE, type SchemaData } from '@holdfast/core';

/** Which fields of an entity type the ledger numbers, by wire name, sorted (EV7). */
export interface SerialFields {
  of(type: string): readonly string[];
  /** Whether the configured schema says what this type is; else its run-time definition is asked for (SC4). */
  knows(type: string): boolean;
}

export function serialFieldsOf(schema: SchemaData | undefined): SerialFields {
  const byType = new Map<string, readonly string[]>();
  for (const [type, entity] of Object.entries(schema?.entities ?? {})) byType.set(type, serialsIn(entity));
  return {
    of: (type) => byType.get(type) ?? [],
    knows: (type) => byType.has(type) || type === RUN_TIME_TYPE,
  };
}

/** Reads a run-time definition as leniently as everything that is in a log. */
export function serialsOfDefinition(fieldsText: string): readonly string[] {
  const { schema } = JSON.parse(fieldsText) as { readonly schema?: unknown };
  return typeof schema === 'object' && schema !== null ? serialsIn(schema) : [];
}

function serialsIn(entity: object): readonly string[] {
  const fields: unknown = (entity as { readonly fields?: unknown }).fields;
  if (typeof fields !== 'object' || fields === null) return [];
  return Object.entries(fields as Record<string, { readonly kind?: unknown; readonly wire?: unknown } | null>)
    .filter(([, field]) => field?.kind === 'serial')
    .map(([name, field]) => (typeof field?.wire === 'string' ? field.wire : name))
    .sort();
}

/** The first serial field that a change of a live entity tries to write: numbers are the ledger's to give. */
export function serialWritten(change: Change, serials: readonly string[]): string | undefined {
  if (serials.length === 0 || (change.op !== 'update' && change.op !== 'put')) return undefined;
  const parts: readonly (object | undefined)[] =
    change.op === 'put' ? [change.set] : [change.set, change.inc, change.add, change.remove];
  return serials.find(
    (field) =>
      parts.some((part) => part !== undefined && Object.hasOwn(part, field)) ||
      (change.op === 'update' && change.unset?.includes(field) === true),
  );
}

export interface Numbered {
  readonly assigned: JsonObject;
  /** All counters, with those that moved. */
  readonly serials: Readonly<Record<string, number>>;
}

/** Numbers an entity that becomes live: what it had before it was deleted it gets back, the rest is new (LG7). */
export function numbered(
  type: string,
  fields: readonly string[],
  before: JsonObject | null,
  serials: Readonly<Record<string, number>>,
): Numbered {
  const assigned: Record<string, number> = {};
  const next: Record<string, number> = { ...serials };
  for (const field of fields) {
    const had = before !== null && Object.hasOwn(before, field) ? before[field] : undefined;
    if (typeof had === 'number') {
      assigned[field] = had;
      continue;
    }
    const counter = `${type}.${field}`;
    const number = (Object.hasOwn(next, counter) ? (next[counter] as number) : 0) + 1;
    next[counter] = number;
    assigned[field] = number;
  }
  return { assigned, serials: next };
}
