import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Json, LIMITS, type PushAnswer } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newLog } from '../../../../../contract/src/ledger-store-rows.ts';
import { createNodePlatform } from '../../adapters/node/platform.ts';
import { Author, wire } from '../../engine/drafts.fixture.ts';
import { createEngine, type Engine } from '../../engine/engine.ts';
import { listeningLogger, temporaryFolder } from './store.fixture.ts';
import { openSqliteStore, type SqliteStoreOptions } from './store.ts';
import { openDatabase } from './workspace-file.ts';

const REF = { workspace: 'acme', log: 'main' };
const ANA = { account: 'ana', role: 'writer' } as const;

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.dispose());

const open = (more: Partial<SqliteStoreOptions> = {}, path = folder.path) =>
  openSqliteStore({ folder: path, platform: createNodePlatform(), ...more });

const engineOn = (more: Partial<SqliteStoreOptions> = {}, path = folder.path): Engine =>
  createEngine({
    store: open(more, path),
    platform: createNodePlatform(),
    logger: more.logger ?? (() => undefined),
    createOnFirstUse: true,
  });

async function positionOf(engine: Engine): Promise<{ epoch: string; version: number; chain: string }> {
  const page = await engine.events(ANA, REF, { after: Number.MAX_SAFE_INTEGER });
  if (!page.ok) throw new Error(page.refused.refusal.code);
  const { epoch, through } = JSON.parse(page.body) as { epoch: string; through: { version: number; chain: string } };
  return { epoch, version: through.version, chain: through.chain };
}

const pushed = async (engine: Engine, request: unknown) => {
  const answer = await engine.push(ANA, REF, wire(request));
  return answer.ok ? (JSON.parse(answer.body) as PushAnswer) : answer.refused;
};

const mainFile = (path = folder.path): string =>
  join(path, readdirSync(path).find((name) => name.endsWith('.db')) as string);

/** A connection whose n-th statement from now on fails instead of running. */
function failingAt(): {
  open: SqliteStoreOptions['open'] & object;
  failAt(n: number | null): void;
  readonly ran: number;
} {
  let left: number | null = null;
  let ran = 0;
  const step = (): void => {
    ran += 1;
    if (left === null) return;
    left -= 1;
    if (left === 0) throw Object.assign(new Error('disk I/O error'), { errcode: 10, code: 'ERR_SQLITE_ERROR' });
  };
  const failing = (statement: StatementSync): StatementSync =>
    new Proxy(statement, {
      get: (target, name) => {
        const member = Reflect.get(target, name, target) as unknown;
        if (typeof member !== 'function') return member;
        return (...values: never[]) => {
          // A rollback that fails is another story: the connection is given up.
          if (target.sourceSQL !== 'ROLLBACK') step();
          return (member as (...values: never[]) => unknown).apply(target, values);
        };
      },
    });
  return {
    open: (path, options) => {
      const db = openDatabase(path, options);
      return new Proxy(db, {
        get: (target, name) => {
          if (name === 'prepare') return (sql: string) => failing(target.prepare(sql));
          const member = Reflect.get(target, name, target) as unknown;
          return typeof member === 'function' ? (member as DatabaseSync['exec']).bind(target) : member;
        },
      });
    },
    failAt: (n) => {
      left = n;
      ran = 0;
    },
    get ran() {
      return ran;
    },
  };
}

test('[F95 LG9] every connection that appends waits for the medium at each commit, past the cache of the drive', async () => {
  const connections: DatabaseSync[] = [];
  const listening: SqliteStoreOptions['open'] & object = (path, options) => {
    const db = openDatabase(path, options);
    connections.push(db);
    return db;
  };
  const levels = () =>
    connections.map((db) =>
      ['journal_mode', 'synchronous', 'fullfsync', 'checkpoint_fullfsync'].map(
        (name) => db.prepare(`PRAGMA ${name}`).get()?.[name],
      ),
    );
  // A file that it makes, and one that was there; a cut of power cannot be tried here, but what SQLite promises can.
  for (const _run of ['makes', 'finds']) {
    connections.length = 0;
    const engine = engineOn({ open: listening });
    await positionOf(engine);
    expect(levels()).toEqual([['wal', 2, 1, 1]]);
    await engine.close();
  }
});

