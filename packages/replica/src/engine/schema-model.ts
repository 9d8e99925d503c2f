import {
  columnType,
  type EntityData,
  type FieldData,
  fieldsUnderRules,
  type Json,
  type SchemaData,
  shownDefault,
  wireName,
} from '@holdfast/core';

/** One schema as the engine reads it: by wire name, with everything that is asked per row worked out once. */
export interface SchemaModel {
  readonly data: SchemaData;
  readonly entities: ReadonlyMap<string, EntityModel>;
}

export interface EntityModel {
  readonly type: string;
  readonly data: EntityData;
  readonly isLocal: boolean;
  readonly columns: readonly ColumnModel[];
  readonly byWire: ReadonlyMap<string, ColumnModel>;
  readonly byName: ReadonlyMap<string, ColumnModel>;
  /** Wire names that an invariant reads. */
  readonly underRules: ReadonlySet<string>;
  readonly serials: readonly ColumnModel[];
  readonly hasSearch: boolean;
  /** Declared by another version of the app: kept in its table, and not this schema's to query or to change (SC1). */
  readonly isHidden?: true;
}

export interface ColumnModel {
  /** In code. */
  readonly name: string;
  readonly wire: string;
  readonly data: FieldData;
  readonly sqlType: string;
  /** Shown where no event set the field. */
  readonly fallback: Json | undefined;
}

export function schemaModel(data: SchemaData): SchemaModel {
  return {
    data,
    entities: new Map(Object.entries(data.entities).map(([type, entity]) => [type, entityModel(type, entity)])),
  };
}

export function entityModel(type: string, data: EntityData): EntityModel {
  const columns = Object.entries(data.fields).map(
    ([name, field]): ColumnModel => ({
      name,
      wire: wireName(name, field),
      data: field,
      sqlType: columnType(field),
      fallback: shownDefault(field),
    }),
  );
  return {
    type,
    data,
    isLocal: data.local === true,
    columns,
    byWire: new Map(columns.map((column) => [column.wire, column])),
    byName: new Map(columns.map((column) => [column.name, column])),
    underRules: fieldsUnderRules(data),
    serials: columns.filter((column) => column.data.kind === 'serial'),
    hasSearch: (data.search ?? []).length > 0,
  };
}
