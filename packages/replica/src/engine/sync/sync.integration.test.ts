import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bench, type BenchDevice, createBench, isLive, twoLive } from './bench.fixture.ts';

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.close());

const pushSizes = (device: BenchDevice, from: number): readonly number[] =>
  device.sent
    .slice(from)
    .flatMap(({ body }) => (Array.isArray(body?.['operations']) ? [body['operations'].length] : []));

const signatures = (...devices: BenchDevice[]) =>
  devices.map((device) => {
    const log = device.state.log('main');
    return `${log?.head} ${log?.chain} ${log?.signature}`;
  });

test('[IN1 P3] what one device commits, the other shows, and both prove the same state', async () => {
  const [ana, ben] = await twoLive(bench);
  ana.create('from ana');
  ben.create('from ben');
  await bench.until('both have both', () => ana.titles().length === 2 && ben.titles().length === 2);
  await bench.until('all sent', () => isLive(ana) && isLive(ben));
  expect(ben.titles()).toEqual(['from ana', 'from ben']);
  const [one, two] = signatures(ana, ben);
  expect(one).toBe(two);
});

test('[SY1] with a live socket at the head a commit costs exactly one push', async () => {
  const [ana, ben] = await twoLive(bench);
  await bench.time.advance(5_000);
  const [sentBefore, benBefore] = [ana.sent.length, ben.sent.length];
  ana.create('one');
  await bench.until('it is there', () => ben.titles().length === 1 && isLive(ana));
  await bench.time.advance(5_000);
  expect(ana.paths(sentBefore)).toEqual(['/logs/main/push']);
  expect(ben.paths(benBefore)).toEqual([]);
});

test('[OB5] commits made while a push is on its way go out together in the next one', async () => {
  const [ana] = await twoLive(bench);
  const before = ana.sent.length;
  ana.create('first');
  await bench.until('on its way', () => ana.sent.length === before + 1);
  for (let at = 0; at < 20; at += 1) ana.create(`later ${at}`);
  await bench.until('all sent', () => isLive(ana));
  expect(pushSizes(ana, before)).toEqual([1, 20]);
});

test('[MG3] two devices edit other fields of one note offline, and both edits hold everywhere', async () => {
  const [ana, ben] = await twoLive(bench);
  const { id } = ana.create('plan');
  await bench.until('shared', () => ben.titles().length === 1);
  ana.network.rules.offline = true;
  ben.network.rules.offline = true;
  ana.network.cut();
  ben.network.cut();
  ana.update(id, { title: 'plan B' });
  ben.update(id, { body: 'with care' });
  await bench.time.advance(10_000);
  expect(ana.sync.status.phase).toBe('offline');
  expect(ana.sync.status.unsent).toBe(1);
  ana.network.rules.offline = false;
  ben.network.rules.offline = false;
  ana.sync.kick('online');
  ben.sync.kick('online');
  await bench.until('both sent', () => isLive(ana) && isLive(ben));
  await bench.until('same head', () => new Set(signatures(ana, ben)).size === 1);
  expect(ben.titles()).toEqual(['plan B']);
  const body = ana.state.store.database.prepare('SELECT body FROM note').get()?.['body'];
  expect(body).toBe('with care');
});

test('[BS2] a device that comes late fetches state, then follows', async () => {
  const [ana] = await twoLive(bench);
  for (let at = 0; at < 30; at += 1) ana.create(`note ${at}`);
  await bench.until('sent', () => isLive(ana));
  const late = bench.device('late', { account: 'cleo' });
  late.sync.start();
  await bench.until('there', () => isLive(late));
  expect(late.titles().length).toBe(30);
  const first = late.paths();
  expect(first.slice(0, 3)).toEqual(['/handshake', '/logs/main/entities', '/handshake']);
  ana.create('and one more');
  await bench.until('followed', () => late.titles().length === 31);
  expect(late.state.log('main')?.signature).toBe(ana.state.log('main')?.signature);
});

test('[RT6] live:false turns the socket off and changes nothing else', async () => {
  const ana = bench.device('ana', { settings: { live: false } });
  const ben = bench.device('ben', { account: 'ben', settings: { live: false, pollMs: 10_000 } });
  ana.sync.start();
  ben.sync.start();
  await bench.until('both live', () => isLive(ana) && isLive(ben));
  ana.create('polled');
  await bench.until('arrived by asking', () => ben.titles().length === 1, 15_000);
  expect(ana.frames.concat(ben.frames)).toEqual([]);
  expect(isLive(ben)).toBe(true);
});

