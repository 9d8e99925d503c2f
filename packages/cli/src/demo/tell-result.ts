import type { Output } from '../output.ts';
import type { FileFacts } from './audit.ts';
import type { DemoResult } from './verdict.ts';

/** The table at the end of a demonstration, and the same as JSON. `ana`: whose chain and signature are shown. */
export function tellResult(
  { result, ana, say }: { readonly result: DemoResult; readonly ana: FileFacts; readonly say: (text: string) => void },
  output: Output,
): void {
  const rows: readonly (readonly [string, string | number])[] = [
    ['events in the log', result.events],
    ['operations', result.operations],
    ['commits looked for', result.committed],
    ['merged by field', result.merges],
    ['decided by a person', result.conflicts],
    ['on their way and unanswered at the kill', result.unansweredAtKill],
    ['obligations opened', result.obligationsOpened],
    ['obligations still open', result.obligationsOpen],
    ['lost', result.lost],
    ['doubled', result.doubled],
    ['chains of Ana, Ben and the ledger', result.chainsEqual ? `equal  ${ana.chain.slice(0, 16)}…` : 'DIFFER'],
    ['state signatures of all three', result.signaturesEqual ? `equal  ${ana.signature.slice(0, 16)}…` : 'DIFFER'],
    ['findings of the doctor', result.findings],
  ];
  for (const [what, value] of rows) say(`${what.padEnd(42)}${value}`);
  output.value(result);
}
