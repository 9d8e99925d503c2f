import { readFileSync, writeFileSync } from 'node:fs';
import type { Json } from '@holdfast/core';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** Writes a pack, for its owner's eyes only. One that is there already may be the only copy of somebody's work: it stays. */
export function writePack(file: string, bytes: Uint8Array): void {
  try {
    writeFileSync(file, bytes, { mode: 0o600, flag: 'wx' });
  } catch (cause) {
    throw new Failure({
      code: 'file-not-written',
      what: `The pack ${file} could not be written.`,
      why: reasonOf(cause),
      next: 'Give a file that is not there yet, with --to. Nothing was changed.',
      exitCode: EXIT.wrongUse,
      cause,
    });
  }
}

export function readPack(file: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new Failure({
      code: 'not-found',
      what: `The pack ${file} cannot be read.`,
      why: reasonOf(cause),
      next: 'Give a file that "holdfast replica pack" wrote.',
      exitCode: EXIT.wrongUse,
      cause,
    });
  }
}

/** The fields of one entity, as somebody typed them. */
export function fieldsOf(text: string): Readonly<Record<string, Json>> {
  let value: unknown;
  let why = 'It is JSON, but no object.';
  try {
    value = JSON.parse(text);
  } catch (cause) {
    why = reasonOf(cause);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, Json>;
  throw new Failure({
    code: 'not-json',
    what: 'The fields of the entity are no JSON object.',
    why,
    next: 'For example: \'{"title": "Rain"}\'; with "id" it is an update. Nothing was written.',
    exitCode: EXIT.wrongUse,
  });
}
