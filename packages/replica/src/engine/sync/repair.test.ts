import { afterEach, beforeEach, expect, test } from 'vitest';
import { tamper } from '../../testing/tamper.ts';
import { type Bench, type BenchDevice, createBench, isLive, rewritten, twoLive } from './bench.fixture.ts';

let bench: Bench;
let ana: BenchDevice;
let ben: BenchDevice;

beforeEach(async () => {
  bench = createBench();
  [ana, ben] = await twoLive(bench);
  for (let at = 0; at < 5; at += 1) ana.create(`note ${at}`);
  await bench.until('shared', () => ben.titles().length === 5 && isLive(ana) && isLive(ben));
});
afterEach(() => bench.close());

const blockedBy = (device: BenchDevice) => device.state.log('main')?.blocked?.code;

/** A row that no event explains: what a defect, or a bad disk, leaves behind. */
function damage(device: BenchDevice): void {
  tamper(
    device.state,
    `UPDATE main.note SET title = 'damaged' WHERE title = 'note 3'; UPDATE main.hf_log SET signature = '${'ab'.repeat(32)}'`,
  );
}

test('[P3 PM9] a state that differs at a position in the log is fetched anew and swapped, with outbox and commits kept', async () => {
  const signature = ana.state.log('main')?.signature;
  ana.sync.pause();
  damage(ana);
  ana.create('pending');
  ana.sync.resume();
  const before = ana.sent.length;
  await bench.until('repaired', () => isLive(ana) && !ana.titles().includes('damaged'), 60_000);
  expect(ana.titles()).toEqual(['note 0', 'note 1', 'note 2', 'note 3', 'note 4', 'pending']);
  expect(ana.paths(before).filter((path) => path.endsWith('/entities')).length).toBeGreaterThan(0);
  await bench.until('shown', () => ben.titles().length === 6);
  expect(ana.state.log('main')?.signature).toBe(ben.state.log('main')?.signature);
  expect(ana.state.log('main')?.signature).not.toBe(signature);
});

test('[P3] no answer, no swap: while a push is owed, nothing is repaired', async () => {
  ana.script = (url) => (url.includes('/push') ? Promise.reject(new Error('lost')) : undefined);
  ana.create('owed');
  await bench.until('owed', () => ana.owed().length === 1);
  damage(ana);
  await bench.time.advance(200_000);
  expect(ana.titles()).toContain('damaged');
  ana.script = null;
  ana.sync.kick('online');
  await bench.until('repaired', () => isLive(ana) && !ana.titles().includes('damaged'), 60_000);
  expect(ana.titles()).toContain('owed');
});

test('[P3] a state that differs again after a repair makes the ledger’s state suspect, and is not repaired for ever', async () => {
  ana.sync.pause();
  damage(ana);
  ana.script = rewritten('/handshake', (body) => {
    for (const log of body.logs) if (log.signature !== undefined) log.signature = 'differs';
  });
  ana.sync.resume();
  await bench.until('suspect', () => blockedBy(ana) === 'ledger-state-suspect', 120_000);
  const before = ana.sent.length;
  ana.create('goes on');
  await bench.time.advance(20_000);
  expect(ana.paths(before).filter((path) => path !== '/handshake')).toEqual([]);
  expect(ana.sync.status).toMatchObject({ phase: 'blocked', unsent: 1 });
});

test('[F105 BS2] a first state that differs is thrown away, and the second time the ledger’s state is suspect', async () => {
  const cleo = bench.device('cleo', { account: 'cleo' });
  cleo.script = rewritten('/entities', (body) => {
    if (body.entities.length > 0) body.entities[0].fields.title = 'forged';
  });
  cleo.sync.start();
  await bench.until('suspect', () => blockedBy(cleo) === 'ledger-state-suspect', 120_000);
  expect(cleo.titles()).toEqual([]);
  const scans = cleo.paths().filter((path) => path.endsWith('/entities')).length;
  expect(scans).toBe(2);
});

test('[BS1] a page that was read before the noted position is thrown away and asked for again', async () => {
  let spoiled = 0;
  const cleo = bench.device('cleo', { account: 'cleo' });
  cleo.script = (url, request, forward) =>
    spoiled++ < 1 && url.includes('/entities')
      ? rewritten('/entities', (body) => {
          body.asOf.version -= 1;
        })(url, request, forward)
      : undefined;
  spoiled = -1;
  cleo.sync.start();
  await bench.until('there', () => isLive(cleo), 60_000);
  expect(cleo.titles().length).toBe(5);
  expect(cleo.paths().filter((path) => path.endsWith('/entities')).length).toBe(2);
});

