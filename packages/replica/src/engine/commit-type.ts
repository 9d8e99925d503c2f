import {
  type Change,
  type EntityData,
  type Issue,
  type Json,
  LIMITS,
  NAME_TAKEN,
  type RecordedChange,
  RUN_TIME_TYPE,
  readDefinition,
  sameValue,
} from '@holdfast/core';
import type { LocalEntities } from './local.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { HeldState } from './tables.ts';

/** Definitions of entity types inside a commit (SC4): checked as the ledger will, and usable by what follows them. */

interface Parts {
  readonly store: ReplicaStore;
  readonly entities: LocalEntities;
}

/**
 * Gives every type that the changes define its table, before any entity of it is read. Definitions that are refused are left
 * out: `definitionChange` says why. A commit that fails takes its tables back with it.
 */
export function declareDefined({ store, entities }: Parts, log: string, changes: readonly RecordedChange[]): void {
  const defined = new Map<string, EntityData>();
  for (const change of changes) {
    const schema = change.entity === RUN_TIME_TYPE ? schemaIn(change) : undefined;
    if (schema === undefined) continue;
    const before = defined.get(change.id) ?? schemaOf(entities.get({ log, type: RUN_TIME_TYPE, id: change.id }).local);
    const read = readDefinition(change.id, schema, before);
    if ('data' in read) defined.set(change.id, read.data);
  }
  const others = [...defined].filter(
    ([type, data]) => !sameValue(store.runTimeTypes.get(type) as never, data as never),
  );
  if (others.length === 0) return;
  entities.flush();
  for (const [type, data] of others) store.declareType(type, data);
  entities.forget();
}

/** One definition as the log will hold it. Null where it says nothing new, or is refused, with its issue. */
export function definitionChange(
  { store }: Parts,
  change: RecordedChange,
  now: HeldState | undefined,
  issues: Issue[],
): Change | null {
  const { id } = change;
  const before = schemaOf(now);
  const schema = schemaIn(change);
  const refuse = (message: string): null => {
    issues.push({ path: [id], code: 'not-settable', message });
    return null;
  };
  if (schema === undefined) return refuse(`${id}: a type stays, and is defined by what it is`);
  const read = readDefinition(id, schema, before);
  if ('problem' in read) return refuse(read.problem);
  const problem = placeProblem(store, id);
  if (problem !== null) return refuse(problem);
  const definition = read.data as unknown as Json;
  return sameValue(before, definition) ? null : { op: 'put', set: { schema: definition } };
}

function placeProblem({ runTimeTypes }: ReplicaStore, type: string): string | null {
  if (!runTimeTypes.has(type)) return `${type}: ${NAME_TAKEN}`;
  return runTimeTypes.size > LIMITS.runTimeTypesMax ? `at most ${LIMITS.runTimeTypesMax} types` : null;
}

/** The batch that the work on a type needs: the last one on its way that defines it, here or in `main` (SC4). */
export function definitionNeeded({ store, entities }: Parts, log: string, type: string): readonly string[] {
  if (!store.runTimeTypes.has(type)) return [];
  for (const of of new Set([log, 'main'])) {
    const seq = entities.get({ log: of, type: RUN_TIME_TYPE, id: type }).base?.pending.at(-1);
    if (seq === undefined) continue;
    const row = store.database.prepare('SELECT action_id FROM main.hf_outbox WHERE seq = ?').get(seq);
    if (row !== undefined) return [row['action_id'] as string];
  }
  return [];
}

const schemaOf = (state: HeldState | undefined): Json | undefined => state?.fields['schema'];

function schemaIn(change: RecordedChange): Json | undefined {
  switch (change.do) {
    case 'create':
    case 'put':
    case 'restore':
      return change.fields?.['schema'];
    case 'update':
      return change.set?.['schema'];
    case 'delete':
      return undefined;
  }
}
