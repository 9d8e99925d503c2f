import type { Database } from '@holdfast/core';

/**
 * What a connection keeps of the outbox so that no commit reads or writes more of the file for it: which row belongs to an
 * action id, and how many rows are in which state (an app that is offline for a week asks after each of ten thousand
 * commits). Both lie in temporary tables that SQLite itself keeps up by triggers: a rollback takes them back, no writer can
 * forget them, and they cost no page of the file.
 */
export interface TallyRow {
  readonly log: string;
  readonly state: string;
  readonly isHeld: boolean;
  readonly count: number;
}

/** Reads the outbox once, without its drafts. To be called whenever the file may have been written by somebody else. */
export function indexOutbox(database: Database): void {
  database.exec(`
DROP TRIGGER IF EXISTS temp.hf_outbox_in;
DROP TRIGGER IF EXISTS temp.hf_outbox_out;
DROP TRIGGER IF EXISTS temp.hf_outbox_moved;
DROP TRIGGER IF EXISTS temp.hf_outbox_stated;
DROP TABLE IF EXISTS temp.hf_action;
DROP TABLE IF EXISTS temp.hf_tally;
CREATE TEMP TABLE hf_action (action_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE hf_tally (log TEXT, state TEXT, held INTEGER, n INTEGER, PRIMARY KEY (log, state, held)) WITHOUT ROWID;
INSERT INTO temp.hf_action SELECT action_id, seq FROM main.hf_outbox;
INSERT INTO temp.hf_tally SELECT log, state, held_by IS NOT NULL, count(*) FROM main.hf_outbox GROUP BY 1, 2, 3;
CREATE TEMP TRIGGER hf_outbox_in AFTER INSERT ON main.hf_outbox BEGIN
  INSERT INTO hf_action VALUES (NEW.action_id, NEW.seq);
  ${added('NEW')}
END;
CREATE TEMP TRIGGER hf_outbox_out AFTER DELETE ON main.hf_outbox BEGIN
  DELETE FROM hf_action WHERE action_id = OLD.action_id;
  ${removed('OLD')}
END;
CREATE TEMP TRIGGER hf_outbox_moved AFTER UPDATE OF seq ON main.hf_outbox BEGIN
  UPDATE hf_action SET seq = NEW.seq WHERE action_id = NEW.action_id;
END;
CREATE TEMP TRIGGER hf_outbox_stated AFTER UPDATE OF log, state, held_by ON main.hf_outbox
WHEN OLD.state IS NOT NEW.state OR (OLD.held_by IS NULL) <> (NEW.held_by IS NULL) OR OLD.log IS NOT NEW.log
BEGIN ${removed('OLD')} ${added('NEW')} END;`);
}

/** For `WHERE`: the row of an action id, which is the parameter. */
export const BY_ACTION = 'seq = (SELECT seq FROM temp.hf_action WHERE action_id = ?)';

const added = (row: string): string =>
  `INSERT INTO hf_tally VALUES (${row}.log, ${row}.state, ${row}.held_by IS NOT NULL, 1) ON CONFLICT DO UPDATE SET n = n + 1;`;
const removed = (row: string): string =>
  `UPDATE hf_tally SET n = n - 1 WHERE log = ${row}.log AND state = ${row}.state AND held = (${row}.held_by IS NOT NULL);`;

export const readTally = (database: Database): readonly TallyRow[] =>
  database
    .prepare('SELECT log, state, held, n FROM temp.hf_tally WHERE n > 0')
    .all()
    .map((row) => ({
      log: row['log'] as string,
      state: row['state'] as string,
      isHeld: row['held'] === 1,
      count: row['n'] as number,
    }));
