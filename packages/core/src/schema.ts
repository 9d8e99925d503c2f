import { wireName } from './field-facts.ts';
import type { Json } from './json.ts';
import type { EntityData, FieldData, RuleData, SchemaData } from './schema-data.ts';
import { schemaProblem, verbProblem } from './schema-problem.ts';
import type {
  BadRefs,
  Clash,
  Entity,
  EntityOptions,
  Field,
  FieldOptions,
  Fields,
  Id,
  Place,
  PresenceFrom,
  Rule,
  Rules,
  Schema,
  Verbs,
} from './schema-types.ts';

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

/** An instant: ISO 8601 in UTC with milliseconds in rows, any ISO instant or a `Date` in commits. Sorts as text. */
export const time = <const O extends FieldOptions<string>>(o?: O): Field<string, string | Date, PresenceFrom<O>> =>
  field({ kind: 'time', ...options(o) });

/** Any JSON value, as one: two concurrent changes of it clash as a whole. */
export function json<T>(o: FieldOptions<T> & { readonly optional: true }): Field<T, T, 'optional'>;
export function json<T>(o: FieldOptions<T> & { readonly default: T }): Field<T, T, 'defaulted'>;
export function json<T>(o?: Pick<FieldOptions<T>, 'onClash' | 'wire'>): Field<T, T, 'required'>;
export function json(o?: FieldOptions<unknown>): Field {
  return field({ kind: 'json', ...options(o) });
}

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

/** An entity type: fields, and what holds for the whole record. */
export function entity<F extends Fields, V extends Verbs<F> = {}>(
  fields: F,
  o: EntityOptions<F, V> = {},
): Entity<F, V> {
  const rules = o.rules === undefined ? {} : o.rules(ruleBuilder<F>());
  return {
    fields,
    verbs: o.events === undefined ? ({} as V) : o.events({ set: (patch) => patch }),
    local: o.local === true,
    data: {
      ...(o.key === undefined ? {} : { key: o.key }),
      ...(o.index === undefined ? {} : { index: o.index }),
      ...(o.search === undefined ? {} : { search: o.search }),
      rules: Object.fromEntries(Object.entries(rules).map(([sentence, { rule }]) => [sentence, rule])),
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

/**
 * Checks a schema and gives it back, with `onClash` written into every field that does not say its own. Throws
 * `TypeError` naming entity and field for whatever cannot be: names, refs, defaults, keys, indexes, rules.
 *
 * @example
 * const schema = defineSchema({ note: entity({ body: text({ default: '' }), pinned: flag({ default: false }) }) });
 */
export function defineSchema<const S extends Schema>(
  schema: S &
    ([BadRefs<S>] extends [never] ? unknown : { 'a ref points to an entity that is not in the schema': BadRefs<S> }),
  o: { readonly onClash?: Clash } = {},
): S {
  const defined = withClash(schema, o.onClash);
  const problem = schemaProblem(schemaData(defined)) ?? verbProblem(defined);
  if (problem !== null) throw new TypeError(`Schema, ${problem}`);
  return defined;
}

/** What the default of a schema is written into. Counters and sets merge without it; places have their own. */
const ASKS: ReadonlySet<FieldData['kind']> = new Set([
  'text',
  'integer',
  'number',
  'flag',
  'time',
  'json',
  'oneOf',
  'ref',
]);

function withClash<S extends Schema>(schema: S, onClash: Clash | undefined): S {
  if (onClash === undefined) return schema;
  const mapped = (of: Field): Field =>
    ASKS.has(of.data.kind) && of.data.onClash === undefined ? { ...of, data: { ...of.data, onClash } } : of;
  return mapValues(schema, (one) => ({ ...one, fields: mapValues(one.fields as Fields, mapped) })) as S;
}

const mapValues = <V, W>(of: Readonly<Record<string, V>>, map: (value: V, key: string) => W): Record<string, W> =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [key, map(value, key)]));

/** The schema as plain data: what crosses borders, is stored in replica files and is fingerprinted. */
export const schemaData = (schema: Schema): SchemaData => ({
  format: 1,
  entities: mapValues(schema, ({ fields, data }) =>
    leanEntity({ fields: mapValues(fields as Fields, (one) => one.data), ...data }),
  ),
});

/** What means the same is the same data: whatever only says a default is left out, so that fingerprints agree. */
export function leanEntity(entity: EntityData): EntityData {
  const { fields, key, index = [], search = [], rules = {}, local, editedWhileDeleted = 'keep' } = entity;
  return {
    fields: mapValues(fields, leanField),
    ...(key === undefined ? {} : { key }),
    ...(index.length === 0 ? {} : { index }),
    ...(search.length === 0 ? {} : { search }),
    ...(Object.keys(rules).length === 0 ? {} : { rules }),
    ...(local === true ? { local } : {}),
    ...(editedWhileDeleted === 'keep' ? {} : { editedWhileDeleted }),
  };
}

function leanField(data: FieldData, name: string): FieldData {
  const { wire, onClash, onDelete, of, ...rest } = data;
  return {
    ...rest,
    ...(wire === undefined || wireName(name, data) === name ? {} : { wire }),
    ...(onClash === undefined || onClash === 'ask' ? {} : { onClash }),
    ...(onDelete === undefined || onDelete === 'keep' ? {} : { onDelete }),
    ...(of === undefined ? {} : { of: leanField(of, '') }),
  };
}