test('[BS1] a crash in the middle of a first state goes on at the next page', async () => {
  for (let at = 0; at < 600; at += 1) ana.create(`more ${at}`);
  await bench.until('sent', () => isLive(ana), 60_000);
  const cleo = bench.device('cleo', { account: 'cleo' });
  cleo.sync.start();
  await bench.until('one page', () => (cleo.state.bootstrapCursor('main')?.entities ?? 0) > 0);
  expect(cleo.sync.status.logs[0]?.progress).toMatchObject({ of: 'bootstrap' });
  const cursor = cleo.state.bootstrapCursor('main')?.cursor;
  cleo.crash();
  cleo.restart();
  const before = cleo.sent.length;
  cleo.sync.start();
  await bench.until('there', () => isLive(cleo), 60_000);
  expect(cleo.titles().length).toBe(605);
  const scans = cleo.sent.slice(before).filter(({ path }) => path.endsWith('/entities'));
  expect(new URL(scans[0]?.url ?? '').searchParams.get('cursor')).toBe(cursor);
});

/** While the device reads its first state, somebody adds to the log; then the events since are lost on the way. */
function halfFetched(cut: number): BenchDevice {
  const cleo = bench.device('cleo', { account: 'cleo' });
  let lost = 0;
  let isAdded = false;
  cleo.script = (url, request, forward) => {
    if (url.includes('/entities') && !isAdded) {
      isAdded = true;
      ana.create('meanwhile');
      return new Promise<void>((resolve) => {
        const look = () => (isLive(ana) ? resolve() : void cleo.clock.timer(50, look));
        look();
      }).then(() => forward(url, request));
    }
    if (url.includes('/events?') && lost < cut) {
      lost += 1;
      return Promise.reject(new Error('lost'));
    }
    return undefined;
  };
  return cleo;
}

test('[BS2 DG2] a first state whose events are still missing is compared with nothing, and fetched once however often the network cuts', async () => {
  const cleo = halfFetched(4);
  cleo.sync.start();
  await bench.until('there', () => isLive(cleo) && cleo.titles().length === 6, 200_000);
  expect(cleo.paths().filter((path) => path.endsWith('/entities')).length).toBe(1);
  expect(cleo.paths().filter((path) => path === '/handshake').length).toBeGreaterThan(4);
});

test('[BS4] a first state that was read above all that the ledger still has is begun again', async () => {
  const cleo = halfFetched(1);
  // A ledger that has lost the newest version: its pages and its handshakes end below what was read.
  const lost = (body: any) => {
    for (const log of body.logs ?? []) if (log.head !== undefined) log.head.version -= 1;
  };
  const script = cleo.script;
  cleo.script = (url, request, forward) =>
    (url.includes('/handshake') && cleo.paths().some((path) => path.endsWith('/events'))
      ? rewritten('/handshake', lost)(url, request, forward)
      : undefined) ?? script?.(url, request, forward);
  cleo.sync.start();
  const scans = () => cleo.paths().filter((path) => path.endsWith('/entities')).length;
  await bench.until('read and cut', () => scans() === 1 && cleo.paths().some((path) => path.endsWith('/events')));
  await bench.until('begun again', () => scans() > 1, 120_000);
  cleo.script = null;
  await bench.until('there', () => isLive(cleo) && cleo.titles().length === 6, 200_000);
});

test('[BS5 F64] what is created before the first contact is kept through the first state, and sent after it', async () => {
  const cleo = bench.device('cleo', { account: 'cleo' });
  cleo.create('made offline');
  cleo.sync.start();
  await bench.until('all there', () => isLive(cleo) && cleo.titles().length === 6, 60_000);
  await bench.until('shown', () => ben.titles().includes('made offline'));
});

