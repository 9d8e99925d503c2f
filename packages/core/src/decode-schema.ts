import {
  decoding,
  listOf,
  member,
  objectAt,
  objectOf,
  oneOfTexts,
  optional,
  type Read,
  recordOf,
  text,
  unreadable,
  whole,
} from './decode-read.ts';
import { fail, type Outcome, ok } from './faults.ts';
import { isPlainObject, type Json, jsonProblem } from './json.ts';
import { LIMITS } from './limits.ts';
import { leanEntity } from './schema.ts';
import type { EntityData, FieldData, FieldKind, RuleData, SchemaData } from './schema-data.ts';
import { entityProblem, schemaProblem } from './schema-problem.ts';
import type { SchemaSnapshot } from './schema-snapshot.ts';

/**
 * Reads a schema, or one entity type, that comes as data: from a replica file, a snapshot or an event (SC4). Strict and
 * total: what is read fits its types and could have been defined; nothing throws, whatever is handed in.
 */
export const checkSchemaData = (json: unknown): Outcome<SchemaData, 'invalid-change'> =>
  checked(json, schema, schemaProblem);

/** One entity type. Its refs may point to types that are defined elsewhere. */
export const checkEntityData = (type: string, json: unknown): Outcome<EntityData, 'invalid-change'> =>
  checked(json, entity, (data) => entityProblem(type, data, null));

function checked<T>(
  json: unknown,
  read: Read<T>,
  problemOf: (value: T) => string | null,
): Outcome<T, 'invalid-change'> {
  const foreign = jsonProblem(json);
  if (foreign !== null) return fail('invalid-change', { ...foreign });
  const outcome = decoding('invalid-change', () => read(json as Json, ''));
  const problem = outcome.ok ? problemOf(outcome.value) : null;
  return problem === null ? outcome : fail('invalid-change', { path: '', reason: problem });
}

const isTrue: Read<true> = (json, path) => (json === true ? json : unreadable(path, 'true, or nothing, is expected'));
const value: Read<Json> = (json, path) => json ?? unreadable(path, 'null is not a value');
const names = listOf(text, LIMITS.fieldsPerEntityMax);

const KINDS: readonly FieldKind[] = [
  ...(['text', 'integer', 'number', 'flag', 'time', 'json'] as const),
  ...(['counter', 'setOf', 'oneOf', 'ref', 'rank', 'serial'] as const),
];

const field: Read<FieldData> = (json, path) => FIELD(json, path);
const FIELD = objectOf({
  kind: oneOfTexts(...KINDS),
  wire: optional(text),
  optional: optional(isTrue),
  default: optional(value),
  onClash: optional(oneOfTexts('ask', 'last', 'max', 'min')),
  max: optional(whole(1)),
  values: optional(listOf(text)),
  otherwise: optional(text),
  to: optional(text),
  onDelete: optional(oneOfTexts('keep', 'clear', 'delete-too')),
  of: optional(field),
});

const rule: Read<RuleData> = (json, path) => {
  const kind = oneOfTexts(
    'is',
    'present',
    'not',
    'all',
    'any',
    'when',
  )(objectAt(json, path)['rule'], member(path, 'rule'));
  return RULES[kind](json, path);
};
const RULES: Readonly<Record<RuleData['rule'], Read<RuleData>>> = {
  is: objectOf({ rule: oneOfTexts('is'), field: text, values: listOf(value) }),
  present: objectOf({ rule: oneOfTexts('present'), fields: names }),
  not: objectOf({ rule: oneOfTexts('not'), of: rule }),
  all: objectOf({ rule: oneOfTexts('all'), of: listOf(rule) }),
  any: objectOf({ rule: oneOfTexts('any'), of: listOf(rule) }),
  when: objectOf({ rule: oneOfTexts('when'), condition: rule, must: rule }),
};

const ENTITY = objectOf({
  fields: recordOf(field),
  key: optional(names),
  index: optional(listOf(names)),
  search: optional(names),
  rules: optional(recordOf(rule)),
  local: optional(isTrue),
  editedWhileDeleted: optional(oneOfTexts('keep', 'delete', 'ask')),
});
const entity: Read<EntityData> = (json, path) => leanEntity(ENTITY(json, path));

const SCHEMA = objectOf({ format: whole(1, 1), entities: recordOf(entity) });
const schema: Read<SchemaData> = (json, path) => ({ format: 1, entities: SCHEMA(json, path).entities });

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
