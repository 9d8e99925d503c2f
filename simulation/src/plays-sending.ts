import type { Play } from './coda.ts';
import type { Meddler } from './device.ts';
import { REFUSED_TITLE } from './ledger.ts';
import { changed, kindOf } from './plays-network.ts';

/** What may be sent, when, and under which name, and what a device has to know of what it has sent (OB2, OB3, PM7, SC9). */
export const SENDING: readonly Play[] = [
  {
    name: 'a small door',
    invariant: 'I29',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      const bodies = ['1', '2', '3'].map((digit) => digit.repeat(DOOR_BYTES / 2));
      stage.commit(ana, (tx) => tx.note.update(id as never, { title: 'of ana', body: bodies[0] as string }));
      for (const body of bodies.slice(1)) stage.commit(ana, (tx) => tx.note.update(id as never, { body }));
      // What he is answered has to be judged, while nothing is known of what comes after it.
      stage.commit(ben, (tx) => tx.note.delete(id as never));
      await stage.world.time.advance(2_000);
      let turnedAway = 0;
      ana.meddler = throughDoor(() => {
        turnedAway += 1;
        return turnedAway < DOOR_TRIES;
      });
      await stage.back(ana);
      await stage.rest();
      ana.meddler = null;
      stage.expect(turnedAway > 0 && turnedAway < DOOR_TRIES, `a small door turned ${turnedAway} requests away`);
      for (const device of [ana, ben]) {
        const { title, body } = stage.row(device, id) ?? {};
        const isKept = title === 'of ana' && body === bodies.at(-1);
        stage.expect(
          isKept,
          `what came through a small door and beside a deletion is ${title}, ${`${body}`.slice(0, 9)}`,
        );
      }
    },
  },
  {
    name: 'work that is over quota, and small work on it',
    invariant: 'I17',
    play: async ({ ana, ben, world, ...stage }) => {
      const { house } = world.ledger;
      house.quotaBytes = QUOTA_BYTES;
      let id = '';
      const large = stage.commit(ana, (tx) => {
        id = tx.note.create({ title: 'large', body: 'l'.repeat(QUOTA_BYTES) });
      });
      const small = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await world.time.advance(20_000);
      stage.expect(stage.row(ben, id) === undefined, 'work over quota is in the log');
      house.quotaBytes = null;
      await stage.rest();
      const ends = [large, small].map((action) => stage.outcome(ana, action));
      stage.expect(ends.join() === 'ordered,ordered', `what was over quota for a while is ${ends}`);
      stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'a clock that was a year ahead',
    invariant: 'I29',
    play: async ({ ana, ben, world, ...stage }) => {
      const { house } = world.ledger;
      house.quotaBytes = QUOTA_BYTES;
      ana.clock.skewMs += YEAR_MS;
      let id = '';
      stage.commit(ana, (tx) => {
        id = tx.note.create({ title: 'early', body: 'l'.repeat(QUOTA_BYTES) });
      });
      await world.time.advance(1_000);
      ana.clock.skewMs -= YEAR_MS;
      house.quotaBytes = null;
      await world.time.advance(OVER_MS);
      stage.expect(stage.row(ben, id)?.['title'] === 'early', 'work waits for the time of a clock that was wrong');
      ana.engine?.sync.kick('online');
      await stage.rest();
    },
  },
  {
    name: 'a comment on a refused note',
    invariant: 'I17',
    play: async ({ ana, ben, ...stage }) => {
      let id = '';
      let comment = '';
      stage.away(ana);
      const refused = stage.commit(ana, (tx) => {
        id = tx.note.create({ title: REFUSED_TITLE });
      });
      const later = stage.commit(ana, (tx) => {
        comment = tx.comment.create({ text: 'well said', note: id as never });
      });
      await stage.back(ana);
      await stage.rest();
      stage.expect(
        stage.outcome(ana, later) !== 'ordered',
        'a comment is in the log, and the note that it is on is not',
      );
      const seen = ben.engine?.database.prepare('SELECT 1 FROM main.comment WHERE _id = ?').get(comment);
      stage.expect(seen === undefined, 'a comment on a refused note is shown elsewhere');
      for (let asked = 0; asked < 2; asked += 1) {
        const waiting = ana.engine?.state.desk().filter(({ needs }) => needs === 'answer') ?? [];
        ana.engine?.state.discard(waiting.map((entry) => entry.id));
        await stage.rest();
      }
      stage.expect(stage.outcome(ana, refused) === 'discarded', `what was discarded is ${stage.outcome(ana, refused)}`);
    },
  },
  {
    name: 'work made while its ground is being refused',
    invariant: 'I18',
    play: async ({ ana, ben, world, ...stage }) => {
      let id = '';
      ana.network.rules.delayMs = [20, 20];
      stage.commit(ana, (tx) => {
        id = tx.note.create({ title: REFUSED_TITLE });
      });
      await world.time.advance(30);
      const later = stage.commit(ana, (tx) => tx.note.update(id as never, { body: 'on top' }));
      await world.time.advance(200);
      ana.network.rules.delayMs = [1, 5];
      stage.expect(
        stage.outcome(ana, later) === 'needs-attention',
        `work on refused work is ${stage.outcome(ana, later)}`,
      );
      stage.expect(stage.row(ana, id) === undefined, 'work on refused work is shown');
      await stage.rest();
      for (let asked = 0; asked < 2; asked += 1) {
        ana.engine?.state.discard(stage.desk(ana, id).map((entry) => entry.id));
        await stage.rest();
      }
      stage.expect(stage.row(ben, id) === undefined, 'refused work is shown elsewhere');
    },
  },
  {
    name: 'taken back while nobody knows whether it arrived',
    invariant: 'I13',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      ana.network.rules.delayMs = [20, 20];
      const action = stage.commit(ana, (tx) => tx.note.update(id as never, { title: 'taken back' }));
      // It is at the ledger, and its answer on the way.
      await world.time.until(() => stage.row(ben, id)?.['title'] === 'taken back', 1_000);
      stage.away(ana);
      await world.time.advance(100);
      const owed = ana.engine?.coordinator.obligations.open().some(({ class: of }) => of === 'push');
      const isKnown = stage.outcome(ana, action) === 'ordered';
      stage.expect(isKnown || owed === true, 'a push left, its connection broke, and nothing is owed');
      ana.engine?.state.discard([action]);
      ana.network.rules.delayMs = [1, 5];
      await stage.back(ana);
      await stage.rest();
      for (const device of [ana, ben])
        stage.expect(stage.row(device, id)?.['title'] === 'new', `${device.name} shows what was taken back`);
    },
  },
];

/** Whoever stands on the way lets no larger request through. */
const DOOR_BYTES = 4_000;
/** Who learns nothing from being turned away asks more often. */
const DOOR_TRIES = 20;
const QUOTA_BYTES = 2_000;
const YEAR_MS = 365 * 86_400_000;
/** The longest that a retry may wait, and some more. */
const OVER_MS = 70_000;

const throughDoor =
  (turnsAway: () => boolean): Meddler =>
  async (request, honest) => {
    const isLarge = kindOf(request.url) === 'push' && (request.body?.length ?? 0) > DOOR_BYTES;
    if (!isLarge || !turnsAway()) return honest();
    const response = await honest({ url: request.url.replace('/push', '/nowhere') });
    return changed(response, { status: 413, text: () => 'too large', headers: { 'content-type': 'text/html' } });
  };
