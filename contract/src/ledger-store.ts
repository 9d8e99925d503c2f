import { describe } from 'vitest';
import type { MaybePromise } from '../../packages/ledger/src/engine/answer.ts';
import { appendContract } from './ledger-store-append.ts';
import { fenceContract } from './ledger-store-fences.ts';
import { logContract } from './ledger-store-logs.ts';
import { readContract } from './ledger-store-reads.ts';
import { type StoreUnderTest, storeTest } from './ledger-store-test.ts';

/** What every ledger store must do, whatever stands behind it. Run by each adapter with its own factory. */
export function ledgerStoreContract(name: string, open: () => MaybePromise<StoreUnderTest>): void {
  const test = storeTest(open);
  describe(`a ledger store: ${name}`, () => {
    logContract(test);
    appendContract(test);
    readContract(test);
    fenceContract(test);
  });
}
