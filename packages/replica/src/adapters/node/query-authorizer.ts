import { constants, type DatabaseSync, type StatementSync } from 'node:sqlite';
import type { ColumnRead } from '@holdfast/core';
import { DatabaseFault } from '../../engine/database-fault.ts';

/**
 * Prepares a statement of an app so that it can only read (LQ5), and finds out which columns it looks at (LQ6).
 *
 * The proof that it cannot write is SQLite's own: its authorizer sees every action while a statement is compiled, and
 * everything but selecting is denied there. Apps read temporary views named as the entity types; the body of a view
 * mentions every column of its table, so what counts is what the statement takes from the view.
 */
const QUERY_LENGTH_MAX = 100_000;

const ALLOWED: ReadonlySet<number> = new Set([
  constants.SQLITE_SELECT,
  constants.SQLITE_READ,
  constants.SQLITE_FUNCTION,
  constants.SQLITE_RECURSIVE,
]);
/** Functions that reach outside the database, or hand out pointers. */
const REFUSED_FUNCTIONS: ReadonlySet<string> = new Set([
  'load_extension',
  'readfile',
  'writefile',
  'edit',
  'fts3_tokenizer',
  'fts5',
]);
/** Table-valued functions that see nothing but their argument. All others show the file's inside. */
const OPEN_FUNCTIONS: ReadonlySet<string> = new Set(['json_each', 'json_tree', 'jsonb_each', 'jsonb_tree']);

export function prepareQuery(
  connection: DatabaseSync,
  sql: string,
): { readonly statement: StatementSync; readonly reads: readonly ColumnRead[] } {
  if (sql.length > QUERY_LENGTH_MAX) throw refused(`A query has at most ${QUERY_LENGTH_MAX} characters.`);
  const seen = new Looks();
  let refusal: string | null = null;
  connection.setAuthorizer((action, first, second, database, accessor) => {
    refusal ??= problemOf(action, first, second);
    if (refusal !== null) return constants.SQLITE_DENY;
    if (action === constants.SQLITE_READ && first !== null) seen.add(first, second ?? '', database, accessor);
    return constants.SQLITE_OK;
  });
  let statement: StatementSync;
  try {
    statement = connection.prepare(sql);
  } catch (cause) {
    const why = refusal ?? (cause instanceof Error ? cause.message : 'SQLite refuses it.');
    throw refused(why, cause);
  } finally {
    connection.setAuthorizer(null);
  }
  if (hasMoreThanOne(sql, statement)) throw refused('A query is one statement.');
  if (statement.columns().length === 0) throw refused('A query gives rows.');
  seen.forgetOwnNames((table) => isInside(connection, table) || isInFile(connection, table));
  const inside = seen.tables().find((table) => isInside(connection, table) || isHidden(connection, table));
  if (inside !== undefined) throw refused(`There is no table ${inside} for queries.`);
  const known = new Map<string, ReadonlyMap<string, ColumnRead>>();
  const columnsOf = (view: string) => {
    const columns = known.get(view) ?? viewColumns(connection, view);
    known.set(view, columns);
    return columns;
  };
  const behind = seen.behindViews(columnsOf);
  if (behind !== undefined)
    throw refused(`There is no table main.${behind} for queries. Name it ${behind}, without a schema before it.`);
  return { statement, reads: seen.reads(columnsOf) };
}

const refused = (why: string, cause?: unknown) => new DatabaseFault('query-refused', why, cause);

function problemOf(action: number, first: string | null, second: string | null): string | null {
  if (!ALLOWED.has(action)) return 'A query reads, and does nothing else.';
  if (action === constants.SQLITE_FUNCTION && REFUSED_FUNCTIONS.has((second ?? '').toLowerCase()))
    return `The function ${second} is not for queries.`;
  if (action === constants.SQLITE_READ && isEngineTable(first ?? '')) return `There is no table ${first} for queries.`;
  return null;
}

/** Full-text indexes are the one kind of engine table that a query may name: `matches()` does. */
const isEngineTable = (table: string): boolean =>
  (/^(hf_|sqlite_|pragma_)/i.test(table) && !/^hf_search_/i.test(table)) || /^temp\.sqlite_/i.test(table);

/** A virtual table that needs no CREATE: it shows pages, statements or settings of the file. */
const isInside = (connection: DatabaseSync, table: string): boolean =>
  !OPEN_FUNCTIONS.has(table.toLowerCase()) &&
  connection.prepare('SELECT 1 FROM pragma_module_list WHERE name = ? COLLATE NOCASE').get(table) !== undefined;

/** What an unqualified name means in the file, where no view of this app goes before it. */
const isInFile = (connection: DatabaseSync, table: string): boolean =>
  connection
    .prepare(
      `SELECT 1 FROM temp.sqlite_master WHERE type <> 'view' AND name = ?1 COLLATE NOCASE
       UNION ALL SELECT 1 FROM main.sqlite_master WHERE name = ?1 COLLATE NOCASE
       AND NOT EXISTS (SELECT 1 FROM temp.sqlite_master WHERE type = 'view' AND name = ?1 COLLATE NOCASE)`,
    )
    .get(table) !== undefined;

