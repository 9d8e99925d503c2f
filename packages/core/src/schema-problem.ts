import { wireName } from './field-facts.ts';
import { isName } from './ids.ts';
import { isSafeKey, jsonProblem } from './json.ts';
import { LIMITS } from './limits.ts';
import { fieldsOfRule } from './rules.ts';
import { type EntityData, type FieldData, META_COLUMNS, type RuleData, type SchemaData } from './schema-data.ts';
import type { Schema } from './schema-types.ts';
import { isSet } from './sets.ts';
import { valueIssue } from './validate.ts';

/** What cannot be in a schema, each with entity and field (SC7, SC8). */

const NAME = 'a name is [a-z][A-Za-z0-9]{0,62}, and not "constructor" or "prototype"';
const isAllowedName = (name: string): boolean => isName(name) && isSafeKey(name);
const RESERVED: ReadonlySet<string> = new Set(META_COLUMNS.map((name) => name.toLowerCase()));

/** The first thing about a schema that cannot be, as `entity.field: why`, or null. */
export function schemaProblem(schema: SchemaData): string | null {
  const twice = firstTwice(Object.keys(schema.entities));
  if (twice !== null) return `${twice}: two entities have this name, without regard to case`;
  for (const [type, data] of Object.entries(schema.entities)) {
    const problem = entityProblem(type, data, schema);
    if (problem !== null) return problem;
  }
  return null;
}

/** The same for one entity. Without a schema (a run-time type) refs are taken as they are. */
export function entityProblem(type: string, data: EntityData, schema: SchemaData | null): string | null {
  if (!isAllowedName(type)) return `${type}: ${NAME}`;
  const names = Object.keys(data.fields);
  if (names.length > LIMITS.fieldsPerEntityMax) return `${type}: at most ${LIMITS.fieldsPerEntityMax} fields`;
  for (const [name, one] of Object.entries(data.fields)) {
    const problem = nameProblem(name, one) ?? fieldProblem(one) ?? placeProblem(one, data, schema);
    if (problem !== null) return `${type}.${name}: ${problem}`;
  }
  const twice = firstTwice(names);
  if (twice !== null) return `${type}.${twice}: two fields have this name, without regard to case`;
  const wireTwice = firstTwice(names.map((name) => wireName(name, data.fields[name] as FieldData)));
  if (wireTwice !== null) return `${type}: two fields have the wire name ${wireTwice}, without regard to case`;
  return keyProblem(type, data) ?? columnsProblem(type, data) ?? rulesProblem(type, data);
}

function firstTwice(names: readonly string[]): string | null {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name.toLowerCase())) return name;
    seen.add(name.toLowerCase());
  }
  return null;
}

// ── fields ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function nameProblem(name: string, data: FieldData): string | null {
  if (!isAllowedName(name)) return NAME;
  if (RESERVED.has(name.toLowerCase())) return 'every row has this column already';
  if (data.wire === undefined) return null;
  if (!isAllowedName(data.wire)) return `wire "${data.wire}": ${NAME}`;
  return RESERVED.has(data.wire.toLowerCase()) ? `wire "${data.wire}": every row has this column already` : null;
}

/** Options that each kind cannot have. The types say so too; a schema may also come as data. */
function fieldProblem(data: FieldData): string | null {
  const { kind } = data;
  if (data.optional === true && data.default !== undefined) return 'optional or with a default, not both';
  if (NEVER_UNSET.has(kind) && (data.optional === true || data.default !== undefined))
    return `a ${kind} is neither optional nor has it a default`;
  if ((kind === 'counter' || kind === 'serial') && data.onClash !== undefined && data.onClash !== 'ask')
    return `a ${kind} is never set, so it cannot clash`;
  if (data.max !== undefined && kind !== 'text') return 'max is for text';
  if (data.max !== undefined && !(Number.isSafeInteger(data.max) && data.max > 0))
    return 'max is a whole number above 0';
  const problem = kindProblem(data);
  if (problem !== null || data.default === undefined) return problem;
  const wrong = valueIssue(data.default, data, []);
  return wrong === null ? null : `the default does not fit: ${wrong.message}`;
}

const NEVER_UNSET: ReadonlySet<FieldData['kind']> = new Set(['counter', 'setOf', 'rank', 'serial']);

function kindProblem(data: FieldData): string | null {
  const { kind, values, otherwise, to, onDelete, of } = data;
  if (kind === 'oneOf') {
    if (values === undefined || values.length === 0) return 'oneOf needs values';
    if (new Set(values).size < values.length) return 'a value of oneOf stands there twice';
    if (values.some((value) => jsonProblem(value) !== null)) return 'a value of oneOf is not well-formed text';
    if (otherwise === undefined || !values.includes(otherwise)) return 'otherwise is one of the values';
  } else if (values !== undefined || otherwise !== undefined) return 'values and otherwise are for oneOf';
  if (kind !== 'ref' && (to !== undefined || onDelete !== undefined)) return 'to and onDelete are for ref';
  if (kind === 'ref' && to === undefined) return 'a ref says to which entity';
  if (onDelete === 'clear' && data.optional !== true) return 'onDelete "clear" needs optional';
  if (kind !== 'setOf') return of === undefined ? null : 'of is for setOf';
  if (of === undefined || !SET_ELEMENTS.has(of.kind))
    return 'a set holds text, integers, numbers, flags, times, oneOf or refs';
  if ([of.optional, of.default, of.wire, of.onClash, of.onDelete].some((option) => option !== undefined))
    return 'what a set holds has no optional, default, wire, onClash or onDelete of its own';
  return kindProblem(of);
}

const SET_ELEMENTS: ReadonlySet<FieldData['kind']> = new Set([
  'text',
  'integer',
  'number',
  'flag',
  'time',
  'oneOf',
  'ref',
]);

