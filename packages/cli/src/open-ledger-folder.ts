import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Engine } from '@holdfast/ledger';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';
import { ownerOf, ownersIn } from './whose-file.ts';

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
  const wrong = problemOf(dir);
  if (wrong !== null) throw new Failure({ code: 'not-a-ledger', ...wrong, exitCode: EXIT.wrongUse });
  // Who asks a ledger over HTTP need not load one.
  const { openEngineReadOnly } = await import('@holdfast/ledger');
  const engine = openEngineReadOnly(dir);
  return { engine, [Symbol.asyncDispose]: () => engine.close() };
}

/** A folder that holds nothing yet may become a ledger's. */
function problemOf(dir: string): { readonly what: string; readonly why: string; readonly next: string } | null {
  const isFile = statSync(dir).isFile();
  const owner = isFile ? ownerOf(dir) : null;
  const owners = isFile ? null : ownersIn(dir);
  if (owner === 'replica' || (owners?.has('replica') === true && !owners.has('ledger')))
    return {
      what: `${dir} is a replica’s, not a ledger’s.`,
      why: 'A replica is what one device has; this command looks into the logs that a ledger keeps for all of them.',
      next: `Look into it with "holdfast replica doctor --dir ${dir}".`,
    };
  if (!isFile) return null;
  return {
    what: `${dir} is a file, not a ledger’s folder.`,
    why:
      owner === 'ledger'
        ? 'It holds one workspace of a ledger, whose files belong together.'
        : 'A ledger keeps its files in the folder of its "store".',
    next: owner === 'ledger' ? `Give its folder: --dir ${dirname(dir)}` : 'Give that folder with --dir.',
  };
}
