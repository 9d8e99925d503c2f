import { copyFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Play } from './coda.ts';
import { removeFile } from './device.ts';
import { inOwnWorld } from './own-world.ts';
import type { World } from './world.ts';

/** What a ledger called accepted is there, whatever becomes of its machine (LG9). Each in a world of its own. */
export const LEDGER: readonly Play[] = [
  {
    name: 'a ledger without power',
    invariant: 'I03',
    play: (outer) => {
      const connections = new Set<DatabaseSync>();
      const ledgerThrough = (connection: DatabaseSync) => {
        connections.add(connection);
        return connection;
      };
      return inOwnWorld(outer, { ledgerThrough }, async ({ ana, ben, world, ...stage }) => {
        const id = await stage.note();
        stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await stage.rest();
        const unsynced = [...connections].flatMap((connection) =>
          isSynced(connection) ? [] : (connection.location() ?? []),
        );
        // In WAL mode a commit is synced with `synchronous=FULL`, and else only with the next checkpoint.
        const onMedium = unsynced.map((file) => [file, readFileSync(file)] as const);
        world.ledger.kill();
        for (const [file, bytes] of onMedium) {
          removeFile(file);
          writeFileSync(file, bytes);
        }
        world.ledger.start();
        for (const device of [ana, ben]) device.engine?.sync.kick('online');
        await world.time.advance(5_000);
        for (const device of [ana, ben]) {
          const { phase } = device.engine?.sync.status ?? {};
          stage.expect(phase === 'live', `after a power cut at the ledger ${device.name} says ${phase}`);
        }
      });
    },
  },
  ...(['full', 'silent'] as const).map(
    (disk): Play => ({
      name: `a ledger whose disk is ${disk} in the last moment`,
      invariant: 'I03',
      play: (outer) => {
        const failing: Failing = { left: 0, isRunFirst: disk === 'silent' };
        const ledgerThrough = (connection: DatabaseSync) => withCommits(connection, failing);
        return inOwnWorld(outer, { ledgerThrough }, async ({ ana, ben, world, ...stage }) => {
          const id = await stage.note();
          failing.left = 1;
          const action = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
          await world.time.until(() => failing.left === 0, 5_000);
          await world.time.advance(20);
          const isThere = stage.row(ben, id)?.['votes'] === 1;
          stage.expect(isThere || stage.outcome(ana, action) !== 'ordered', 'what was not written was called accepted');
          if (disk === 'silent') {
            // Nobody knows what is in the file until it is opened again.
            world.ledger.kill();
            world.ledger.start();
            await world.time.advance(5_000);
          }
          await stage.rest();
          stage.expect(stage.row(ben, id)?.['votes'] === 1, `one vote counts ${stage.row(ben, id)?.['votes']}`);
        });
      },
    }),
  ),
  {
    name: 'a ledger whose file was replaced while it ran',
    invariant: 'I03',
    play: (outer) =>
      inOwnWorld(outer, {}, async ({ ana, ben, world, ...stage }) => {
        const id = await stage.note();
        const [file] = filesOf(world);
        if (file === undefined) return stage.expect(false, 'the ledger has no file');
        world.ledger.kill();
        emptyJournal(file);
        world.ledger.start();
        await world.time.advance(5_000);
        await stage.rest();
        copyFileSync(file, `${file}.copy`);
        renameSync(file, `${file}.aside`);
        renameSync(`${file}.copy`, file);
        const action = stage.commit(ana, (tx) => tx.note.update(id as never, { votes: { by: 1 } }));
        await world.time.advance(5_000);
        stage.expect(stage.outcome(ana, action) !== 'ordered', 'work was accepted into a file that was replaced');
        stage.expect(stage.row(ben, id)?.['votes'] === 0, 'others see what went into a file that was replaced');
        world.ledger.kill();
        // As an operator puts it back: with no journal, since nothing was accepted after it was emptied.
        removeFile(file);
        copyFileSync(`${file}.aside`, file);
        world.ledger.start();
        await stage.rest();
      }),
  },
];

const isSynced = (connection: DatabaseSync): boolean =>
  !connection.isOpen || (connection.prepare('PRAGMA synchronous').get()?.['synchronous'] as number) >= FULL;
const FULL = 2;

/** All that is in the journal goes to the file itself. */
function emptyJournal(file: string): void {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

const filesOf = ({ ledger: { folder } }: World): readonly string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.db'))
    .map((name) => join(folder, name));

interface Failing {
  /** COMMITs that are to fail from now on. */
  left: number;
  /** It takes effect all the same, and the disk says that something went wrong. */
  readonly isRunFirst: boolean;
}

const FULL_DISK = { errcode: 13 };
const IO_ERROR = { errcode: 10 };

function withCommits(connection: DatabaseSync, failing: Failing): DatabaseSync {
  const guarded = (statement: StatementSync): StatementSync =>
    overlaid(statement, {
      run: (...values: never[]) => {
        if (failing.left === 0) return statement.run(...values);
        failing.left -= 1;
        if (failing.isRunFirst) statement.run(...values);
        throw Object.assign(new Error('the disk failed'), failing.isRunFirst ? IO_ERROR : FULL_DISK);
      },
    });
  return overlaid(connection, {
    prepare: (sql: string) => (/^\s*COMMIT/i.test(sql) ? guarded(connection.prepare(sql)) : connection.prepare(sql)),
  });
}

/** The object, but for some of its methods. */
const overlaid = <T extends object>(inner: T, over: Partial<T>): T =>
  new Proxy(inner, {
    get: (target, name) => {
      if (name in over) return Reflect.get(over, name);
      const member = Reflect.get(target, name, target) as unknown;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
