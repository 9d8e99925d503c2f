import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Whether a path is a ledger's or a replica's, told before either is opened, so that a wrong one can be named. */
export type Owner = 'ledger' | 'replica';

/** What a ledger's folder has in it: its lock, and one file per workspace. */
const isLedgerName = (name: string): boolean => name === 'ledger.lock' || /^w-[0-9a-f]{32}\.db$/.test(name);
export const isReplicaName = (name: string): boolean => name.endsWith('.holdfast');

/** What both write into the header of their SQLite files: its `application_id`. */
const MARKS: Readonly<Record<string, Owner>> = { Hold: 'replica', HolL: 'ledger' };
const MARK_AT = 68;
const MARK_BYTES = 4;

/** Of a file, by its mark, whatever it is called; by its name where that is not written yet. Null: of neither, or not there. */
export function ownerOf(path: string): Owner | null {
  if (!existsSync(path) || !statSync(path).isFile()) return null;
  const name = basename(path);
  return MARKS[markOf(path)] ?? (isLedgerName(name) ? 'ledger' : isReplicaName(name) ? 'replica' : null);
}

/** Whose files lie in a folder, not looking deeper. */
export function ownersIn(folder: string): ReadonlySet<Owner> {
  const owners = readdirSync(folder)
    .filter((name) => isLedgerName(name) || isReplicaName(name))
    .map((name) => ownerOf(join(folder, name)));
  return new Set(owners.filter((owner) => owner !== null));
}

function markOf(file: string): string {
  const mark = Buffer.alloc(MARK_BYTES);
  const handle = openSync(file, 'r');
  try {
    readSync(handle, mark, 0, MARK_BYTES, MARK_AT);
  } finally {
    closeSync(handle);
  }
  return mark.toString('latin1');
}
