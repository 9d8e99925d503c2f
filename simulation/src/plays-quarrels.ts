import type { Tx } from '@holdfast/core';
import type { Play } from './coda.ts';
import type { WorldSchema } from './world.ts';

/** Two people change one thing, neither knowing of the other. How it must end follows from the schema alone. */
export const QUARRELS: readonly Play[] = [
  {
    name: 'two titles',
    invariant: 'I13',
    play: async ({ ana, ben, random, ...stage }) => {
      const id = await stage.note();
      stage.away(ana, ben);
      const first = stage.commit(ana, (tx) => tx.note.update(id as never, { title: 'of ana' }));
      const second = stage.commit(ben, (tx) => tx.note.update(id as never, { title: 'of ben' }));
      await stage.back(...(random.chance(0.5) ? [ana, ben] : [ben, ana]));
      await stage.rest();
      const ends = [stage.outcome(ana, first), stage.outcome(ben, second)].sort();
      stage.expect(ends.join() === 'needs-attention,ordered', `of two titles became ${ends}`);
      const loser = stage.desk(ana, id).length > 0 ? ana : ben;
      const [entry] = stage.desk(loser, id);
      stage.expect(entry?.kind === 'clash', `nobody is asked about two titles: ${JSON.stringify(entry)}`);
      if (entry === undefined) return;
      const choice = random.pick(['mine', 'theirs'] as const);
      loser.engine?.state.resolve({ ids: [entry.id], choice, revision: entry.revision });
      await stage.rest();
      const isAnas = (loser === ana) === (choice === 'mine');
      const title = isAnas ? 'of ana' : 'of ben';
      for (const device of [ana, ben])
        stage.expect(stage.row(device, id)?.['title'] === title, `${device.name} shows another title than ${title}`);
    },
  },
  {
    name: 'an edit beside a deletion',
    invariant: 'I13',
    play: async ({ ana, ben, random, ...stage }) => {
      const id = await stage.note();
      stage.away(ana, ben);
      stage.commit(ana, (tx) => tx.note.delete(id as never));
      stage.commit(ben, (tx) => tx.note.update(id as never, { body: 'kept' }));
      await stage.back(...(random.chance(0.5) ? [ana, ben] : [ben, ana]));
      await stage.rest();
      for (const device of [ana, ben])
        stage.expect(stage.row(device, id)?.['body'] === 'kept', `${device.name} lost an edit to a deletion`);
    },
  },
  {
    name: 'an afternoon offline',
    invariant: 'I13',
    play: async ({ ana, ben, random, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      const titles = ['a draft', 'a second draft', 'the last'];
      const actions = titles.map((title) =>
        stage.commit(ana, (tx) => tx.note.update(id as never, { title, votes: { by: 1 } })),
      );
      const [high, low] = random.chance(0.5) ? [ana, ben] : [ben, ana];
      stage.commit(high, (tx) => tx.note.update(id as never, { level: 4 }));
      stage.commit(low, (tx) => tx.note.update(id as never, { level: 2 }));
      stage.commit(ben, (tx) => tx.note.update(id as never, { body: 'meanwhile', tags: { add: ['t'] } }));
      await stage.rest().catch(() => undefined);
      await stage.back(ana);
      await stage.rest();
      const ends = actions.map((action) => stage.outcome(ana, action));
      stage.expect(
        ends.every((end) => end === 'ordered'),
        `who worked alone on a title is asked about it: ${ends}`,
      );
      for (const device of [ana, ben]) {
        const { title, votes, level, body } = stage.row(device, id) ?? {};
        const shown = `${title}, ${votes}, ${level}, ${body}`;
        stage.expect(shown === 'the last, 3, 4, meanwhile', `${device.name} shows ${shown}`);
      }
    },
  },
  {
    name: 'a value overwritten',
    invariant: 'I13',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      stage.away(ben);
      stage.commit(ben, (tx) => tx.note.update(id as never, { status: 'closed' }));
      stage.commit(ana, (tx) => tx.note.update(id as never, { status: 'doing' }));
      await stage.world.time.advance(2_000);
      await stage.back(ben);
      await stage.rest();
      for (const device of [ana, ben])
        stage.expect(
          stage.row(device, id)?.['status'] === 'closed',
          `${device.name} shows another than the last status`,
        );
      const kinds = stage.desk(ana, id).map(({ kind }) => kind);
      stage.expect(kinds.join() === 'overwritten', `whose status was overwritten is told ${kinds.join() || 'nothing'}`);
    },
  },
  {
    name: 'work on parked work',
    invariant: 'I17',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      const parked = stage.commit(ana, (tx) => tx.note.update(id as never, { title: 'of ana' }));
      const later = stage.commit(ana, (tx) => tx.note.update(id as never, { body: 'on top' }));
      stage.commit(ben, (tx) => tx.note.update(id as never, { title: 'of ben' }));
      await stage.world.time.advance(2_000);
      await stage.back(ana);
      await stage.rest();
      stage.expect(stage.outcome(ana, parked) === 'needs-attention', `two titles: ${stage.outcome(ana, parked)}`);
      stage.expect(stage.outcome(ana, later) !== 'ordered', 'what builds on parked work was sent without it');
      stage.expect(stage.row(ben, id)?.['body'] === null, 'what builds on parked work is shown elsewhere');
      const [entry] = stage.desk(ana, id);
      if (entry === undefined) return;
      ana.engine?.state.resolve({ ids: [entry.id], choice: 'mine', revision: entry.revision });
      await stage.rest();
      const { title, body } = stage.row(ben, id) ?? {};
      stage.expect(`${title}, ${body}` === 'of ana, on top', `after a decision ben shows ${title}, ${body}`);
    },
  },
  {
    name: 'work on parked work, taken back',
    invariant: 'I13',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      const parked = stage.commit(ana, (tx) => tx.note.update(id as never, { title: 'of ana' }));
      const later = stage.commit(ana, (tx) => tx.note.update(id as never, { body: 'on top' }));
      stage.commit(ben, (tx) => tx.note.update(id as never, { title: 'of ben' }));
      await stage.world.time.advance(2_000);
      await stage.back(ana);
      await stage.rest();
      // What has no effect is taken back by discarding it, the newest first.
      const ends = [later, parked].map((action) => {
        ana.takeBack({ skipChanged: false });
        return stage.outcome(ana, action);
      });
      stage.expect(ends.join() === 'discarded,discarded', `what waits and is taken back is ${ends}`);
      await stage.rest();
      for (const device of [ana, ben]) {
        const { title, body } = stage.row(device, id) ?? {};
        stage.expect(`${title}, ${body}` === 'of ben, null', `${device.name} shows ${title}, ${body}`);
      }
    },
  },
  {
    name: 'either one first',
    invariant: 'I15',
    play: async ({ ana, ben, random, ...stage }) => {
      const pairs = Array.from({ length: PAIRS }, () => [random.pick(EDITS), random.pick(EDITS)] as const);
      const ends: string[][] = [];
      for (const order of [
        [ana, ben],
        [ben, ana],
      ]) {
        const ids: string[] = [];
        for (const _ of pairs) ids.push(await stage.note({ title: 'new' }));
        for (const id of ids)
          stage.commit(ana, ({ note }) => note.update(id as never, { body: 'b', tags: { add: ['a'] } }));
        await stage.rest();
        stage.away(ana, ben);
        for (const [at, [anas, bens]] of pairs.entries()) {
          const id = ids[at] as never;
          stage.commit(ana, ({ note }) => anas.edit(note, id));
          stage.commit(ben, ({ note }) => bens.edit(note, id));
        }
        for (const device of order) {
          await stage.back(device);
          await stage.world.time.advance(5_000);
        }
        await stage.rest();
        ends.push(
          ids.map((id) => {
            const asks = [ana, ben].some((device) => stage.desk(device, id).some(({ kind }) => kind === 'clash'));
            const { title, body, level, tags, votes } = stage.row(ana, id) ?? {};
            return asks ? 'a question' : JSON.stringify({ title, body, level, tags, votes });
          }),
        );
      }
      for (const [at, [anas, bens]] of pairs.entries()) {
        const [one, other] = [ends[0]?.[at], ends[1]?.[at]];
        stage.expect(
          one === other,
          `ana ${anas.name} and ben ${bens.name}: if ana comes first it ends as ${one}, else as ${other}`,
        );
      }
    },
  },
];

