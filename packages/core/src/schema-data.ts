import type { MergeRule } from './events.ts';
import type { Json } from './json.ts';

/** A schema is data: no closure crosses a border, so worker, daemon, command line and ledger read the same (SC2). */
export interface SchemaData {
  readonly format: 1;
  /** By entity type, which is also the table's name. */
  readonly entities: Readonly<Record<string, EntityData>>;
}

export interface EntityData {
  /** By the name in code. */
  readonly fields: Readonly<Record<string, FieldData>>;
  /** Natural key: names in code. The id is derived from their values. */
  readonly key?: readonly string[];
  readonly index?: readonly (readonly string[])[];
  readonly search?: readonly string[];
  /** Invariants over one entity, by their sentence (MG1). */
  readonly rules?: Readonly<Record<string, RuleData>>;
  readonly local?: true;
  /** MG5; absent means `keep`. */
  readonly editedWhileDeleted?: 'keep' | 'delete' | 'ask';
}

export type FieldKind =
  | 'text'
  | 'integer'
  | 'number'
  | 'flag'
  | 'time'
  | 'json'
  | 'counter'
  | 'setOf'
  | 'oneOf'
  | 'ref'
  | 'rank'
  | 'serial';

export interface FieldData {
  readonly kind: FieldKind;
  /** The name in events; absent means: the name in code. A wire name keeps its kind for ever. */
  readonly wire?: string;
  readonly optional?: true;
  readonly default?: Json;
  /** Absent means `ask`. */
  readonly onClash?: 'ask' | MergeRule;
  /** `text`: longest value in UTF-16 code units. */
  readonly max?: number;
  /** `oneOf`: the values this app knows, and what it shows for one that it does not (SC5). */
  readonly values?: readonly string[];
  readonly otherwise?: string;
  /** `ref`. */
  readonly to?: string;
  readonly onDelete?: 'keep' | 'clear' | 'delete-too';
  /** `setOf`: what an element is. */
  readonly of?: FieldData;
}

/** A condition over one entity's fields (names in code), evaluated by one function in core. */
export type RuleData =
  | { readonly rule: 'is'; readonly field: string; readonly values: readonly Json[] }
  | { readonly rule: 'present'; readonly fields: readonly string[] }
  | { readonly rule: 'not'; readonly of: RuleData }
  | { readonly rule: 'all' | 'any'; readonly of: readonly RuleData[] }
  | { readonly rule: 'when'; readonly condition: RuleData; readonly must: RuleData };

/** Reserved names of every row (SC8). */
export const META_COLUMNS = [
  'id',
  'log',
  'createdBy',
  'createdAt',
  'updatedBy',
  'updatedAt',
  'arrival',
  'sync',
] as const;

/** Entity type whose events add entity types at run time (SC4). Its one field `schema` holds an `EntityData`. */
export const RUN_TIME_TYPE = 'holdfast.entity-type';
