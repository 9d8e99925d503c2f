import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { checkSchema, checkSnapshot, nextSnapshot, type SchemaSnapshot, schemaData } from '@holdfast/core';
import type { Command } from 'commander';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { loadSchema } from '../load-schema.ts';
import type { CommandContext } from '../main.ts';

export function registerSchema(program: Command, context: CommandContext): void {
  const schema = program
    .command('schema')
    .description('print a schema, or check a change of it against what devices in the field hold');

  schema
    .command('print')
    .description('the schema as data')
    .argument('<file>', 'a module that exports "schema"')
    .action(async (file: string) => {
      const data = schemaData(await loadSchema(file));
      context.output().value(data);
      context.output().asIs(JSON.stringify(data, null, 2));
    });

  schema
    .command('check')
    .description('compare with the committed snapshot; exit 1 if devices in the field could not bear the change')
    .argument('<file>', 'a module that exports "schema"')
    .option('--lock <file>', 'the snapshot', 'schema.lock.json')
    .option('--write', 'write the snapshot, if nothing is refused', false)
    .action(async (file: string, options: { lock: string; write: boolean }) => {
      const output = context.output();
      const data = schemaData(await loadSchema(file));
      const before = readSnapshot(options.lock);
      if (before === null && !options.write)
        throw new Failure({
          code: 'not-found',
          what: `There is no ${options.lock} yet.`,
          why: 'What devices in the field hold is known from it alone.',
          next: 'Write it with --write, and commit it.',
        });
      const changes = before === null ? [] : checkSchema(before, data);
      const refused = changes.filter((change) => change.verdict === 'refused');
      output.value({ changes, refused: refused.length });
      if (!output.json && changes.length > 0)
        output.table(
          changes.map(({ what, change, verdict, why = '' }) => ({
            what,
            change,
            verdict: verdict === 'safe' ? 'safe' : 'REFUSED',
            why,
          })),
        );
      if (changes.length === 0) output.line('No change.');
      if (refused.length > 0) {
        context.exit(EXIT.failed);
        return;
      }
      if (options.write) {
        writeFileSync(options.lock, `${JSON.stringify(nextSnapshot(before, data), null, 2)}\n`);
        output.line(`Wrote ${options.lock}.`);
      }
    });
}

/** Null where there is none yet. What is no snapshot is refused with what is wrong in it: nothing could be compared. */
function readSnapshot(path: string): SchemaSnapshot | null {
  if (!existsSync(path)) return null;
  const read = checkSnapshot(jsonOf(readFileSync(path, 'utf8')));
  if (read.ok) return read.value;
  const { path: at = '', reason = 'it is no JSON' } = read.fault.facts ?? {};
  throw new Failure({
    code: 'schema-not-loaded',
    what: `${path} is no schema snapshot: ${at === '' ? '' : `${String(at)}: `}${String(reason)}.`,
    why: 'Nothing was compared: what devices in the field hold is known from it alone.',
    next: 'Take it from version control, or resolve the merge in it.',
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
