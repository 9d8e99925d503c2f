import { uuidv7 } from '@holdfast/core';
import { createSeededRandom } from '@holdfast/replica/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Browser, createBrowser } from '../scenarios/src/tabs.fixture.ts';

/** Many callers of one host, each behind a port that clones its messages. */
let browser: Browser;
beforeEach(() => {
  browser = createBrowser();
});
afterEach(() => browser.close());

const TABS = 20;

async function openTabs() {
  let sockets = 0;
  const { accept } = browser.endpoint;
  Object.assign(browser.endpoint, {
    accept: (...given: Parameters<typeof accept>) => {
      sockets += 1;
      return accept(...given);
    },
  });
  const profile = browser.profile('ana');
  const { host, network } = profile.start();
  const tabs = await Promise.all(Array.from({ length: TABS }, () => profile.tab()));
  const lives = tabs.map((tab) =>
    tab.live((db) => db.selectFrom('issue').select((of) => of.fn.countAll<number>().as('n'))),
  );
  for (const live of lives) live.subscribe(() => undefined);
  await browser.until('at rest', () => host.status.phase === 'live' && host.state.counts().unsent === 0);
  await browser.time.advance(5_000);
  const shows = (n: number) => lives.every((live) => live.current.rows[0]?.n === n);
  return { profile, host, network, tabs, shows, sockets: () => sockets };
}

// Seen to fail with host.ts waking the sync engine for each caller that comes.
test('[F65 SY1] twenty tabs: one socket and one handshake for all of them, and one push for what they commit in one moment', async () => {
  const { host, network, tabs, shows, sockets } = await openTabs();
  expect([sockets(), network.counts.requests]).toEqual([1, 1]);
  const commits = tabs.map((tab, at) => tab.commit((tx) => tx.issue.create({ title: `${at}` })) as Promise<unknown>);
  await browser.within(5_000, 'all committed', Promise.all(commits));
  await browser.until('sent and shown', () => host.state.counts().unsent === 0 && shows(TABS), 5_000);
  expect([sockets(), network.counts.requests, await browser.eventsInLog()]).toEqual([1, 2, TABS]);
});

// Seen to fail with live-queries.ts running the queries after every transaction, and not once for what gathered: 20,160
// messages instead of 300.
test('[F59 LQ6] a thousand commits at once: each tab hears of the newest state, as often as of ten', async () => {
  const { profile, host, shows } = await openTabs();
  const random = createSeededRandom(5);
  let messages = 0;
  profile.onMessage = () => {
    messages += 1;
  };
  let total = 0;
  const heardOf = async (count: number): Promise<number> => {
    messages = 0;
    for (let nth = 0; nth < count; nth += 1) {
      const [actionId, id] = [uuidv7(nth, random), uuidv7(nth, random)];
      const changes = [{ do: 'create' as const, entity: 'issue', id, fields: { title: `${nth}` } }];
      host.state.commit({ actionId, log: 'main', changes, seen: [], reads: [] });
    }
    total += count;
    await browser.until('sent and shown', () => host.state.counts().unsent === 0 && shows(total));
    return messages;
  };
  const ofTen = await heardOf(10);
  expect(ofTen).toBeGreaterThanOrEqual(TABS);
  // A push takes 512 of them, so there is one more to tell of.
  expect(await heardOf(1_000)).toBeLessThanOrEqual(2 * ofTen);
});
