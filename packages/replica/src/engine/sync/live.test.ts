import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Bench, type BenchDevice, createBench, isLive, twoLive } from './bench.fixture.ts';

let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;

beforeEach(async () => {
  bench = createBench();
  [ana, ben] = await twoLive(bench);
  await bench.until('both followed', () => hellos(ana) === 1 && hellos(ben) === 1);
  await bench.time.advance(1_000);
});
afterEach(() => bench.close());

const hellos = (device: BenchDevice) => device.frames.filter(({ type }) => type === 'hello').length;

test('[RT6] after a socket failure the next step is one handshake over HTTP, then the socket again', async () => {
  const before = ben.sent.length;
  ben.network.cut();
  await bench.until('connected again', () => hellos(ben) === 2, 5_000);
  expect(ben.paths(before)).toEqual(['/handshake']);
  ana.create('seen');
  await bench.until('followed', () => ben.titles().length === 1);
});

test('[RT4 F74] a half-open socket that answers no ping is given up after two intervals', async () => {
  ben.onMessage = (text) => (text.includes('"pong"') ? null : text);
  const atMs = bench.time.elapsedMs;
  await bench.until('given up', () => hellos(ben) === 2, 120_000);
  const pingMs = 20_000;
  expect(bench.time.elapsedMs - atMs).toBeLessThan(4 * pingMs + 2_000);
  expect(isLive(ben)).toBe(true);
});

test('[RT4 F42 F74] after a sleep the socket is given up at once, whatever lay in its buffer', async () => {
  ben.clock.jump(600_000);
  ana.create('while asleep');
  await bench.until('connected again', () => hellos(ben) === 2, 3_000);
  await bench.until('caught up', () => ben.titles().length === 1, 1_000);
});

test('[RT6] what an older connection still delivers is ignored, its late end included', async () => {
  const [old] = ben.connections;
  ben.clock.jump(600_000);
  await bench.until('connected again', () => hellos(ben) === 2, 25_000);
  await bench.time.advance(1_000);
  const before = ben.sent.length;
  old?.message(JSON.stringify({ type: 'going-away', retryMs: 1_000 }));
  old?.message('no JSON at all');
  old?.closed('very late');
  await bench.time.advance(5_000);
  expect(hellos(ben)).toBe(2);
  expect(ben.paths(before)).toEqual([]);
  ana.create('one');
  await bench.until('still followed', () => ben.titles().length === 1, 1_000);
  expect(ben.paths(before)).toEqual([]);
});

test('[RT6 F99] a gap in the stream stops applying, and what is missing is pulled', async () => {
  let swallowed = 0;
  ben.onMessage = (text) => {
    if (!text.includes('"events"') || swallowed > 0) return text;
    swallowed += 1;
    return null;
  };
  const before = ben.sent.length;
  ana.create('swallowed');
  await bench.until('sent', () => isLive(ana));
  ana.create('after the gap');
  await bench.until('both there', () => ben.titles().length === 2, 10_000);
  expect(ben.paths(before)).toEqual(['/logs/main/events']);
  ana.create('and live again');
  await bench.until('followed', () => ben.titles().length === 3, 5_000);
  expect(ben.paths(before)).toEqual(['/logs/main/events']);
});

test('[RT2] resync-required is answered with a pull, and the log is followed again', async () => {
  let asked = false;
  ben.onMessage = (text) => {
    if (asked || !text.includes('"events"')) return text;
    asked = true;
    return JSON.stringify({ type: 'resync-required', log: 'main', head: 1, reason: 'slow' });
  };
  ana.create('pulled');
  await bench.until('there', () => ben.titles().length === 1, 5_000);
  const follows = ben.frames.filter(({ type }) => type === 'follow');
  expect(follows.length).toBe(2);
  expect(follows[1]).toMatchObject({ log: 'main', position: { version: 1 } });
});

test('[RT7] what was committed here is acknowledged, once per version', async () => {
  ana.create('acknowledged');
  await bench.until('there', () => ben.titles().length === 1);
  await bench.time.advance(1_000);
  const acks = ben.frames.filter(({ type }) => type === 'ack');
  expect(acks).toEqual([{ type: 'ack', log: 'main', version: 1 }]);
});

test('[F186] the token is in the head of each request and in the first frame of a socket, and in no address', async () => {
  const opening = vi.spyOn(ana.network, 'openSocket');
  ana.token = () => 'ana/writer';
  ana.create('sent');
  await bench.until('sent', () => isLive(ana));
  ana.network.cut();
  await bench.until('again', () => hellos(ana) === 2 && isLive(ana));
  const opened = opening.mock.calls.map(([url]) => url);
  expect(opened).toHaveLength(1);
  const addresses = [...ana.sent.map(({ url }) => url), ...opened].map((url) => decodeURIComponent(url));
  expect(addresses.filter((url) => url.includes('ana') || /token|bearer/i.test(url))).toEqual([]);
  expect(addresses.every((url) => new URL(url).hash === '' && new URL(url).username === '')).toBe(true);
  expect(ana.sent.at(-1)?.headers['authorization']).toBe('Bearer ana/writer');
  expect(ana.sent.every(({ body }) => !JSON.stringify(body).includes('ana/writer'))).toBe(true);
  expect(ana.frames.filter((frame) => 'token' in frame).every(({ type }) => type === 'hello')).toBe(true);
  expect(ana.frames.findLast(({ type }) => type === 'hello')?.['token']).toBe('ana/writer');
});

test('[RT6] a frame of a type that is not known is passed over', async () => {
  ben.onMessage = (text) => (text.includes('"pong"') ? text.replace('"pong"', '"later-kind"') : text);
  await bench.time.advance(19_000);
  expect(hellos(ben)).toBe(1);
});

test('[F80] going-away is waited for as long as it says, and devices do not come back together', async () => {
  const saidAtMs: number[] = [];
  for (const device of [ana, ben]) {
    let said = false;
    device.onMessage = (text) => {
      if (said || !text.includes('"pong"')) return text;
      said = true;
      saidAtMs.push(bench.time.elapsedMs);
      return JSON.stringify({ type: 'going-away', retryMs: 10_000 });
    };
  }
  const before = [ana.sent.length, ben.sent.length] as const;
  await bench.until('both back', () => hellos(ana) === 2 && hellos(ben) === 2, 60_000);
  const [first, second] = [ana.sent[before[0]], ben.sent[before[1]]];
  expect(saidAtMs.length).toBe(2);
  for (const sent of [first, second]) {
    expect(sent?.path).toBe('/handshake');
    expect((sent?.atMs ?? 0) - (saidAtMs[0] ?? 0)).toBeGreaterThanOrEqual(10_000);
  }
  expect(first?.atMs).not.toBe(second?.atMs);
});

test('[F76] where no socket can be opened, paging goes on by asking', async () => {
  const cleo = bench.device('cleo', { account: 'cleo', settings: { pollMs: 10_000 } });
  cleo.onMessage = () => null;
  cleo.sync.start();
  await bench.until('at the head', () => cleo.sync.status.logs[0]?.head === 0 && cleo.sync.status.phase === 'live');
  ana.create('by asking');
  await bench.until('there', () => cleo.titles().length === 1, 60_000);
});
