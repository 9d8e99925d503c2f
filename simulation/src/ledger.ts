import { rmSync } from 'node:fs';
import type { Platform, SchemaData } from '@holdfast/core';
import { createTestLedger } from '@holdfast/ledger/testing';
import { createTestEndpoint, type TestEndpoint } from '@holdfast/replica/testing';

/** The ledger of a world: the real engine, store and doors on virtual time. It can stop, start, and wake up in the past. */
export interface WorldLedger extends Omit<TestEndpoint, 'current'> {
  readonly folder: string;
  readonly current: TestEndpoint['current'] | null;
}

export function createWorldLedger(parts: {
  readonly folder: string;
  readonly platform: Platform;
  readonly schema: SchemaData;
}): WorldLedger {
  const endpoint = createTestEndpoint(() => createTestLedger(parts));
  return {
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
