import { LIMITS, type Schema, type SchemaData, schemaData } from '@holdfast/core';
import type { Access } from './access/access.ts';
import type { Admit, AdmitRefusal, EngineLimits, Quota } from './engine/engine.ts';
import { checkedOrigin } from './http/origins.ts';

/** What `holdfast.config.ts` exports, made by `defineLedger`. */
export interface LedgerConfig {
  /** The app's schema. Without it the ledger folds and merges all the same, but numbers no serial fields. */
  readonly schema?: Schema;
  readonly store: { readonly sqlite: string };
  /** Who may come in. A ledger without it does not start. */
  readonly access: Access;
  /** Per entity type: may this change be accepted? See `refuse`. */
  readonly admit?: Readonly<Record<string, AdmitRule>>;
  readonly quota?: Quota;
  readonly limits?: Partial<EngineLimits>;
  /** Origins of web pages that may talk to this ledger, as browsers write them: `https://app.example.com`. */
  readonly origins?: readonly string[];
  /** 32 or more random bytes in hex, kept apart from the data: signs positions (DG4). */
  readonly logKey?: string;
  readonly listen?: Listen;
  /** Health and metrics, on a listener of their own. Absent: 127.0.0.1, the port after the public one. */
  readonly admin?: Listen;
  /** Workspaces and logs are made when first used. For development. */
  readonly createOnFirstUse?: boolean;
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export interface Listen {
  readonly host?: string;
  readonly port?: number;
}

export type AdmitRule = (
  change: Parameters<Admit>[0],
  actor: { readonly id: string; readonly role: 'reader' | 'writer' | 'administrator' },
) => AdmitRefusal | undefined;

/** Checks a configuration and gives it back. Throws `TypeError` naming what is wrong and where. */
export function defineLedger<const C extends LedgerConfig>(config: C): C {
  const wrong = (path: string, why: string) => new TypeError(`Ledger configuration, ${path}: ${why}`);
  if (typeof config.access?.verify !== 'function')
    throw wrong('access', 'who may come in? Give jwt({ … }), cookies(…) or, for development, staticTokens({ … }).');
  if (typeof config.store?.sqlite !== 'string' || config.store.sqlite === '')
    throw wrong('store', 'a folder is needed: { sqlite: "./data" }.');
  if (config.logKey !== undefined && !/^([0-9a-f]{2}){32,}$/.test(config.logKey))
    throw wrong('logKey', 'at least 32 bytes in lower-case hex. Make one with "openssl rand -hex 32".');
  const events = config.limits?.commitEventsMax;
  if (events !== undefined && events > LIMITS.commitEventsMax)
    throw wrong('limits.commitEventsMax', `at most ${LIMITS.commitEventsMax}, which the protocol fixes for all.`);
  for (const origin of config.origins ?? []) checkedOrigin(origin);
  return config;
}

/** A refusal by `admit`: a reason in your own words, and the field it is about. */
export const refuse = (
  reason: string,
  more: { readonly message?: string; readonly field?: string } = {},
): AdmitRefusal => ({ reason, ...more });

/** The rules of `admit`, as the engine asks them. */
export function admitOf(rules: LedgerConfig['admit']): Admit | undefined {
  if (rules === undefined) return undefined;
  return (change, actor) => {
    if (!Object.hasOwn(rules, change.entityType)) return undefined;
    return rules[change.entityType]?.(change, { id: actor.account, role: actor.role });
  };
}

export const schemaDataOf = (config: LedgerConfig): { readonly schema?: SchemaData } =>
  config.schema === undefined ? {} : { schema: schemaData(config.schema) };

/** The effective configuration as `holdfast serve --print-config` shows it: no secrets. */
export function shownConfig(config: LedgerConfig): Readonly<Record<string, unknown>> {
  return {
    store: config.store,
    access: config.access.name,
    entities: config.schema === undefined ? null : Object.keys(config.schema),
    admit: Object.keys(config.admit ?? {}),
    quota: config.quota !== undefined,
    limits: config.limits ?? {},
    origins: config.origins ?? [],
    logKey: config.logKey === undefined ? null : '(set)',
    listen: { host: '127.0.0.1', port: DEFAULT_PORT, ...config.listen },
    admin: config.admin ?? null,
    createOnFirstUse: config.createOnFirstUse ?? false,
    logLevel: config.logLevel ?? 'info',
  };
}

export const DEFAULT_PORT = 4800;