/** What the rest of the schema says against a field. */
function placeProblem(data: FieldData, entity: EntityData, schema: SchemaData | null): string | null {
  const isLocal = entity.local === true;
  if (data.kind === 'serial' && isLocal) return 'a local entity is never sent, so the ledger cannot number it';
  const { to } = data.kind === 'setOf' ? (data.of ?? {}) : data;
  if (to === undefined || schema === null) return null;
  if (!Object.hasOwn(schema.entities, to)) return `a ref points to ${to}, which is not in the schema`;
  return schema.entities[to]?.local === true && !isLocal
    ? `a ref points to ${to}, which is local: others never get it`
    : null;
}

// ── what the entity says about its fields ───────────────────────────────────────────────────────────────────────────

/** Values of these are the same bytes on every device, so the derived id is the same. */
const KEY_KINDS: ReadonlySet<FieldData['kind']> = new Set(['text', 'integer', 'oneOf', 'ref']);

function keyProblem(type: string, { key, fields }: EntityData): string | null {
  if (key === undefined) return null;
  if (key.length === 0) return `${type}: a key names at least one field`;
  const problem = namesProblem(key, 'the key', (name) => Object.hasOwn(fields, name));
  if (problem !== null) return `${type}: ${problem}`;
  for (const name of key) {
    const one = fields[name] as FieldData;
    if (one.optional === true || one.default !== undefined || !KEY_KINDS.has(one.kind))
      return `${type}.${name}: a key is of required text, integer, oneOf or ref`;
  }
  return null;
}

const SEARCHED: ReadonlySet<FieldData['kind']> = new Set(['text', 'oneOf', 'setOf', 'json']);

/** Of SQLite's FTS5. */
const SEARCH_RESERVED: ReadonlySet<string> = new Set(['rank', 'rowid']);

function columnsProblem(type: string, { index = [], search = [], fields }: EntityData): string | null {
  const has = (name: string): boolean => Object.hasOwn(fields, name);
  for (const columns of index) {
    if (columns.length === 0) return `${type}: an index names at least one column`;
    const problem = namesProblem(columns, 'an index', (name) => has(name) || META_COLUMNS.includes(name as 'id'));
    if (problem !== null) return `${type}: ${problem}`;
  }
  const problem = namesProblem(search, 'search', has);
  if (problem !== null) return `${type}: ${problem}`;
  const reserved = search.find((name) => SEARCH_RESERVED.has(wireName(name, fields[name] as FieldData).toLowerCase()));
  if (reserved !== undefined) return `${type}.${reserved}: the full-text index has a column of this name already`;
  const odd = search.find((name) => !SEARCHED.has((fields[name] as FieldData).kind));
  return odd === undefined ? null : `${type}.${odd}: search is over text, oneOf, setOf and json`;
}

function namesProblem(names: readonly string[], who: string, has: (name: string) => boolean): string | null {
  const unknown = names.find((name) => !has(name));
  if (unknown !== undefined) return `${who} names ${unknown}, which is not there`;
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  return twice === undefined ? null : `${who} names ${twice} twice`;
}

function rulesProblem(type: string, { rules = {}, fields }: EntityData): string | null {
  for (const [sentence, rule] of Object.entries(rules)) {
    const where = `${type}: the rule "${sentence}"`;
    if (sentence.trim() === '' || !isSafeKey(sentence)) return `${where} needs a sentence that says what holds`;
    const unknown = fieldsOfRule(rule).find((name) => !Object.hasOwn(fields, name));
    if (unknown !== undefined) return `${where} reads ${unknown}, which is not there`;
    const problem = valuesProblem(rule, fields);
    if (problem !== null) return `${where}: ${problem}`;
  }
  return null;
}

/** A rule that compares with a value the field can never have would never hold, or always. */
function valuesProblem(rule: RuleData, fields: EntityData['fields']): string | null {
  switch (rule.rule) {
    case 'is': {
      const data = fields[rule.field] as FieldData;
      if (rule.values.length === 0) return `${rule.field} is compared with no value`;
      for (const value of rule.values) {
        const wrong = valueIssue(value, data, []);
        if (wrong !== null) return `${rule.field} is compared with ${JSON.stringify(value)}, but ${wrong.message}`;
        if (data.kind === 'setOf' && !isSet(value))
          return `${rule.field} is compared with a list that is not a set: sorted, each element once`;
      }
      return null;
    }
    case 'present':
      return rule.fields.length === 0 ? 'present names no field' : null;
    case 'not':
      return valuesProblem(rule.of, fields);
    case 'all':
    case 'any':
      return first(rule.of, (one) => valuesProblem(one, fields));
    case 'when':
      return valuesProblem(rule.condition, fields) ?? valuesProblem(rule.must, fields);
  }
}

function first<T>(list: readonly T[], problemOf: (one: T) => string | null): string | null {
  for (const one of list) {
    const problem = problemOf(one);
    if (problem !== null) return problem;
  }
  return null;
}

// ── verbs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What `tx` calls its own changes, and what those are called in history. */
const TAKEN_VERBS: ReadonlySet<string> = new Set([
  ...['create', 'put', 'update', 'delete', 'restore'],
  ...['created', 'updated', 'deleted', 'restored'],
]);

/** Verbs are no data: they are checked where a schema is written. */
export function verbProblem(schema: Schema): string | null {
  for (const [type, { verbs }] of Object.entries(schema))
    for (const verb of Object.keys(verbs as object)) {
      if (!isAllowedName(verb)) return `${type}.${verb}: ${NAME}`;
      if (TAKEN_VERBS.has(verb)) return `${type}.${verb}: every entity has an event of this name already`;
    }
  return null;
}
