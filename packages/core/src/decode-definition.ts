import { canonical } from './canonical.ts';
import { checkEntityData } from './decode-schema.ts';
import type { Json } from './json.ts';
import type { EntityData } from './schema-data.ts';
import { typeProblem } from './widen-type.ts';

/** What an event says a type is (SC4): its definition as every device writes it, or why it cannot be one. */
export type Definition = { readonly data: EntityData } | { readonly problem: string };

/**
 * `schema` is what the event would leave, `before` what the log says of the name so far; `undefined` for nothing. Commit and
 * ledger ask the same. Total: what stands in the log and is no definition counts as none.
 */
export function readDefinition(name: string, schema: unknown, before: unknown): Definition {
  const read = checkEntityData(name, schema);
  if (!read.ok) return { problem: String(read.fault.facts?.['reason'] ?? 'not the schema of an entity') };
  const was = before === undefined ? undefined : checkEntityData(name, before);
  const problem = typeProblem(name, read.value, was?.ok === true ? was.value : undefined);
  return problem === null ? { data: inOneForm(read.value) } : { problem };
}

/** One definition is the same bytes on every device. */
const inOneForm = (data: EntityData): EntityData => JSON.parse(canonical(data as unknown as Json)) as EntityData;
