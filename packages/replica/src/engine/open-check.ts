import { StateSignature } from '@holdfast/core';
import type { ReplicaStore } from './replica-store.ts';
import { quoted } from './tables.ts';

/**
 * What can be told at once, at every start, of whether a log's cursor, events and rows belong together (I07, I08, I25).
 * They move in one transaction, so only somebody else can part them: a tool, a repair by hand, a disk. Rows that are lost
 * one by one are not seen here; the doctor reads everything.
 *
 * A log that fails is fetched whole again, with outbox and desk kept on top.
 */
export function forgetLogsThatDoNotFit(store: ReplicaStore): readonly string[] {
  const { database } = store;
  const empty = new StateSignature(store.platform.digest).toHex();
  const found = database
    .prepare("SELECT log, head, chain, signature, whole_at FROM main.hf_log WHERE stage = 'visible'")
    .all()
    .filter((row) => !isAtHead(store, row) || (row['signature'] !== empty && !hasRows(store, row['log'] as string)))
    .map((row) => row['log'] as string);
  for (const log of found)
    database
      .prepare(
        "UPDATE main.hf_log SET stage = 'new', head = 0, chain = '', signature = ?, bootstrap = NULL, whole_at = 0 WHERE log = ?",
      )
      .run(empty, log);
  if (found.length > 0) store.tracker.logs = true;
  return found;
}

/** The newest event is the head's, or the state came whole and brought none. */
function isAtHead({ database }: ReplicaStore, row: Readonly<Record<string, unknown>>): boolean {
  const last = database
    .prepare('SELECT version, chain FROM main.hf_event WHERE log = ? ORDER BY version DESC LIMIT 1')
    .get(row['log'] as string);
  const head = row['head'] as number;
  if (last?.['version'] === head) return last['chain'] === row['chain'];
  return head === row['whole_at'] && (last === undefined || (last['version'] as number) < head);
}

function hasRows({ database, tables }: ReplicaStore, log: string): boolean {
  const isIn = (table: string, column: string): boolean =>
    database.prepare(`SELECT 1 FROM main.${table} WHERE ${column} = ? LIMIT 1`).get(log) !== undefined;
  // What local work deleted has its confirmed state in a base, and no row.
  if (isIn('hf_entity', 'log') || isIn('hf_base', 'log')) return true;
  return [...tables.values()].some(({ model }) => model !== null && !model.isLocal && isIn(quoted(model.type), '_log'));
}