/** A table without a view is not this app's: another version of it made it (SC1), or a type whose name is taken (SC7). */
const isHidden = (connection: DatabaseSync, table: string): boolean =>
  !OPEN_FUNCTIONS.has(table.toLowerCase()) &&
  connection
    .prepare("SELECT 1 FROM temp.sqlite_master WHERE type = 'view' AND name = ? COLLATE NOCASE")
    .get(table.replace(/^hf_search_([A-Za-z0-9]+).*$/i, '$1')) === undefined;

/** SQLite prepares the first statement and passes over the rest: what it read must be all there is. */
const hasMoreThanOne = (sql: string, statement: StatementSync): boolean =>
  sql
    .slice(statement.sourceSQL.length)
    .replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '')
    .replace(/[\s;]/g, '') !== '';

const isEntityTable = (table: string): boolean =>
  !OPEN_FUNCTIONS.has(table.toLowerCase()) && !/^hf_search_/i.test(table);

/** What a view's body asks of a table beside what it shows. */
const LOG_COLUMN = '_log';
/** What `matches()` asks of a table: it leads from a row of the index to the row that is meant. */
const MATCHED_COLUMNS: ReadonlySet<string> = new Set(['_row', '_id', LOG_COLUMN]);

/** What the authorizer saw of columns, sorted out once the statement is there. */
class Looks {
  /** Columns of tables, by table: those named by the statement itself, and those that only a view's body names. */
  readonly #direct = new Map<string, Set<string>>();
  readonly #inBodies = new Map<string, Set<string>>();
  readonly #ofViews = new Map<string, Set<string>>();
  /** Those of `#direct` whose rows are counted under a name without a schema: it may be of the statement's own making. */
  readonly #unqualified = new Set<string>();

  add(table: string, column: string, database: string | null, accessor: string | null): void {
    if (database === null && column === '') this.#unqualified.add(table);
    if (database === 'temp') put(this.#ofViews, table, column);
    else if (accessor === table && column !== '') put(this.#inBodies, table, column);
    else put(this.#direct, table, column);
  }

  tables(): readonly string[] {
    return [...new Set([...this.#direct.keys(), ...this.#inBodies.keys()])];
  }

  /** What `WITH` names is no table, and what it reads was seen by itself. In doubt it is the file's. */
  forgetOwnNames(isKnown: (name: string) => boolean): void {
    for (const name of this.#unqualified) {
      const isOnlyCounted = this.#direct.get(name)?.size === 1;
      if (isOnlyCounted && !isKnown(name)) this.#direct.delete(name);
    }
  }

  /**
   * An entity table that is read as it lies in the file, past the view of its name: with the engine's own columns, and with
   * the names of fields on the wire. A subquery may bear the view's name; what it reads is not what the view's body does.
   */
  behindViews(columnsOf: (view: string) => ReadonlyMap<string, ColumnRead>): string | undefined {
    for (const [table, columns] of this.#direct) {
      if (!isEntityTable(table)) continue;
      const isSearched = this.#direct.has(`hf_search_${table}`);
      // Counting the rows of a view names its table, too, and no column of either.
      const isMeant = (column: string) =>
        (column === '' && this.#inBodies.has(table)) || (isSearched && MATCHED_COLUMNS.has(column));
      if (![...columns].every(isMeant)) return table;
    }
    for (const [table, columns] of this.#inBodies) {
      const body = new Set([LOG_COLUMN, ...[...columnsOf(table).values()].map(({ column }) => column)]);
      if (columns.symmetricDifference(body).size > 0) return table;
    }
    return undefined;
  }

  reads(columnsOf: (view: string) => ReadonlyMap<string, ColumnRead>): readonly ColumnRead[] {
    const reads = new Map<string, ColumnRead>();
    const add = (read: ColumnRead) => reads.set(`${read.table}.${read.column}`, read);
    for (const [table, columns] of this.#direct) for (const column of columns) add({ table, column });
    for (const [view, columns] of this.#ofViews) {
      const from = columnsOf(view);
      for (const column of columns) {
        const read = from.get(column);
        if (read !== undefined) add(read);
        else for (const bodyColumn of this.#inBodies.get(view) ?? []) add({ table: view, column: bodyColumn });
      }
    }
    // Of a view whose rows are only counted SQLite names no column, since the view's own condition reads one.
    const tables = new Set([...reads.values()].map(({ table }) => table));
    for (const table of this.#inBodies.keys()) if (!tables.has(table)) add({ table, column: '' });
    return [...reads.values()];
  }
}

const put = (map: Map<string, Set<string>>, key: string, value: string): void => {
  const known = map.get(key);
  if (known === undefined) map.set(key, new Set([value]));
  else known.add(value);
};

/** Column of a view → the column of a table that it shows. */
function viewColumns(connection: DatabaseSync, view: string): ReadonlyMap<string, ColumnRead> {
  const columns = connection.prepare(`SELECT * FROM temp."${view.replaceAll('"', '""')}"`).columns();
  return new Map(
    columns.flatMap(({ name, table, column }) =>
      table === null || column === null ? [] : [[name, { table, column }] as const],
    ),
  );
}
