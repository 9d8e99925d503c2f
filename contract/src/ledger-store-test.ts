import { test } from 'vitest';
import type { MaybePromise } from '../../packages/ledger/src/engine/answer.ts';
import type { LedgerStore } from '../../packages/ledger/src/engine/store-port.ts';
import { newLog } from './ledger-store-rows.ts';

export interface StoreUnderTest {
  readonly store: LedgerStore;
  /** Closed and opened again: what a restart sees. */
  reopen(): MaybePromise<LedgerStore>;
  dispose(): MaybePromise<void>;
}

/** Each test has a store of its own, in which the workspace `acme` was made. */
export type StoreTest = ReturnType<typeof storeTest>;

export const storeTest = (open: () => MaybePromise<StoreUnderTest>) =>
  test.extend<{ readonly tested: StoreUnderTest; readonly store: LedgerStore }>({
    tested: async ({ task: _ }, use) => {
      const tested = await open();
      await tested.store.createWorkspace('acme', newLog());
      await use(tested);
      await tested.dispose();
    },
    store: async ({ tested }, use) => {
      await use(tested.store);
    },
  });
