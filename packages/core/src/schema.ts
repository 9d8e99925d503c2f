import { canonical } from './canonical.ts';
import { isName } from './ids.ts';
import { checkJson, type Json } from './json.ts';
import { LIMITS } from './limits.ts';
import { type EntityData, type FieldData, META_COLUMNS, type RuleData, type SchemaData } from './schema-data.ts';
import type {
  BadRefs,
  Clash,
  Entity,
  Field,
  FieldOptions,
  Fields,
  Id,
  Meta,
  Place,
  PresenceFrom,
  Rule,
  Rules,
  Schema,
  Verb,
  Verbs,
} from './schema-types.ts';
import { asSet } from './sets.ts';

/** Field kinds, `entity` and `defineSchema`: the only part of Holdfast that an app's schema file imports. */

const field = <F extends Field>(data: FieldData): F => ({ data }) as unknown as F;
const options = (o: FieldOptions<unknown> | undefined): Partial<FieldData> => {
  const { optional, default: fallback, onClash, wire } = o ?? {};
  return {
    ...(optional === undefined ? {} : { optional }),
    ...(fallback === undefined ? {} : { default: fallback as Json }),
    ...(onClash === undefined ? {} : { onClash }),
    ...(wire === undefined ? {} : { wire }),
  };
};

/** Text. `max` is its longest value in UTF-16 code units. */
export const text = <const O extends FieldOptions<string> & { readonly max?: number }>(
  o?: O,
): Field<string, string, PresenceFrom<O>> =>
  field({ kind: 'text', ...options(o), ...(o?.max === undefined ? {} : { max: o.max }) });

/** A whole number within ±(2^53−1). */
export const integer = <const O extends FieldOptions<number>>(o?: O): Field<number, number, PresenceFrom<O>> =>
  field({ kind: 'integer', ...options(o) });

/** A finite double. */
export const number = <const O extends FieldOptions<number>>(o?: O): Field<number, number, PresenceFrom<O>> =>
  field({ kind: 'number', ...options(o) });

export const flag = <const O extends FieldOptions<boolean>>(o?: O): Field<boolean, boolean, PresenceFrom<O>> =>
  field({ kind: 'flag', ...options(o) });

/** An instant: ISO 8601 in UTC with milliseconds in rows, that or a `Date` in commits. Sorts as text. */
export const time = <const O extends FieldOptions<string>>(o?: O): Field<string, string | Date, PresenceFrom<O>> =>
  field({ kind: 'time', ...options(o) });

/** Any JSON value, as one: two concurrent changes of it clash as a whole. */
export const json = <T>(o?: Pick<FieldOptions<T>, 'onClash' | 'wire'>): Field<T, T, 'required'> =>
  field({ kind: 'json', ...options(o) });

/** A count that devices add to. It cannot be set, so nobody can overwrite it. */
export const counter = (o?: Pick<FieldOptions<number>, 'wire'>): Field<number, { readonly by: number }, 'defaulted'> =>
  field({ kind: 'counter', ...options(o) });

/** A set of values: adding and removing merge. Rows hold it sorted, each element once. */
export const setOf = <T>(
  of: Field<T, any, any>,
  o?: Pick<FieldOptions<readonly T[]>, 'wire' | 'onClash'>,
): Field<readonly T[], readonly T[] | { readonly add?: readonly T[]; readonly remove?: readonly T[] }, 'defaulted'> =>
  field({ kind: 'setOf', of: of.data, ...options(o) });

/** A place in a list that people order by hand. The key is made inside the commit from the neighbours' present keys. */
export const rank = (o?: Pick<FieldOptions<string>, 'wire'>): Field<string, Place, 'defaulted'> =>
  // Two moves of one row: the later one is right, and nobody is asked.
  field({ kind: 'rank', onClash: 'last', ...options(o) });

/** A number that the ledger gives at acceptance, never twice in a log; null until then. */
export const serial = (o?: Pick<FieldOptions<number>, 'wire'>): Field<number | null, never, 'assigned'> =>
  field({ kind: 'serial', ...options(o) });

/** One of these texts. `otherwise` is shown for a value that a newer app wrote; the value itself is kept. */
export const oneOf = <const V extends readonly string[], const O extends FieldOptions<V[number]>>(
  values: V,
  o: O & { readonly otherwise: V[number] },
): Field<V[number], V[number], PresenceFrom<O>> =>
  field({ kind: 'oneOf', values, otherwise: o.otherwise, ...options(o) });

/** The id of another entity. `onDelete` is what happens here when that one is deleted; absent: `keep`. */
export const ref = <
  const E extends string,
  const O extends FieldOptions<string> & { readonly onDelete?: 'keep' | 'clear' | 'delete-too' },
>(
  to: E,
  o?: O,
): Field<Id<E>, Id<E>, PresenceFrom<O>> & { readonly to: E } => ({
  ...field<Field<Id<E>, Id<E>, PresenceFrom<O>>>({
    kind: 'ref',
    to,
    ...options(o),
    ...(o?.onDelete === undefined ? {} : { onDelete: o.onDelete }),
  }),
  to,
});

