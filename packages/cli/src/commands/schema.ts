import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { checkSchema, checkSnapshot, nextSnapshot, type SchemaSnapshot, schemaData } from '@holdfast/core';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { loadSchema } from '../load-schema.ts';
import type { CommandContext } from '../main.ts';
import type { Output } from '../output.ts';
import type { CheckOptions } from './register-schema.ts';

export async function printSchema(file: string, output: Output): Promise<void> {
  const data = schemaData(await loadSchema(file));
  output.value(data);
  output.asIs(JSON.stringify(data, null, 2));
}

export async function checkFile(file: string, options: CheckOptions, context: CommandContext): Promise<void> {
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
