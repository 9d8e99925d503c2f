import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { bytesToHex, canonical, type Database, type Digest } from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import type { WorkspaceOnDevice } from '../client/client.ts';
import { FaultError } from '../engine/fault-error.ts';
import { APPLICATION_ID } from '../engine/file.ts';

/** The replica files of one folder. A name tells nothing: it is a hash of whose the replica is. */
export interface ReplicaOwner {
  readonly ledger: string;
  readonly account: string;
  readonly workspace: string;
}

const ENDING = '.holdfast';

export function replicaFile(folder: string, owner: ReplicaOwner, digest: Digest): string {
  const name = bytesToHex(digest.sha256(canonical([owner.ledger, owner.account, owner.workspace]))).slice(0, 40);
  return join(folder, `${name}${ENDING}`);
}

/** Only its owner may look into it. Throws `FaultError` `bad-setting` where no folder can be. */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FaultError({ code: 'bad-setting', facts: { reason: `nothing can be kept in dir (${reason})` } });
  }
}

/** What this account has here, read without taking anything over. A file that cannot be read is left out. */
export function workspacesIn(
  folder: string,
  owner: Pick<ReplicaOwner, 'ledger' | 'account'>,
): readonly WorkspaceOnDevice[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(ENDING))
    .sort()
    .flatMap((name) => workspaceOf(join(folder, name), owner));
}

function workspaceOf(file: string, owner: Pick<ReplicaOwner, 'ledger' | 'account'>): readonly WorkspaceOnDevice[] {
  let database: Database | null = null;
  try {
    database = openNodeDatabase({ file });
    if (database.prepare('PRAGMA application_id').get()?.['application_id'] !== APPLICATION_ID) return [];
    const row = database.prepare('SELECT ledger, account, workspace FROM hf_coordinator WHERE one = 1').get();
    if (row?.['ledger'] !== owner.ledger || row['account'] !== owner.account) return [];
    const count = (sql: string) => Number(database?.prepare(sql).get()?.['n'] ?? 0);
    const id = String(row['workspace']);
    return [
      {
        id,
        name: id,
        unsent: count('SELECT count(*) AS n FROM hf_outbox'),
        attention: count("SELECT count(*) AS n FROM hf_desk WHERE needs = 'answer'"),
      },
    ];
  } catch {
    return [];
  } finally {
    database?.close();
  }
}
