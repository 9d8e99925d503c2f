import type { Json, JsonObject } from '../json.ts';
import type { OperationClass } from './permit.ts';

/** What is owed after a permit ended without a known outcome (PM7). */
export type ObligationAction = 'replay-operation-then-reconcile' | 'refetch-from-committed-cursor';

export interface ObligationSubject {
  /** The class whose completion settles it. */
  readonly class: OperationClass;
  readonly action: ObligationAction;
  /** Request id or command id; empty for a refetch. */
  readonly identity: string;
}

/** One per operation for push and dispatch, one per permit for the rest. */
export function obligationsOf(permit: {
  readonly class: OperationClass;
  readonly operations: readonly string[];
  readonly commandId: string | null;
}): readonly ObligationSubject[] {
  switch (permit.class) {
    case 'push':
      return permit.operations.map((requestId) => replay('push', requestId));
    case 'dispatch':
      return [replay('dispatch', permit.commandId ?? '')];
    case 'local-apply':
      // It has no request to repeat: what it would have applied comes again with a pull.
      return [refetch('pull')];
    default:
      return [refetch(permit.class)];
  }
}

const replay = (operationClass: OperationClass, identity: string): ObligationSubject => ({
  class: operationClass,
  action: 'replay-operation-then-reconcile',
  identity,
});

const refetch = (operationClass: OperationClass): ObligationSubject => ({
  class: operationClass,
  action: 'refetch-from-committed-cursor',
  identity: '',
});

/** Classes whose completion settles refetch obligations of the same class, and which a repair settles (PM7, PM9). */
export const REFETCH_CLASSES = ['handshake', 'pull', 'bootstrap', 'repair'] as const satisfies OperationClass[];

export const isRefetchClass = (operationClass: OperationClass): boolean =>
  (REFETCH_CLASSES as readonly OperationClass[]).includes(operationClass);

/** Unreadable counts as the careful one: the stored bytes again, which is always safe (PM13). */
export const readObligationAction = (value: unknown): ObligationAction =>
  value === 'refetch-from-committed-cursor' ? value : 'replay-operation-then-reconcile';

/**
 * Whether `older` is the boundary that a completed request started from, or lies behind it in the log (PM7). A boundary
 * is a position, one position per log (a handshake), or null: the beginning. Committed cursors of one replica only move
 * along one history, so the version decides. What cannot be read lies nowhere.
 */
export function liesAtOrBehind(older: Json | undefined, newer: Json | undefined): boolean {
  if (older === undefined || newer === undefined) return false;
  if (older === null) return true;
  if (!isObject(older) || !isObject(newer)) return false;
  const [olderVersion, newerVersion] = [versionOf(older), versionOf(newer)];
  if (olderVersion !== null || newerVersion !== null) {
    if (olderVersion === null || newerVersion === null) return false;
    return olderVersion < newerVersion || (olderVersion === newerVersion && older['chain'] === newer['chain']);
  }
  // A log that is no longer named is no longer followed: nothing of it is to be fetched again.
  return Object.entries(older).every(([log, position]) => !(log in newer) || liesAtOrBehind(position, newer[log]));
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const versionOf = (value: JsonObject): number | null => {
  const version = value['version'];
  return typeof version === 'number' && Number.isSafeInteger(version) && version >= 0 ? version : null;
};
