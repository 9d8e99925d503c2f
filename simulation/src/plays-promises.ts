import { DatabaseSync } from 'node:sqlite';
import { LIMITS } from '@holdfast/core';
import type { Play } from './coda.ts';
import { askLedger } from './probes.ts';
import { sendAgain } from './repeat.ts';
import type { StageDevice } from './stage.ts';
import type { World } from './world.ts';

/** Promises that no quarrel and no bad network touches: what a person saw, what is remembered, how much goes at once. */
export const PROMISES: readonly Play[] = [
  {
    name: 'a form that stood open',
    invariant: 'I13',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note({ title: 'seen' });
      stage.commit(ben, (tx) => tx.note.update(id as never, { title: 'of ben' }));
      await stage.rest();
      const save = (title: string) => ana.commit((tx) => tx.note.update({ id, title } as never, { title: 'of ana' }));
      stage.expect(save('seen') === null, 'a form that shows an older title is saved over a newer one');
      stage.expect(stage.row(ana, id)?.['title'] === 'of ben', 'what a form may not overwrite is gone');
      stage.expect(save('of ben') !== null, 'a form that shows what is there is not saved');
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['title'] === 'of ana', 'what a form has saved does not arrive');
    },
  },
  {
    name: 'a ledger that starts again',
    invariant: 'I05',
    play: async ({ ana, world, ...stage }) => {
      const id = await stage.note();
      const action = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await stage.rest();
      const push = ana.pushes.findLast(({ body }) => body.includes(action));
      if (push === undefined) return;
      const ask = async (body: string) =>
        JSON.stringify((await sendAgain(world, push, body)).map(({ status, firstVersion }) => [status, firstVersion]));
      const before = await ask(push.body);
      world.ledger.kill();
      world.ledger.start();
      await stage.rest();
      const after = await ask(push.body);
      stage.expect(
        before.includes('accepted') && before === after,
        `a repeat is answered ${before}, and by the next run ${after}`,
      );
      const other = await ask(push.body.replace('"votes":1', '"votes":2'));
      stage.expect(!other.includes('accepted'), `what was sent with other bytes is answered ${other}`);
    },
  },
  {
    name: 'told once it lasts',
    invariant: 'I01',
    play: async ({ ana, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      const counts: number[] = [];
      const stopListening = ana.engine?.state.onChange(() => counts.push(countWaiting(ana.file)));
      const before = countWaiting(ana.file);
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      stopListening?.();
      stage.expect(
        counts.length > 0 && counts.every((count) => count === before + 1),
        `a window was told of a commit with ${counts} of ${before + 1} in the file`,
      );
      await stage.back(ana);
      await stage.rest();
    },
  },
  {
    name: 'large edits',
    invariant: 'I28',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      const before = ben.engine?.state.log('main')?.head ?? 0;
      stage.away(ana);
      const bodies = Array.from({ length: LARGE_EDITS }, (_, at) => `${at}`.repeat(LARGE_CHARACTERS));
      for (const body of bodies) stage.commit(ana, (tx) => tx.note.update(id as never, { body }));
      await stage.back(ana);
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['body'] === bodies.at(-1), 'large edits do not arrive');
      const page = await readPage(world, ben, before);
      stage.expect(page <= LIMITS.pageBytesMax + FRAME_BYTES, `a page of several operations has ${page} bytes`);
      stage.commit(ana, (tx) => tx.note.delete(id as never));
      await stage.rest();
    },
  },
];

/** How many commits the file holds, for whoever opens it beside the one who writes. */
function countWaiting(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true });
  const row = database.prepare('SELECT count(*) AS n FROM hf_outbox').get();
  database.close();
  return row?.['n'] as number;
}

/** PG1: the bytes of the page behind a version, as whoever asks for as much as he may is sent it. */
async function readPage(world: World, { token }: StageDevice, after: number): Promise<number> {
  const { body } = await askLedger(world)(`/logs/main/events?after=${after}`, { token });
  return JSON.stringify(body).length;
}

/** What a page has around its events. */
const FRAME_BYTES = 1_000;
/** Together more than one push may hold. */
const LARGE_EDITS = 5;
const LARGE_CHARACTERS = 215_000;
