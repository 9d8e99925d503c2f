import type { Play } from './coda.ts';
import type { Meddler } from './device.ts';
import { kindOf } from './plays-network.ts';
import type { Stage, StageDevice } from './stage.ts';

/** Requests of a kind that are never answered, while all others are: nobody may go on saying that all is well (SY3). */
export const STALLS: readonly Play[] = [
  {
    name: 'pushes that are never answered',
    invariant: 'I30',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      ana.meddler = unanswered('push');
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      const signOut = () => {
        world.ledger.access.revoked.add(ana.token);
        ana.engine?.sync.kick('online');
      };
      const ways = [
        () => world.time.advance(60_000),
        () => ana.engine?.sync.kick('online'),
        async () => {
          signOut();
          await world.time.advance(LOOKED_AT_MS);
          ana.signIn();
        },
        () => ana.signIn(),
        signOut,
      ];
      for (const way of ways) {
        const isSaid = await world.time.until(() => ana.engine?.sync.status.phase === 'stalled', STALL_MS);
        stage.expect(isSaid, `a push is never answered, and the device says ${ana.engine?.sync.status.phase}`);
        await way();
        await world.time.advance(1_000);
      }
      ana.meddler = null;
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'pages that are never answered',
    invariant: 'I30',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      stage.commit(ben, (tx) => tx.note.update(id as never, { body: 'news' }));
      await world.time.advance(2_000);
      ana.meddler = unanswered('events');
      await stage.back(ana);
      await world.time.advance(2_000);
      stage.expect(
        ana.engine?.sync.status.phase === 'catching-up',
        `who is behind says ${ana.engine?.sync.status.phase}`,
      );
      ana.signIn();
      await world.time.advance(1_000);
      world.ledger.access.revoked.add(ana.token);
      ana.engine?.sync.kick('online');
      await world.time.advance(1_000);
      stage.expect(
        ana.engine?.sync.status.phase === 'sign-in-needed',
        `whose session ended while behind says ${ana.engine?.sync.status.phase}`,
      );
      ana.signIn();
      await saysStalled(ana, { world, ...stage });
      ana.meddler = null;
      await stage.rest();
      stage.expect(stage.row(ana, id)?.['body'] === 'news', 'the news never came');
    },
  },
  {
    name: 'an answer that comes once nobody hopes for it',
    invariant: 'I30',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      const release = holding(ana, 'push');
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await saysStalled(ana, { world, ...stage });
      release();
      const hasMoved = await world.time.until(() => ana.engine?.sync.status.phase === 'live', LOOKED_AT_MS);
      stage.expect(hasMoved, `what stalled was answered, and the device says ${ana.engine?.sync.status.phase}`);
      ana.meddler = null;
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'an answer that says no, once nobody hopes for it',
    invariant: 'I30',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      const { readers } = world.ledger.access;
      for (const when of ['stalled', 'cut off', 'given up'] as const) {
        const release = holding(ana, 'push');
        stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        if (when === 'cut off') await world.time.advance(50);
        else await saysStalled(ana, { world, ...stage });
        if (when === 'cut off') ana.network.cut();
        if (when === 'given up') await world.time.until(() => ana.engine?.sync.status.phase !== 'stalled', STALL_MS);
        readers.add(ana.account);
        release();
        const isSaid = await world.time.until(() => ana.engine?.sync.status.phase === 'blocked', STALL_MS);
        stage.expect(isSaid, `who may only read says ${ana.engine?.sync.status.phase}`);
        await world.time.advance(LOOKED_AT_MS);
        readers.delete(ana.account);
        ana.meddler = null;
        stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        ana.engine?.sync.kick('online');
        await stage.rest();
      }
      stage.expect(stage.row(ben, id)?.['votes'] === 6, `six votes count ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'asleep while nothing moves',
    invariant: 'I30',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      ana.meddler = unanswered('push');
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await saysStalled(ana, { world, ...stage });
      // What a socket brings is progress, be it known again who it is, or not: that is asked and not answered.
      for (const kinds of [['push'], ['push', 'handshake']]) {
        ana.meddler = unanswered(...kinds);
        ana.signIn();
        await world.time.advance(100);
        stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await world.time.advance(LOOKED_AT_MS);
        ana.meddler = unanswered('push');
        await saysStalled(ana, { world, ...stage });
      }
      stage.away(ana);
      ana.clock.jump(3_600_000);
      await world.time.advance(LOOKED_AT_MS);
      stage.expect(ana.engine?.sync.status.phase === 'offline', `who is cut off says ${ana.engine?.sync.status.phase}`);
      ana.meddler = null;
      await stage.back(ana);
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['votes'] === 3, `three votes count ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'a second host of a file whose first one is stuck',
    invariant: 'I22',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      ana.meddler = unanswered('push');
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await saysStalled(ana, { world, ...stage });
      const outranked = ana.takeOver();
      ana.meddler = null;
      const hasStopped = await world.time.until(() => outranked?.sync.status.phase === 'stopped', STALL_MS);
      stage.expect(hasStopped, `a host whose file was taken says ${outranked?.sync.status.phase}`);
      await world.time.advance(LOOKED_AT_MS);
      ana.signIn();
      await stage.rest();
      ana.crash();
      ana.start();
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'a second host of a file whose first one is behind',
    invariant: 'I22',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      const votes = () => stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      stage.away(ana);
      votes();
      await world.time.advance(2_000);
      ana.meddler = unanswered('events');
      await stage.back(ana);
      await world.time.advance(2_000);
      const outranked = ana.takeOver();
      ana.meddler = null;
      votes();
      outranked?.sync.kick('online');
      const hasStopped = await world.time.until(() => outranked?.sync.status.phase === 'stopped', STALL_MS);
      stage.expect(hasStopped, `a host whose file was taken says ${outranked?.sync.status.phase}`);
      ana.crash();
      ana.start();
      await stage.rest();
      stage.expect(stage.row(ana, id)?.['votes'] === 2, `two votes count ${stage.row(ana, id)?.['votes']}`);
    },
  },
];
const STALL_MS = 10 * 60_000;
/** By then whoever watches has looked again. */
const LOOKED_AT_MS = 30_000;

async function saysStalled(device: StageDevice, { world, expect }: Pick<Stage, 'world' | 'expect'>): Promise<void> {
  const isSaid = await world.time.until(() => device.engine?.sync.status.phase === 'stalled', STALL_MS);
  expect(isSaid, `a request is never answered, and the device says ${device.engine?.sync.status.phase}`);
}

/** Requests of a kind wait where they are, until they are let go. */
function holding(device: StageDevice, kind: string): () => void {
  let release = (): void => undefined;
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  device.meddler = async ({ url }, honest) => {
    if (kindOf(url) === kind) await isReleased;
    return honest();
  };
  return release;
}

export const unanswered =
  (...kinds: readonly string[]): Meddler =>
  (request, honest) =>
    !kinds.includes(kindOf(request.url))
      ? honest()
      : new Promise((_, reject) =>
          request.signal.addEventListener('abort', () => reject(new Error('The request was given up.'))),
        );
