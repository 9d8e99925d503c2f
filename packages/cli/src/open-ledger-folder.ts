import { existsSync } from 'node:fs';
import type { Engine } from '@holdfast/ledger';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';

/** A ledger's folder, read beside the ledger that may be running on it: no lock, no write. */
export async function openLedgerFolder(dir: string): Promise<{ readonly engine: Engine } & AsyncDisposable> {
  if (!existsSync(dir))
    throw new Failure({
      code: 'not-found',
      what: `There is no folder ${dir}.`,
      why: 'A ledger keeps its files in the folder of its "store".',
      next: 'Give that folder with --dir.',
      exitCode: EXIT.wrongUse,
    });
  // Who asks a ledger over HTTP need not load one.
  const { openEngineReadOnly } = await import('@holdfast/ledger');
  const engine = openEngineReadOnly(dir);
  return { engine, [Symbol.asyncDispose]: () => engine.close() };
}
