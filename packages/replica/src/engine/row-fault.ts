import { BrokenInvariant } from '@holdfast/core';
import { DatabaseFault } from './database-fault.ts';
import { FaultError } from './fault-error.ts';
import type { EntityKey } from './tables.ts';

/**
 * F07: a defect in what makes a row is told with the entity and its version, which together name the event; 0 where nothing
 * of it is in the log. What fails for a reason of its own, as a full disk, stays what it is.
 */
export function naming(key: EntityKey, version: number, work: () => void): void {
  try {
    work();
  } catch (cause) {
    throw isDefect(cause) ? defectOf(cause, key, version) : cause;
  }
}

const isDefect = (cause: unknown): cause is Error =>
  cause instanceof DatabaseFault ? cause.code === 'sql-error' : DEFECTS.some((kind) => cause instanceof kind);
const DEFECTS = [BrokenInvariant, TypeError, RangeError, SyntaxError, ReferenceError];

const defectOf = (cause: Error, { log, type, id }: EntityKey, version: number): FaultError =>
  new FaultError({ code: 'engine-fault', facts: { log, entity: type, id, version, error: cause.message } }, { cause });
