import { canonical, chainStart, type EventDraft, type Json, LIMITS, randomHex, uuidv7 } from '@holdfast/core';
import { afterEach, expect, test } from 'vitest';
import { nodeDigest } from '../../adapters/node/platform.ts';
import { createSeededRandom } from '../../testing/seeded-random.ts';
import { type Bench, type BenchDevice, createBench, isLive } from './bench.fixture.ts';
import { stage } from './staged-parts.ts';

/** PG2: an operation larger than a page, from a writer without a replica, at a ledger whose operator allows it. */
let bench: Bench;
afterEach(() => bench.close());

const ACTOR = { account: 'writer', role: 'writer' } as const;
const REF = { workspace: 'acme', log: 'main' };
const random = createSeededRandom(5);
const newId = () => uuidv7(Date.UTC(2026, 10, 30), random);
const LARGE = 'x'.repeat(200_000);

/** One operation of six notes of 200 kB each: two parts. Its notes are called `large 0` to `large 5`. */
async function appendLarge(): Promise<void> {
  const { engine } = bench.endpoint.current;
  const report = await engine.verify(REF);
  const { logs } = JSON.parse(((await engine.logs(ACTOR, 'acme')) as { body: string }).body) as {
    logs: { log: string; epoch: string; identity: string }[];
  };
  const main = logs.find(({ log }) => log === 'main');
  const events = Array.from(
    { length: 6 },
    (_, at): EventDraft => ({
      at: '2026-11-30T00:00:00.000Z',
      base: 0,
      change: { fields: { body: LARGE, title: `large ${at}` }, op: 'create' },
      entityId: newId(),
      entityType: 'note',
      id: newId(),
      salt: randomHex(random, 16),
      type: 'note.created',
    }),
  );
  const version = report?.events ?? 0;
  const chain = version === 0 ? chainStart(main?.identity ?? '', nodeDigest) : report?.chain;
  const pushed = engine.push(
    ACTOR,
    REF,
    JSON.parse(
      canonical({
        position: { epoch: main?.epoch ?? '', version, chain: chain ?? '' },
        replica: { id: randomHex(random, 16), generation: 1, instance: randomHex(random, 16), permit: 1 },
        operations: [{ requestId: newId(), actionId: newId(), merge: 'fields', events: events as unknown as Json[] }],
      }),
    ) as Json,
  );
  // The group is formed on the world's time.
  await bench.time.advance(100);
  const answered = await pushed;
  expect(answered).toMatchObject({ ok: true });
  expect((answered as { body: string }).body).toContain('"status":"accepted"');
}

async function anaLive(): Promise<BenchDevice> {
  bench = createBench(1, { commitBytesMax: 4 * LIMITS.commitBytesMax });
  const ana = bench.device('ana');
  ana.sync.start();
  ana.create('first');
  await bench.until('live', () => isLive(ana) && ana.state.log('main')?.head === 1);
  return ana;
}

const pulls = (device: BenchDevice, from: number) =>
  device.sent.slice(from).flatMap(({ url }) => /\/events\?after=(\d+)/.exec(url)?.[1] ?? []);
const seen = (device: BenchDevice) => [device.state.log('main')?.head, device.titles().length];

test('[PG2 I01] an operation larger than a page is fetched in parts, and shows with the last one, whole', async () => {
  const ana = await anaLive();
  ana.network.rules.offline = true;
  ana.network.cut();
  await appendLarge();
  const heads = new Set<string>();
  ana.state.onChange(() => void heads.add(seen(ana).join(' ')));
  const from = ana.sent.length;
  ana.network.rules.offline = false;
  ana.sync.kick('online');
  await bench.until('all there', () => isLive(ana) && ana.titles().length === 7);
  expect(pulls(ana, from)).toEqual(['1', '5']);
  expect([...heads]).toEqual(['1 1', '7 7']);
  expect((await bench.endpoint.current.engine.verify(REF))?.signature).toBe(ana.state.log('main')?.signature);
});

test('[PG2 I01] a device that dies between two parts has nothing of it, and fetches both again', async () => {
  const ana = await anaLive();
  ana.network.rules.offline = true;
  ana.network.cut();
  await appendLarge();
  let parts = 0;
  ana.script = (url, request, forward) => {
    if (!url.includes('/events?')) return undefined;
    parts += 1;
    return parts === 2 ? new Promise(() => {}) : forward(url, request);
  };
  ana.network.rules.offline = false;
  ana.sync.kick('online');
  await bench.until('the second part is asked for', () => parts === 2);
  ana.crash();
  ana.script = null;
  ana.restart();
  expect(seen(ana)).toEqual([1, 1]);
  const from = ana.sent.length;
  ana.sync.start();
  await bench.until('all there', () => isLive(ana) && ana.titles().length === 7);
  expect(pulls(ana, from)).toEqual(['1', '5']);
});

test('[PG2 RT5] one that comes while the socket is open, or beside an own push, is pulled and shown whole', async () => {
  const ana = await anaLive();
  const heads = new Set<number>();
  ana.state.onChange(() => void heads.add(ana.state.log('main')?.head ?? -1));
  await appendLarge();
  ana.create('own');
  await bench.until('all there', () => isLive(ana) && ana.titles().length === 8);
  expect([...heads].filter((head) => head > 1 && head < 7)).toEqual([]);
  expect((await bench.endpoint.current.engine.verify(REF))?.signature).toBe(ana.state.log('main')?.signature);
});

test('[PG2 IN3] parts that do not follow each other are no page', () => {
  const page = (version: number, part: number | undefined, parts = 3) => ({
    epoch: 'e',
    events: [{ version }] as never,
    through: { version, chain: `c${version}` },
    head: 9,
    more: true,
    ...(part === undefined ? {} : { part, parts }),
  });
  const from = { version: 0, chain: 'c0' };
  const first = stage(null, from, page(1, 1), 10);
  if (!('staged' in first)) throw new Error('the first part is kept');
  expect(stage(first.staged, from, page(2, 2), 10)).toMatchObject({ staged: { part: 2, bytes: 20 } });
  for (const odd of [page(2, 3), page(2, 2, 4), page(3, 2), page(2, undefined)])
    expect(stage(first.staged, from, odd, 10)).toMatchObject({ fault: { code: 'page-gap' } });
  expect(stage(null, from, page(2, 2), 10)).toMatchObject({ fault: { code: 'page-gap' } });
  expect(stage(first.staged, from, page(2, 2), 2 * LIMITS.commandBytesMax)).toMatchObject({
    fault: { code: 'answer-malformed' },
  });
});