export interface EntityOptions<F extends Fields, V extends Verbs<F>> {
  /** Natural key: the id is derived from these values, so two makers make one entity. */
  readonly key?: readonly (keyof F & string)[];
  readonly index?: readonly (readonly ((keyof F & string) | keyof Meta<string>)[])[];
  /** Fields of the full-text index. */
  readonly search?: readonly (keyof F & string)[];
  readonly events?: (e: Verb<F>) => V;
  /** Invariants over one entity, by their sentence. */
  readonly rules?: (r: Rules<F>) => Record<string, Rule>;
  /** Same API, never sent: drafts, open panels. */
  readonly local?: boolean;
  readonly editedWhileDeleted?: 'keep' | 'delete' | 'ask';
}

export function entity<F extends Fields, V extends Verbs<F> = {}>(
  fields: F,
  o: EntityOptions<F, V> = {},
): Entity<F, V> {
  const rules = o.rules === undefined ? undefined : Object.entries(o.rules(ruleBuilder<F>()));
  return {
    fields,
    verbs: o.events === undefined ? ({} as V) : o.events({ set: (patch) => patch }),
    local: o.local === true,
    data: {
      ...(o.key === undefined ? {} : { key: o.key }),
      ...(o.index === undefined ? {} : { index: o.index }),
      ...(o.search === undefined ? {} : { search: o.search }),
      ...(rules === undefined
        ? {}
        : { rules: Object.fromEntries(rules.map(([sentence, { rule }]) => [sentence, rule])) }),
      ...(o.local === true ? { local: true } : {}),
      ...(o.editedWhileDeleted === undefined ? {} : { editedWhileDeleted: o.editedWhileDeleted }),
    },
  };
}

const ruleBuilder = <F extends Fields>(): Rules<F> => {
  const made = (rule: RuleData): Rule => ({ rule });
  return {
    is: (name, ...values) => made({ rule: 'is', field: name as string, values: values as Json[] }),
    present: (...names) => made({ rule: 'present', fields: names as string[] }),
    not: ({ rule }) => made({ rule: 'not', of: rule }),
    all: (...rules) => made({ rule: 'all', of: rules.map(({ rule }) => rule) }),
    any: (...rules) => made({ rule: 'any', of: rules.map(({ rule }) => rule) }),
    when: (condition, then) => made({ rule: 'when', condition: condition.rule, must: then.rule }),
  };
};

const DEFAULT_CLASH = Symbol.for('holdfast.schema.onClash');

/**
 * Checks a schema and gives it back. Throws `TypeError` naming entity and field for a name, default, key, index or rule
 * that cannot be.
 */
export function defineSchema<const S extends Schema>(
  schema: S &
    ([BadRefs<S>] extends [never] ? unknown : { 'a ref points to an entity that is not in the schema': BadRefs<S> }),
  o: { readonly onClash?: Clash } = {},
): S {
  const data = dataOf(schema as Schema, o.onClash);
  const problem = schemaProblem(data);
  if (problem !== null) throw new TypeError(`Schema, ${problem}`);
  if (o.onClash !== undefined) Object.defineProperty(schema, DEFAULT_CLASH, { value: o.onClash, enumerable: false });
  return schema as S;
}

/** The schema as plain data: what crosses borders, is stored in replica files and is fingerprinted. */
export const schemaData = (schema: Schema): SchemaData =>
  dataOf(schema, (schema as unknown as Record<symbol, Clash | undefined>)[DEFAULT_CLASH]);

const CAN_CLASH: ReadonlySet<FieldData['kind']> = new Set([
  'text',
  'integer',
  'number',
  'flag',
  'time',
  'json',
  'oneOf',
  'ref',
]);

function dataOf(schema: Schema, onClash: Clash | undefined): SchemaData {
  const withDefault = (data: FieldData): FieldData =>
    onClash !== undefined && data.onClash === undefined && CAN_CLASH.has(data.kind) ? { ...data, onClash } : data;
  const entities = Object.entries(schema).map(([type, { fields, data }]): [string, EntityData] => [
    type,
    {
      fields: Object.fromEntries(
        Object.entries(fields as Fields).map(([name, { data: one }]) => [name, withDefault(one)]),
      ),
      ...data,
    },
  ]);
  return { format: 1, entities: Object.fromEntries(entities) };
}

/** The name of a field in events. */
export const wireName = (name: string, data: FieldData): string => data.wire ?? name;

// ── what cannot be ──────────────────────────────────────────────────────────────────────────────────────────────────

const RESERVED: ReadonlySet<string> = new Set(META_COLUMNS.map((name) => name.toLowerCase()));

/** The first thing about a schema that cannot be, as `entity.field: why`, or null. */
export function schemaProblem(schema: SchemaData): string | null {
  const types = Object.keys(schema.entities);
  const twice = firstTwice(types);
  if (twice !== null) return `${twice}: two entities differ only in case`;
  for (const [type, data] of Object.entries(schema.entities)) {
    const problem = entityProblem(type, data, schema);
    if (problem !== null) return problem;
  }
  return null;
}

