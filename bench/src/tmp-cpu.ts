import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Json, LIMITS, parseJson } from '@holdfast/core';
import { createNodePlatform } from '../../packages/ledger/src/adapters/node/platform.ts';
import { Author } from '../../packages/ledger/src/engine/drafts.fixture.ts';
import { createEngine } from '../../packages/ledger/src/engine/engine.ts';
import { openSqliteStore } from '../../packages/ledger/src/stores/sqlite/store.ts';

/**
 * Group append without its doors: 8 writers, batches of 10, full durability, against the least same work on raw
 * `node:sqlite`: per event one insert of the same bytes and one update of a row, one commit for all 8 writers.
 *
 *   node bench/src/append-core.ts [rounds]
 */
const WRITERS = 8;
const BATCH = 10;
const ROUNDS = Number(process.argv[2] ?? 150);

function texts(): { readonly bodies: string[][] } {
  const bodies: string[][] = [];
  const authors = Array.from({ length: WRITERS }, (_, at) => new Author(`w${at}`));
  const seen = new Map<string, { version: number; last: string | undefined }>();
  for (let round = 0; round < ROUNDS; round += 1)
    bodies.push(
      authors.map((author, at) => {
        const events = Array.from({ length: BATCH }, (_, n) => {
          const entityId = `issue-${at}-${n}-abcdef0123456789`;
          const state = seen.get(entityId) ?? { version: 0, last: undefined };
          const draft =
            state.version === 0
              ? author.create(entityId, {
                  title: 'An issue of usual length for measuring',
                  body: 'x'.repeat(120),
                  status: 'todo',
                })
              : author.set(entityId, { title: `An issue of usual length, round ${round}` }, state.version);
          seen.set(entityId, { version: state.version + 1, last: draft.id });
          return draft;
        });
        return JSON.stringify(author.request({ epoch: 'e', version: 0, chain: 'CHAIN' }, [author.operation(events)]));
      }),
    );
  return { bodies };
}

function bare(file: string, bodies: string[][]): number {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=ON');
  db.exec(`CREATE TABLE event (version INTEGER PRIMARY KEY, id TEXT NOT NULL, entity TEXT NOT NULL, body TEXT NOT NULL);
    CREATE TABLE issue (id TEXT PRIMARY KEY, title TEXT, body TEXT, status TEXT, version INTEGER, updated_at TEXT) WITHOUT ROWID`);
  const insert = db.prepare('INSERT INTO event (version, id, entity, body) VALUES (?, ?, ?, ?)');
  const update = db.prepare('UPDATE issue SET title = ?, version = version + 1, updated_at = ? WHERE id = ?');
  const add = db.prepare('INSERT INTO issue (id, title, body, status, version, updated_at) VALUES (?, ?, ?, ?, 0, ?)');
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rounds = bodies.map((bodies) =>
    bodies
      .flatMap((body) => JSON.parse(body).operations[0].events)
      .map((e) => ({ id: e.id, entity: e.entityId, title: e.change.set?.title ?? '', text: JSON.stringify(e) })),
  );
  for (const { entity } of rounds[0] ?? []) add.run(entity, 't', 'x'.repeat(120), 'todo', '');
  let version = 0;
  const cpu = process.cpuUsage();
  const started = performance.now();
  for (const round of rounds) {
    begin.run();
    for (const { id, entity, title, text } of round) {
      version += 1;
      insert.run(version, id, entity, text);
      update.run(title, '2026-11-30T00:00:00.000Z', entity);
    }
    commit.run();
  }
  const ms = performance.now() - started;
  {
    const u = process.cpuUsage(cpu);
    console.log(
      '   cpu us/event',
      ((u.user + u.system) / (ROUNDS * 80)).toFixed(1),
      'user',
      (u.user / (ROUNDS * 80)).toFixed(1),
    );
  }
  db.close();
  return (version / ms) * 1000;
}

async function engine(folder: string, bodies: string[][]): Promise<number> {
  const platform = createNodePlatform();
  const store = openSqliteStore({ folder, platform });
  const engine = createEngine({
    store,
    platform,
    logger: (level, message, facts) => level === 'error' && console.error(message, facts),
  });
  await engine.createWorkspace('bench');
  const ref = { workspace: 'bench', log: 'main' };
  const actor = { account: 'ana', role: 'writer' } as const;
  const page = (await engine.events(actor, ref, { after: 0 })) as { body: string };
  const chain = JSON.parse(page.body).through.chain as string;
  const ready: Json[][] = bodies.map((round) =>
    round.map((body) => {
      const parsed = parseJson(body.replace('CHAIN', chain), { bytesMax: LIMITS.bodyBytesMax, depthMax: 64 });
      if (!parsed.ok) throw new Error('unreadable');
      return parsed.value;
    }),
  );
  let events = 0;
  let position: unknown = null;
  const cpu = process.cpuUsage();
  const started = performance.now();
  for (const round of ready) {
    const answers = await Promise.all(
      round.map((body) =>
        engine.push(actor, ref, position === null ? body : ({ ...(body as object), position } as unknown as Json)),
      ),
    );
    for (const answer of answers) {
      if (!answer.ok) throw new Error(JSON.stringify(answer.refused));
      if (!answer.body.includes('"accepted"')) throw new Error(answer.body);
    }
    events += WRITERS * BATCH;
    const last = answers[0] as { body: string };
    const through = JSON.parse(last.body.slice(last.body.lastIndexOf('"through":') + 10, -1)) as {
      version: number;
      chain: string;
    };
    const epoch = 'e';
    position = { epoch, version: through.version, chain: through.chain };
  }
  const ms = performance.now() - started;
  {
    const u = process.cpuUsage(cpu);
    console.log(
      '   cpu us/event',
      ((u.user + u.system) / (ROUNDS * 80)).toFixed(1),
      'user',
      (u.user / (ROUNDS * 80)).toFixed(1),
    );
  }
  await engine.close();
  return (events / ms) * 1000;
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-append-'));
const { bodies } = texts();
for (let run = 0; run < 5; run += 1) {
  const b = process.env['ENGINE_ONLY'] ? 1 : bare(join(folder, `bare-${run}.db`), bodies);
  const e = await engine(join(folder, `engine-${run}`), bodies);
  console.log(`engine ${Math.round(e)} events/s  bare ${Math.round(b)} events/s  ratio ${(e / b).toFixed(2)}`);
}
rmSync(folder, { recursive: true });
