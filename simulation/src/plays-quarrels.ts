import type { Play } from './coda.ts';

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
];
