import { rmSync } from 'node:fs';
import type { Platform, SchemaData } from '@holdfast/core';
import { createTestLedger, type TestLedgerOptions } from '@holdfast/ledger/testing';
import { createTestEndpoint, type TestEndpoint } from '@holdfast/replica/testing';
import { createLedgerAccess, type LedgerAccess } from './access.ts';

/** A title that the ledger of a world never takes. */
export const REFUSED_TITLE = 'refused for ever';

const admit: TestLedgerOptions['admit'] = ({ after }) =>
  after?.fields['title'] === REFUSED_TITLE ? { reason: 'title', field: 'title' } : undefined;

/** The ledger of a world: the real engine, store and doors on virtual time. It can stop, start, and wake up in the past. */
export interface WorldLedger extends Omit<TestEndpoint, 'current'> {
  readonly folder: string;
  readonly access: LedgerAccess;
  readonly house: House;
  readonly current: TestEndpoint['current'] | null;
}

/** What its operator sets, also while it runs. */
export interface House {
  /** Larger operations are over quota. Null: none is. */
  quotaBytes: number | null;
}

export type LedgerThrough = Required<TestLedgerOptions>['through'];

/** The key that positions of the world's logs are signed with (DG4). */
export const logKey = (): Uint8Array => new TextEncoder().encode('the log key of a world');

const OVER_QUOTA_MS = 5_000;

export function createWorldLedger(parts: {
  readonly folder: string;
  readonly platform: Platform;
  readonly schema: SchemaData;
  readonly through?: LedgerThrough;
}): WorldLedger {
  const house: House = { quotaBytes: null };
  const endpoint = createTestEndpoint(() =>
    createTestLedger({
      ...parts,
      admit,
      logKey: logKey(),
      quota: ({ bytes }) => (bytes > (house.quotaBytes ?? bytes) ? { retryAfterMs: OVER_QUOTA_MS } : undefined),
      isRevoked: (token) => access.revoked.has(asWriter(token)),
    }),
  );
  const access = createLedgerAccess(endpoint);
  return {
    access,
    house,
    folder: parts.folder,
    get current() {
      return endpoint.up ? endpoint.current : null;
    },
    get up() {
      return endpoint.up;
    },
    start: endpoint.start,
    kill: endpoint.kill,
    ...access.doors,
  };
}

/** Tokens are told apart by whose they are, not by what they are worth at the moment. */
const asWriter = (token: string): string => token.replace('/reader/', '/writer/');

export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });
