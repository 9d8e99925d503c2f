import type { WireResponse } from '@holdfast/core';
import type { Play } from './coda.ts';
import type { Meddler } from './device.ts';
import { REFUSED_TITLE } from './ledger.ts';
import { addDevice } from './world.ts';

/** Somebody stands on the way, or something happens between a request and its answer. */
export const kindOf = (url: string): string => new URL(url).pathname.split('/').at(-1) as string;

/** The same answer with other bytes, another status, or another kind of content. */
export const changed = (
  response: WireResponse,
  to: {
    readonly text?: (text: string) => string;
    readonly status?: number;
    /** By lower-case name. */
    readonly headers?: Readonly<Record<string, string>>;
  },
): WireResponse => ({
  status: to.status ?? response.status,
  headers: { get: (name) => to.headers?.[name.toLowerCase()] ?? response.headers.get(name) },
  text: async () => (to.text ?? String)(await response.text()),
});

/** Changes the first answer of one kind that it can be done to; `how` returns null where it cannot. */
export const once = (kind: string, how: (response: WireResponse, text: string) => WireResponse | null): Meddler => {
  let isDone = false;
  return async (request, honest) => {
    const response = await honest();
    if (isDone || kindOf(request.url) !== kind) return response;
    const text = await response.text();
    const other = how(response, text);
    isDone = other !== null;
    return other ?? changed(response, { text: () => text });
  };
};

interface Page {
  readonly events: { change: { set?: Record<string, unknown> } }[];
}

export const NETWORK: readonly Play[] = [
  {
    name: 'an answer that is lost',
    invariant: 'I04',
    play: async ({ ana, ben, random, ...stage }) => {
      let id = '';
      ana.network.next('answer-lost', 'push');
      stage.commit(ana, (tx) => {
        id = tx.note.create({ title: 'first' });
      });
      for (let at = 0; at < 6; at += 1) {
        await stage.world.time.advance(random.pick([5, 400, 11_000]));
        stage.commit(ana, (tx) => tx.note.update(id as never, { title: `edit ${at}`, votes: { by: 1 } }));
      }
      await stage.rest();
      const { title, votes } = stage.row(ben, id) ?? {};
      stage.expect(`${title}, ${votes}` === 'edit 5, 6', `after a lost answer ben shows ${title}, ${votes}`);
    },
  },
  {
    name: 'a crash with a push on its way',
    invariant: 'I21',
    play: async ({ ana, ben, random, ...stage }) => {
      const id = await stage.note();
      ana.network.rules.delayMs = [20, 40];
      stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await stage.world.time.advance(random.pick([1, 25, 45, 70]));
      ana.crash();
      ana.network.rules.delayMs = [1, 5];
      ana.start();
      await stage.rest();
      stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'a newcomer while others write',
    invariant: 'I12',
    play: async ({ ben, world, ...stage }) => {
      const id = await stage.note();
      const late = addDevice(world, 'zoe', `late-${world.devices.length}`);
      late.network.rules.delayMs = [100, 300];
      late.start();
      for (let votes = 0; votes < 20; votes += 1) {
        stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await world.time.advance(60);
      }
      await stage.rest();
      // A state that came out wrong is found, and fetched once more: it must not come out wrong.
      const wrong = late.engine?.database
        .prepare(`SELECT count(*) AS n FROM main.hf_journal WHERE facts LIKE '%"differs"%'`)
        .get()?.['n'];
      stage.expect(wrong === 0, `what a newcomer fetched was another state than the ledger’s, ${wrong} times`);
      const votes = stage.row(late, id)?.['votes'];
      stage.expect(votes === 20, `a newcomer shows ${votes} of 20 votes`);
    },
  },
  {
    name: 'a newcomer who dies in the middle of a first state',
    invariant: 'I29',
    play: async ({ world, ...stage }) => {
      const id = await stage.note();
      const late = addDevice(world, 'kim', `late-${world.devices.length}`);
      late.network.rules.delayMs = [100, 100];
      late.start();
      const owed = () =>
        late.engine?.database.prepare("SELECT count(*) AS n FROM main.hf_obligation WHERE class = 'bootstrap'").get()?.[
          'n'
        ];
      const isAsking = () =>
        late.engine?.database
          .prepare("SELECT 1 FROM main.hf_permit WHERE class = 'bootstrap' AND ended_at IS NULL")
          .get() !== undefined;
      stage.expect(await world.time.until(isAsking, 10_000), 'a newcomer asks for no state');
      late.crash();
      late.start();
      stage.expect(owed() !== 0, 'a first state was asked for, and nothing is owed');
      late.network.rules.delayMs = [1, 5];
      await stage.rest();
      stage.expect(stage.row(late, id)?.['title'] === 'new', 'a newcomer who died once never comes');
    },
  },
  {
    name: 'work on refused work',
    invariant: 'I29',
    play: async ({ ana, ben, ...stage }) => {
      let id = '';
      const refused = stage.commit(ana, (tx) => {
        id = tx.note.create({ title: REFUSED_TITLE });
      });
      const later = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await stage.rest();
      stage.expect(stage.outcome(ana, refused) === 'refused', `a refused title: ${stage.outcome(ana, refused)}`);
      stage.expect(stage.outcome(ana, later) !== 'ordered', 'what builds on refused work is called ordered');
      stage.expect(stage.row(ana, id) === undefined, 'refused work is shown');
      stage.expect(stage.row(ben, id) === undefined, 'refused work is shown elsewhere');
      // What built on it is asked about by itself, once that is gone (ST3).
      for (let asked = 0; asked < 2; asked += 1) {
        ana.engine?.state.discard(stage.desk(ana, id).map((entry) => entry.id));
        await stage.rest();
      }
      const ends = [refused, later].map((action) => stage.outcome(ana, action));
      stage.expect(ends.join() === 'discarded,discarded', `what was discarded is ${ends}`);
    },
  },
  {
    name: 'a page with a hole',
    invariant: 'I07',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      const repairs = () =>
        ana.engine?.database.prepare("SELECT count(*) AS n FROM main.hf_journal WHERE kind = 'repair'").get()?.['n'];
      const before = repairs();
      stage.away(ana);
      for (let votes = 0; votes < 4; votes += 1)
        stage.commit(ben, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
      await stage.world.time.advance(2_000);
      ana.meddler = once('events', (response, text) => {
        const page = JSON.parse(text) as Page;
        if (page.events.length < 2) return null;
        page.events.shift();
        return changed(response, { text: () => JSON.stringify(page) });
      });
      await stage.back(ana);
      await stage.rest();
      ana.meddler = null;
      stage.expect(
        stage.row(ana, id)?.['votes'] === 4,
        `behind a hole there are ${stage.row(ana, id)?.['votes']} votes`,
      );
      stage.expect(repairs() === before, 'a page with a hole was taken for another history');
    },
  },
  {
    name: 'a page that was changed on its way',
    invariant: 'I07',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      stage.commit(ben, (tx) => tx.note.update(id as never, { title: 'honest' }));
      await stage.world.time.advance(2_000);
      ana.meddler = once('events', (response, text) =>
        text.includes('honest') ? changed(response, { text: () => text.replaceAll('honest', 'forged') }) : null,
      );
      await stage.back(ana);
      await stage.world.time.advance(500);
      stage.expect(stage.row(ana, id)?.['title'] !== 'forged', 'a forged page is shown');
      ana.meddler = null;
      await stage.rest();
      stage.expect(stage.row(ana, id)?.['title'] === 'honest', 'after a forged page the log is not shown');
    },
  },
  {
    name: 'an answer that leaves work out',
    invariant: 'I13',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      stage.away(ana);
      const actions = [1, 2, 3].map(() => stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } })));
      ana.meddler = once('push', (response, text) => {
        const answer = JSON.parse(text) as { readonly results?: unknown[] };
        if ((answer.results?.length ?? 0) < 2) return null;
        answer.results?.pop();
        return changed(response, { text: () => JSON.stringify(answer) });
      });
      await stage.back(ana);
      await stage.rest();
      ana.meddler = null;
      const ends = actions.map((action) => stage.outcome(ana, action));
      stage.expect(
        ends.every((end) => end === 'ordered'),
        `of three commits became ${ends}`,
      );
      stage.expect(stage.row(ben, id)?.['votes'] === 3, `three votes count ${stage.row(ben, id)?.['votes']}`);
    },
  },
  {
    name: 'a gateway that gives up',
    invariant: 'I21',
    play: async ({ ana, ben, ...stage }) => {
      const id = await stage.note();
      ana.meddler = once('push', (response) =>
        changed(response, {
          status: 502,
          text: () => JSON.stringify({ code: 'not-allowed', message: 'gateway', requestId: 'gateway' }),
        }),
      );
      const action = stage.commit(ana, (tx) => tx.note.update(id as never, { body: 'done' }));
      await stage.world.time.advance(20);
      stage.expect(
        stage.outcome(ana, action) !== 'refused',
        'work was done, and a gateway’s 502 is taken for a refusal',
      );
      await stage.rest();
      ana.meddler = null;
      stage.expect(stage.outcome(ana, action) === 'ordered', `after a 502: ${stage.outcome(ana, action)}`);
      stage.expect(stage.row(ben, id)?.['body'] === 'done', 'after a 502 ben does not see what was done');
    },
  },
];

/** Whoever answers with what the ledger said once: as a page of a hotel, or to another question than it was asked. */
export const STALE_ANSWERS: readonly Play[] = (['text/html', 'application/json'] as const).map((type) => ({
  name: `yesterday’s answers, as ${type}`,
  invariant: 'I30',
  play: async ({ ana, ben, world, ...stage }) => {
    const id = await stage.note();
    const kept = new Map<string, { readonly response: WireResponse; readonly text: string }>();
    ana.meddler = async ({ url }, honest) => {
      const response = await honest();
      const text = await response.text();
      kept.set(kindOf(url), { response, text });
      return changed(response, { text: () => text });
    };
    stage.away(ana);
    await stage.back(ana);
    await stage.rest();
    ana.network.rules.portal = true;
    ana.network.cut();
    ana.meddler = async ({ url }) => {
      const stale = kept.get(kindOf(url));
      await new Promise<void>((resolve) => void world.time.at(2, resolve));
      if (stale === undefined) throw new Error('The connection was reset.');
      return changed(stale.response, { text: () => stale.text, headers: { 'content-type': type } });
    };
    stage.commit(ben, (tx) => tx.note.update(id as never, { body: 'news' }));
    for (let waited = 0; waited < 8; waited += 1) {
      await world.time.advance(30_000);
      const { phase } = ana.engine?.sync.status ?? {};
      stage.expect(phase !== 'live' || stage.row(ana, id)?.['body'] === 'news', 'says live on yesterday’s answers');
    }
    ana.meddler = null;
    ana.network.rules.portal = false;
    ana.engine?.sync.kick('online');
    await stage.rest();
    stage.expect(stage.row(ana, id)?.['body'] === 'news', 'does not come back from yesterday’s answers');
  },
}));