describe('every statement may fail', () => {
  test('[LG1 F08] the n-th statement of an append fails, for every n: nothing is half, and a repeat is accepted once', async () => {
    const faults = failingAt();
    const engine = engineOn({ open: faults.open });
    const author = new Author();
    let position = await positionOf(engine);
    const first = author.operation([author.create('e1'), author.create('e2')]);
    const answer = (await pushed(engine, author.request(position, [first]))) as PushAnswer;
    position = { ...position, version: answer.through.version, chain: answer.through.chain };
    let version = 1;
    let failures = 0;
    for (let n = 1; ; n += 1) {
      const operation = author.operation([
        author.set('e1', { title: `t${n}` }, version),
        author.create(`n${n}`),
        author.set('e2', { title: `t${n}` }, version),
      ]);
      const request = author.request(position, [operation]);
      faults.failAt(n);
      const failed = await pushed(engine, request);
      faults.failAt(null);
      if ('results' in failed) {
        expect(failures).toBeGreaterThan(15);
        break;
      }
      failures += 1;
      expect(failed.refusal.code).toBe('internal');
      const verified = await engine.verify(REF);
      expect(verified?.problems).toEqual([]);
      expect(verified?.events).toBe(position.version);
      const again = (await pushed(engine, author.request(position, [operation]))) as PushAnswer;
      expect(again.results).toMatchObject([{ status: 'accepted', firstVersion: position.version + 1 }]);
      position = { ...position, version: again.through.version, chain: again.through.chain };
      version += 1;
    }
    expect((await engine.verify(REF))?.problems).toEqual([]);
    await engine.close();
  });

  test('[F20 F102] a full disk refuses the append, keeps reading, and accepts again when there is space', async () => {
    let isFull = false;
    const engine = engineOn({
      open: (path, options) => {
        const db = openDatabase(path, options);
        return new Proxy(db, {
          get: (target, name) => {
            if (name === 'prepare')
              return (sql: string) => {
                const statement = target.prepare(sql);
                if (sql !== 'COMMIT') return statement;
                return {
                  run: () => {
                    if (isFull) throw Object.assign(new Error('full'), { errcode: 13 });
                    return statement.run();
                  },
                };
              };
            const member = Reflect.get(target, name, target) as unknown;
            return typeof member === 'function' ? (member as DatabaseSync['exec']).bind(target) : member;
          },
        });
      },
    });
    const author = new Author();
    const position = await positionOf(engine);
    const operation = author.operation([author.create('e1')]);
    isFull = true;
    expect(await pushed(engine, author.request(position, [operation]))).toMatchObject({ status: 507 });
    expect((await positionOf(engine)).version).toBe(0);
    isFull = false;
    expect(await pushed(engine, author.request(position, [operation]))).toMatchObject({
      results: [{ status: 'accepted' }],
    });
    await engine.close();
  });
});

describe('crashes', () => {
  test('[LG9 F90] files as a crash leaves them open again with everything that was acknowledged', async () => {
    const engine = engineOn();
    const author = new Author();
    let position = await positionOf(engine);
    const operations = [];
    for (let n = 0; n < 5; n += 1) {
      const operation = author.operation([author.create(`e${n}`), author.create(`f${n}`)]);
      operations.push(operation);
      const answer = (await pushed(engine, author.request(position, [operation]))) as PushAnswer;
      position = { ...position, version: answer.through.version, chain: answer.through.chain };
    }
    const crashed = engineOn({}, folder.copy());
    expect(await crashed.verify(REF)).toMatchObject({ events: 10, entities: 10, problems: [] });
    const repeat = (await pushed(crashed, author.request(position, operations))) as PushAnswer;
    expect(repeat.results.map((result) => result.status === 'accepted' && result.firstVersion)).toEqual([
      1, 3, 5, 7, 9,
    ]);
    expect(repeat.head).toBe(10);
    await crashed.close();
    await engine.close();
  });

  test('[F90] a workspace file whose creation was cut is as if it were not there', async () => {
    const whole = open();
    await whole.createWorkspace('acme', newLog());
    await whole.close();
    const file = mainFile();
    rmSync(file);
    rmSync(file.replace(/db$/, 'timeline'));
    writeFileSync(file, '');
    const store = open();
    expect(await store.workspaces()).toEqual([]);
    expect(await store.log(REF)).toBeUndefined();
    expect(await store.createWorkspace('acme', newLog())).toBe(true);
    expect((await store.log(REF))?.head).toBe(0);
    await store.close();
  });
});

