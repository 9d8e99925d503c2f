import { type FieldKind, META_COLUMNS, type SchemaData } from '@holdfast/core';
import {
  AliasNode,
  ColumnNode,
  ExpressionWrapper,
  IdentifierNode,
  type KyselyPlugin,
  type OperationNode,
  OperationNodeTransformer,
  type QueryId,
  RawNode,
  ReferenceNode,
  SelectAllNode,
  SelectionNode,
  SelectQueryNode,
  sql,
  TableNode,
} from 'kysely';

/**
 * `many(…)` and `one(…)`: rows inside a row, as JSON that already says what the schema says (SC3).
 *
 * SQLite tells where a result's own columns come from, but not those inside a JSON text. So the names are resolved here,
 * by the schema, when the query is compiled: flags are written as true and false, sets and JSON as what they hold. The text
 * is handed over as bytes: no field of a schema is bytes, so whoever decodes cannot mistake a person's text for it.
 */
export const MANY = '/* many */';
export const ONE = '/* one */';

/** How a column must be written into JSON: by its kind, `nested` for rows inside, undefined where nothing is known. */
type Kind = FieldKind | 'plain' | 'nested' | undefined;
type Columns = ReadonlyMap<string, Kind>;

/** Names that a select may refer to: its own tables, then those around it. */
interface Scope {
  readonly tables: ReadonlyMap<string, Columns>;
  readonly around: Scope | null;
  readonly common: ReadonlyMap<string, Columns>;
}

export const nestedPlugin = (schema: SchemaData): KyselyPlugin => {
  const entities = new Map(Object.entries(schema.entities).map(([type, data]) => [type, entityColumns(data)]));
  return {
    // A transformer has a place in the query: one for each.
    transformQuery: ({ node, queryId }) => new NestedTransformer(entities).transformNode(node, queryId),
    transformResult: async ({ result }) => result,
  };
};

const entityColumns = (data: SchemaData['entities'][string]): Columns =>
  new Map<string, Kind>([
    ...META_COLUMNS.map((name) => [name, 'plain'] as const),
    ...Object.entries(data.fields).map(([name, field]) => [name, field.kind] as const),
  ]);

class NestedTransformer extends OperationNodeTransformer {
  readonly #entities: ReadonlyMap<string, Columns>;
  #scope: Scope | null = null;

  constructor(entities: ReadonlyMap<string, Columns>) {
    super();
    this.#entities = entities;
  }

  protected override transformSelectQuery(node: SelectQueryNode, queryId?: QueryId): SelectQueryNode {
    const around = this.#scope;
    this.#scope = this.#scopeOf(node);
    try {
      return super.transformSelectQuery(node, queryId);
    } finally {
      this.#scope = around;
    }
  }

  protected override transformRaw(node: RawNode, queryId?: QueryId): RawNode {
    const [mark] = node.sqlFragments;
    const [inner] = node.parameters;
    if ((mark !== MANY && mark !== ONE) || inner === undefined) return super.transformRaw(node, queryId);
    return this.#nested(mark, inner, queryId, 'bytes');
  }

  #nested(mark: string, inner: OperationNode, queryId: QueryId | undefined, as: 'bytes' | 'text'): RawNode {
    if (!SelectQueryNode.is(inner)) throw new TypeError('many() and one() take a query that selects.');
    const columns = this.#outputs(inner);
    const select = this.transformNode(this.#withTextInside(inner, columns, queryId), queryId);
    const object = sql`json_object(${sql.join(
      [...columns].flatMap(([name, kind]) => [sql.lit(name), written(sql.ref(`rows.${name}`), kind)]),
    )})`;
    const from = sql`from ${new ExpressionWrapper(select)} as ${sql.id('rows')}`;
    const json =
      mark === MANY ? sql`(select json_group_array(${object}) ${from})` : sql`(select ${object} ${from} limit 1)`;
    return (as === 'bytes' ? sql`cast(${json} as blob)` : json).toOperationNode() as RawNode;
  }

