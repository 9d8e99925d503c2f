import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { newFile, removeFiles, testSchema } from '../host/host.fixture.ts';
import { createClient } from '../index.ts';

afterEach(removeFiles);

const clientIn = (dir: string) =>
  createClient({ schema: testSchema, ledger: 'http://127.0.0.1:9', dir, account: { id: 'ana', token: () => 'ana' } });

// Seen to fail with open-host.ts calling every replica durable, and with replica-files.ts throwing what the platform throws.
test('[F24 P8] where nothing can be kept nothing is opened, and a replica in memory says so: it is in memory only if asked for', async () => {
  const folder = dirname(newFile());
  writeFileSync(join(folder, 'a file'), '');
  for (const dir of [join(folder, 'a file'), join(folder, 'a file', 'below')])
    await expect(clientIn(dir).open('acme')).rejects.toMatchObject({
      code: 'bad-setting',
      message: expect.stringContaining(dir),
    });
  for (const [dir, storage] of [
    [':memory:', 'memory'],
    [join(folder, 'below', 'it'), 'durable'],
  ] as const) {
    await using client = clientIn(dir);
    expect((await client.open('acme')).status.current.storage).toBe(storage);
  }
});