describe('the folder', () => {
  test('[F94 F169] a second ledger on one folder is told that it is in use', async () => {
    const store = open();
    expect(() => open()).toThrow(expect.objectContaining({ name: 'StoreFault', code: 'busy' }));
    await store.close();
    await open().close();
  });

  test('[LG9] a command may look while the ledger runs, and cannot write', async () => {
    const engine = engineOn();
    const author = new Author();
    await pushed(engine, author.request(await positionOf(engine), [author.operation([author.create('e1')])]));
    const looking = open({ isReadOnly: true });
    expect((await looking.log(REF))?.head).toBe(1);
    await expect((async () => looking.createLog({ ...REF, log: 'x' }, newLog()))()).rejects.toThrow();
    await looking.close();
    await engine.close();
  });

  test('[S23] files and folder belong to their owner alone', async () => {
    const engine = engineOn();
    await positionOf(engine);
    expect(statSync(folder.path).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder.path))
      expect([name, statSync(join(folder.path, name)).mode & 0o077]).toEqual([name, 0]);
    await engine.close();
  });

  test('[F187] no name of a user is part of a path', async () => {
    const store = open();
    await store.createWorkspace('../escape', newLog());
    expect((await store.workspaces()).map(({ workspace }) => workspace)).toEqual(['../escape']);
    expect(
      readdirSync(folder.path).filter(
        (name) => !/^(w-[0-9a-f]{32}\.(db(-wal|-shm)?|timeline)|ledger\.lock)$/.test(name),
      ),
    ).toEqual([]);
    expect(readdirSync(join(folder.path, '..'))).not.toContain('escape');
    await store.close();
  });

  test('[F28] a file of another program, or of a newer format, is refused and left as it is', async () => {
    const store = open();
    await store.createWorkspace('acme', newLog());
    await store.close();
    const file = mainFile();
    const other = openDatabase(file, { readOnly: false });
    other.exec('PRAGMA user_version = 2');
    other.close();
    const newer = open();
    expect(() => newer.log(REF)).toThrow(expect.objectContaining({ code: 'too-new' }));
    await newer.close();
    const foreign = openDatabase(file, { readOnly: false });
    foreign.exec('PRAGMA application_id = 1');
    foreign.close();
    const strange = open();
    expect(() => strange.log(REF)).toThrow(expect.objectContaining({ code: 'damaged' }));
    await strange.close();
  });
});

describe('a file that is not the one that was opened', () => {
  const loaded = async () => {
    const { logger, told } = listeningLogger();
    const engine = engineOn({ logger });
    const author = new Author();
    const position = await positionOf(engine);
    const answer = (await pushed(
      engine,
      author.request(position, [author.operation([author.create('e1')])]),
    )) as PushAnswer;
    const now = { ...position, version: answer.through.version, chain: answer.through.chain };
    const next = () => author.request(now, [author.operation([author.create('e2')])]);
    return { engine, author, told, next };
  };

  test('[F91 LG9] deleted while running: nothing is acknowledged, and its journal is kept', async () => {
    const { engine, told, next } = await loaded();
    rmSync(mainFile());
    expect(await pushed(engine, next())).toMatchObject({ status: 503, refusal: { code: 'internal' } });
    expect(await pushed(engine, next())).toMatchObject({ status: 503 });
    expect(
      told.some(({ level, message }) => level === 'error' && /removed, replaced or overwritten/.test(message)),
    ).toBe(true);
    expect(readdirSync(folder.path).some((name) => name.includes('-wal.orphaned-'))).toBe(true);
    await engine.close();
  });

  test('[F91 LG9 F35] replaced by an older copy while running: nothing is acknowledged', async () => {
    const { engine, next } = await loaded();
    const file = mainFile();
    const copy = folder.copy();
    renameSync(mainFile(copy), `${file}.new`);
    renameSync(`${file}.new`, file);
    expect(await pushed(engine, next())).toMatchObject({ status: 503 });
    await engine.close();
  });

  test('[F91 LG9 F35] overwritten in place while running: nothing is acknowledged', async () => {
    const { engine, next } = await loaded();
    const file = mainFile();
    writeFileSync(file, Buffer.alloc(statSync(file).size));
    expect(await pushed(engine, next())).toMatchObject({ status: 503 });
    await engine.close();
  });

  test('[F29 LG9] its journal deleted while running: nothing is acknowledged', async () => {
    const { engine, next } = await loaded();
    rmSync(`${mainFile()}-wal`);
    expect(await pushed(engine, next())).toMatchObject({ status: 503 });
    await engine.close();
  });

  test('[DG3 F91] rewound between runs: a new epoch begins, and a position that was lost is not in the log', async () => {
    const engine = engineOn();
    const author = new Author();
    const start = await positionOf(engine);
    const one = (await pushed(engine, author.request(start, [author.operation([author.create('e1')])]))) as PushAnswer;
    const at = { ...start, version: one.through.version, chain: one.through.chain };
    await engine.close();
    const old = mainFile(folder.copy());
    const later = engineOn();
    const two = (await pushed(later, author.request(at, [author.operation([author.create('e2')])]))) as PushAnswer;
    const lost = { ...at, version: two.through.version, chain: two.through.chain };
    await later.close();
    renameSync(old, mainFile());
    const rewound = engineOn();
    expect((await positionOf(rewound)).version).toBe(1);
    expect((await positionOf(rewound)).epoch).not.toBe(start.epoch);
    expect(await pushed(rewound, author.request(lost, [author.operation([author.create('e3')])]))).toMatchObject({
      status: 409,
      refusal: { code: 'history-changed' },
    });
    // Whoever's position is still in the log goes on.
    expect(await pushed(rewound, author.request(at, [author.operation([author.create('e4')])]))).toMatchObject({
      results: [{ status: 'accepted', firstVersion: 2 }],
    });
    await rewound.close();
    expect((await positionOf(engineOn({}, folder.copy()))).version).toBe(2);
  });

  test('[DG3] a file that continues what was known keeps its epoch; one without a known past begins a new one', async () => {
    const engine = engineOn();
    const author = new Author();
    const start = await positionOf(engine);
    await pushed(engine, author.request(start, [author.operation([author.create('e1')])]));
    await engine.close();
    const same = engineOn();
    expect((await positionOf(same)).epoch).toBe(start.epoch);
    await same.close();
    rmSync(mainFile().replace(/db$/, 'timeline'));
    const unknown = engineOn();
    expect((await positionOf(unknown)).epoch).not.toBe(start.epoch);
    await unknown.close();
    const settled = engineOn();
    const { epoch } = await positionOf(settled);
    await settled.close();
    const again = engineOn();
    expect((await positionOf(again)).epoch).toBe(epoch);
    await again.close();
  });

  test('[DG3] a crash before the timeline was written again is no rewind', async () => {
    const engine = engineOn();
    const author = new Author();
    const start = await positionOf(engine);
    await pushed(engine, author.request(start, [author.operation([author.create('e1')])]));
    const crashed = engineOn({}, folder.copy());
    expect(await positionOf(crashed)).toMatchObject({ epoch: start.epoch, version: 1 });
    await crashed.close();
    await engine.close();
  });

  test('[F91] removed between runs: the ledger says so, and serves another log in its place only if told to', async () => {
    const store = open();
    await store.createWorkspace('acme', newLog());
    await store.close();
    rmSync(mainFile());
    const { logger, told } = listeningLogger();
    const again = open({ logger });
    expect(told).toMatchObject([{ level: 'error', facts: { workspace: 'acme' } }]);
    expect(await again.log(REF)).toBeUndefined();
    await again.close();
  });
});

