import { type ParseArgsConfig, parseArgs } from 'node:util';

/** What was asked on the command line cannot be done: told with the usage, and no trace of a stack. */
export class AskedWrongly extends Error {}

export type Values<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>['values'];

/** The options of one of this folder's commands. Throws `AskedWrongly`. */
export function readOptions<T extends ParseArgsConfig>(config: T): Values<T> {
  try {
    return parseArgs(config).values;
  } catch (cause) {
    throw new AskedWrongly(cause instanceof Error ? cause.message : String(cause));
  }
}

/** A whole number, at least `min`. Throws `AskedWrongly`. */
export function wholeNumber(name: string, text: string, min = 0): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < min)
    throw new AskedWrongly(`--${name} is a whole number from ${min} on, and not "${text}".`);
  return number;
}

/** Runs a command: with its exit code, or 2 where it was asked for what there is not; with `--help` it says its usage. */
export async function runCommand<T extends ParseArgsConfig>(
  usage: string,
  config: T,
  run: (values: Values<T>) => Promise<number> | number,
): Promise<void> {
  try {
    const values = readOptions(config);
    if ('help' in values && values.help === true) console.log(usage);
    else process.exitCode = await run(values);
  } catch (cause) {
    if (!(cause instanceof AskedWrongly)) throw cause;
    console.error(`${cause.message}\n\n${usage}`);
    process.exitCode = 2;
  }
}
