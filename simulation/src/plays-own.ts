import { LIMITS } from '@holdfast/core';
import { tamper } from '@holdfast/replica/testing/engine';
import { checkStep } from './check-step.ts';
import type { Play } from './coda.ts';
import { rewind } from './file-faults.ts';
import { inOwnWorld } from './own-world.ts';
import { changed, kindOf } from './plays-network.ts';
import { unanswered } from './plays-stalls.ts';
import { PlayEnded, type Stage } from './stage.ts';

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
    name: 'owed for longer than anything else is kept',
    invariant: 'I21',
    play: (outer) =>
      inOwnWorld(outer, {}, async ({ ana, ben, world, ...stage }) => {
        const id = await stage.note();
        ana.meddler = unanswered('push');
        stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        const owed = () => ana.engine?.coordinator.obligations.open().filter(({ class: of }) => of === 'push').length;
        stage.expect(
          await world.time.until(() => owed() === 1, 60_000),
          'a push is never answered, and nothing is owed',
        );
        tamper(ana.engine?.state, MANY_REQUESTS);
        ana.crash();
        ana.clock.skewMs += WEEKS_MS;
        ana.start();
        await world.time.advance(20);
        stage.expect(owed() === 1, 'what has been owed for weeks is forgotten');
        const without = ana.engine?.database
          .prepare(
            'SELECT count(*) AS n FROM main.hf_obligation o WHERE NOT EXISTS (SELECT 1 FROM main.hf_permit p WHERE p.seq = o.permit)',
          )
          .get()?.['n'];
        stage.expect(without === 0, `of ${without} requests whose answers are owed the record is gone`);
        const kept = ana.engine?.database.prepare('SELECT count(*) AS n FROM main.hf_permit').get()?.['n'] as number;
        stage.expect(kept < LIMITS.permitsKept + MORE, `${kept} records of requests are kept`);
        ana.meddler = null;
        ana.engine?.sync.kick('online');
        await stage.rest();
        stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
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
        const id = await backedUp(stage, world);
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
  {
    name: 'an answer that comes after what it says was lost',
    invariant: 'I03',
    play: (outer) =>
      inOwnWorld(outer, { faults: ['rewind'] }, async ({ ana, ben, world, ...stage }) => {
        const id = await backedUp(stage, world);
        ana.meddler = async (request, honest) => {
          if (kindOf(request.url) !== 'push') return honest();
          ana.meddler = null;
          const response = await honest();
          return new Promise((resolve) => world.time.at(LATE_MS, () => resolve(response)));
        };
        const action = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await world.time.advance(LATE_MS / 4);
        rewind(world);
        await world.time.advance(LATE_MS);
        await stage.rest();
        stage.expect(stage.outcome(ana, action) === 'ordered', `a vote that was lost is ${stage.outcome(ana, action)}`);
        stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
      }),
  },
  {
    name: 'a tab that sleeps through a hundred changes',
    invariant: 'I28',
    play: (outer) =>
      inOwnWorld(outer, { faults: ['freeze'] }, async ({ ben, world, ...stage }) => {
        const id = await stage.note();
        const [tab] = world.tabs;
        if (tab === undefined) throw new PlayEnded('there is no tab');
        tab.freeze();
        for (let votes = 0; votes < HUNDRED; votes += 1) {
          stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
          await world.time.advance(200);
        }
        tab.thaw();
        await stage.rest();
        await world.time.advance(1_000);
        for (const { what } of tab.check()) stage.expect(false, what);
      }),
  },
];

/** A note, and a backup of the ledger that has it: the next rewind puts that back. */
async function backedUp(stage: Pick<Stage, 'note' | 'rest'>, world: Stage['world']): Promise<string> {
  const id = await stage.note();
  rewind(world);
  await world.time.advance(NOTICED_MS);
  await stage.rest();
  return id;
}

/** So long an answer stays on the way; shorter than its request waits for it. */
const LATE_MS = 8_000;
const HUNDRED = 100;
/** More than are kept. */
const MORE = 20;
const WEEKS_MS = 3 * LIMITS.permitsKeptMs;

/** What a device has that has worked for long: requests that were answered, and others whose answers came late. */
const MANY_REQUESTS = `
  CREATE TEMP TABLE many AS WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many
    WHERE n < ${LIMITS.permitsKept + MORE}) SELECT n FROM many;
  INSERT INTO main.hf_permit SELECT (SELECT max(seq) FROM main.hf_permit) + n, permit_id || '-' || n, log, generation,
    (SELECT max(number) FROM main.hf_permit) + n, host_instance, owner_mode, class, command_id, boundary, state,
    disposition, reason, issued_at, due_at, moved_at, ended_at FROM many, main.hf_permit
    WHERE seq = (SELECT max(seq) FROM main.hf_permit WHERE state = 'released');
  INSERT INTO main.hf_obligation SELECT (SELECT max(seq) FROM main.hf_obligation) + n, p.seq, p.generation, 'main', 'pull',
    'refetch-from-committed-cursor', '', 'unknown', NULL, 'abandoned', 1, p.ended_at, p.ended_at, p.ended_at, '{}'
    FROM many, main.hf_permit p WHERE p.seq = (SELECT max(seq) FROM main.hf_permit WHERE state = 'released');
  DROP TABLE many;`;

/** By then everybody has found that the ledger went away, and asked it again. */
const NOTICED_MS = 10_000;
