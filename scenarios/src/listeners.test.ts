import { schemaData } from '@holdfast/core';
import { createWorld } from '@holdfast/replica/testing';
import { expect, test } from 'vitest';
import { nodeDigest } from '../../packages/replica/src/adapters/node/platform.ts';
import { Device } from '../../packages/replica/src/engine/device.fixture.ts';
import { TinyLedger } from '../../packages/replica/src/engine/tiny-ledger.fixture.ts';
import { worldSchema } from '../../simulation/src/world.ts';
import { tabsSchema } from './tabs.fixture.ts';

// Seen to fail with replica-store.ts telling its listeners before COMMIT.
test('[F151 I11 I12] change made by a listener during remote apply is not sent: a subscriber corrects what came, and everybody gets it', async () => {
  await using world = await createWorld({ schema: tabsSchema, seed: 28 });
  const [ana, ben] = [await world.device('ana'), await world.device('ben')];
  await world.settle();
  using live = ben.replica.live((db) => db.selectFrom('issue').select(['id', 'title']));
  const corrected = new Set<string>();
  live.subscribe(({ rows }) => {
    for (const { id, title } of rows)
      if (title !== title.trim() && !corrected.has(id)) {
        corrected.add(id);
        void ben.replica.commit((tx) => tx.issue.update(id, { title: title.trim() }));
      }
  });
  for (const title of [' one', 'two ', 'three']) await ana.replica.commit((tx) => tx.issue.create({ title }));
  await world.settle();
  expect(corrected.size).toBe(2);
  for (const { replica } of [ana, ben]) {
    const rows = await replica.query((db) => db.selectFrom('issue').select('title').orderBy('title'));
    expect(rows.map(({ title }) => title)).toEqual(['one', 'three', 'two']);
  }
  expect(await world.converged()).toBe(true);
  insideTheEngine();
});

/** The same on the engine's own door: told after the page is committed, the change is a later commit with a row of its own. */
function insideTheEngine(): void {
  const ledger = new TinyLedger(nodeDigest);
  const schema = schemaData(worldSchema);
  const [ana, ben] = [new Device({ schema }), new Device({ schema, account: 'ben', seed: 2 })];
  try {
    ana.bootstrap(ledger);
    ben.bootstrap(ledger);
    ana.create('note', { title: ' n' }, 'n1');
    ana.settle(ledger);
    const seen: boolean[] = [];
    const stop = ben.state.onChange(() => {
      if (seen.length > 0) return;
      seen.push(ben.database.inTransaction);
      ben.update('note', 'n1', { title: 'n' });
    });
    ben.pull(ledger);
    stop();
    expect(seen).toEqual([false]);
    expect([ben.state.counts().unsent, ben.row('note', 'n1')?.['title']]).toEqual([1, 'n']);
    ben.settle(ledger);
    ana.settle(ledger);
    expect([ana.row('note', 'n1')?.['title'], ana.state.log('main')?.signature]).toEqual(['n', ledger.signature]);
  } finally {
    ana.remove();
    ben.remove();
  }
}
