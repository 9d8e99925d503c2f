import type { EntityData, FieldData, RuleData } from './schema-data.ts';

/** Types that flow from a schema to commits, rows and queries. At run time a schema is the data they describe (SC2). */

export type Presence = 'required' | 'optional' | 'defaulted' | 'assigned';

/** A field: its data, and by type what a row holds (`R`), what a commit writes (`W`), and whether it must be there. */
export interface Field<R = unknown, W = unknown, P extends Presence = Presence> {
  readonly data: FieldData;
  readonly '~row'?: R;
  readonly '~write'?: W;
  readonly '~presence'?: P;
}

type RowValue<F> = F extends Field<infer R, any, any> ? R : never;
type WriteValue<F> = F extends Field<any, infer W, any> ? W : never;
type PresenceOf<F> = F extends Field<any, any, infer P> ? P : never;

declare const brand: unique symbol;
/** The id of an entity. Branded: a comment's id does not compile where a person's is wanted. */
export type Id<E extends string = string> = string & { readonly [brand]?: E };

export type Clash = 'ask' | 'last' | 'max' | 'min';

export interface FieldOptions<T> {
  readonly optional?: true;
  readonly default?: T;
  /** What concurrent sets do. Absent: ask a person. */
  readonly onClash?: Clash;
  /** The name in the log, where it differs from the name in code. Keeps its kind for ever. */
  readonly wire?: string;
}

export type PresenceFrom<O> = O extends { optional: true }
  ? 'optional'
  : O extends { default: unknown }
    ? 'defaulted'
    : 'required';

/** Where a ranked row goes: at an end of its list, or beside another row. */
export type Place =
  | { readonly at: 'start' | 'end' }
  | { readonly after: { readonly rank: string } | null; readonly before: { readonly rank: string } | null };

export type Fields = Record<string, Field<any, any, any>>;
export type FieldsWith<F extends Fields, P extends Presence> = {
  [K in keyof F]: PresenceOf<F[K]> extends P ? K : never;
}[keyof F];

/** What every row carries besides its fields. Reserved names (SC8). */
export interface Meta<E extends string> {
  readonly id: Id<E>;
  readonly log: string;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly updatedBy: string;
  readonly updatedAt: string;
  /** Sorts rows by their creation in the log; rows still pending come after all confirmed ones. */
  readonly arrival: number;
  readonly sync: 'synced' | 'pending' | 'attention';
}

export type RowOf<E extends string, F extends Fields> = {
  readonly [K in keyof F]: PresenceOf<F[K]> extends 'optional' ? RowValue<F[K]> | null : RowValue<F[K]>;
} & Meta<E>;

export type CreateOf<E extends string, F extends Fields> = {
  [K in FieldsWith<F, 'required'>]: WriteValue<F[K]>;
} & {
  [K in FieldsWith<F, 'optional'>]?: WriteValue<F[K]> | null;
} & {
  [K in FieldsWith<F, 'defaulted'>]?: WriteValue<F[K]>;
} & { id?: Id<E> };

export type PatchOf<F extends Fields> = {
  [K in Exclude<keyof F, FieldsWith<F, 'assigned'>>]?: PresenceOf<F[K]> extends 'optional'
    ? WriteValue<F[K]> | null
    : WriteValue<F[K]>;
};

/** A condition over one row, as data: worker, daemon and ledger can all check it. */
export interface Rule {
  readonly rule: RuleData;
}

export interface Rules<F extends Fields> {
  is<K extends keyof F>(field: K, ...values: RowValue<F[K]>[]): Rule;
  present(...fields: FieldsWith<F, 'optional'>[]): Rule;
  not(rule: Rule): Rule;
  all(...rules: Rule[]): Rule;
  any(...rules: Rule[]): Rule;
  when(condition: Rule, then: Rule): Rule;
}

export interface Verb<F extends Fields> {
  set(patch: PatchOf<F>): PatchOf<F>;
}
export type Verbs<F extends Fields> = Record<string, (...args: any[]) => PatchOf<F>>;

export interface EntityOptions<F extends Fields, V extends Verbs<F>> {
  /** Natural key: the id is derived from these values, so two makers make one entity. */
  readonly key?: readonly (keyof F & string)[];
  readonly index?: readonly (readonly ((keyof F & string) | keyof Meta<string>)[])[];
  /** Fields of the full-text index. */
  readonly search?: readonly (keyof F & string)[];
  /** Named changes, typed in `tx` and told by name in history. */
  readonly events?: (e: Verb<F>) => V;
  /** Invariants over one entity, by their sentence. */
  readonly rules?: (r: Rules<F>) => Record<string, Rule>;
  /** Same API, never sent: drafts, open panels. */
  readonly local?: boolean;
  /** What becomes of an edit of an entity that somebody deleted meanwhile. Absent: `keep`. */
  readonly editedWhileDeleted?: 'keep' | 'delete' | 'ask';
}

export interface Entity<F extends Fields, V extends Verbs<F>> {
  readonly fields: F;
  /** Named changes: `closed: (at) => e.set({ … })`. They run where the commit is recorded, never elsewhere. */
  readonly verbs: V;
  readonly local: boolean;
  /** Everything else about the entity, as data without its fields. */
  readonly data: Omit<EntityData, 'fields'>;
}

export type Schema = Record<string, Entity<any, any>>;

export type BadRefs<S extends Schema> = {
  [E in keyof S]: {
    [K in keyof S[E]['fields']]: S[E]['fields'][K] extends { to: infer T } ? (T extends keyof S ? never : K) : never;
  }[keyof S[E]['fields']];
}[keyof S];

export type Row<S extends Schema, E extends keyof S & string> = RowOf<E, S[E]['fields']>;
export type Tables<S extends Schema> = { [E in keyof S & string]: Row<S, E> };
