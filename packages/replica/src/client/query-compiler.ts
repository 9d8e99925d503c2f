import type { Json, Schema, SchemaData, Tables } from '@holdfast/core';
import { type Compilable, DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely';
import type { ReadonlyKysely } from 'kysely/readonly';
import { FaultError } from '../engine/fault-error.ts';
import { nestedPlugin } from './nested.ts';

/** A query over the entities of a schema: built with Kysely, run by the host. It cannot write, by type and by the host. */
export type Query<S extends Schema, O> = (db: ReadonlyKysely<Tables<S>>) => Compilable<O>;

export interface CompiledQuery {
  readonly sql: string;
  readonly parameters: readonly Json[];
}

export type CompileQuery<S extends Schema> = <O>(query: Query<S, O>) => CompiledQuery;

/** Kysely as a compiler only: it has no connection, so nothing can be run past the host. */
export function createQueryCompiler<S extends Schema>(schema: SchemaData): CompileQuery<S> {
  const db = new Kysely<Tables<S>>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (one) => new SqliteIntrospector(one),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
    plugins: [nestedPlugin(schema)],
  }) as unknown as ReadonlyKysely<Tables<S>>;
  return (query) => {
    const { sql, parameters } = query(db).compile();
    return { sql, parameters: parameters.map(plainParameter) };
  };
}

/** What may stand for a `?`: JSON, and instants. */
function plainParameter(value: unknown, at: number): Json {
  if (value instanceof Date) return value.toISOString();
  const isKnown = value === null || ['string', 'number', 'boolean', 'object'].includes(typeof value);
  if (!isKnown)
    throw new FaultError({ code: 'query-refused', facts: { reason: `parameter ${at + 1} is ${typeof value}` } });
  return value as Json;
}
