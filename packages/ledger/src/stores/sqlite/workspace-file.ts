import { closeSync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Logger, type Platform, randomHex } from '@holdfast/core';
import { loggedError } from '../../engine/logged-error.ts';
import { type EpochRow, type LogRow, type NewLog, StoreFault, type StoreFinding } from '../../engine/store-port.ts';
import { examineLog } from './examine.ts';
import { FileProof } from './file-proof.ts';
import { placeAfterLog, placeOf, prepareFile } from './format.ts';
import { logRow, type SqlRow } from './rows.ts';
import { prepareStatements, type Statements } from './statements.ts';
import { translated } from './store-fault.ts';
import { breakIn, readTimeline, type Timeline, writeTimeline } from './timeline.ts';

/** Opens a connection; tests give one that fails. */
export type OpenDatabase = (path: string, options: { readonly readOnly: boolean }) => DatabaseSync;

export const openDatabase: OpenDatabase = (path, { readOnly }) =>
  new DatabaseSync(path, { readOnly, timeout: 5_000, enableForeignKeyConstraints: false });

export interface FileParts {
  readonly path: string;
  readonly workspace: string;
  readonly platform: Platform;
  readonly logger: Logger;
  readonly open: OpenDatabase;
  readonly isReadOnly: boolean;
  /** Makes the file, with its first log, if it is not there. */
  readonly create: NewLog | null;
}

export interface FoundLog {
  readonly key: number;
  readonly row: LogRow;
  /** How many it has. */
  readonly operations: number;
}

/**
 * One open workspace file. Owns its connection; the file is durable, everything else here is derived from it. The worst
 * outcome would be an acknowledgement for what the file does not hold: every transaction proves first that the file is
 * still the one under its name.
 */
export class WorkspaceFile {
  readonly workspace: string;
  readonly createdAt: string;
  readonly sql: Statements;
  readonly #parts: FileParts;
  readonly #db: DatabaseSync;
  readonly #proof: FileProof;
  readonly #epochs = new Map<number, readonly EpochRow[]>();
  #condition: 'sound' | 'replaced' | 'uncertain' | 'closed' = 'sound';
  /** Heads moved since the timeline was written. */
  #isTimelineBehind = false;

  constructor(parts: FileParts) {
    this.#parts = parts;
    const { path, isReadOnly, create } = parts;
    if (create !== null) createEmpty(path);
    try {
      this.#db = parts.open(path, { readOnly: isReadOnly });
    } catch (cause) {
      throw translated(cause, true);
    }
    try {
      let sql: Statements | null = null;
      prepareFile(this.#db, {
        isReadOnly,
        create:
          create === null
            ? null
            : (db) => {
                sql = prepareStatements(db);
                sql.addWorkspace.run(parts.workspace, create.createdAt);
                addLog(sql, 'main', create);
              },
      });
      this.sql = sql ?? prepareStatements(this.#db);
      this.#isTimelineBehind = create !== null;
      const row = this.sql.workspace.get() as SqlRow | undefined;
      if (row === undefined) throw new StoreFault('damaged', { isRolledBack: true });
      this.workspace = row['name'] as string;
      this.createdAt = row['created_at'] as string;
      if (!isReadOnly) this.#checkTimeline();
      this.#proof = new FileProof(path);
    } catch (cause) {
      this.#db.close();
      throw translated(cause, true);
    }
  }

