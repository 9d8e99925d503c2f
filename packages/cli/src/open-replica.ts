import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Json, type Schema, schemaFrom } from '@holdfast/core';
import { type Client, createClient, type Replica } from '@holdfast/replica';
import { type Inspection, inspectReplica } from '@holdfast/replica/inspect';
import type { ReplicaOptions } from './commands/register-replica.ts';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';
import { tokenFrom } from './options.ts';
import { isReplicaName, ownerOf, ownersIn } from './whose-file.ts';

/** Opens the file to look into it. */
export const openInspection = (options: ReplicaOptions): Inspection => openMeant(options).inspection;

/** The one that is meant, with its file. */
export function openMeant(options: ReplicaOptions): { readonly file: string; readonly inspection: Inspection } {
  const files = replicaFiles(options.dir);
  if (isLedgers(options.dir, files)) throw ledgersFolder(options);
  const found: { readonly file: string; readonly inspection: Inspection }[] = [];
  for (const file of files) {
    const inspection = inspectReplica(file);
    const isMeant =
      (options.workspace === undefined || inspection.owner.workspace === options.workspace) &&
      (options.account === undefined || inspection.owner.account === options.account);
    if (isMeant) found.push({ file, inspection });
    else inspection[Symbol.dispose]();
  }
  const [one, ...others] = found;
  if (one !== undefined && others.length === 0) return one;
  const names = found.map(({ inspection: { owner } }) => `${owner.workspace} of ${owner.account}`);
  for (const { inspection } of found) inspection[Symbol.dispose]();
  throw new Failure({
    code: one === undefined ? 'not-found' : 'which-replica',
    what:
      one === undefined
        ? `There is no such replica in ${options.dir}.`
        : `${options.dir} holds ${found.length} replicas that could be meant.`,
    why: one === undefined ? `It holds ${files.length} replica files.` : names.join(', '),
    next:
      one === undefined
        ? 'Give the folder that the app passes as "dir", with --dir.'
        : 'Say which, with --workspace and --account.',
    exitCode: EXIT.wrongUse,
  });
}

function isLedgers(path: string, replicas: readonly string[]): boolean {
  if (!existsSync(path)) return false;
  if (statSync(path).isFile()) return ownerOf(path) === 'ledger';
  return replicas.length === 0 && ownersIn(path).has('ledger');
}

function ledgersFolder({ dir, workspace = 'NAME' }: ReplicaOptions): Failure {
  const folder = statSync(dir).isFile() ? dirname(dir) : dir;
  return new Failure({
    code: 'not-a-replica',
    what: `${dir} is a ledger’s, not a replica’s.`,
    why: 'A ledger keeps the logs of all devices; this command looks into what one device has.',
    next: `Look into it with "holdfast ledger verify --dir ${folder} --workspace ${workspace}".`,
    exitCode: EXIT.wrongUse,
  });
}

function replicaFiles(dir: string): readonly string[] {
  if (!existsSync(dir)) return [];
  if (statSync(dir).isFile()) return [dir];
  return readdirSync(dir, { recursive: true })
    .map(String)
    .filter(isReplicaName)
    .map((name) => join(dir, name));
}

export interface OpenedHost extends AsyncDisposable {
  readonly replica: Replica<Schema>;
  write(
    entity: string,
    fields: Record<string, Json>,
    options: { readonly label: string; readonly delete: boolean },
  ): Promise<{ readonly id: string; readonly actionId: string }>;
}

/** Opens the file as its host, with the schema that it was opened with last. */
export async function openHost(options: ReplicaOptions): Promise<OpenedHost> {
  const { file, inspection } = openMeant(options);
  const { owner, schema: data } = inspection;
  inspection[Symbol.dispose]();
  const schema = schemaFrom(data);
  const token = tokenFrom(options);
  const client: Client<Schema> = createClient({
    schema,
    // Where it was found, which may be deeper than was said.
    dir: dirname(file),
    ledger: owner.ledger,
    account: { id: owner.account, ...(token === null ? {} : { token: () => token }) },
  });
  const replica = await client.open(owner.workspace);
  return {
    replica,
    write: async (entity, fields, { label, delete: isDelete }) => {
      if (data.entities[entity] === undefined)
        throw new Failure({
          code: 'unknown-entity',
          what: `This replica has no entity type "${entity}".`,
          why: `It has ${Object.keys(data.entities).join(', ')}.`,
          next: 'Use one of these.',
          exitCode: EXIT.wrongUse,
        });
      const { id, ...patch } = fields;
      const write = replica.commit(
        (tx) => {
          const of = tx[entity] as unknown as {
            create(f: unknown): string;
            update(id: unknown, f: unknown): void;
            delete(id: unknown): void;
          };
          if (isDelete) of.delete(id);
          else if (id === undefined) return of.create(patch);
          else of.update(id, patch);
          return String(id);
        },
        { label },
      );
      return { id: await write, actionId: write.id };
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}
