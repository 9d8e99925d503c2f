import { ledgerStoreContract } from '../../../../../contract/src/ledger-store.ts';
import { sqliteUnderTest } from './store.fixture.ts';

ledgerStoreContract('SQLite', () => sqliteUnderTest());
// The cache of open files is bounded: with one, every other workspace is closed and opened again.
ledgerStoreContract('SQLite, one file open at a time', () => sqliteUnderTest({ openFilesMax: 1 }));
