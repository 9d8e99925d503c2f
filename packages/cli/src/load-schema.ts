import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Schema } from '@holdfast/core';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';

/** Loads an app's schema: the export `schema` of a module, or its default export. */
export async function loadSchema(path: string): Promise<Schema> {
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(resolve(path)).href)) as Record<string, unknown>;
  } catch (cause) {
    throw new Failure({
      code: 'schema-not-loaded',
      what: `The schema file ${path} could not be loaded.`,
      why: cause instanceof Error ? cause.message : String(cause),
      next: 'Give the path of a module that exports "schema", made by defineSchema.',
      exitCode: EXIT.wrongUse,
      cause,
    });
  }
  const schema = module['schema'] ?? module['default'];
  if (typeof schema !== 'object' || schema === null)
    throw new Failure({
      code: 'schema-not-loaded',
      what: `${path} exports no schema.`,
      why: 'Neither "schema" nor a default export is there.',
      next: 'export const schema = defineSchema({ … })',
      exitCode: EXIT.wrongUse,
    });
  return schema as Schema;
}
