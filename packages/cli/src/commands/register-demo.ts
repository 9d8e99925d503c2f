import type { Command } from 'commander';
import type { CommandContext } from '../main.ts';
import { countOf } from '../options.ts';

export function registerDemo(program: Command, context: CommandContext): void {
  program
    .command('demo')
    .description(
      'a ledger and two devices on real issues: offline edits, a conflict, a kill -9, and a count of everything',
    )
    .option('--issues <n>', 'how many issues to import', countOf('--issues', 3, 500), 150)
    .option('--file <path>', 'issues to import instead, one JSON object a line')
    .option('--keep', 'keep the files, to look around in them', false)
    .action(async (options: { issues: number; file?: string; keep: boolean }) => {
      const { runDemo } = await import('./demo.ts');
      context.exit(await runDemo(options, context.output()));
    });
}
