import { LIMITS } from '@holdfast/core';

/** What an app or a test may turn. Every duration in milliseconds. */
export interface SyncSettings {
  /** False turns the socket off and changes nothing else (RT6). */
  readonly live: boolean;
  /** Without a socket that covers every log, the ledger is asked this often what is new. */
  readonly pollMs: number;
  /** How old the last proof of life may be while the status still says `live` (I30). */
  readonly proofMs: number;
  readonly requestSilenceMs: number;
  readonly requestTotalMs: number;
  /** A socket that has not said `welcome` by then is given up. */
  readonly welcomeMs: number;
  /** After `ready`, events up to its head are expected within this, else they are pulled. */
  readonly catchUpMs: number;
  /** A socket that lasted this long resets its backoff (F80). */
  readonly stableMs: number;
  readonly closeMs: number;
  readonly stallMs: number;
  /** Counts of unsent work in the handshake (LG13). */
  readonly health: boolean;
  readonly app?: { readonly name: string; readonly schema: string };
}

export const SYNC_SETTINGS: SyncSettings = {
  live: true,
  pollMs: 30_000,
  proofMs: 90_000,
  requestSilenceMs: LIMITS.requestSilenceMs,
  requestTotalMs: LIMITS.requestTotalMs,
  welcomeMs: 20_000,
  catchUpMs: 2_000,
  stableMs: 30_000,
  closeMs: LIMITS.closeMs,
  stallMs: LIMITS.stallMs,
  health: true,
};

/** The slowest link that a first attempt allows for; each time-out doubles the patience (F81). */
export const SLOWEST_BYTES_PER_MS = 16;
export const PATIENCE_MAX = 16;
/** A page that timed out is asked for in halves, down to this many events. */
export const PAGE_EVENTS_MIN = 8;
/** Steps of one log in one cycle before others have their turn. */
export const STEPS_PER_CYCLE_MAX = 10_000;
/** The same step without progress, before it is left to the backoff (F79). */
export const IDLE_STEPS_MAX = 3;
/** New replica ids in one run of the host: a file that is cloned again and again is stopped (RP1). */
export const RENEWALS_MAX = 3;
