import type { Fault, Logger, SchemaData } from '@holdfast/core';
import type { SyncSettings } from '../engine/sync/settings.ts';
import type { Signal } from '../host/observe.ts';
import type { Status } from '../link/status.ts';

/**
 * How a page and its worker begin and end, beside the link: opening a replica, credentials, the end. The link itself goes
 * over a port of its own, made for each caller.
 */
export interface OpenInWorker {
  readonly dir: string;
  readonly schema: SchemaData;
  readonly ledger: string;
  readonly account: string;
  readonly workspace: string;
  readonly takeOver?: boolean;
  readonly logs?: readonly string[];
  readonly settings?: Partial<SyncSettings>;
  /** The page wants each signal (TM1). What the log is told it gets always: that is little. */
  readonly isObserved: boolean;
}

/** To the worker. `port` is transferred with `connect`. */
export type ToWorker =
  | { readonly holdfast: 'open'; readonly open: OpenInWorker }
  | { readonly holdfast: 'connect'; readonly port: unknown }
  /** `failed`: what the app's function threw, in words; null where it gave a token, or gave none. */
  | {
      readonly holdfast: 'token';
      readonly number: number;
      readonly token: string | null;
      readonly failed: string | null;
    }
  | { readonly holdfast: 'close' };

/** From the worker. */
export type FromWorker =
  | { readonly holdfast: 'ready'; readonly status: Status }
  | { readonly holdfast: 'refused'; readonly fault: Fault }
  | { readonly holdfast: 'token'; readonly number: number }
  | { readonly holdfast: 'log'; readonly said: Parameters<Logger> }
  | { readonly holdfast: 'signal'; readonly signal: Signal }
  | { readonly holdfast: 'closed' };

export const isHoldfastMessage = (message: unknown): message is { readonly holdfast: string } =>
  typeof message === 'object' && message !== null && typeof (message as { holdfast?: unknown }).holdfast === 'string';
