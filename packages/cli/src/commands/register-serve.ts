import type { Command } from 'commander';
import type { CommandContext } from '../main.ts';
import { countOf } from '../options.ts';

export interface ServeOptions {
  readonly config?: string;
  readonly dev?: boolean;
  readonly dir?: string;
  readonly port?: number;
  readonly host?: string;
  readonly printConfig?: boolean;
  readonly schema?: string;
  readonly account?: readonly string[];
}

const SCHEMA_HELP =
  'with --dev: a module that exports "schema"; its serials are numbered. Without it any type is taken';
const ACCOUNT_HELP = 'with --dev: more accounts with all roles, each with its name as its token';

/** The engine comes along when one of them runs. */
const commands = () => import('./serve.ts');

export function registerServe(program: Command, context: CommandContext): void {
  const port = countOf('--port', 0, 65_535);
  program
    .command('serve')
    .description('run a ledger from holdfast.config.ts')
    .option('--config <file>', 'the configuration', 'holdfast.config.ts')
    .option('--dev', 'workspace "dev", token "dev" with all roles, made on first use, loopback only')
    .option('--schema <file>', SCHEMA_HELP)
    .option('--account <name...>', ACCOUNT_HELP)
    .option('--dir <folder>', 'where the ledger keeps its files (HOLDFAST_DIR)')
    .option('--port <n>', 'the public port; 0 takes any (HOLDFAST_PORT)', port)
    .option('--host <address>', 'the address to listen on (HOLDFAST_HOST)')
    .option('--print-config', 'print the effective configuration without secrets, and stop')
    .action(async (options: ServeOptions) => (await commands()).serve(options, context.output()));
  program
    .command('dev')
    .description('the same as "serve --dev"')
    .option('--schema <file>', SCHEMA_HELP)
    .option('--account <name...>', ACCOUNT_HELP)
    .option('--dir <folder>', 'where the ledger keeps its files')
    .option('--port <n>', 'the public port; 0 takes any', port)
    .action(async (options: ServeOptions) => (await commands()).serve({ ...options, dev: true }, context.output()));
}
