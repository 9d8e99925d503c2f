import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { newFile, removeFiles, testSchema } from '../host/host.fixture.ts';
import { createClient } from '../index.ts';
import type { WorkerLike } from './worker-client.ts';

afterEach(removeFiles);

const hosting = new URL('../worker.ts', import.meta.url);
const refuses = (): WorkerLike => {
  throw new Error('no workers here');
};

/** How a worker fails to begin, and what must be said of it. */
const STARTS: readonly (readonly [what: string, worker: () => WorkerLike, said: RegExp])[] = [
  ['none may be created', refuses, /no workers here/],
  ['its file is missing', () => new Worker(new URL('./nowhere.js', import.meta.url)), /Cannot find module/],
  ['its code throws', () => new Worker('throw new Error("half loaded")', { eval: true }), /half loaded/],
  ['it ends', () => new Worker('process.exit(3)', { eval: true }), /ended with 3/],
  [
    'its memory is too small',
    () => new Worker(hosting, { resourceLimits: { maxOldGenerationSizeMb: 4 } }),
    /memory limit/,
  ],
];

// Seen to fail with worker-client.ts refusing nobody when a worker was lost, and throwing what `create` threw.
test('[F12 F63] a worker that cannot begin is told with its reason, and nothing of it stands in the way of the next one', async () => {
  const dir = dirname(newFile());
  let next = refuses;
  await using client = createClient({
    schema: testSchema,
    ledger: 'http://127.0.0.1:9',
    dir,
    account: { id: 'ana', token: () => 'ana' },
    worker: () => next(),
  });
  for (const [what, worker, said] of STARTS) {
    next = worker;
    const refused = await client.open('acme').catch((cause: unknown) => cause);
    expect([what, refused]).toEqual([
      what,
      expect.objectContaining({ code: 'no-owner', details: { reason: expect.stringMatching(said) } }),
    ]);
  }
  next = () => new Worker(hosting);
  const replica = await client.open('acme');
  await replica.commit((tx) => tx.issue.create({ title: 'A' }));
  expect(replica.status.current).toMatchObject({ storage: 'durable' });
});
