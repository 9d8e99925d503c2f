import { type ParseArgsConfig, parseArgs } from 'node:util';

/** What was asked on the command line cannot be done: told with the usage, and no trace of a stack. */
export class AskedWrongly extends Error {}

/** The options of one of this folder's commands. Throws `AskedWrongly`. */
export function readOptions<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>>['values'] {
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

/** Runs a command. Its exit code, or 2 where it was asked for what there is not. */
export async function runCommand(usage: string, run: () => Promise<number> | number): Promise<void> {
  try {
    process.exitCode = await run();
  } catch (cause) {
    if (!(cause instanceof AskedWrongly)) throw cause;
    console.error(`${cause.message}\n\n${usage}`);
    process.exitCode = 2;
  }
}
