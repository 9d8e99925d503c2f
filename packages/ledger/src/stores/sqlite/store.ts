import { existsSync } from 'node:fs';
import type { Logger, Platform } from '@holdfast/core';
import { loggedError } from '../../engine/logged-error.ts';
import { type LedgerStore, type NewLog, StoreFault, type WorkspaceRow } from '../../engine/store-port.ts';
import { appendTo } from './append.ts';
import { fileOf, lockDirectory, orphanedTimelines, prepareDirectory, workspaceFiles } from './directory.ts';
import { UnbornFile } from './format.ts';
import { entitiesOf, entityOf, historyOf, meetIn, pageOf, recordProvenIn, replicasOf, usageOf } from './reads.ts';
import { translated } from './store-fault.ts';
import { readTimeline } from './timeline.ts';
import { type OpenDatabase, openDatabase, timelinePathOf, WorkspaceFile } from './workspace-file.ts';

export interface SqliteStoreOptions {
  /** Made if absent, for its owner only. */
  readonly folder: string;
  readonly platform: Platform;
  readonly logger?: Logger;
  /** Open at once; the one used longest ago is closed for the next. */
  readonly openFilesMax?: number;
  /** For a command that looks at a folder which a running ledger may hold: no lock, no writes. */
  readonly isReadOnly?: boolean;
  /** How connections are made; tests give one that fails. */
  readonly open?: OpenDatabase;
}

const OPEN_FILES_MAX = 64;
/** How old a timeline may grow beside a file that is written to. */
const TIMELINE_MS = 1_000;

/**
 * The embedded store: `node:sqlite`, one file per workspace, so that a backup, a move, an erasure and a bad day stay with
 * one tenant. Every call is synchronous. Throws `StoreFault` `busy` where another ledger holds the folder.
 *
 * Owns the folder's lock and a bounded set of open files. Durable: the files. Derived: everything here.
 */
export function openSqliteStore(options: SqliteStoreOptions): LedgerStore {
  const { folder: dir, platform, logger = () => undefined, isReadOnly = false } = options;
  const openFilesMax = Math.max(1, options.openFilesMax ?? OPEN_FILES_MAX);
  prepareDirectory(dir);
  const lock = isReadOnly ? null : lockDirectory(dir);
  for (const gone of orphanedTimelines(dir))
    logger('error', 'The file of a workspace is missing. Nothing is served for it.', { ...gone });

  /** In order of use, the oldest first. */
  const open = new Map<string, WorkspaceFile>();
  /** Workspaces by file, once they were listed. */
  const names = new Map<string, WorkspaceRow>();
  let isClosed = false;
  let cancelTimer: (() => void) | null = null;

  const load = (workspace: string, create: NewLog | null): WorkspaceFile => {
    const path = fileOf(dir, workspace, platform.digest);
    const file = new WorkspaceFile({
      path,
      workspace,
      platform,
      logger,
      open: options.open ?? openDatabase,
      isReadOnly,
      create,
    });
    if (file.workspace !== workspace) {
      file.close();
      throw new StoreFault('damaged', { isRolledBack: true });
    }
    names.set(path, { workspace, createdAt: file.createdAt });
    open.set(workspace, file);
    closeOldest();
    return file;
  };

  const closeOldest = (): void => {
    for (const [name, file] of open) {
      if (open.size <= openFilesMax) return;
      // A file that was replaced is remembered as such until the restart.
      if (!file.isSound) continue;
      open.delete(name);
      file.close();
    }
  };

  const fileFor = (workspace: string): WorkspaceFile | undefined => {
    if (isClosed) throw new StoreFault('closed', { isRolledBack: true });
    const known = open.get(workspace);
    if (known !== undefined) {
      open.delete(workspace);
      open.set(workspace, known);
      known.assertSound();
      return known;
    }
    return existsSync(fileOf(dir, workspace, platform.digest)) ? loadBorn(workspace) : undefined;
  };

  const loadBorn = (workspace: string): WorkspaceFile | undefined => {
    try {
      return load(workspace, null);
    } catch (cause) {
      if (cause instanceof UnbornFile) return undefined;
      throw cause;
    }
  };

  const read = <T>(workspace: string, run: (file: WorkspaceFile) => T): T | undefined => {
    const file = fileFor(workspace);
    if (file === undefined) return undefined;
    try {
      return run(file);
    } catch (cause) {
      throw translated(cause, true);
    }
  };

  const scheduleTimelines = (): void => {
    if (cancelTimer !== null) return;
    cancelTimer = platform.clock.timer(TIMELINE_MS, () => {
      cancelTimer = null;
      for (const file of open.values()) writeTimelineOf(file);
    });
  };

  const writeTimelineOf = (file: WorkspaceFile): void => {
    try {
      file.writeTimeline();
    } catch (cause) {
      logger('warn', 'A timeline could not be written.', { error: loggedError(cause) });
    }
  };

  const rowOf = (path: string): WorkspaceRow | null => {
    const known = names.get(path) ?? readTimeline(timelinePathOf(path));
    if (known !== null) return { workspace: known.workspace, createdAt: known.createdAt };
    try {
      const file = new WorkspaceFile({
        path,
        workspace: '',
        platform,
        logger,
        open: options.open ?? openDatabase,
        isReadOnly: true,
        create: null,
      });
      const { workspace, createdAt } = file;
      file.close();
      return { workspace, createdAt };
    } catch (cause) {
      if (cause instanceof UnbornFile) return null;
      logger('error', 'A workspace file cannot be read.', { path, error: loggedError(cause) });
      return null;
    }
  };

  return {
    workspaces: () => {
      if (isClosed) throw new StoreFault('closed', { isRolledBack: true });
      return workspaceFiles(dir).flatMap((path) => {
        const row = rowOf(path);
        if (row === null) return [];
        names.set(path, row);
        return [row];
      });
    },
    createWorkspace: (workspace, log) => {
      if (fileFor(workspace) !== undefined) return false;
      load(workspace, log).writeTimeline();
      return true;
    },
    createLog: ({ workspace, log }, fresh) => read(workspace, (file) => file.createLog(log, fresh)) ?? false,
    logs: (workspace) => read(workspace, (file) => file.logs().map(({ row }) => row)),
    log: ({ workspace, log }) => read(workspace, (file) => file.log(log)?.row),
    append: ({ workspace, log }, wanted, judge) => {
      const file = fileFor(workspace);
      if (file === undefined) return judge(undefined).value;
      scheduleTimelines();
      return appendTo(file, log, wanted, judge);
    },
    meet: (workspace, wanted, judge) => {
      const file = fileFor(workspace);
      return file === undefined ? judge(undefined).value : meetIn(file, wanted, judge);
    },
    page: ({ workspace, log }, wanted) => read(workspace, (file) => pageOf(file, log, wanted)),
    entities: ({ workspace, log }, wanted) => read(workspace, (file) => entitiesOf(file, log, wanted)),
    entity: ({ workspace, log }, key) => read(workspace, (file) => entityOf(file, log, key)),
    history: ({ workspace, log }, wanted) => read(workspace, (file) => historyOf(file, log, wanted)),
    replicas: (workspace) => read(workspace, replicasOf),
    recordProven: ({ workspace, log }, proven) => {
      read(workspace, (file) => recordProvenIn(file, log, proven));
    },
    usage: (workspace) => read(workspace, usageOf),
    examine: ({ workspace, log }, max) => read(workspace, (file) => file.examine(log, max)),
    close: () => {
      if (isClosed) return;
      isClosed = true;
      cancelTimer?.();
      for (const file of open.values()) file.close();
      open.clear();
      lock?.release();
    },
  };
}
