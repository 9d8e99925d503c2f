import { type Compilable, type RawBuilder, type ReferenceExpression, sql } from 'kysely';
import { MANY, ONE } from './nested.ts';

/**
 * The rows of a query inside a row of another one, as an array; give it a name with `.as(…)`.
 *
 * ```ts
 * db.selectFrom('issue').select((eb) => ['issue.id', 'issue.title',
 *   many(eb.selectFrom('comment').select(['comment.id', 'comment.body']).whereRef('comment.issue', '=', 'issue.id')).as('comments')])
 * ```
 */
export function many<O>(query: Compilable<O>): RawBuilder<readonly O[]> {
  return nested(MANY, query);
}

/** The first row of a query inside a row of another one, or null. */
export function one<O>(query: Compilable<O>): RawBuilder<O | null> {
  return nested(ONE, query);
}

function nested<T>(mark: string, query: Compilable<unknown>): RawBuilder<T> {
  if (typeof (query as { toOperationNode?: unknown }).toOperationNode !== 'function')
    throw new TypeError('many() and one() take a query builder.');
  return sql<T>(Object.assign([mark, ''], { raw: [mark, ''] }) as unknown as TemplateStringsArray, query);
}

/**
 * Full-text search over an entity's `search` fields. What people type is quoted: every word must occur, the last one as
 * a beginning. No words: every row matches. For an alias write `matches('issue as i', words)`.
 */
export function matches(entity: string, words: string): RawBuilder<boolean> {
  const phrase = phraseOf(words);
  if (phrase === null) return sql<boolean>`1`;
  const [type = entity, alias = type] = entity.split(/\s+as\s+/i);
  const index = sql.id(`hf_search_${type}`);
  return sql<boolean>`(${sql.ref(`${alias}.id`)}, ${sql.ref(`${alias}.log`)}) in (select "_id", "_log" from "main".${sql.id(type)} where "_row" in (select rowid from "main".${index} where ${index} match ${phrase}))`;
}

/** Null where nothing is left to look for. */
function phraseOf(words: string): string | null {
  const tokens = words.split(/[^\p{L}\p{N}\p{M}]+/u).filter((word) => word !== '');
  if (tokens.length === 0) return null;
  return `${tokens.map((word) => `"${word}"`).join(' ')}*`;
}

/** Whether a set holds a value: `has('issue.labels', 'bug')`. */
export function has<T extends string>(column: ReferenceExpression<any, any>, value: T): RawBuilder<boolean> {
  if (typeof column === 'function') throw new TypeError('has() takes the name of a column, or an expression.');
  const set = typeof column === 'string' ? sql.ref(column) : sql`${column}`;
  return sql<boolean>`exists (select 1 from json_each(${set}) as "element" where "element"."value" = ${value})`;
}