export function entityProblem(type: string, data: EntityData, schema: SchemaData | null): string | null {
  if (!isName(type)) return `${type}: a name is [a-z][A-Za-z0-9]{0,62}`;
  const names = Object.keys(data.fields);
  if (names.length > LIMITS.fieldsPerEntityMax) return `${type}: at most ${LIMITS.fieldsPerEntityMax} fields`;
  for (const [name, one] of Object.entries(data.fields)) {
    const problem = fieldProblem(name, one, schema);
    if (problem !== null) return `${type}.${name}: ${problem}`;
  }
  const twice = firstTwice(names) ?? firstTwice(names.map((name) => wireName(name, data.fields[name] as FieldData)));
  if (twice !== null) return `${type}.${twice}: two fields have this name, without regard to case`;
  const has = (name: string) => Object.hasOwn(data.fields, name);
  for (const name of data.key ?? []) if (!has(name)) return `${type}.${name}: the key names a field that is not there`;
  for (const name of data.key ?? []) {
    const one = data.fields[name] as FieldData;
    if (one.optional === true || !KEY_KINDS.has(one.kind))
      return `${type}.${name}: a key is of required text, integer, oneOf or ref`;
  }
  for (const name of data.search ?? [])
    if (!has(name)) return `${type}.${name}: search names a field that is not there`;
  for (const name of (data.index ?? []).flat())
    if (!has(name) && !META_COLUMNS.includes(name as (typeof META_COLUMNS)[number]))
      return `${type}.${name}: an index names a column that is not there`;
  for (const [sentence, rule] of Object.entries(data.rules ?? {})) {
    const unknown = fieldsOfRule(rule).find((name) => !has(name));
    if (unknown !== undefined) return `${type}: the rule "${sentence}" reads ${unknown}, which is not there`;
  }
  return null;
}

const KEY_KINDS: ReadonlySet<FieldData['kind']> = new Set(['text', 'integer', 'oneOf', 'ref']);

function fieldProblem(name: string, data: FieldData, schema: SchemaData | null): string | null {
  if (!isName(name)) return 'a name is [a-z][A-Za-z0-9]{0,62}';
  if (RESERVED.has(name.toLowerCase())) return 'every row has this column already';
  if (data.wire !== undefined && !isName(data.wire)) return 'a wire name is [a-z][A-Za-z0-9]{0,62}';
  if (data.wire !== undefined && RESERVED.has(data.wire.toLowerCase()))
    return 'every row has a column of this wire name already';
  if (data.optional === true && data.default !== undefined) return 'optional or with a default, not both';
  if (data.kind === 'oneOf') {
    const values = data.values ?? [];
    if (values.length === 0) return 'oneOf needs values';
    if (!values.includes(data.otherwise ?? '')) return 'otherwise is one of the values';
  }
  if (data.kind === 'setOf' && !SET_ELEMENTS.has(data.of?.kind ?? 'setOf'))
    return 'a set holds text, numbers, flags, oneOf, times or refs';
  if (data.kind === 'ref' && schema !== null && !Object.hasOwn(schema.entities, data.to ?? ''))
    return `there is no entity ${data.to}`;
  if (data.kind === 'ref' && data.onDelete === 'clear' && data.optional !== true)
    return 'onDelete "clear" needs optional';
  if (data.default === null) return 'null is not a default; say optional';
  if (data.default !== undefined && !checkJson(data.default).ok) return 'the default is not JSON of the profile';
  if (data.max !== undefined && !(Number.isSafeInteger(data.max) && data.max > 0))
    return 'max is a whole number above 0';
  return null;
}

const SET_ELEMENTS: ReadonlySet<FieldData['kind']> = new Set([
  'text',
  'integer',
  'number',
  'flag',
  'oneOf',
  'time',
  'ref',
]);

export function fieldsOfRule(rule: RuleData): readonly string[] {
  switch (rule.rule) {
    case 'is':
      return [rule.field];
    case 'present':
      return rule.fields;
    case 'not':
      return fieldsOfRule(rule.of);
    case 'all':
    case 'any':
      return rule.of.flatMap(fieldsOfRule);
    case 'when':
      return [...fieldsOfRule(rule.condition), ...fieldsOfRule(rule.must)];
  }
}

function firstTwice(names: readonly string[]): string | null {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name.toLowerCase())) return name;
    seen.add(name.toLowerCase());
  }
  return null;
}

/** What a field holds where no event set it: its default, an empty set, a count of 0; otherwise nothing. */
export function shownDefault(data: FieldData): Json | undefined {
  if (data.default !== undefined) return data.default;
  if (data.kind === 'setOf') return asSet([]);
  if (data.kind === 'counter') return 0;
  if (data.kind === 'rank') return 'U';
  return undefined;
}

export const sameSchema = (a: SchemaData, b: SchemaData): boolean =>
  canonical(a as unknown as Json) === canonical(b as unknown as Json);