describe('limits', () => {
  test('[I28] no more files are open than allowed, and all workspaces are served', async () => {
    let open = 0;
    const engine = engineOn({
      openFilesMax: 3,
      open: (path, options) => {
        const db = openDatabase(path, options);
        open += 1;
        return new Proxy(db, {
          get: (target, name) => {
            if (name === 'close')
              return () => {
                open -= 1;
                target.close();
              };
            const member = Reflect.get(target, name, target) as unknown;
            return typeof member === 'function' ? (member as DatabaseSync['exec']).bind(target) : member;
          },
        });
      },
    });
    for (let round = 0; round < 2; round += 1)
      for (let at = 0; at < 8; at += 1) {
        await engine.events(ANA, { workspace: `w${at}`, log: 'main' }, { after: 0 });
        expect(open).toBeLessThanOrEqual(3);
      }
    expect((await engine.workspaces()).length).toBe(8);
    await engine.close();
    expect(open).toBe(0);
  });

  test('[LG6] an event of the greatest size is kept and told whole', async () => {
    const engine = engineOn();
    const author = new Author();
    const position = await positionOf(engine);
    const base = author.create('e1', { body: '' });
    const room = LIMITS.eventBytesMax - JSON.stringify(base).length;
    const big = { ...base, change: { op: 'create', fields: { body: 'x'.repeat(room) } } } as typeof base;
    const answer = (await pushed(engine, author.request(position, [author.operation([big])]))) as PushAnswer;
    expect(answer.results).toMatchObject([{ status: 'accepted' }]);
    const over = {
      ...big,
      id: author.id(),
      entityId: 'e2',
      change: { op: 'create', fields: { body: 'x'.repeat(room + 1) } },
    } as Json;
    const refused = (await pushed(engine, author.request(position, [author.operation([over as never])]))) as PushAnswer;
    expect(refused.results).toMatchObject([
      { status: 'refused', code: 'too-large', details: { limit: 'eventBytesMax' } },
    ]);
    expect(existsSync(mainFile())).toBe(true);
    await engine.close();
  });
});
