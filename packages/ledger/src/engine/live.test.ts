import { LIMITS, type Position, PROTOCOL, type ServerFrame } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { Author, wire } from './drafts.fixture.ts';
import type { Actor, LiveAccess, LiveConnection } from './engine.ts';
import { ANA, BEN, REF, type World, world } from './world.fixture.ts';

/** The far end of a socket, in memory: what was sent, what is stuck, how it ended. Keeps the order, loses nothing. */
class Peer {
  readonly frames: ServerFrame[] = [];
  closed: { code: number; reason: string } | 'terminated' | null = null;
  bufferedBytes = 0;
  /** A reader that does not read: what is sent stays in the buffer. */
  isStuck = false;
  connection: LiveConnection | null = null;
  texts: string[] = [];

  send(text: string): void {
    this.texts.push(text);
    this.frames.push(JSON.parse(text) as ServerFrame);
    if (this.isStuck) this.bufferedBytes += text.length;
  }
  close(code: number, reason: string): void {
    this.closed ??= { code, reason };
  }
  terminate(): void {
    this.closed ??= 'terminated';
  }

  say(frame: unknown): void {
    this.connection?.message(JSON.stringify(frame));
  }
  of<T extends ServerFrame['type']>(type: T): (ServerFrame & { readonly type: T })[] {
    return this.frames.filter((frame): frame is ServerFrame & { readonly type: T } => frame.type === type);
  }
  /** Versions of all events it got, in order. */
  get versions(): number[] {
    return this.of('events').flatMap(({ events }) => events.map(({ version }) => version));
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
const admitAs = (actor: Actor | null, still?: () => Actor | null): LiveAccess => ({
  admit: () => actor,
  ...(still === undefined ? {} : { stillAdmitted: still }),
});

function connect(w: World, access: LiveAccess = admitAs(ANA)): Peer {
  const peer = new Peer();
  peer.connection = w.engine.live('acme', peer, access);
  return peer;
}
const hello = (replica = 'live', generation = 1, instance = 'i') => ({
  type: 'hello',
  token: 'secret',
  protocol: PROTOCOL,
  replica: { id: replica, generation, instance },
});

async function following(w: World, position?: Position, replica = 'live', access?: LiveAccess): Promise<Peer> {
  const peer = connect(w, access);
  const at = position ?? (await w.head());
  peer.say(hello(replica));
  await settled();
  peer.say({ type: 'follow', log: 'main', position: at });
  await settled();
  return peer;
}

describe('hello', () => {
  test('[RT1] hello, welcome, follow, ready', async () => {
    await using w = world();
    const peer = await following(w);
    const head = await w.head();
    expect(peer.frames).toEqual([
      { type: 'welcome', protocol: 1, account: 'ana', pingMs: 25_000 },
      { type: 'ready', log: 'main', epoch: head.epoch, head: 0, chain: head.chain },
    ]);
    expect(await w.engine.status()).toMatchObject({ sockets: 1, subscriptions: 1 });
    peer.connection?.closed();
    expect(await w.engine.status()).toMatchObject({ sockets: 0, subscriptions: 0 });
  });

  test('[F183 S33] nothing before hello, and no socket that never says it', async () => {
    await using w = world();
    await w.head();
    const early = connect(w);
    early.say({ type: 'ping', nonce: 'n' });
    expect(early.closed).toMatchObject({ code: 4401 });
    const silent = connect(w);
    w.clock.advance(4_000);
    expect(silent.closed).toBeNull();
    w.clock.advance(1_500);
    expect(silent.closed).toMatchObject({ code: 4401 });
    const stranger = connect(w, admitAs(null));
    stranger.say(hello());
    expect([stranger.frames, stranger.closed]).toMatchObject([
      [{ type: 'refused', code: 'unauthenticated' }],
      { code: 4401 },
    ]);
  });

  test('[S38 LG12] what is not a frame, or of no common protocol, ends the socket with its reason', async () => {
    await using w = world();
    await w.head();
    for (const text of ['{', '{"type":"nonsense"}', '"hello"', '{"type":"hello","type":"hello"}', 'x'.repeat(70_000)]) {
      const peer = connect(w);
      peer.connection?.message(text);
      expect(peer.closed).toMatchObject({ code: 1008 });
    }
    const newer = connect(w);
    newer.say({ ...hello(), protocol: { min: 9, max: 9 } });
    expect(newer.frames).toMatchObject([{ type: 'refused', code: 'update-needed' }]);
  });

  test('[F183 S35] more messages a second than anybody needs end the socket', async () => {
    await using w = world();
    const peer = await following(w);
    for (let at = 0; at < 250; at += 1) peer.say({ type: 'ping', nonce: `n${at}` });
    expect(peer.closed).toMatchObject({ code: 1008, reason: 'rate-limited' });
  });

  test('[F183 S35] pings of the protocol below count like messages, and are answered only while nothing waits', async () => {
    await using w = world();
    await w.head();
    const peer = connect(w);
    // Nothing is said before hello, not even this.
    expect(peer.connection?.control()).toBe(false);
    peer.say(hello());
    await settled();
    expect(peer.connection?.control()).toBe(true);
    peer.bufferedBytes = 1;
    expect(peer.connection?.control()).toBe(false);
    peer.bufferedBytes = 0;
    w.clock.advance(1_000);
    for (let at = 0; at < 200; at += 1) expect(peer.connection?.control()).toBe(true);
    expect(peer.connection?.control()).toBe(false);
    expect(peer.closed).toMatchObject({ code: 1008, reason: 'rate-limited' });
  });

  test('[F183 S36] who goes on asking and never reads is cut off, before what waits for it has no bound', async () => {
    await using w = world();
    const peer = await following(w);
    peer.isStuck = true;
    for (let seconds = 0; seconds < 3_600 && peer.closed === null; seconds += 1) {
      w.clock.advance(1_000);
      for (let at = 0; at < 200; at += 1) peer.say({ type: 'ping', nonce: 'n'.repeat(64) });
    }
    expect(peer.closed).toBe('terminated');
    expect(peer.bufferedBytes).toBeLessThan(2 * LIMITS.socketWindowBytesMax + 1_000);
    expect((await w.engine.status()).sockets).toBe(0);
  });

  test('[LG8 RT3] a fenced replica is not served, and a later generation ends the earlier socket', async () => {
    await using w = world();
    const old = await following(w);
    const other = connect(w, admitAs(BEN));
    other.say(hello());
    expect(other.frames).toMatchObject([{ type: 'refused', code: 'other-account' }]);
    const copy = connect(w);
    copy.say(hello('live', 1, 'another-host'));
    expect(copy.frames).toMatchObject([{ type: 'refused', code: 'replica-cloned' }]);
    expect(old.closed).toBeNull();
    const next = connect(w);
    next.say(hello('live', 2, 'another-host'));
    expect(next.of('welcome').length).toBe(1);
    expect([old.of('session-ending'), old.closed]).toMatchObject([[{ reason: 'stale-generation' }], { code: 4409 }]);
    const late = connect(w);
    late.say(hello());
    expect(late.frames).toMatchObject([{ type: 'refused', code: 'stale-generation', details: { generation: 2 } }]);
    // The same by a push of a later generation, and by a handshake.
    const a = new Author('live', 3, 'third');
    await w.send(a.request(await w.head(), [a.operation([a.create('e1')])]));
    expect(next.of('session-ending')).toMatchObject([{ reason: 'stale-generation' }]);
    const third = connect(w);
    third.say(hello('live', 3, 'third'));
    await w.engine.handshake(
      ANA,
      'acme',
      wire({ protocol: PROTOCOL, replica: { id: 'live', generation: 4, instance: 'x', permit: 1 }, logs: [] }),
    );
    expect(third.of('session-ending')).toMatchObject([{ reason: 'stale-generation' }]);
  });

  test('[RT3] one replica has one socket', async () => {
    await using w = world();
    const first = await following(w);
    const second = await following(w);
    expect(first.of('session-ending')).toMatchObject([{ reason: 'replaced' }]);
    expect(second.closed).toBeNull();
  });
});

describe('events', () => {
  test('[RT1] every append is written once and told to all, in order; what was there before is not', async () => {
    await using w = world();
    const a = new Author('a');
    await w.accept(a, a.create('before'));
    const peers = [await following(w, undefined, 'p1'), await following(w, undefined, 'p2')];
    await w.accept(a, a.create('e1'), a.create('e2'));
    await w.accept(a, a.create('e3'));
    const head = await w.head();
    for (const peer of peers) {
      expect(peer.versions).toEqual([2, 3, 4]);
      expect(peer.of('events')[1]).toMatchObject({
        log: 'main',
        epoch: head.epoch,
        through: { version: 4, chain: head.chain },
      });
    }
    const [first, second] = peers as [Peer, Peer];
    // The very same text, not a second one that looks like it.
    expect(
      first.texts
        .filter((text) => text.includes('"events"'))
        .every((text, at) => Object.is(text, second.texts.filter((other) => other.includes('"events"'))[at])),
    ).toBe(true);
    const page = await w.engine.events(ANA, REF, { after: 1 });
    expect(page.ok && JSON.parse(page.body)).toMatchObject({
      events: first.of('events').flatMap(({ events }) => events),
    });
  });

  test('[RT5] a position at most 512 events behind is caught up on the socket, further behind is told to pull', async () => {
    await using w = world();
    const a = new Author('a');
    const start = await w.start();
    const heads = [start];
    for (const count of [1, 511, 1]) {
      await w.accept(a, ...Array.from({ length: count }, (_, at) => a.create(`${heads.length}-${at}`)));
      heads.push(await w.head());
    }
    const near = await following(w, heads[1], 'near');
    expect(near.frames.map(({ type }) => type)).toEqual(['welcome', 'ready', 'events']);
    expect(near.versions).toEqual(Array.from({ length: 512 }, (_, at) => at + 2));
    const far = await following(w, start, 'far');
    expect(far.frames.at(-1)).toEqual({ type: 'resync-required', log: 'main', head: 513, reason: 'too-far-behind' });
    await w.accept(a, a.create('later'));
    expect([near.versions.length, far.versions.length]).toEqual([513, 0]);
  });

  test('[RT5 DG5] a position that is not in the log is told so', async () => {
    await using w = world();
    const peer = await following(w, { ...(await w.head()), chain: 'f'.repeat(64) });
    expect(peer.frames.at(-1)).toMatchObject({ type: 'resync-required', reason: 'history-changed' });
  });

  test('[RT2 F100] a reader that does not read gets resync-required; the others lose nothing', async () => {
    await using w = world();
    const a = new Author('a');
    const slow = await following(w, undefined, 'slow');
    const quick = await following(w, undefined, 'quick');
    slow.isStuck = true;
    const big = { body: 'x'.repeat(200_000) };
    for (let at = 0; at < 8; at += 1) await w.accept(a, a.create(`e${at}`, big));
    expect(quick.versions).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(slow.of('resync-required')).toEqual([{ type: 'resync-required', log: 'main', head: 6, reason: 'slow' }]);
    expect(slow.bufferedBytes).toBeLessThan(LIMITS.socketWindowBytesMax + 1_000);
    expect(slow.closed).toBeNull();
    // It pulled, and comes back.
    slow.isStuck = false;
    slow.bufferedBytes = 0;
    slow.say({ type: 'follow', log: 'main', position: await w.head() });
    await w.accept(a, a.create('later'));
    expect(slow.versions.at(-1)).toBe(9);
  });

  test('[RT1] unfollow ends one log; many logs share a socket', async () => {
    await using w = world();
    const team = { workspace: 'acme', log: 'team' };
    const peer = await following(w);
    peer.say({ type: 'follow', log: 'team', position: await w.head(team) });
    peer.say({ type: 'follow', log: 'absent', position: await w.head() });
    const a = new Author('a');
    const b = new Author('b');
    await w.send(b.request(await w.head(team), [b.operation([b.create('t1')])]), ANA, team);
    await w.accept(a, a.create('m1'));
    expect(peer.of('events').map(({ log }) => log)).toEqual(['team', 'main']);
    expect(peer.of('forbidden')).toEqual([{ type: 'forbidden', log: 'absent' }]);
    peer.say({ type: 'unfollow', log: 'team' });
    await w.send(b.request(await w.head(team), [b.operation([b.create('t2')])]), ANA, team);
    expect(peer.of('events').length).toBe(2);
    expect((await w.engine.status()).subscriptions).toBe(1);
  });

  test('[RT1 F101] appends race with follow, and every version arrives once', async () => {
    await using w = world();
    const a = new Author('a');
    const start = await w.start();
    const peer = connect(w);
    peer.say(hello());
    const pushes = Array.from({ length: 20 }, (_, at) => new Author(`w${at}`)).map((author) =>
      w.send(author.request(start, [author.operation([author.create(author.replica.id)])])),
    );
    peer.say({ type: 'follow', log: 'main', position: start });
    await Promise.all(pushes);
    await w.accept(a, a.create('last'));
    expect(peer.versions).toEqual(Array.from({ length: 21 }, (_, at) => at + 1));
  });

  test('[RT7] what was acknowledged is kept', async () => {
    await using w = world();
    const a = new Author('live');
    await w.accept(a, a.create('e1'));
    const peer = await following(w);
    peer.say({ type: 'ack', log: 'main', version: 1 });
    peer.say({ type: 'ack', log: 'never-followed', version: 9 });
    w.clock.advance(10_000);
    const replicas = await w.engine.replicas(ANA, 'acme');
    expect(replicas.ok && JSON.parse(replicas.body)).toMatchObject({
      replicas: [{ replica: 'live', proven: { main: 1 } }],
    });
  });
});

describe('ends', () => {
  test('[F189 RT3 I24] access that expires or is revoked ends the socket within 5 s, and nothing is told after', async () => {
    let still: Actor | null = ANA;
    await using w = world();
    const expiring = await following(
      w,
      undefined,
      'expiring',
      admitAs({ ...ANA, expiresAtMs: w.clock.now() + 10_000 }),
    );
    const revoked = await following(
      w,
      undefined,
      'revoked',
      admitAs(ANA, () => still),
    );
    const a = new Author('a');
    w.clock.advance(9_000);
    expect([expiring.closed, revoked.closed]).toEqual([null, null]);
    still = null;
    w.clock.advance(5_000);
    expect(expiring.of('session-ending')).toMatchObject([{ reason: 'expired' }]);
    expect(revoked.of('session-ending')).toMatchObject([{ reason: 'revoked' }]);
    expect([expiring.closed, revoked.closed]).toMatchObject([{ code: 4401 }, { code: 4401 }]);
    await w.accept(a, a.create('secret'));
    expect([expiring.versions, revoked.versions]).toEqual([[], []]);
    expect((await w.engine.status()).subscriptions).toBe(0);
  });

  test('[RT4 F74] both sides ping with nonces; silence over two pings is a dead socket', async () => {
    await using w = world();
    const peer = await following(w);
    peer.say({ type: 'ping', nonce: 'mine' });
    expect(peer.of('pong')).toEqual([{ type: 'pong', nonce: 'mine' }]);
    w.clock.advance(26_000);
    const [ping] = peer.of('ping');
    expect(ping?.nonce).toMatch(/^[0-9a-f]{16}$/);
    peer.say({ type: 'pong', nonce: ping?.nonce });
    w.clock.advance(30_000);
    expect(peer.closed).toBeNull();
    w.clock.advance(22_000);
    expect(peer.closed).toBe('terminated');
    expect((await w.engine.status()).sockets).toBe(0);
  });

  test('[F80] at shutdown everybody is told when to come back, not all at once', async () => {
    const w = world();
    const peers = await Promise.all(['p1', 'p2', 'p3'].map((name) => following(w, undefined, name)));
    await w.engine.close();
    const waits = peers.flatMap((peer) => peer.of('going-away')).map(({ retryMs }) => retryMs);
    expect(waits.length).toBe(3);
    expect(new Set(waits).size).toBeGreaterThan(1);
    expect(waits.every((ms) => ms >= 500 && ms <= 5_000)).toBe(true);
    const late = connect(w);
    expect(late.closed).toMatchObject({ code: 1001 });
    await w[Symbol.asyncDispose]();
  });
});

describe('how many sockets', () => {
  test('[F183 RT1 S35] an account has so many sockets in all workspaces, one per replica, and another account has its own', async () => {
    await using w = world({ limits: { socketsPerAccountMax: 2 } });
    await w.head();
    const greeted = async (replica: string, access?: LiveAccess) => {
      const peer = connect(w, access);
      peer.say(hello(replica));
      await settled();
      return peer;
    };
    const first = await greeted('one');
    await greeted('two');
    const third = await greeted('three');
    expect(third.frames).toMatchObject([{ type: 'refused', code: 'rate-limited' }]);
    expect(third.closed).toMatchObject({ code: 1008 });
    // Who comes again takes his own place.
    const again = await greeted('one');
    expect([again.frames[0]?.type, first.closed]).toEqual(['welcome', { code: 4409, reason: 'replaced' }]);
    expect((await greeted('four', admitAs(BEN))).frames[0]?.type).toBe('welcome');
    again.connection?.closed();
    expect((await greeted('three')).frames[0]?.type).toBe('welcome');
  });
});