test('[SY4] pause lets the request in flight end and starts no other, resume goes on, close is final', async () => {
  const [ana, ben] = await twoLive(bench);
  const before = ana.sent.length;
  ana.create('in flight');
  await bench.until('on its way', () => ana.sent.length === before + 1);
  ana.sync.pause();
  ana.create('waits');
  await bench.time.advance(60_000);
  expect(ana.paths(before)).toEqual(['/logs/main/push']);
  expect(ana.sync.status).toMatchObject({ phase: 'stopped', isPaused: true, unsent: 1 });
  ana.sync.resume();
  await bench.until('both there', () => ben.titles().length === 2 && isLive(ana));
  await ana.sync.close();
  const after = ana.sent.length;
  ana.create('after the close');
  ana.sync.kick('manual');
  await bench.time.advance(120_000);
  expect(ana.sent.length).toBe(after);
  expect(ana.sync.status.phase).toBe('stopped');
});

test('[SY4 PM6] close owes what did not come back within five seconds, and the next run asks about it first', async () => {
  const [ana, ben] = await twoLive(bench);
  ana.network.rules.fromLedger = false;
  ana.create('unanswered');
  const sentAt = ana.sent.length;
  await bench.until('on its way', () => ana.sent.length > sentAt);
  let isClosed = false;
  void ana.sync.close().then(() => {
    isClosed = true;
  });
  await bench.until('closed', () => isClosed, 5_100);
  expect(ana.owed().length).toBe(1);
  ana.crash();
  ana.network.rules.fromLedger = true;
  const from = ana.sent.length;
  ana.restart();
  ana.sync.start();
  await bench.until('answered', () => isLive(ana));
  expect(ana.paths(from).slice(0, 2)).toEqual(['/handshake', '/logs/main/push']);
  expect(ana.owed()).toEqual([]);
  expect(ben.titles()).toEqual(['unanswered']);
});

test('[PM7 PM8] a crash between start and answer leaves an obligation, and the replay carries the same bytes and ids', async () => {
  const [ana, ben] = await twoLive(bench);
  const { action } = ana.create('once');
  const before = ana.sent.length;
  await bench.until('on its way', () => ana.sent.length > before);
  const first = ana.sent.at(-1);
  ana.network.cut();
  ana.crash();
  await bench.time.advance(1_000);
  ana.restart();
  ana.sync.start();
  expect(ana.owed().length).toBe(1);
  await bench.until('answered', () => isLive(ana));
  const replay = ana.sent.filter(({ path }) => path === '/logs/main/push').at(-1);
  expect(replay?.body?.['operations']).toEqual(first?.body?.['operations']);
  expect(ana.state.outcome(action)).toMatchObject({ state: 'ordered', version: 1 });
  await bench.until('shown', () => ben.titles().length === 1);
  expect(ben.titles()).toEqual(['once']);
  expect(ana.owed()).toEqual([]);
});

test('[OB4 PM12 F40] work that was put off by a clock years ahead is sent within minutes once the clock is right', async () => {
  const [ana] = await twoLive(bench);
  ana.sync.pause();
  const { action } = ana.create('put off');
  const yearsAhead = bench.time.elapsedMs + Date.UTC(2090, 0, 1);
  ana.state.write(() => ana.state.markUnknown([action], { code: 'ledger-unreachable' }, yearsAhead));
  ana.sync.resume();
  await bench.until('sent', () => ana.state.outcome(action)?.state === 'ordered', 180_000);
  expect(ana.state.nextRetryAtMs('main')).toBe(null);
});

test('[HL1 HL4] a ledger that lost its history stops the log, loses nothing, and adopting goes on by repair', async () => {
  const [ana] = await twoLive(bench);
  ana.create('kept');
  await bench.until('sent', () => isLive(ana));
  bench.replaceLedger();
  await bench.until('noticed', () => ana.sync.status.phase === 'history-changed');
  expect(ana.state.counts().lost).toBe(1);
  ana.create('goes on');
  const pushes = () => ana.paths().filter((path) => path.endsWith('/push')).length;
  const before = pushes();
  await bench.time.advance(120_000);
  expect(pushes()).toBe(before);
  ana.state.adopt('main');
  await bench.until('repaired', () => ana.state.counts().unsent === 0 && isLive(ana));
  expect(ana.titles()).toEqual(['goes on', 'kept']);
  expect(ana.state.log('main')?.head).toBe(2);
});

