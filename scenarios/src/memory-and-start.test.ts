import { LIMITS, PROTOCOL } from '@holdfast/core';
import { expect, test } from 'vitest';
import { Author } from '../../packages/ledger/src/engine/drafts.fixture.ts';
import { ANA, type World, world } from '../../packages/ledger/src/engine/world.fixture.ts';
import { createBench } from '../../packages/replica/src/engine/sync/bench.fixture.ts';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** A socket as the engine sees it. One that is stuck takes what it is given, and sends none of it. */
class Reader {
  bufferedBytes = 0;
  mostBuffered = 0;
  isStuck = false;
  isGone = false;
  readonly versions: number[] = [];
  readonly kinds = new Set<string>();
  #connection!: ReturnType<World['engine']['live']>;

  static async following(w: World, name: string): Promise<Reader> {
    const reader = new Reader();
    const position = await w.head();
    reader.#connection = w.engine.live('acme', reader, { admit: () => ANA });
    reader.say({
      type: 'hello',
      token: 't',
      protocol: PROTOCOL,
      replica: { id: name, generation: 1, instance: name },
    });
    await settled();
    reader.say({ type: 'follow', log: 'main', position });
    await settled();
    return reader;
  }
  say(frame: unknown): void {
    this.#connection.message(JSON.stringify(frame));
  }
  send(text: string): void {
    if (this.isStuck) this.bufferedBytes += text.length;
    this.mostBuffered = Math.max(this.mostBuffered, this.bufferedBytes);
    const frame = JSON.parse(text) as { type: string; nonce?: string; events?: { version: number }[] };
    this.kinds.add(frame.type);
    if (this.isStuck) return;
    for (const { version } of frame.events ?? []) this.versions.push(version);
    if (frame.type === 'ping') this.say({ type: 'pong', nonce: frame.nonce });
  }
  close(): void {
    this.isGone = true;
  }
  terminate(): void {
    this.isGone = true;
  }
}

// Seen to fail with live-session.ts offering frames whatever waits already: 12 MB lay in one socket.
test('[F100 I28] slow consumer fills the server’s memory: what waits for it is bounded, it ends, pages on return, and others miss nothing', async () => {
  await using w = world();
  const author = new Author('busy');
  const fast = await Reader.following(w, 'fast');
  const slow = await Reader.following(w, 'slow');
  slow.isStuck = true;
  const body = 'x'.repeat(16_000);
  const STEPS = 15;
  for (let step = 0; step < STEPS; step += 1) {
    const events = Array.from({ length: 40 }, (_, nth) => author.create(`e${step}-${nth}`, { body }));
    await w.push(author, [author.operation(events)]);
    w.clock.advance(4_000);
    await settled();
  }
  const eventsInAll = STEPS * 40;
  expect(fast.versions).toEqual(Array.from({ length: eventsInAll }, (_, version) => version + 1));
  // One frame may always be on its way; a frame is at most a page.
  expect(slow.mostBuffered).toBeLessThanOrEqual(2 * LIMITS.socketWindowBytesMax);
  expect(eventsInAll * body.length).toBeGreaterThan(8 * LIMITS.socketWindowBytesMax);
  expect([slow.kinds.has('resync-required'), slow.isGone, fast.isGone]).toEqual([true, true, false]);
  expect(await w.engine.status()).toMatchObject({ sockets: 1 });
  let after = 0;
  for (let page = 0; after < eventsInAll && page < 100; page += 1) {
    const answer = await w.engine.events(ANA, { workspace: 'acme', log: 'main' }, { after });
    if (!answer.ok) throw new Error('no page');
    after = (JSON.parse(answer.body) as { through: { version: number } }).through.version;
  }
  expect(after).toBe(eventsInAll);
});

// Seen to fail with upkeep.ts sweeping only after its first hour.
test('[I28 F36] compaction never runs in short sessions: history is bounded by what is stored, however short each session is', async () => {
  const bench = createBench();
  try {
    const [ana, ben] = [bench.device('ana'), bench.device('ben', { account: 'ben' })];
    ana.sync.start();
    const isLive = ({ sync }: typeof ana) => sync.status.phase === 'live' && sync.status.unsent === 0;
    await bench.until('live', () => isLive(ana));
    ben.sync.start();
    await bench.until('live', () => isLive(ben));
    ben.crash();
    // History that is as long as may be kept lies below what this log holds.
    const fill = () => {
      ben.state.store.database
        .prepare(
          `INSERT INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain)
           WITH RECURSIVE v(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM v WHERE n < ?)
           SELECT 'main', -n, 'e' || n, 'note', 'n', 1, 'a' || n, 0, '{}', NULL, '{}', '' FROM v`,
        )
        .run(LIMITS.historyEventsKept - 1);
    };
    const SESSIONS = 12;
    const eventsOf = ({ state }: typeof ben) =>
      Number(state.store.database.prepare('SELECT count(*) AS n FROM main.hf_event').get()?.['n']);
    let most = 0;
    for (let session = 0; session < SESSIONS; session += 1) {
      for (let nth = 0; nth < 20; nth += 1) ana.create(`${session}/${nth}`);
      await bench.until('sent', () => isLive(ana), 600_000);
      ben.restart();
      if (session === 0) fill();
      ben.sync.start();
      const head = ana.state.log('main')?.head;
      await bench.until('caught up', () => ben.state.log('main')?.head === head, 600_000);
      most = Math.max(most, eventsOf(ben));
      ben.crash();
    }
    ben.restart();
    ben.sync.start();
    await bench.until('live', () => isLive(ben));
    await bench.time.advance(1_000);
    expect(ben.state.log('main')?.head).toBe(SESSIONS * 20);
    expect(eventsOf(ben)).toBeLessThanOrEqual(LIMITS.historyEventsKept + 20);
    expect(most).toBeLessThanOrEqual(LIMITS.historyEventsKept + 40);
  } finally {
    bench.close();
  }
});
