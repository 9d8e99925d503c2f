import { defineSchema, entity, schemaData, text } from '@holdfast/core';
import { expect, test } from 'vitest';
import { nodeDigest } from '../adapters/node/platform.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';
import { TinyLedger } from './tiny-ledger.fixture.ts';

/** Two versions of an app, or an app and a stranger with a pen: one sends what the other keeps to itself. */
const sending = schemaData(defineSchema({ draft: entity({ body: text() }), issue: entity({ title: text() }) }));
const keeping = schemaData(
  defineSchema({
    draft: entity({ body: text() }, { local: true, search: ['body'] }),
    issue: entity({ title: text() }),
  }),
);

test('[SC10 SC6 DG2] what a log has under the name of a local type neither shows nor parts the replica from the log', () => {
  const ledger = new TinyLedger(nodeDigest);
  const other = new Device({ schema: sending, seed: 1 });
  const mine = new Device({ schema: keeping, seed: 2, account: 'ben' });
  const check = (...bodies: string[]) => {
    expect(mine.rows('draft').map((row) => row['body'])).toEqual(bodies);
    expect(examine(mine.state.store).findings).toEqual([]);
    expect(mine.state.log('main')?.signature).toBe(ledger.signature);
    expect(mine.state.counts().unsent).toBe(0);
  };
  const theirs = (work: () => void) => {
    work();
    other.settle(ledger);
  };
  try {
    other.bootstrap(ledger);
    theirs(() => other.create('draft', { body: 'theirs' }, 'a'));
    mine.bootstrap(ledger);
    check();
    mine.create('draft', { body: 'mine' }, 'a');
    check('mine');
    theirs(() => other.update('draft', 'a', { body: 'theirs again' }));
    theirs(() => other.create('draft', { body: 'theirs too' }, 'b'));
    mine.settle(ledger);
    check('mine');
    mine.update('draft', 'a', { body: 'mine again' });
    for (let round = 0; round < 2; round += 1) mine.fetch(ledger, 'repair', 1);
    check('mine again');
    mine.reopen();
    check('mine again');
    theirs(() => other.delete('draft', 'a'));
    mine.settle(ledger);
    check('mine again');
    mine.delete('draft', 'a');
    // What it was is nobody's business here: there is nothing to be brought back under that name.
    const restored = mine.state.commit(mine.request([{ do: 'restore', entity: 'draft', id: 'a' }]));
    expect(restored).toMatchObject({ ok: false, fault: { code: 'not-found' } });
    mine.create('draft', { body: 'mine at last' }, 'a');
    mine.fetch(ledger, 'repair', 1);
    check('mine at last');
  } finally {
    other.remove();
    mine.remove();
  }
});