test.each([
  ['moved', 'moved'],
  ['deleted', 'deleted'],
  ['not-allowed', 'blocked'],
] as const)(
  '[AC2 F107] a log that is %s is held, deletes nothing, and goes on when that is over',
  async (status, phase) => {
    const script = rewritten('/handshake', (body) => {
      body.logs = body.logs.map(({ log }: { log: string }) => ({ log, status }));
    });
    ana.script = script;
    ana.sync.kick('manual');
    await bench.until('said', () => ana.sync.status.phase === phase);
    ana.create('kept');
    const before = ana.sent.length;
    await bench.time.advance(100_000);
    expect(new Set(ana.paths(before))).toEqual(new Set(['/handshake']));
    expect(ana.titles()).toContain('kept');
    expect(ana.sync.status.unsent).toBe(1);
    ana.script = null;
    await bench.until('goes on', () => isLive(ana), 61_000);
  },
);

test('[DG3] another epoch of the same history is taken from a handshake, and work goes on', async () => {
  ana.script = rewritten('/handshake', (body) => {
    for (const log of body.logs) log.epoch = 'another-epoch';
  });
  ana.sync.kick('manual');
  await bench.until('taken', () => ana.state.log('main')?.epoch === 'another-epoch');
  expect(ana.state.counts().lost).toBe(0);
});

test('[DG3 IN3] a page of another epoch is not applied before a handshake has told of it', async () => {
  ana.sync.pause();
  const head = ana.state.log('main')?.head ?? 0;
  ben.create('of another history');
  await bench.until('sent', () => isLive(ben));
  ana.script = rewritten('/events?', (body) => {
    body.epoch = 'another-epoch';
  });
  ana.sync.resume();
  await bench.time.advance(60_000);
  expect(ana.paths().filter((path) => path.endsWith('/events')).length).toBeGreaterThan(0);
  expect([ana.state.log('main')?.head, ana.titles().includes('of another history')]).toEqual([head, false]);
  ana.script = null;
  await bench.until('goes on', () => ana.titles().includes('of another history'), 120_000);
});

test('[F79 IN3] pages of a cache that never catch up are asked about ever more slowly', async () => {
  ana.sync.pause();
  ben.create('unseen');
  await bench.until('sent', () => isLive(ben));
  const head = ana.state.log('main')?.head ?? 0;
  const chain = ana.state.log('main')?.chain;
  ana.script = rewritten('/events?', (body) => {
    Object.assign(body, { events: [], through: { version: head, chain }, head });
  });
  ana.onMessage = () => null;
  const before = ana.sent.length;
  ana.sync.resume();
  await bench.time.advance(120_000);
  expect(ana.sent.length - before).toBeLessThan(60);
});

/** Her next push is accepted, and neither its answer nor anything else brings its event. */
async function acceptedUnseen(): Promise<string> {
  const { head: version, chain } = ana.state.log('main') ?? {};
  const unseen = rewritten('/push', (body) => {
    Object.assign(body, { events: [], through: { version, chain } });
  });
  ana.onMessage = (text) => (text.includes('"events"') ? null : text);
  ana.script = (url, request, forward) =>
    url.includes('/events?') ? Promise.reject(new Error('lost')) : unseen(url, request, forward);
  const { action } = ana.create('late');
  await bench.until('accepted', () => ben.titles().length === 6 && ana.owed().length === 0);
  ana.sync.pause();
  Object.assign(ana, { script: null, onMessage: null });
  return action;
}

const last = (action: string) => [ana.state.outcome(action), ana.titles().filter((title) => title === 'late').length];

test.each([
  ['it is there', false, 6],
  ['the ledger was put back behind it, and others went on', true, 8],
])('[I03 HL1] what was accepted and came with no event is asked about after a repair: %s', async (_, isLost, at) => {
  const putBack = bench.backUp();
  const action = await acceptedUnseen();
  if (isLost) {
    putBack();
    await bench.until('ben is told', () => ben.sync.status.phase === 'history-changed', 25_000);
    ben.state.adopt('main');
    for (const title of ['of ben', 'of ben, too']) ben.create(title);
    await bench.until('ben went on', () => isLive(ben) && ben.titles().length === 7);
  }
  damage(ana);
  ana.sync.resume();
  await bench.until('repaired', () => isLive(ana) && !ana.titles().includes('damaged'), 60_000);
  expect(last(action)).toEqual([{ state: 'ordered', log: 'main', version: at }, 1]);
  await bench.until('one log', () => ben.state.log('main')?.chain === ana.state.log('main')?.chain);
});