test('[F171 HL4 PM7] work that was owed when the ledger lost its history is asked about after adopting, and is in once', async () => {
  const [ana] = await twoLive(bench);
  ana.create('kept');
  await bench.until('sent', () => isLive(ana));
  ana.script = (url) => (url.includes('/push') ? Promise.reject(new Error('lost')) : undefined);
  ana.create('owed');
  await bench.until('owed', () => ana.owed().length === 1);
  bench.replaceLedger();
  ana.script = null;
  await bench.until('noticed', () => ana.sync.status.phase === 'history-changed');
  ana.state.adopt('main');
  await bench.until('all in', () => ana.state.counts().unsent === 0 && isLive(ana));
  expect(ana.owed()).toEqual([]);
  expect(ana.titles()).toEqual(['kept', 'owed']);
  expect(ana.coordinator.obligations.open()).toEqual([]);
});

test('[HL4 LG3] an edit of what was confirmed before it is offered again on top of it, where the ledger has lost both', async () => {
  const [ana] = await twoLive(bench);
  const { id } = ana.create('first');
  await bench.until('sent', () => isLive(ana));
  ana.update(id, { title: 'second' });
  await bench.until('sent', () => isLive(ana));
  const last = ana.update(id, { body: 'third' });
  await bench.until('sent', () => isLive(ana));
  bench.replaceLedger();
  await bench.until('noticed', () => ana.sync.status.phase === 'history-changed');
  ana.state.adopt('main');
  await bench.until('decided', () => isLive(ana) && ana.state.flowing('main') === 0);
  expect(ana.state.desk()).toEqual([]);
  expect([ana.state.outcome(last), ana.titles()]).toEqual([{ state: 'ordered', log: 'main', version: 3 }, ['second']]);
});

test('[HL4 OB7] an action that others did in part, and whose rest was owed when the ledger lost both, is whole after adopting', async () => {
  const [ana, ben] = await twoLive(bench);
  const [gone, kept] = ['gone', 'kept'].map((title) => ana.create(title).id) as [string, string];
  const isAtRest = (device: typeof ana) => isLive(device) && device.state.log('main')?.head === 2;
  await bench.until('both there', () => isAtRest(ana) && isAtRest(ben));
  ana.sync.pause();
  const actionId = '01a229c2-28c0-7f52-8433-000000000001';
  const changes = [
    { do: 'delete' as const, entity: 'note', id: gone },
    { do: 'update' as const, entity: 'note', id: kept, set: { title: 'by ana' } },
  ];
  expect(ana.state.commit({ actionId, log: 'main', changes, seen: [], reads: [] }).ok).toBe(true);
  ben.update(gone, { title: 'by ben' });
  const deletion = { do: 'delete' as const, entity: 'note', id: gone };
  const byBen = { actionId: '01a229c2-28c0-7f52-8433-000000000002', log: 'main', changes: [deletion] };
  expect(ben.state.commit({ ...byBen, seen: [], reads: [] }).ok).toBe(true);
  await bench.until('ben has deleted it', () => ben.state.log('main')?.head === 4);
  // The first push is judged; nobody hears of what becomes of the second.
  let pushes = 0;
  ana.script = (url, request, forward) => {
    if (!url.includes('/push')) return undefined;
    pushes += 1;
    return pushes === 1 ? undefined : forward(url, request).then(() => Promise.reject(new Error('lost')));
  };
  ana.sync.resume();
  await bench.until('owed', () => pushes > 1 && ana.owed().length === 1, 300_000);
  bench.replaceLedger();
  ana.script = null;
  await bench.until('noticed', () => ana.sync.status.phase === 'history-changed', 300_000);
  ana.state.adopt('main');
  await bench.until('all in', () => ana.state.counts().unsent === 0 && isLive(ana), 300_000);
  expect([ana.titles(), ana.owed(), ana.state.desk(), ana.state.outcome(actionId)?.state]).toEqual([
    ['by ana'],
    [],
    [],
    'ordered',
  ]);
});

test('[RT6] several logs of one replica share a handshake and a socket, and each goes its own way', async () => {
  const [ana] = await twoLive(bench);
  ana.state.follow('side');
  await bench.until('both logs live', () => ana.sync.status.logs.every(({ phase }) => phase === 'live'));
  expect(ana.sync.status.logs.map(({ log }) => log)).toEqual(['main', 'side']);
  const follows = () => ana.frames.filter(({ type }) => type === 'follow').map(({ log }) => log);
  await bench.until('both followed', () => follows().length === 2);
  expect(follows()).toEqual(['main', 'side']);
  expect(ana.frames.filter(({ type }) => type === 'hello').length).toBe(1);
  ana.state.unfollow('side');
  await bench.until('gone', () => ana.sync.status.logs.length === 1);
  expect(ana.frames.at(-1)).toMatchObject({ type: 'unfollow', log: 'side' });
});
