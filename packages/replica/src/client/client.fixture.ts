import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Served, serveLedger, staticTokens } from '@holdfast/ledger';
import { type TestSchema, testSchema } from '../host/host.fixture.ts';
import { type Client, type ClientOptions, createClient } from '../index.ts';

/** A real ledger on a port of its own, and clients of it; `end` closes and removes all of them. */
export interface Bench {
  readonly folder: string;
  readonly ledger: Served;
  client(account: string, options?: Partial<ClientOptions<TestSchema>>): Client<TestSchema>;
  end(): Promise<void>;
}

const ACCOUNTS = ['ana', 'ben', 'cem'] as const;

export async function openBench(): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-client-'));
  const tokens = ACCOUNTS.map((account) => [
    `${account}-token`,
    { account, grants: { acme: 'writer' as const, globex: 'writer' as const } },
  ]);
  const ledger = await serveLedger({
    schema: testSchema,
    store: { sqlite: join(folder, 'ledger') },
    access: staticTokens(Object.fromEntries(tokens)),
    listen: { port: 0 },
    createOnFirstUse: true,
    logLevel: 'silent',
  });
  const clients: Client<TestSchema>[] = [];
  let devices = 0;
  return {
    folder,
    ledger,
    client: (account, options = {}) => {
      devices += 1;
      const client = createClient<TestSchema>({
        schema: testSchema,
        ledger: ledger.url,
        dir: join(folder, `device-${devices}`),
        account: { id: account, token: () => `${account}-token` },
        ...options,
      });
      clients.push(client);
      return client;
    },
    end: async () => {
      for (const client of clients.splice(0)) await client.close();
      await ledger.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Resolves once it is true, asked after every turn; a test that waits for ever fails by its time-out. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 2));
}
