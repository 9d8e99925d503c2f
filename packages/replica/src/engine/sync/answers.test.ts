import { HEADERS } from '@holdfast/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  answer,
  type Bench,
  type BenchDevice,
  createBench,
  isLive,
  loginPage,
  never,
  refusal,
  type Script,
  twoLive,
  withHeaders,
} from './bench.fixture.ts';
import { namesEveryOperation } from './push.ts';

let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;

beforeEach(async () => {
  bench = createBench();
  [ana, ben] = await twoLive(bench);
});
afterEach(() => bench.close());

const isPush = (url: string) => url.includes('/push');

/** Answers the first so many pushes; later ones reach the ledger. */
function forPushes(times: number, run: Script): Script {
  let left = times;
  return (url, request, forward) => {
    if (!isPush(url) || left === 0) return undefined;
    left -= 1;
    return run(url, request, forward);
  };
}

const pushes = (device: BenchDevice) => device.sent.filter(({ path }) => path.endsWith('/push'));
const idsOf = (sent: { readonly body: unknown }) =>
  ((sent.body as { operations: { requestId: string }[] }).operations ?? []).map(({ requestId }) => requestId);

/** Whatever comes back, the work is in the log exactly once in the end, under its first request id. */
async function endsWellAfter(script: Script): Promise<void> {
  ana.script = script;
  const { action } = ana.create('once');
  await bench.until('owed', () => ana.owed().length === 1);
  await bench.until('answered', () => ana.owed().length === 0 && isLive(ana));
  expect(ana.state.outcome(action)).toMatchObject({ state: 'ordered', version: 1 });
  const tried = pushes(ana).map(idsOf);
  expect(new Set(tried.flat()).size).toBe(1);
  await bench.until('shown', () => ben.titles().length === 1);
  expect(ben.state.log('main')?.head).toBe(1);
}

test('[PM3 PM7 F71] an answer that is lost after the commit is asked for again, and accepted once', () =>
  endsWellAfter(
    forPushes(1, async (url, request, forward) => {
      await forward(url, request);
      throw new Error('The connection was reset.');
    }),
  ));

test('[PM3 F161] an answer that comes after its permit ended is ignored', () =>
  endsWellAfter(
    forPushes(1, async (url, request, forward) => {
      const late = await forward(url, request);
      return new Promise((resolve) => bench.time.at(90_000, () => resolve(late)));
    }),
  ));

test('[LG10] an answer without the echoed permit is nobody’s', () =>
  endsWellAfter(
    forPushes(1, (url, request, forward) => withHeaders(forward(url, request), { [HEADERS.permit]: null })),
  ));

test('[LG10] an answer that echoes another permit is nobody’s', () =>
  endsWellAfter(
    forPushes(1, (url, request, forward) => withHeaders(forward(url, request), { [HEADERS.permit]: '7' })),
  ));

test('[LG10 F83] an answer of another log is nobody’s', () =>
  endsWellAfter(
    forPushes(1, (url, request, forward) =>
      withHeaders(forward(url, request), { [HEADERS.logIdentity]: 'ab'.repeat(32) }),
    ),
  ));

test('[PM4] an answer that does not name every operation exactly once is no answer', () =>
  endsWellAfter(
    forPushes(1, async (url, request, forward) => {
      const given = await forward(url, request);
      const body = JSON.parse(await given.text());
      return {
        status: 200,
        headers: given.headers,
        text: () => Promise.resolve(JSON.stringify({ ...body, results: [...body.results, ...body.results] })),
      };
    }),
  ));

test('[JS3 F78] an answer cut in the middle leaves the outcome unknown', () =>
  endsWellAfter(
    forPushes(1, async (url, request, forward) => {
      const given = await forward(url, request);
      const text = await given.text();
      return { status: 200, headers: given.headers, text: () => Promise.resolve(text.slice(0, text.length - 3)) };
    }),
  ));

test('[LG10 F77] one page of a portal instead of an answer leaves the outcome unknown and asks nobody to sign in', async () => {
  await endsWellAfter(forPushes(1, () => loginPage()));
  expect(ana.told).toEqual([]);
});

test('[OB4] 503 and 429 wait, honour Retry-After within the cap, and leave the outcome unknown', async () => {
  let at = 0;
  const asked: number[] = [];
  ana.script = (url, request) => {
    if (!url.includes('/handshake') && !isPush(url)) return undefined;
    asked.push(bench.time.elapsedMs);
    at += 1;
    if (at === 1) return refusal(request, 429, 'rate-limited', { 'retry-after': '30' });
    if (at === 2) return refusal(request, 503, 'shutting-down', { 'retry-after': '100000' });
    return undefined;
  };
  ana.create('patient');
  await bench.until('sent', () => isLive(ana), 300_000);
  const [first, second, third] = asked as [number, number, number];
  expect(second - first).toBeGreaterThanOrEqual(30_000);
  expect(second - first).toBeLessThanOrEqual(32_000);
  expect(third - second).toBeGreaterThanOrEqual(59_000);
  expect(third - second).toBeLessThanOrEqual(61_000);
  expect(ana.owed()).toEqual([]);
});

