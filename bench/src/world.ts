import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { serveLedger, staticTokens } from '@holdfast/ledger';
import { type Client, type ClientOptions, createClient, type Replica } from '@holdfast/replica';
import { type BenchSchema, schema } from './schema.ts';

/** A real ledger on a port of its own, and devices of it, each with a file of its own. All in this process, as bare is. */
export interface World {
  readonly folder: string;
  readonly ledger: Awaited<ReturnType<typeof serveLedger>>;
  /** `name` names the folder: the same name is the same device, opened again. */
  device(name: string, options?: Partial<ClientOptions<BenchSchema>>): Promise<Device>;
  close(): Promise<void>;
}

export interface Device extends AsyncDisposable {
  readonly client: Client<BenchSchema>;
  readonly replica: Replica<BenchSchema>;
}

export const WORKSPACE = 'bench';

export async function openWorld(parent: string, name: string): Promise<World> {
  const folder = join(parent, name);
  mkdirSync(folder, { recursive: true });
  const ledger = await serveLedger({
    schema,
    store: { sqlite: join(folder, 'ledger') },
    access: staticTokens({ token: { account: 'ana', grants: { [WORKSPACE]: 'writer' } } }),
    listen: { port: 0 },
    admin: { port: 0 },
    createOnFirstUse: true,
    // All devices here are of one account, also the thousand that only listen.
    limits: { socketsPerAccountMax: 1_100 },
    logLevel: 'silent',
  });
  const open = new Set<Client<BenchSchema>>();
  return {
    folder,
    ledger,
    device: async (device, options = {}) => {
      const client = createClient<BenchSchema>({
        schema,
        ledger: ledger.url,
        dir: join(folder, device),
        account: { id: 'ana', token: () => 'token' },
        ...options,
      });
      open.add(client);
      const replica = await client.open(WORKSPACE);
      const close = async () => {
        open.delete(client);
        await client.close();
      };
      return { client, replica, [Symbol.asyncDispose]: close };
    },
    close: async () => {
      for (const client of open) await client.close();
      await ledger.close();
    },
  };
}

/** Everything is ordered and applied, or the measurement is void. */
export async function settled(replica: Replica<BenchSchema>, withinMs = 120_000): Promise<void> {
  const state = await replica.settle({ signal: AbortSignal.timeout(withinMs) });
  if (!state.settled || state.attention > 0) throw new Error(`Not settled: ${JSON.stringify(state)}`);
}
