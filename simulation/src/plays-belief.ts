import { HEADERS, type WireResponse } from '@holdfast/core';
import type { Play } from './coda.ts';
import type { Meddler } from './device.ts';
import { changed, kindOf } from './plays-network.ts';
import type { StageDevice } from './stage.ts';
import { addDevice } from './world.ts';

/**
 * What a device may believe of an answer, and what it may not (LG10, PM4, DG3): each of these is what the ledger said, but for
 * one mark that says that it is no answer to this request, of this log, in this history.
 */
export const BELIEF: readonly Play[] = [
  ...(
    [
      ['an answer that is no JSON', marked({ 'content-type': 'text/html; charset=utf-8' })],
      ['an answer of another log', marked({ [HEADERS.logIdentity.toLowerCase()]: 'f'.repeat(64) })],
      ['an answer to another request', marked({ [HEADERS.permit.toLowerCase()]: '1' })],
      ['an answer in another history', inAnotherHistory],
    ] as const
  ).map(
    ([name, alter]): Play => ({
      name,
      invariant: 'I30',
      play: async ({ ana, ben, world, ...stage }) => {
        const id = await stage.note();
        stage.away(ana);
        stage.commit(ben, (tx) => tx.note.update(id as never, { body: 'news' }));
        const action = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await world.time.advance(2_000);
        let altered = 0;
        ana.meddler = async ({ url }, honest) => {
          const response = await honest();
          if (kindOf(url) !== 'events' && kindOf(url) !== 'push') return response;
          altered += 1;
          return alter(response);
        };
        await stage.back(ana);
        // A socket would bring it by itself.
        for (let waited = 0; waited < 10 || (altered === 0 && waited < 90); waited += 1) {
          ana.network.cut();
          await world.time.advance(1_000);
        }
        stage.expect(altered > 0, 'nothing was asked');
        stage.expect(stage.row(ana, id)?.['body'] !== 'news', `${name} was believed`);
        stage.expect(stage.outcome(ana, action) !== 'ordered', `what ${name} says of a commit was believed`);
        ana.meddler = null;
        await stage.rest();
        const { body, votes } = stage.row(ana, id) ?? {};
        stage.expect(`${body}, ${votes}` === 'news, 1', `after ${name} ana shows ${body}, ${votes}`);
      },
    }),
  ),
  {
    name: 'an answer that says less than was asked',
    invariant: 'I21',
    play: async ({ ana, ben, ...stage }) => {
      const ids = [await stage.note(), await stage.note(), await stage.note()];
      const before = journaled(ana, 'fault');
      stage.away(ana);
      const actions = ids.map((id) => stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } })));
      // Somebody on the way cuts the last one off, so that the ledger never hears of it, and nor does the device.
      let isDone = false;
      let wasTaken = false;
      ana.meddler = async (request, honest) => {
        if (isDone) {
          wasTaken = stage.outcome(ana, actions[0] as string) === 'ordered';
          ana.meddler = null;
        }
        if (isDone || kindOf(request.url) !== 'push') return honest();
        const body = JSON.parse(request.body ?? '{}') as { operations: unknown[] };
        if (body.operations.length < 2) return honest();
        isDone = true;
        body.operations.pop();
        return honest({ body: JSON.stringify(body) });
      };
      await stage.back(ana);
      await stage.rest();
      const stumbled = journaled(ana, 'fault');
      stage.expect(stumbled === before, 'over an answer that does not speak of every commit a device stumbled');
      stage.expect(isDone && !wasTaken, 'an answer that does not speak of every commit was taken for one');
      const ends = actions.map((action) => stage.outcome(ana, action));
      stage.expect(ends.join() === 'ordered,ordered,ordered', `of three commits became ${ends}`);
      for (const id of ids) stage.expect(stage.row(ben, id)?.['votes'] === 1, 'a vote that was left out is gone');
    },
  },
  {
    name: 'pages of one event each',
    invariant: 'I08',
    play: async ({ ana, ben, world, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      for (let votes = 0; votes < 4; votes += 1)
        stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await world.time.advance(2_000);
      const refetched: string[] = [];
      ana.meddler = smallPages((url) => {
        if (url.includes('fresh=')) refetched.push(url);
      });
      await stage.back(ana);
      await stage.rest();
      ana.meddler = null;
      stage.expect(refetched.length === 0, 'a page that ends below the head was not continued where it ends');
      stage.expect(stage.row(ana, id)?.['votes'] === 4, `four votes count ${stage.row(ana, id)?.['votes']}`);
    },
  },
  {
    name: 'a first state in small pages',
    invariant: 'I12',
    play: async ({ world, ...stage }) => {
      const ids = [
        await stage.note({ title: 'one' }),
        await stage.note({ title: 'two' }),
        await stage.note({ title: 'three' }),
      ];
      const late = addDevice(world, 'zoe', `late-${world.devices.length}`);
      late.meddler = smallPages();
      late.start();
      await stage.rest();
      late.meddler = null;
      const wrong = late.engine?.database
        .prepare(`SELECT count(*) AS n FROM main.hf_journal WHERE facts LIKE '%"differs"%'`)
        .get()?.['n'];
      stage.expect(wrong === 0, `what came in small pages was another state than the ledger’s, ${wrong} times`);
      const titles = ids.map((id) => stage.row(late, id)?.['title']);
      stage.expect(titles.join() === 'one,two,three', `a newcomer shows ${titles}`);
    },
  },
  {
    name: 'somebody else’s session',
    invariant: 'I24',
    play: async ({ world, ben, ...stage }) => {
      const late = addDevice(world, 'ana', `late-${world.devices.length}`);
      let id = '';
      stage.away(late);
      late.start();
      const action = stage.commit(late, (tx) => {
        id = tx.note.create({ title: 'of ana' });
      });
      // The app shows the credential of whoever used it last.
      late.meddler = (request, honest) =>
        honest({ headers: { ...request.headers, authorization: 'Bearer ben/writer/of-another' } });
      await stage.back(late);
      await world.time.advance(10_000);
      stage.expect(stage.row(ben, id) === undefined, 'work of one person was sent in the name of another');
      const { phase } = late.engine?.sync.status ?? {};
      stage.expect(phase === 'other-account', `who shows the credential of somebody else says ${phase}`);
      late.meddler = null;
      late.signIn();
      await stage.rest();
      stage.expect(stage.outcome(late, action) === 'ordered', `in his own name: ${stage.outcome(late, action)}`);
      stage.expect(stage.row(ben, id)?.['title'] === 'of ana', 'work in his own name does not arrive');
    },
  },
];

const journaled = ({ engine }: StageDevice, kind: string): unknown =>
  engine?.database.prepare('SELECT count(*) AS n FROM main.hf_journal WHERE kind = ?').get(kind)?.['n'];

function marked(headers: Readonly<Record<string, string>>) {
  return (response: WireResponse): WireResponse => changed(response, { headers });
}

function inAnotherHistory(response: WireResponse): WireResponse {
  return changed(response, { text: (text) => text.replace(/"epoch":"[^"]*"/, '"epoch":"another"') });
}

/** A ledger may send less than was asked for: here one event or entity at a time. `asked` hears each such request. */
const smallPages =
  (asked: (url: string) => void = () => undefined): Meddler =>
  (request, honest): Promise<WireResponse> => {
    if (kindOf(request.url) !== 'events' && kindOf(request.url) !== 'entities') return honest();
    asked(request.url);
    return honest({ url: request.url.replace(/limit=\d+/, 'limit=1') });
  };
