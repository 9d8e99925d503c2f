import { attestOf, type Digest, type Through } from '@holdfast/core';

/** DG4: positions as this ledger tells them, signed where a log key is configured. */
export type ThroughOf = (identity: string, version: number, chain: string) => Through;

export const throughWith =
  (digest: Digest, logKey: Uint8Array | undefined): ThroughOf =>
  (identity, version, chain) =>
    logKey === undefined
      ? { version, chain }
      : { version, chain, attest: attestOf(logKey, identity, version, chain, digest) };