test('[OB4] no retry comes earlier than one second or later than a minute, and a network that is back ends the waiting', async () => {
  ana.script = () => answer(502, 'bad gateway');
  ana.create('waits');
  await bench.time.advance(900_000);
  const at = ana.sent.map(({ atMs }) => atMs).slice(-8);
  const gaps = at.slice(1).map((ms, index) => ms - (at[index] as number));
  for (const gap of gaps) {
    expect(gap).toBeGreaterThanOrEqual(1_000);
    expect(gap).toBeLessThanOrEqual(61_000);
  }
  expect(new Set(gaps).size).toBeGreaterThan(1);
  expect(ana.sync.status).toMatchObject({ phase: 'offline', unsent: 1 });
  ana.script = null;
  ana.sync.kick('online');
  await bench.until('sent at once', () => isLive(ana), 500);
});

test('[OB2 F82] 413 of a proxy halves the next grouping until it passes, and nothing is refused', async () => {
  ana.network.rules.offline = true;
  ana.network.cut();
  for (let at = 0; at < 40; at += 1) ana.create(`note ${String(at).padStart(2, '0')} ${'x'.repeat(500)}`);
  ana.network.rules.offline = false;
  const bytesMax = 8_000;
  ana.script = (url, request) =>
    isPush(url) && (request.body?.length ?? 0) > bytesMax ? answer(413, 'too large') : undefined;
  ana.sync.kick('online');
  await bench.until('all sent', () => isLive(ana), 60_000);
  const sizes = pushes(ana).map(({ body }) => JSON.stringify(body).length);
  expect(sizes[0]).toBeGreaterThan(bytesMax);
  expect(sizes.at(-1)).toBeLessThanOrEqual(bytesMax);
  expect(ana.state.counts().attention).toBe(0);
  await bench.until('shown', () => ben.titles().length === 40);
});

test('[OB1 F82] one operation that is too large for a proxy waits alone, and the rest flows', async () => {
  ana.network.rules.offline = true;
  ana.network.cut();
  ana.create(`big ${'x'.repeat(50_000)}`);
  for (let at = 0; at < 5; at += 1) ana.create(`small ${at}`);
  ana.network.rules.offline = false;
  ana.script = (url, request) => (isPush(url) && (request.body?.length ?? 0) > 8_000 ? answer(413, '') : undefined);
  ana.sync.kick('online');
  await bench.until('the small ones are there', () => ben.titles().length === 5, 60_000);
  expect(ana.sync.status.unsent).toBe(1);
  expect(ana.state.counts().attention).toBe(0);
  ana.script = null;
  await bench.until('and the big one when it can', () => isLive(ana), 120_000);
});

test('[OB1] one operation that the ledger itself calls too large goes to the desk, and the rest flows', async () => {
  ana.network.rules.offline = true;
  ana.network.cut();
  const big = ana.create(`big ${'x'.repeat(50_000)}`);
  ana.create('small');
  ana.network.rules.offline = false;
  ana.script = (url, request) =>
    isPush(url) && (request.body?.length ?? 0) > 8_000 ? refusal(request, 413, 'too-large') : undefined;
  ana.sync.kick('online');
  await bench.until('the small one is there', () => ben.titles().length === 1, 60_000);
  await bench.until('the big one is at the desk', () => ana.state.outcome(big.action)?.state === 'refused');
  expect(ana.owed()).toEqual([]);
});

test('[PM6] a transport that proves that no byte left owes nothing', async () => {
  ana.script = forPushes(1, () => Promise.reject(Object.assign(new Error('refused'), { noByteLeft: true })));
  ana.create('never left');
  await bench.until('tried', () => pushes(ana).length === 1);
  await bench.time.advance(100);
  expect(ana.owed()).toEqual([]);
  await bench.until('sent', () => isLive(ana));
});

test('[PM12 F81] a request that brings no byte is given up, and asked again with more patience', async () => {
  ana.script = forPushes(2, () => never());
  ana.create('silent');
  await bench.until('sent', () => isLive(ana), 300_000);
  const [first, second] = pushes(ana);
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(20_000);
  expect(pushes(ana).length).toBe(3);
});

test('[LG8] a stale permit number is answered with a new permit at once, for the same operation', async () => {
  ana.script = forPushes(1, (_url, request) => refusal(request, 409, 'stale-permit'));
  ana.create('again');
  await bench.until('sent', () => isLive(ana), 500);
  const [first, second] = pushes(ana);
  expect(idsOf(first!)).toEqual(idsOf(second!));
  expect(second!.headers[HEADERS.permit]).not.toBe(first!.headers[HEADERS.permit]);
});

test('[IN3 F79] a page that does not continue our chain is fetched once more past all caches, and that one counts', async () => {
  ana.network.rules.offline = true;
  ana.network.cut();
  ben.create('unseen');
  await bench.until('sent', () => isLive(ben));
  ana.network.rules.offline = false;
  let spoiled = 0;
  ana.script = (url, request, forward) => {
    if (!url.includes('/events?') || spoiled > 0) return undefined;
    spoiled += 1;
    return spoil(forward(url, request));
  };
  ana.sync.kick('online');
  await bench.until('there', () => ana.titles().length === 1, 20_000);
  const pages = ana.sent.filter(({ path }) => path.endsWith('/events'));
  expect(pages.length).toBe(2);
  expect(pages[1]?.url).toContain('fresh=');
});

