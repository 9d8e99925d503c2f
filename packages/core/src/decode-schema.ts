import {
  byTag,
  type Check,
  decode,
  exactly,
  listOf,
  oneOfTexts,
  optional,
  recordOf,
  text,
  whole,
  yes,
} from './decode-check.ts';
import { fail, type Outcome, ok } from './faults.ts';
import { found, isPlainObject, type Json, problemIn } from './json.ts';
import { LIMITS } from './limits.ts';
import { leanEntity } from './schema.ts';
import type { EntityData, FieldData, FieldKind, RuleData, SchemaData } from './schema-data.ts';
import { entityProblem, schemaProblem } from './schema-problem.ts';
import type { SchemaSnapshot } from './schema-snapshot.ts';

/**
 * Reads a schema, or one entity type, that comes as data: from a replica file, a snapshot or an event (SC4). Strict and
 * total: what is read fits its types and could have been defined; nothing throws, whatever is handed in.
 */
export function checkSchemaData(json: unknown): Outcome<SchemaData, 'invalid-change'> {
  const read = decode('invalid-change', schema, json);
  if (!read.ok) return read;
  const entities = Object.entries(read.value.entities).map(([type, data]) => [type, leanEntity(data)] as const);
  return possible({ format: 1, entities: Object.fromEntries(entities) }, schemaProblem);
}

/**
 * One entity type. Its refs may point to types that are defined elsewhere. Nested as deep as the value of a field may be: a
 * definition travels as one.
 */
export function checkEntityData(type: string, json: unknown): Outcome<EntityData, 'invalid-change'> {
  const read = decode('invalid-change', entity, json, { depth: LIMITS.draftDepth });
  return read.ok ? possible(leanEntity(read.value), (data) => entityProblem(type, data, null)) : read;
}

function possible<T>(data: T, problemOf: (data: T) => string | null): Outcome<T, 'invalid-change'> {
  const problem = problemOf(data);
  return problem === null ? ok(data) : fail('invalid-change', { path: '', reason: problem });
}

const value: Check<Json> = (json, depth) => (json === null ? found('null is not a value') : problemIn(json, depth));
const names = listOf(text, LIMITS.fieldsPerEntityMax);

const KINDS: readonly FieldKind[] = [
  ...(['text', 'integer', 'number', 'flag', 'time', 'json'] as const),
  ...(['counter', 'setOf', 'oneOf', 'ref', 'rank', 'serial'] as const),
];

/** Fields and rules may hold others of their kind. */
const nested =
  <T>(check: () => Check<T>): Check<T> =>
  (json, depth) =>
    check()(json, depth);

const field: Check<FieldData> = exactly({
  kind: oneOfTexts(...KINDS),
  wire: optional(text),
  optional: optional(yes),
  default: optional(value),
  onClash: optional(oneOfTexts('ask', 'last', 'max', 'min')),
  max: optional(whole(1)),
  values: optional(listOf(text)),
  otherwise: optional(text),
  to: optional(text),
  onDelete: optional(oneOfTexts('keep', 'clear', 'delete-too')),
  of: optional(nested((): Check<FieldData> => field)),
});

const inner = nested((): Check<RuleData> => rule);
const rule: Check<RuleData> = byTag<RuleData>('rule', {
  is: exactly({ rule: oneOfTexts('is'), field: text, values: listOf(value) }),
  present: exactly({ rule: oneOfTexts('present'), fields: names }),
  not: exactly({ rule: oneOfTexts('not'), of: inner }),
  all: exactly({ rule: oneOfTexts('all'), of: listOf(inner) }),
  any: exactly({ rule: oneOfTexts('any'), of: listOf(inner) }),
  when: exactly({ rule: oneOfTexts('when'), condition: inner, must: inner }),
});

const entity: Check<EntityData> = exactly({
  fields: recordOf(field),
  key: optional(names),
  index: optional(listOf(names)),
  search: optional(names),
  rules: optional(recordOf(rule)),
  local: optional(yes),
  editedWhileDeleted: optional(oneOfTexts('keep', 'delete', 'ask')),
});

const schema = exactly({ format: whole(1, 1), entities: recordOf(entity) });

/** Reads a snapshot from its file's JSON. */
export function checkSnapshot(json: unknown): Outcome<SchemaSnapshot, 'invalid-change'> {
  if (!isPlainObject(json) || json['format'] !== 1)
    return fail('invalid-change', { path: 'format', reason: 'a schema snapshot of format 1 is expected' });
  const schema = checkSchemaData(json['schema']);
  if (!schema.ok) return schema;
  const { retired = {} } = json;
  if (!isPlainObject(retired)) return fail('invalid-change', { path: 'retired', reason: 'an object is expected' });
  const kept: Record<string, EntityData['fields']> = {};
  for (const [type, fields] of Object.entries(retired)) {
    const entity = checkEntityData(type, { fields });
    if (!entity.ok) return entity;
    kept[type] = entity.value.fields;
  }
  return ok({ format: 1, schema: schema.value, retired: kept });
}
