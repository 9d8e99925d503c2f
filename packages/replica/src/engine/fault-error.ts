import type { Fault, FaultCode } from '@holdfast/core';

/** An expected failure that must undo the transaction it happens in: thrown inside, and turned into a value at its rim. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
  readonly fault: Fault;

  constructor(fault: Fault, options?: ErrorOptions) {
    super(fault.code, options);
    this.fault = fault;
  }
}

export const stop = (code: FaultCode, facts?: Readonly<Record<string, unknown>>): never => {
  throw new FaultError(facts === undefined ? { code } : { code, facts });
};
