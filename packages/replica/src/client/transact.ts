import { type Id, LIMITS, type Schema, type SchemaData, startRecording } from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import type { Link } from '../link/link.ts';
import type { CommitAsk, Read } from '../link/messages.ts';
import type { CallerIds } from './caller-ids.ts';
import type { CompileQuery, Query } from './query-compiler.ts';
import type { ReadTx } from './replica.ts';
import { rowMaker } from './rows.ts';
import type { Durable } from './write.ts';

export interface TransactParts<S extends Schema> {
  readonly link: Link;
  readonly schema: S;
  /** Asked for each recording: types may come at run time (SC4). */
  readonly data: () => SchemaData;
  readonly ids: CallerIds;
  readonly compile: CompileQuery<S>;
}

/**
 * CM4: reads with reads that are checked again inside the commit. Nothing is written by a run whose reads gave other rows
 * there; it is run again, at most five times in all.
 */
export async function transact<S extends Schema, T>(
  parts: TransactParts<S>,
  run: (tx: ReadTx<S>) => Promise<T>,
  commit: Pick<CommitAsk, 'id' | 'log' | 'label' | 'undo'>,
): Promise<Durable<T>> {
  const { id, ...how } = commit;
  for (let left: number = LIMITS.transactRunsMax; ; left -= 1) {
    const { result, reads, changes, seen } = await runOnce(parts, run);
    try {
      const { seq } = await parts.link.request('commit', { ...how, changes, seen, reads }, { id });
      return { seq, result };
    } catch (cause) {
      const isContended = cause instanceof FaultError && cause.fault.code === 'contended';
      if (!isContended || left === 1) throw cause;
    }
  }
}

async function runOnce<S extends Schema, T>(
  { link, schema, data, ids, compile }: TransactParts<S>,
  run: (tx: ReadTx<S>) => Promise<T>,
) {
  const recording = startRecording(schema, data(), ids);
  const reads: Read[] = [];
  let isOver = false;
  const query = async <O>(build: Query<S, O>): Promise<O[]> => {
    if (isOver) throw new TypeError('This transaction is over: its callback has returned. Await what it reads.');
    const { sql, parameters } = compile(build);
    const { columns, rows, digest = '' } = await link.request('query', { sql, parameters, digest: true });
    reads.push({ sql, parameters, digest });
    return rows.map(rowMaker<O>(columns));
  };
  const first = async <O>(build: Query<S, O>): Promise<O | undefined> => (await query(build))[0];
  const get = (entity: string, of: Id): Promise<any> =>
    first(((db: any) => db.selectFrom(entity).selectAll().where('id', '=', of)) as unknown as Query<S, any>);
  const tx: ReadTx<S> = {
    query,
    first,
    get,
    getNamed: get,
    write: recording.tx,
  };
  let result: T;
  try {
    result = await run(tx);
  } finally {
    isOver = true;
    recording.end();
  }
  const recorded = recording.end();
  if (!recorded.ok) throw new FaultError(recorded.fault);
  return { result, reads, ...recorded.value };
}
