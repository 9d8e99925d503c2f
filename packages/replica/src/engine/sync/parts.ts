import type { Fetch, JsonObject, Logger, OpenSocket, Platform } from '@holdfast/core';
import type { ReplicaState } from '../replica-state.ts';
import type { Edge } from './edge.ts';
import type { Permit, Permits } from './permits.ts';
import type { SyncSettings } from './settings.ts';

/** What every step of a cycle works with. Made once by `createSyncEngine`; nothing in it is changed afterwards. */
export interface SyncParts {
  readonly state: ReplicaState;
  readonly permits: Permits;
  readonly fetch: Fetch;
  readonly openSocket: OpenSocket;
  readonly platform: Platform;
  /** For a promise that nobody awaits. */
  readonly edge: Pick<Edge, 'run'>;
  /** Without a slash at its end. */
  readonly ledgerUrl: string;
  readonly workspace: string;
  readonly token: Token;
  readonly settings: SyncSettings;
  readonly observe: Observe;
  readonly logger: Logger;
  readonly journal: SyncJournal;
  /** `write` of the state; what changes inside is the engine's own and wakes no loop. */
  write<T>(work: () => T): T;
  /** False while paused, stopped or signed out: no request starts, but one that asks whether that still holds. */
  mayStart(use: 'handshake' | 'work'): boolean;
  /** Every request and wait that `close` may have to end. */
  readonly working: Working;
}

/** The app's credential, asked for before every request; undefined or empty where cookies speak (AC1). */
export type Token = () => string | undefined | Promise<string | undefined>;

/** TM1: what a step took. Never payloads. */
export type Observe = (signal: { readonly name: string; readonly ms: number } & JsonObject) => void;

export interface SyncJournal {
  /** Never throws: an entry that cannot be written never disturbs sync. */
  write(kind: string, facts: JsonObject): void;
}

/** What is going on right now, so that it can be ended. */
export interface Working {
  /** Permits whose request is on its way. */
  readonly permits: readonly string[];
  /** Gives the id to remove it by. */
  add(permit: Pick<Permit, 'permitId' | 'log'> | null, cancel: () => void): number;
  remove(id: number): void;
  /** Of one log: nobody waits for its answers any more. */
  cancelOf(log: string): void;
  cancelAll(): void;
}

export function createWorking(): Working {
  const works = new Map<number, { readonly permit: Parameters<Working['add']>[0]; readonly cancel: () => void }>();
  let last = 0;
  return {
    get permits() {
      return [...works.values()].flatMap(({ permit }) => (permit === null ? [] : [permit.permitId]));
    },
    add: (permit, cancel) => {
      last += 1;
      works.set(last, { permit, cancel });
      return last;
    },
    remove: (id) => void works.delete(id),
    cancelOf: (log) => {
      for (const { permit, cancel } of [...works.values()]) if (permit?.log === log) cancel();
    },
    cancelAll: () => {
      for (const { cancel } of [...works.values()]) cancel();
    },
  };
}
