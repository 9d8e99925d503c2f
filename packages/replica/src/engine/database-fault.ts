import type { DatabaseFaultCode } from '@holdfast/core';

/** What a database adapter throws. The driver's own error stays in `cause`; nobody reads its text. */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault';
  readonly code: DatabaseFaultCode;

  constructor(code: DatabaseFaultCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