const PAIRS = 4;

/** One change of a note that has the title `new`, a body and a tag. */
const EDITS: readonly {
  readonly name: string;
  edit(note: Tx<WorldSchema>['note'], id: Parameters<Tx<WorldSchema>['note']['delete']>[0]): void;
}[] = [
  { name: 'sets a title', edit: (note, id) => note.update(id, { title: 'x' }) },
  { name: 'sets another title', edit: (note, id) => note.update(id, { title: 'y' }) },
  { name: 'sets the body', edit: (note, id) => note.update(id, { body: 'x' }) },
  { name: 'clears the body', edit: (note, id) => note.update(id, { body: null }) },
  { name: 'adds a tag', edit: (note, id) => note.update(id, { tags: { add: ['c'] } }) },
  { name: 'adds the tag', edit: (note, id) => note.update(id, { tags: { add: ['a'] } }) },
  { name: 'removes the tag', edit: (note, id) => note.update(id, { tags: { remove: ['a'] } }) },
  { name: 'raises the level', edit: (note, id) => note.update(id, { level: 3 }) },
  { name: 'raises the level more', edit: (note, id) => note.update(id, { level: 4 }) },
  { name: 'votes', edit: (note, id) => note.update(id, { votes: { by: 1 } }) },
  { name: 'votes and sets a title', edit: (note, id) => note.update(id, { title: 'z', votes: { by: 1 } }) },
  { name: 'deletes it', edit: (note, id) => note.delete(id) },
];
