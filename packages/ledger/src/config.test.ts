import { expect, test } from 'vitest';
import { staticTokens } from './access/static-tokens.ts';
import { defineLedger, type LedgerConfig } from './config.ts';

test('[LG6 LG11] a configuration that cannot hold is refused with the place of what is wrong', () => {
  const good: LedgerConfig = { store: { sqlite: './data' }, access: staticTokens({}) };
  expect(defineLedger({ ...good, limits: { commitEventsMax: 512 } }).limits).toEqual({ commitEventsMax: 512 });
  const wrong: readonly [Partial<Record<keyof LedgerConfig, unknown>>, RegExp][] = [
    [{ access: undefined }, /^Ledger configuration, access: who may come in\?/],
    [{ store: {} }, /^Ledger configuration, store: a folder/],
    [{ logKey: 'short' }, /^Ledger configuration, logKey: at least 32 bytes/],
    // It would be published, and refused all the same by what reads a request.
    [{ limits: { commitEventsMax: 513 } }, /^Ledger configuration, limits.commitEventsMax: at most 512/],
    [{ origins: ['https://app.example.com/path'] }, /https:\/\/app\.example\.com\/path/],
  ];
  for (const [change, problem] of wrong)
    expect(() => defineLedger({ ...good, ...change } as LedgerConfig)).toThrow(problem);
});
