import type { Change, EventDraft } from './events.ts';
import type { JsonObject } from './json.ts';
import { draftOf, ModelLedger, operationOf } from './model-ledger.fixture.ts';
import type { PendingOperation, Rebased } from './rebase.ts';

/** Openings of the tests of rebasing: theirs in a ledger, and mine that was made before. */
export const set = (fields: JsonObject): Change => ({ op: 'update', set: fields });
export const DELETE: Change = { op: 'delete' };
export const FIELDS: JsonObject = { n: 1, s: ['a'], x: 0 };

/** A ledger with the entity at version 1, and what others, who see everything, did to it after that. */
export function ledgerWith(...theirs: Change[]): ModelLedger {
  const ledger = new ModelLedger();
  ledger.push(operationOf(draftOf('base', { op: 'create', fields: FIELDS }, 0)));
  theirs.forEach((change, at) => {
    const { code } = ledger.push(operationOf(draftOf(`their${at}`, change, at + 1)), 'ben');
    if (code !== 'accepted') throw new Error(`theirs: ${code}`);
  });
  return ledger;
}

/** Own work on version 1: one operation per change, each on top of the one before. */
export const chain = (...changes: Change[]): PendingOperation[] =>
  changes.map((change, at) => operationOf(draftOf(`mine${at}`, change, 1, at === 0 ? undefined : `mine${at - 1}`)));
export const inOne = (...operations: PendingOperation[]): PendingOperation => ({
  ...(operations[0] as PendingOperation),
  events: operations.flatMap(({ events }) => events),
});

export const eventsOf = (result: Rebased | undefined): readonly EventDraft[] => {
  if (result?.outcome !== 'rebased') throw new Error(`expected rebased, got ${JSON.stringify(result)}`);
  return result.events;
};
export const outcomes = (results: readonly Rebased[]) => results.map(({ outcome }) => outcome);

/** Sends what a replica made of its work, as one does. */
export function send(
  ledger: ModelLedger,
  operations: readonly PendingOperation[],
  results: readonly Rebased[],
): string[] {
  return results.map((result, at) => {
    if (result.outcome !== 'rebased' && result.outcome !== 'unchanged') return result.outcome;
    const operation = operations[at] as PendingOperation;
    return ledger.push(result.outcome === 'rebased' ? { ...operation, events: result.events } : operation).code;
  });
}

export const keep = { editedWhileDeleted: () => 'keep' as const };
export const del = { editedWhileDeleted: () => 'delete' as const };
