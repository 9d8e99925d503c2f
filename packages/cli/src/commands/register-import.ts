import type { Command } from 'commander';
import type { CommandContext } from '../main.ts';
import { countOf } from '../options.ts';

export interface ImportOptions {
  readonly dir: string;
  readonly ledger: string;
  readonly workspace: string;
  readonly account: string;
  readonly tokenFile?: string;
  readonly limit?: number;
}

export function registerImport(program: Command, context: CommandContext): void {
  program
    .command('import')
    .description('bring records from elsewhere into a replica')
    .command('github-issues')
    .description('issues with their comments, one JSON object a line, plain or gzipped')
    .argument('<file>')
    .option('--dir <folder>', 'the folder of the replicas', './replica')
    .option('--ledger <url>', 'the ledger', 'http://127.0.0.1:4800')
    .option('--workspace <name>', 'the workspace', 'dev')
    .option('--account <id>', 'whose replica', 'dev')
    .option('--token-file <file>', 'a file with the token; else HOLDFAST_TOKEN, else "dev"')
    .option('--limit <n>', 'at most so many issues', countOf('--limit', 1, 1_000_000))
    .action(async (file: string, options: ImportOptions) => {
      // The engine comes along when it runs.
      const { importGithubIssues } = await import('./import.ts');
      await importGithubIssues(file, options, context);
    });
}
