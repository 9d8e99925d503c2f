import { expect, test } from 'vitest';
import { createSeededRandom } from '../../testing/seeded-random.ts';
import { createVirtualTime } from '../../testing/virtual-time.ts';
import { createSizes } from './facts.ts';
import { createFrameBuffer, type EventsFrame } from './frame-buffer.ts';
import { reportOf, type SettleView } from './settle.ts';
import { createSocketLife } from './socket-life.ts';
import { createWatchdog } from './watchdog.ts';

const frame = (log: string, version: number): EventsFrame => ({
  type: 'events',
  log,
  epoch: 'e',
  events: [],
  through: { version, chain: '' },
});

test('[RT6 I28] frames wait within one bound; beyond it that log drops all of its own and no other’s', () => {
  const buffer = createFrameBuffer(100);
  expect(buffer.add(frame('a', 1), 60)).toBe(true);
  expect(buffer.add(frame('b', 1), 30)).toBe(true);
  expect(buffer.add(frame('a', 2), 20)).toBe(false);
  expect(buffer.logs).toEqual(['b']);
  expect(buffer.bytes).toBe(30);
  expect(buffer.add(frame('a', 3), 70)).toBe(true);
  expect(buffer.take('a').map(({ through }) => through.version)).toEqual([3]);
  expect(buffer.take('a')).toEqual([]);
  expect(buffer.bytes).toBe(30);
});

test('[OB2 F82] groupings are halved down to one operation, and one that is alone is remembered', () => {
  const sizes = createSizes();
  const full = sizes.pushBytesMax;
  expect(sizes.pushTooLarge({ bytes: full, requestIds: ['a', 'b'], againAtMs: 9 })).toBe(true);
  expect(sizes.pushBytesMax).toBe(full / 2);
  for (let at = 0; at < 60; at += 1) sizes.pushTooLarge({ bytes: full, requestIds: ['a', 'b'], againAtMs: 9 });
  expect(sizes.pushBytesMax).toBe(1);
  expect(sizes.mustGoAlone('a')).toBe(false);
  expect(sizes.pushTooLarge({ bytes: 50, requestIds: ['a'], againAtMs: 9 })).toBe(false);
  expect(sizes.mustGoAlone('a')).toBe(true);
  expect(sizes.waitsUntilMs('a')).toBe(9);
  sizes.forget();
  expect([sizes.mustGoAlone('a'), sizes.pushBytesMax]).toEqual([false, full]);
});

test('[PM12 F81] pages shrink with time-outs and grow again with what works', () => {
  const sizes = createSizes();
  const full = sizes.pageEvents;
  for (let at = 0; at < 20; at += 1) sizes.pageTimedOut();
  expect(sizes.pageEvents).toBe(8);
  expect(sizes.patience).toBe(16);
  for (let at = 0; at < 20; at += 1) sizes.worked();
  expect([sizes.pageEvents, sizes.patience]).toEqual([full, 1]);
});

test('[RT4] a ping that is answered with another nonce proves nothing', async () => {
  const time = createVirtualTime();
  const dead: string[] = [];
  const pings: string[] = [];
  const life = createSocketLife({
    clock: time.clockFor({}),
    random: createSeededRandom(1),
    ping: (nonce) => pings.push(nonce),
    dead: (reason) => dead.push(reason),
  });
  life.begin(10_000);
  life.pong('guessed');
  await time.advance(19_000);
  expect(dead).toEqual([]);
  await time.advance(2_000);
  expect(dead).toEqual(['silent']);
  await time.advance(100_000);
  expect([dead.length, pings.length]).toEqual([1, 1]);
});

test('[RT4 F42] a message that comes after a sleep is not believed', () => {
  const time = createVirtualTime();
  const clock = time.clockFor({});
  const dead: string[] = [];
  const life = createSocketLife({
    clock,
    random: createSeededRandom(1),
    ping: () => {},
    dead: (reason) => dead.push(reason),
  });
  life.begin(10_000);
  expect(life.heard()).toBe(true);
  clock.jump(15_000);
  expect(life.heard()).toBe(true);
  clock.jump(10_000);
  expect(life.heard()).toBe(false);
  expect(dead).toEqual(['slept']);
});

function watched(stallMs: number) {
  const time = createVirtualTime();
  const clock = time.clockFor({});
  const did: string[] = [];
  const view = {
    hasWork: true,
    isReachable: true,
    marker: '1',
    waiting: 1,
    waitsFor: { code: 'request-timeout' as const },
  };
  const watchdog = createWatchdog({
    clock,
    stallMs,
    watch: () => ({ ...view }),
    kick: () => did.push('kick'),
    stalled: ({ code }) => did.push(`stalled: ${code}`),
    moved: () => did.push('moved'),
  });
  watchdog.begin();
  return { time, clock, did, view };
}

test('[SY3] nothing moved: first a kick, then stalled with a named reason until something moves', async () => {
  const { time, did, view } = watched(30_000);
  await time.advance(29_000);
  expect(did).toEqual([]);
  await time.advance(300_000);
  expect([did[0], ...new Set(did.slice(1))]).toEqual(['kick', 'stalled: request-timeout']);
  view.marker = '2';
  await time.advance(10_000);
  expect(did.at(-1)).toBe('moved');
});

test('[SY3 I30] more unsent work is no progress, less is; and a stall outlasts a network that comes and goes', async () => {
  const { time, did, view } = watched(30_000);
  for (let second = 0; second < 50; second += 1) {
    view.waiting += 1;
    await time.advance(1_000);
  }
  expect([did[0], ...new Set(did.slice(1))]).toEqual(['kick', 'stalled: request-timeout']);
  view.isReachable = false;
  const before = did.length;
  await time.advance(30_000);
  expect(did.length).toBe(before);
  view.isReachable = true;
  await time.advance(11_000);
  expect(did.slice(before)).toEqual(['stalled: request-timeout']);
  view.waiting -= 1;
  await time.advance(10_000);
  expect(did.at(-1)).toBe('moved');
});

test('[SY3] an unreachable ledger, or a sleep, is no stall', async () => {
  const { time, clock, did, view } = watched(30_000);
  view.isReachable = false;
  await time.advance(300_000);
  expect(did).toEqual([]);
  view.isReachable = true;
  await time.advance(9_000);
  clock.jump(3_600_000);
  await time.advance(15_000);
  expect(did).toEqual([]);
});

test('[SY2] what waits for time is waited for, what waits for somebody is said', () => {
  const log = {
    log: 'main',
    isFlowing: false,
    isAtHead: true,
    obstacle: null,
    waitsFor: { code: 'ledger-unreachable' as const },
  };
  const view = (over: Partial<SettleView['logs'][number]>): SettleView => ({
    attention: 2,
    obstacle: null,
    logs: [{ ...log, ...over }],
  });
  expect(reportOf(view({}))).toEqual({ settled: true, attention: 2, obstacles: [] });
  expect(reportOf(view({ isFlowing: true }))).toBe(null);
  expect(reportOf(view({ isAtHead: false }))).toBe(null);
  expect(reportOf(view({ isFlowing: true, obstacle: { code: 'moved' } }))).toEqual({
    settled: false,
    attention: 2,
    obstacles: [{ log: 'main', fault: { code: 'moved' } }],
  });
  expect(reportOf({ ...view({ isFlowing: true }), obstacle: { code: 'unauthenticated' } })).toMatchObject({
    settled: false,
    obstacles: [{ log: null, fault: { code: 'unauthenticated' } }],
  });
});