  /** Rows inside rows inside: there the text goes straight into the text around it. Stars become names. */
  #withTextInside(inner: SelectQueryNode, columns: Columns, queryId: QueryId | undefined): SelectQueryNode {
    const scope = this.#scopeOf(inner);
    const selections = (inner.selections ?? []).flatMap((selection): readonly SelectionNode[] => {
      const { selection: one } = selection;
      if (AliasNode.is(one) && isNested(one.node)) {
        const around = this.#scope;
        this.#scope = scope;
        const [mark] = one.node.sqlFragments as readonly [string];
        const text = this.#nested(mark, one.node.parameters[0] as OperationNode, queryId, 'text');
        this.#scope = around;
        return [SelectionNode.create(AliasNode.create(text, one.alias))];
      }
      return [selection];
    });
    if (columns.size === 0) throw new TypeError('many() and one() take a query that selects columns.');
    return { ...inner, selections };
  }

  // ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #scopeOf(node: SelectQueryNode): Scope {
    const common = new Map(this.#scope?.common ?? []);
    const scope = { tables: new Map<string, Columns>(), around: this.#scope, common };
    const around = this.#scope;
    this.#scope = scope;
    for (const { name, expression } of node.with?.expressions ?? [])
      if (SelectQueryNode.is(expression)) common.set(name.table.table.identifier.name, this.#outputs(expression));
    for (const table of [...(node.from?.froms ?? []), ...(node.joins ?? []).map((join) => join.table)]) {
      const [name, columns] = this.#source(table);
      scope.tables.set(name, columns);
    }
    this.#scope = around;
    return scope;
  }

  #source(node: OperationNode): readonly [string, Columns] {
    if (AliasNode.is(node)) {
      const [, columns] = this.#source(node.node);
      return [IdentifierNode.is(node.alias) ? node.alias.name : '', columns];
    }
    if (TableNode.is(node)) {
      const { name } = node.table.identifier;
      return [name, this.#scope?.common.get(name) ?? this.#entities.get(name) ?? NOTHING];
    }
    return ['', SelectQueryNode.is(node) ? this.#outputs(node) : NOTHING];
  }

  /** Names and kinds of what a select gives. */
  #outputs(node: SelectQueryNode): Columns {
    const scope = this.#scopeOf(node);
    const outputs = new Map<string, Kind>();
    for (const { selection } of node.selections ?? []) {
      if (SelectAllNode.is(selection))
        for (const columns of scope.tables.values()) for (const [name, kind] of columns) outputs.set(name, kind);
      else if (ReferenceNode.is(selection) && SelectAllNode.is(selection.column))
        for (const [name, kind] of columnsOf(scope, selection.table)) outputs.set(name, kind);
      else {
        const [name, kind] = outputOf(selection, scope);
        outputs.set(name, kind);
      }
    }
    return outputs;
  }
}

const NOTHING: Columns = new Map();

const isNested = (node: OperationNode): node is RawNode =>
  RawNode.is(node) && (node.sqlFragments[0] === MANY || node.sqlFragments[0] === ONE);

const columnsOf = (scope: Scope, table: TableNode | undefined): Columns =>
  (table === undefined ? undefined : scope.tables.get(table.table.identifier.name)) ?? NOTHING;

function outputOf(node: OperationNode, scope: Scope): readonly [string, Kind] {
  if (AliasNode.is(node)) {
    if (!IdentifierNode.is(node.alias)) throw new TypeError('A column inside many() or one() has a plain name.');
    return [node.alias.name, isNested(node.node) ? 'nested' : kindOf(node.node, scope)];
  }
  if (ReferenceNode.is(node) && ColumnNode.is(node.column)) return [node.column.column.name, kindOf(node, scope)];
  if (ColumnNode.is(node)) return [node.column.name, kindOf(node, scope)];
  throw new TypeError('A column inside many() or one() needs a name: .as(…)');
}

/** What the schema says of a column that is named; undefined for an expression. */
function kindOf(node: OperationNode, scope: Scope): Kind {
  if (ReferenceNode.is(node) && ColumnNode.is(node.column))
    return lookUp(scope, node.column.column.name, node.table?.table.identifier.name);
  if (ColumnNode.is(node)) return lookUp(scope, node.column.name, undefined);
  return undefined;
}

function lookUp(scope: Scope | null, column: string, table: string | undefined): Kind {
  for (let at = scope; at !== null; at = at.around) {
    if (table !== undefined) {
      const columns = at.tables.get(table);
      if (columns !== undefined) return columns.get(column);
      continue;
    }
    for (const columns of at.tables.values()) if (columns.has(column)) return columns.get(column);
  }
  return undefined;
}

type Sql = ReturnType<typeof sql>;

/** A column as a member of a JSON object. */
function written(column: Sql, kind: Kind): Sql {
  switch (kind) {
    case 'flag':
      return sql`json(case ${column} when 1 then 'true' when 0 then 'false' end)`;
    case 'setOf':
    case 'json':
    case 'nested':
      return sql`json(${column})`;
    case undefined:
      // Perhaps rows inside, which came a long way: they are bytes.
      return sql`iif(typeof(${column}) = 'blob', json(cast(${column} as text)), ${column})`;
    default:
      return column;
  }
}
