import { tamper } from '@holdfast/replica/testing/engine';
import { checkStep } from './check-step.ts';
import type { Play } from './coda.ts';
import { rewind } from './file-faults.ts';
import { inOwnWorld } from './own-world.ts';
import { changed, kindOf } from './plays-network.ts';

/** What leaves a mark on whoever goes through it: rows that went wrong, and a ledger that has lost its last hour. */
export const OWN: readonly Play[] = [
  {
    name: 'rows that went wrong, under work that may not leave',
    invariant: 'I12',
    play: (outer) =>
      inOwnWorld(outer, {}, async ({ ana, ben, world, ...stage }) => {
        const id = await stage.note();
        const { readers } = world.ledger.access;
        readers.add(ben.account);
        stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await world.time.advance(1_000);
        tamper(
          ben.engine?.state,
          `UPDATE main.note SET status = 'closed'; UPDATE main.hf_log SET signature = '${'1'.repeat(64)}'`,
        );
        ben.engine?.sync.kick('online');
        await world.time.advance(30_000);
        const { status, votes } = stage.row(ben, id) ?? {};
        stage.expect(status === 'open', `rows that went wrong are shown as ${status}`);
        stage.expect(votes === 1, `with one vote that may not leave, ${votes} are shown`);
        for (const { what } of checkStep(world)) stage.expect(false, what);
        readers.delete(ben.account);
        ben.engine?.sync.kick('online');
        await stage.rest();
        stage.expect(stage.row(ana, id)?.['votes'] === 1, `one vote counts ${stage.row(ana, id)?.['votes']}`);
      }),
  },
  {
    name: 'a ledger that lost an hour',
    invariant: 'I13',
    play: (outer) =>
      inOwnWorld(outer, { faults: ['rewind'] }, async ({ ana, ben, world, ...stage }) => {
        const id = await stage.note({ title: 'kept' });
        rewind(world);
        await world.time.advance(NOTICED_MS);
        await stage.rest();
        stage.commit(ana, (tx) => tx.note.update(id as never, { body: 'of the lost hour' }));
        const lost = await stage.note({ title: 'lost' });
        rewind(world);
        await world.time.advance(NOTICED_MS);
        await stage.rest();
        for (const device of [ana, ben]) {
          const shown = `${stage.row(device, id)?.['body']}, ${stage.row(device, lost)?.['title']}`;
          stage.expect(shown === 'of the lost hour, lost', `after a lost hour ${device.name} shows ${shown}`);
        }
      }),
  },
  {
    name: 'a promised place that went to somebody else',
    invariant: 'I13',
    play: (outer) =>
      inOwnWorld(outer, { faults: ['rewind'] }, async ({ ana, ben, world, ...stage }) => {
        const id = await stage.note();
        rewind(world);
        await world.time.advance(NOTICED_MS);
        await stage.rest();
        stage.away(ben);
        // It is accepted, its events are to come, and the ledger forgets it.
        ana.meddler = async (request, honest) => {
          if (kindOf(request.url) !== 'push') return honest();
          ana.network.cut();
          ana.meddler = null;
          const response = await honest();
          const { position } = JSON.parse(request.body ?? '{}') as { position: { version: number; chain: string } };
          const { version, chain } = position;
          const text = JSON.stringify({
            ...(JSON.parse(await response.text()) as object),
            events: [],
            through: { version, chain },
          });
          rewind(world);
          stage.away(ana);
          return changed(response, { text: () => text });
        };
        const action = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await world.time.advance(2_000);
        stage.commit(ben, (tx) => tx.note.update(id as never, { body: 'in its place' }));
        await stage.back(ben);
        await world.time.advance(2_000);
        await stage.back(ana);
        await stage.rest();
        stage.expect(
          stage.outcome(ana, action) === 'ordered',
          `what was promised a place is ${stage.outcome(ana, action)}`,
        );
        const { body, votes } = stage.row(ben, id) ?? {};
        stage.expect(`${body}, ${votes}` === 'in its place, 1', `ben shows ${body}, ${votes}`);
      }),
  },
];

/** By then everybody has found that the ledger went away, and asked it again. */
const NOTICED_MS = 10_000;
