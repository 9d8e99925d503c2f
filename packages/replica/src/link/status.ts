import type { Fault } from '@holdfast/core';

/** What a replica knows of itself, for people (P8): it never says more than is known. */
export type Phase =
  | 'offline'
  | 'connecting'
  | 'catching-up'
  | 'live'
  | 'sign-in-needed'
  | 'other-account'
  | 'update-needed'
  | 'quota'
  | 'blocked'
  | 'stalled'
  | 'moved'
  | 'deleted'
  | 'history-changed'
  | 'no-owner'
  | 'stopped';

export interface Status {
  readonly phase: Phase;
  /** A code of docs/ERRORS.md, or a word of the phase. */
  readonly reason?: string;
  /** What the engine does at the moment. */
  readonly activity?: string;
  readonly unsent: number;
  readonly attention: number;
  readonly storage: 'durable' | 'evictable' | 'memory';
  readonly host: 'here' | 'another-tab' | 'daemon';
  readonly lastSyncedAt?: string;
  readonly logs: readonly LogStatus[];
}

export interface LogStatus {
  readonly log: string;
  readonly stage: 'new' | 'bootstrapping' | 'visible';
  readonly head: number;
  /** Null until the ledger named one. */
  readonly ledgerHead: number | null;
  readonly blocked?: Fault;
  readonly lastSyncedAt?: string;
}
