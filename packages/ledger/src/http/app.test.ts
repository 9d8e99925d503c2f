import { expect, test } from 'vitest';
import type { Caller } from '../access/access.ts';
import { createLedger } from '../ledger.ts';
import { temporaryFolder } from '../stores/sqlite/store.fixture.ts';

/** What the door itself decides: who may come in, whatever the verifier said a moment ago. */
async function asked(caller: Partial<Caller>, path: string): Promise<number> {
  const folder = temporaryFolder();
  try {
    await using ledger = await createLedger({
      store: { sqlite: folder.path },
      access: {
        name: 'test',
        verify: () => Promise.resolve({ account: 'ana', grants: { acme: 'writer' as const }, ...caller }),
      },
      createOnFirstUse: true,
      logLevel: 'silent',
    });
    return (await ledger.fetch(new Request(`http://ledger.test/v1${path}`))).status;
  } finally {
    folder.dispose();
  }
}

const EVENTS = '/workspaces/acme/logs/main/events';

test('[S01] a credential that has ended opens nothing, though its verifier still knows it', async () => {
  expect(await asked({ expiresAtMs: Date.now() + 3_600_000 }, EVENTS)).toBe(200);
  expect(await asked({ expiresAtMs: Date.now() - 1 }, EVENTS)).toBe(401);
  expect(await asked({ expiresAtMs: Date.now() - 1 }, '/session')).toBe(401);
});

test('[LG11 S01] a workspace that was not granted is answered as if it were not there, on every way in', async () => {
  for (const rest of ['/logs', '/replicas', '/logs/main/events', '/logs/main/entities', '/logs/main/entities/a/b'])
    expect([rest, await asked({}, `/workspaces/globex${rest}`)]).toEqual([rest, 404]);
});
