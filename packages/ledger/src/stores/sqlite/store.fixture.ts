import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger, Platform } from '@holdfast/core';
import type { StoreUnderTest } from '../../../../../contract/src/ledger-store-test.ts';
import { createNodePlatform } from '../../adapters/node/platform.ts';
import { openSqliteStore, type SqliteStoreOptions } from './store.ts';

/** A folder of its own, gone with the test. */
export function temporaryFolder(): { readonly path: string; copy(): string; dispose(): void } {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-ledger-'));
  let copies = 0;
  return {
    path,
    /** As the files are at this moment: what a crash leaves. */
    copy: () => {
      copies += 1;
      cpSync(path, `${path}-${copies}`, { recursive: true });
      return `${path}-${copies}`;
    },
    dispose: () => {
      rmSync(path, { recursive: true, force: true });
      for (let at = 1; at <= copies; at += 1) rmSync(`${path}-${at}`, { recursive: true, force: true });
    },
  };
}

export interface Told {
  readonly level: Parameters<Logger>[0];
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

export const listeningLogger = (): { readonly logger: Logger; readonly told: Told[] } => {
  const told: Told[] = [];
  return { logger: (level, message, facts = {}) => told.push({ level, message, facts }), told };
};

export function sqliteUnderTest(
  options: Partial<SqliteStoreOptions> & { readonly platform?: Platform } = {},
): StoreUnderTest {
  const folder = temporaryFolder();
  const open = () => openSqliteStore({ folder: folder.path, platform: createNodePlatform(), ...options });
  let store = open();
  return {
    store,
    reopen: () => {
      store.close();
      store = open();
      return store;
    },
    dispose: () => {
      store.close();
      folder.dispose();
    },
  };
}
