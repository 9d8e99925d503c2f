import { schemaData } from '@holdfast/core';
import { expect, test } from 'vitest';
import { nodeDigest } from '../../packages/replica/src/adapters/node/platform.ts';
import { crashEverywhere } from '../../packages/replica/src/engine/crash-kit.fixture.ts';
import { Device } from '../../packages/replica/src/engine/device.fixture.ts';
import { TinyLedger } from '../../packages/replica/src/engine/tiny-ledger.fixture.ts';
import { worldSchema } from '../../simulation/src/world.ts';

const schema = schemaData(worldSchema);

// Seen to fail with ingest.ts storing the log's head in a transaction of its own, before the events.
test('[I02 I08] crash between two commits: the old or the new cursor, and the next pull brings the rest', () => {
  const ledger = new TinyLedger(nodeDigest);
  const report = crashEverywhere(
    {
      schema,
      prepare: (device) => {
        device.bootstrap(ledger);
        const ben = new Device({ schema, account: 'ben', seed: 9 });
        ben.bootstrap(ledger);
        for (let at = 0; at < 20; at += 1) ben.create('note', { title: `${at}` });
        ben.settle(ledger);
        ben.remove();
      },
      steps: [10, 10].map((limit) => (device) => void device.pull(ledger, limit)),
      next: (device) => {
        device.pullAll(ledger);
        const rows = device.rows('note').length;
        return device.head === 20 && rows === 20 ? [] : [`after the next pull: head ${device.head}, ${rows} rows`];
      },
    },
    { cause: new Error('killed'), isDeadAfter: true },
  );
  expect(report.problems).toEqual([]);
  expect(report.statements).toBeGreaterThan(40);
  expect(report.left).toEqual([0, 1]);
});
