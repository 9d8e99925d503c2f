import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';

/** A whole number within bounds, for commander. */
export const countOf =
  (name: string, min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`${name} is a whole number from ${min} to ${max}.`);
    return value;
  };

/** A credential comes from a file or the environment, never from the command line, where every process could read it. */
export function tokenFrom(options: { readonly tokenFile?: string }): string | null {
  // One that is set to nothing is none.
  if (options.tokenFile === undefined) return process.env['HOLDFAST_TOKEN'] || null;
  try {
    return readFileSync(options.tokenFile, 'utf8').trim();
  } catch (cause) {
    throw new Failure({
      code: 'not-found',
      what: `The token file ${options.tokenFile} cannot be read.`,
      why: cause instanceof Error ? cause.message : String(cause),
      next: 'Give a file that holds the token alone, or set HOLDFAST_TOKEN.',
      exitCode: EXIT.wrongUse,
      cause,
    });
  }
}