test('[F191 IN3] a page that stays wrong although the position is in the log stops reading, and throws nothing away', async () => {
  ana.network.rules.offline = true;
  ana.network.cut();
  ana.create('mine');
  ben.create('unseen');
  await bench.until('sent', () => isLive(ben));
  ana.network.rules.offline = false;
  ana.script = (url, request, forward) => {
    if (isPush(url)) return answer(503, '');
    return url.includes('/events?') ? spoil(forward(url, request)) : undefined;
  };
  ana.sync.kick('online');
  await bench.until('blocked', () => ana.state.log('main')?.blocked?.code === 'ledger-history-damaged', 300_000);
  expect(ana.sync.status).toMatchObject({ phase: 'blocked', unsent: 1 });
  expect(ana.titles()).toEqual(['mine']);
});

/** The same page with one letter of one event changed. */
async function spoil(response: ReturnType<Script>) {
  const given = await response!;
  const text = (await given.text()).replace('unseen', 'forged');
  return { status: given.status, headers: given.headers, text: () => Promise.resolve(text) };
}

test('[RP1] a replica that was cloned goes on under a new id, and its work is accepted once', async () => {
  const before = ana.state.identity.replicaId;
  ana.script = forPushes(1, (_url, request) => refusal(request, 409, 'replica-cloned'));
  ana.create('kept');
  await bench.until('sent', () => isLive(ana));
  expect(ana.state.identity.replicaId).not.toBe(before);
  await bench.until('shown', () => ben.titles().length === 1);
});

test('[RP1] a file that is called a clone again and again stops asking, and says why', async () => {
  ana.script = (_url, request) => refusal(request, 409, 'replica-cloned');
  ana.create('kept');
  await bench.until('blocked', () => ana.sync.status.phase === 'blocked');
  expect(ana.sync.status.reason?.code).toBe('replica-cloned');
  const before = ana.sent.length;
  await bench.time.advance(50_000);
  expect(ana.sent.length).toBe(before);
  expect(ana.state.counts().unsent).toBe(1);
});

test('[RP1 I22] a host whose file another one has taken over stops, and changes nothing more', async () => {
  ana.coordinator.raiseGeneration();
  ana.script = (_url, request) => refusal(request, 409, 'stale-generation');
  ben.create('news');
  ana.sync.kick('manual');
  await bench.until('stopped', () => ana.sync.status.phase === 'stopped');
  expect(ana.sync.status.reason?.code).toBe('outranked');
  const before = ana.sent.length;
  await bench.time.advance(120_000);
  expect(ana.sent.length).toBe(before);
});

test('[F109 LG12] a ledger with no protocol in common is told apart, and work goes on', async () => {
  ana.script = (_url, request) => refusal(request, 426, 'update-needed');
  ana.create('local');
  await bench.until('said', () => ana.sync.status.phase === 'update-needed');
  expect(ana.titles()).toEqual(['local']);
  ana.script = null;
  await bench.until('goes on by itself', () => isLive(ana));
});

test('[RT3 F114] a reader whose writing is refused goes on reading, and nothing is deleted', async () => {
  ana.script = (url, request) => (isPush(url) ? refusal(request, 403, 'not-allowed') : undefined);
  ana.create('mine');
  await bench.until('said', () => ana.sync.status.phase === 'blocked');
  ben.create('theirs');
  await bench.until('still reading', () => ana.titles().length === 2, 5_000);
  expect(ana.sync.status).toMatchObject({ unsent: 1, reason: { code: 'not-allowed' } });
  ana.script = null;
  await bench.until('tried again', () => isLive(ana), 70_000);
});

test('[PM4] an answer names every operation exactly once, and nothing else', () => {
  const asked = ['a', 'b'].map((requestId) => ({
    requestId,
    actionId: requestId,
    events: [],
    merge: 'fields' as const,
  }));
  const named = (...ids: string[]) =>
    namesEveryOperation(
      asked,
      ids.map((requestId) => ({ requestId, status: 'refused' as const, code: 'internal' as const })),
    );
  expect([named('b', 'a'), named('a'), named(), named('a', 'a'), named('a', 'c'), named('a', 'b', 'b')]).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
  ]);
});

test('[PM5 I21] an answer that could not be written is owed at once, and asked for again', async () => {
  const state = ana.state as { recordResults: BenchDevice['state']['recordResults'] };
  const real = state.recordResults.bind(ana.state);
  let owedAfter: readonly string[] | null = null;
  state.recordResults = () => {
    state.recordResults = real;
    ana.state.onChange(() => {
      owedAfter ??= ana.owed();
    });
    throw new Error('disk I/O error');
  };
  const { action } = ana.create('not written');
  await bench.until('failed', () => owedAfter !== null);
  expect(owedAfter).toHaveLength(1);
  await bench.until('answered', () => ana.state.outcome(action)?.state === 'ordered');
  expect(ana.owed()).toEqual([]);
});
