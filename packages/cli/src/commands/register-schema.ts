import type { Command } from 'commander';
import type { CommandContext } from '../main.ts';

export interface CheckOptions {
  readonly lock: string;
  readonly write: boolean;
}

/** The rules come along when one of them runs; no engine does. */
const commands = () => import('./schema.ts');

export function registerSchema(program: Command, context: CommandContext): void {
  const schema = program
    .command('schema')
    .description('print a schema, or check a change of it against what devices in the field hold');

  schema
    .command('print')
    .description('the schema as data')
    .argument('<file>', 'a module that exports "schema"')
    .action(async (file: string) => (await commands()).printSchema(file, context.output()));

  schema
    .command('check')
    .description('compare with the committed snapshot; exit 1 if devices in the field could not bear the change')
    .argument('<file>', 'a module that exports "schema"')
    .option('--lock <file>', 'the snapshot', 'schema.lock.json')
    .option('--write', 'write the snapshot, if nothing is refused', false)
    .action(async (file: string, options: CheckOptions) => (await commands()).checkFile(file, options, context));
}