  get timelinePath(): string {
    return timelinePathOf(this.#parts.path);
  }

  /** Undefined where the log is absent. */
  log(name: string): FoundLog | undefined {
    const row = this.sql.log.get(name) as SqlRow | undefined;
    return row === undefined ? undefined : this.#found(row);
  }

  logs(): readonly FoundLog[] {
    return (this.sql.logs.all() as SqlRow[]).map((row) => this.#found(row));
  }

  #found(row: SqlRow): FoundLog {
    const key = row['key'] as number;
    const last = this.sql.head.get(placeOf(key, 0), placeAfterLog(key)) as SqlRow | undefined;
    return { key, row: logRow(row, last, this.#epochsOf(key)), operations: (last?.['nth'] as number | undefined) ?? 0 };
  }

  chainAt(key: number, version: number): string | null {
    return (
      ((this.sql.chainAt.get(placeOf(key, version)) as SqlRow | undefined)?.['chain'] as string | undefined) ?? null
    );
  }

  /** Undefined where the log is absent. */
  examine(name: string, max: number): readonly StoreFinding[] | undefined {
    this.assertSound();
    const log = this.log(name);
    return log === undefined ? undefined : examineLog(this.#db, log, this.#parts.platform.digest, max);
  }

  createLog(name: string, log: NewLog): boolean {
    return this.transact(() => {
      const isNew = addLog(this.sql, name, log);
      return { value: isNew, isChanged: isNew };
    });
  }

  /**
   * One transaction. What `work` throws comes out as it is, a failure of the store as `StoreFault`; either way nothing of
   * it is in the file, unless the fault says that it does not know.
   */
  transact<T>(work: () => { readonly value: T; readonly isChanged: boolean }): T {
    this.assertSound();
    if (!this.#proof.holds()) this.#giveUp();
    let done: { readonly value: T; readonly isChanged: boolean };
    try {
      this.sql.begin.run();
      done = work();
    } catch (cause) {
      this.#rollBack();
      throw translated(cause, true);
    }
    if (!done.isChanged) {
      this.#rollBack();
      return done.value;
    }
    try {
      this.sql.commit.run();
    } catch (cause) {
      throw this.#afterFailedCommit(cause);
    }
    this.#proof.renew();
    this.#isTimelineBehind = true;
    return done.value;
  }

  /** Reads and writes alike: what was swapped has nothing true to say. */
  assertSound(): void {
    switch (this.#condition) {
      case 'sound':
        return;
      case 'replaced':
        throw new StoreFault('replaced', { isRolledBack: true });
      case 'uncertain':
        throw new StoreFault('failed', { isRolledBack: true });
      case 'closed':
        throw new StoreFault('closed', { isRolledBack: true });
    }
  }

  /** True while a cache may close it and open it again. */
  get isSound(): boolean {
    return this.#condition === 'sound';
  }

  writeTimeline(): void {
    if (!this.#isTimelineBehind || !this.isSound || this.#parts.isReadOnly) return;
    this.#isTimelineBehind = false;
    const heads: Record<string, { version: number; chain: string }> = {};
    for (const { row } of this.logs()) heads[row.identity] = { version: row.head, chain: row.chain };
    writeTimeline(this.timelinePath, { workspace: this.workspace, createdAt: this.createdAt, heads });
  }

  close(): void {
    if (this.#condition === 'closed') return;
    // A replaced file's connection would write its journal into what stands there now, or delete it: it is left alone.
    if (this.#condition === 'replaced') return;
    this.writeTimeline();
    this.#condition = 'closed';
    this.#db.close();
  }

  // ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #checkTimeline(): void {
    const timeline: Timeline | null = this.#parts.create === null ? readTimeline(this.timelinePath) : null;
    const at = new Date(this.#parts.platform.clock.now()).toISOString();
    for (const { key, row } of this.logs()) {
      const why = breakIn(timeline, {
        identity: row.identity,
        head: row.head,
        chainAt: (version) => this.chainAt(key, version),
      });
      if (why === null) continue;
      this.sql.addEpoch.run(key, key, randomHex(this.#parts.platform.random, 16), row.head, why, at);
      this.#epochs.delete(key);
      this.#isTimelineBehind = true;
      this.#parts.logger('warn', 'A log begins a new epoch, because its file is not the one that was known.', {
        workspace: this.workspace,
        log: row.log,
        head: row.head,
        why,
      });
    }
  }

  #epochsOf(key: number): readonly EpochRow[] {
    let epochs = this.#epochs.get(key);
    if (epochs === undefined) {
      epochs = (this.sql.epochs.all(key) as SqlRow[]).map((row) => ({
        epoch: row['epoch'] as string,
        after: row['after'] as number,
        why: row['why'] as string,
        at: row['at'] as string,
      }));
      if (epochs.length > 0) this.#epochs.set(key, epochs);
    }
    return epochs;
  }

  // ── failing ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #rollBack(): void {
    if (!this.#db.isTransaction) return;
    try {
      this.sql.rollback.run();
    } catch (cause) {
      this.#condition = 'uncertain';
      this.#tellOfFailure(
        'A transaction could not be rolled back. This workspace rests until the ledger is restarted.',
        cause,
      );
    }
  }

  /**
   * A commit that failed may be in the journal all the same, and would be read from there after a crash. This process goes
   * on from the state before it, and what it writes next takes its place; only the asker must not be told either way.
   */
  #afterFailedCommit(cause: unknown): unknown {
    const fault = translated(cause, false);
    this.#rollBack();
    this.#tellOfFailure('A commit failed.', cause);
    // No space and no lock are found before anything could be final.
    const isDefinite = fault instanceof StoreFault && (fault.code === 'full' || fault.code === 'busy');
    return isDefinite ? translated(cause, true) : fault;
  }

  #giveUp(): never {
    this.#condition = 'replaced';
    const orphan = this.#proof.moveJournalAside(randomHex(this.#parts.platform.random, 4));
    this.#parts.logger(
      'error',
      'The file of a workspace was removed, replaced or overwritten while in use. Nothing is accepted for it until the ledger is restarted. Stop the ledger, put the right file in place, start it.',
      { workspace: this.workspace, file: this.#parts.path, ...(orphan === null ? {} : { journalKept: orphan }) },
    );
    throw new StoreFault('replaced', { isRolledBack: true });
  }

  #tellOfFailure(message: string, cause: unknown): void {
    this.#parts.logger('error', message, {
      workspace: this.workspace,
      file: this.#parts.path,
      error: loggedError(cause),
    });
  }
}

function addLog(sql: Statements, name: string, log: NewLog): boolean {
  const added = sql.addLog.run(name, log.identity, log.chain, log.signature, log.createdAt);
  if (added.changes === 0) return false;
  const key = Number(added.lastInsertRowid);
  sql.addEpoch.run(key, key, log.epoch, 0, 'created', log.createdAt);
  return true;
}

export const timelinePathOf = (path: string): string => path.replace(/\.db$/, '.timeline');

/** Owner only, and its name in the folder durable, before SQLite writes a byte. */
function createEmpty(path: string): void {
  const file = openSync(path, 'a', 0o600);
  fsyncSync(file);
  closeSync(file);
  const folder = openSync(dirname(path), 'r');
  fsyncSync(folder);
  closeSync(folder);
}
