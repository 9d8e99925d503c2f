import type { Command } from 'commander';
import type { CommandContext } from '../main.ts';
import { countOf } from '../options.ts';

/** Which replica a command is about. */
export interface ReplicaOptions {
  readonly dir: string;
  readonly workspace?: string;
  readonly account?: string;
  readonly tokenFile?: string;
}
export type QueryOptions = ReplicaOptions & { readonly param?: readonly string[] };
export type WatchOptions = QueryOptions & { readonly every: number; readonly times?: number };
export type DoctorOptions = ReplicaOptions & { readonly repair: boolean; readonly to: string };
export type CommitOptions = ReplicaOptions & {
  readonly label: string;
  readonly delete: boolean;
  readonly settle: boolean;
};

const withReplicaOptions = (command: Command): Command =>
  command
    .option('--dir <folder>', 'the folder of the replicas', './replica')
    .option('--workspace <name>', 'which one, where the folder holds several')
    .option('--account <id>', 'whose, where the folder holds several')
    .option('--token-file <file>', 'a file with the token, for commands that sync; else HOLDFAST_TOKEN');

/** The engine comes along when one of them runs. */
const commands = () => import('./replica.ts');

/**
 * Commands about a replica on this device. Those that only look read the file beside a running host; those that write open
 * it as its host, and say so when another process has it.
 */
export function registerReplica(program: Command, context: CommandContext): void {
  const replica = program.command('replica').description('look into a replica, and work with it');
  const looking = (name: string, description: string) =>
    withReplicaOptions(replica.command(name).description(description));

  looking('status', 'where it stands: logs, heads, unsent work, what waits for a person').action(
    async (options: ReplicaOptions) => (await commands()).status(options, context),
  );

  looking('query', 'run one SELECT over its entity types')
    .argument('<sql>', 'for example: select number, title from issue where status = ?')
    .option('--param <value...>', 'a value for each ?, JSON or text')
    .action(async (sql: string, options: QueryOptions) => (await commands()).query(sql, options, context));

  looking('watch', 'run a query again whenever its result changes')
    .argument('<sql>')
    .option('--param <value...>', 'a value for each ?, JSON or text')
    .option('--every <ms>', 'how often to look', countOf('--every', 50, 60_000), 300)
    .option('--times <n>', 'stop after so many results', countOf('--times', 1, 1_000_000))
    .action(async (sql: string, options: WatchOptions) => (await commands()).watch(sql, options, context.output()));

  looking('journal', 'what sync did, newest first; never payloads')
    .option('--before <seq>', 'older than this entry', countOf('--before', 1, Number.MAX_SAFE_INTEGER))
    .action(async (options: ReplicaOptions & { readonly before?: number }) =>
      (await commands()).journal(options, context),
    );

  looking('desk', 'what waits for a person, and what the engine decided').action(async (options: ReplicaOptions) =>
    (await commands()).desk(options, context),
  );

  looking('doctor', 'check every invariant of the file from scratch, and say what is safe to do')
    .option(
      '--repair',
      'end local commits that other code left half done, as owed, and let go what waits for nothing; packs unsent work first',
      false,
    )
    .option('--to <file>', 'where --repair puts the pack', 'before-repair.pack')
    .action(async (options: DoctorOptions) => (await commands()).doctor(options, context));

  looking('pack', 'copy everything unsent into a file; nothing leaves the outbox by it')
    .requiredOption('--to <file>', 'the pack')
    .action(async (options: ReplicaOptions & { readonly to: string }) => (await commands()).pack(options, context));

  looking('unpack', 'take a pack’s batches into the outbox; what is here already is not taken twice')
    .argument('<file>')
    .action(async (file: string, options: ReplicaOptions) => (await commands()).unpack(file, options, context));

  looking('commit', 'write one entity, as JSON')
    .argument('<entity>', 'an entity type of the schema')
    .argument('<json>', '{ … } to create; { "id": …, … } to update on purpose')
    .option('--label <text>', 'what undo and desk call it', 'Command line')
    .option('--delete', 'delete the entity with this id instead', false)
    .option(
      '--settle',
      'wait until the ledger has it; exit 5 if that cannot be reached, 3 if a person is needed',
      false,
    )
    .action(async (entity: string, json: string, options: CommitOptions) =>
      (await commands()).commit(entity, json, options, context),
    );
}
