import type { DatabaseFaultCode, Fault } from '@holdfast/core';
import { FaultError } from './fault-error.ts';

/** What a database adapter throws. The driver's own error stays in `cause`; nobody reads its text. */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault';
  readonly code: DatabaseFaultCode;

  constructor(code: DatabaseFaultCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The same in the words of the faults. */
export function faultOfDatabase({ code, message }: DatabaseFault): Fault {
  const facts = { reason: message };
  if (code === 'storage-full' || code === 'closed' || code === 'query-refused') return { code, facts };
  if (code === 'damaged') return { code: 'replica-damaged', facts };
  if (code === 'busy') return { code: 'replica-in-use', facts };
  return { code: 'engine-fault', facts };
}

/** For whoever throws only `FaultError`: what the database threw as one, anything else as it is. */
export const inFaults = (cause: unknown): unknown =>
  cause instanceof DatabaseFault ? new FaultError(faultOfDatabase(cause)) : cause;
