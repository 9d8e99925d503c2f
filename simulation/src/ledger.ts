import { rmSync } from 'node:fs';
import type { Platform, SchemaData } from '@holdfast/core';
import { createTestLedger, type TestLedgerOptions } from '@holdfast/ledger/testing';
import { createTestEndpoint, type TestEndpoint } from '@holdfast/replica/testing';

/** A title that the ledger of a world never takes. */
export const REFUSED_TITLE = 'refused for ever';

const admit: TestLedgerOptions['admit'] = ({ after }) =>
  after?.fields['title'] === REFUSED_TITLE ? { reason: 'title', field: 'title' } : undefined;

/** The ledger of a world: the real engine, store and doors on virtual time. It can stop, start, and wake up in the past. */
export interface WorldLedger extends Omit<TestEndpoint, 'current'> {
  readonly folder: string;
  /** Tokens that it takes no more. Lives as long as the world, like an identity provider. */
  readonly revoked: Set<string>;
  readonly current: TestEndpoint['current'] | null;
}

export function createWorldLedger(parts: {
  readonly folder: string;
  readonly platform: Platform;
  readonly schema: SchemaData;
  readonly through?: Required<TestLedgerOptions>['through'];
}): WorldLedger {
  const revoked = new Set<string>();
  const endpoint = createTestEndpoint(() =>
    createTestLedger({ ...parts, admit, isRevoked: (token) => revoked.has(token) }),
  );
  return {
    revoked,
    folder: parts.folder,
    get current() {
      return endpoint.up ? endpoint.current : null;
    },
    get up() {
      return endpoint.up;
    },
    start: endpoint.start,
    kill: endpoint.kill,
    fetch: endpoint.fetch,
    accept: endpoint.accept,
  };
}

export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });
