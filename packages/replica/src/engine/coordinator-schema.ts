/**
 * Tables of the coordinator (7, PM13). Executed by `file.ts` when a replica file is created.
 *
 * `hf_coordinator` has one row: who this replica is, and who may act for it. `hf_permit` and `hf_obligation` record what
 * was asked of the ledger and what is owed; `ended_at` and `closed_at` are NULL exactly while a row is active, so the
 * partial indexes stay as small as what is going on right now. No CHECK on texts that a newer version may extend: what
 * this code cannot read counts as the careful one.
 */
export const COORDINATOR_SCHEMA = `
CREATE TABLE hf_coordinator (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  replica_id TEXT NOT NULL,
  ledger TEXT NOT NULL,
  account TEXT NOT NULL,
  workspace TEXT NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  host_instance TEXT NOT NULL DEFAULT '',
  mode TEXT NOT NULL DEFAULT 'host',
  transition TEXT NOT NULL DEFAULT 'idle',
  transfer_target TEXT,
  transfer_phase TEXT,
  transfer_deadline INTEGER
) STRICT;

CREATE TABLE hf_permit (
  seq INTEGER PRIMARY KEY,
  permit_id TEXT NOT NULL UNIQUE,
  log TEXT NOT NULL,
  generation INTEGER NOT NULL,
  number INTEGER NOT NULL,
  host_instance TEXT NOT NULL,
  owner_mode TEXT NOT NULL,
  class TEXT NOT NULL,
  command_id TEXT,
  boundary TEXT,
  state TEXT NOT NULL,
  disposition TEXT NOT NULL,
  reason TEXT,
  issued_at TEXT NOT NULL,
  due_at TEXT NOT NULL,
  moved_at TEXT NOT NULL,
  ended_at TEXT
) STRICT;
CREATE INDEX hf_permit_active ON hf_permit (log, state) WHERE ended_at IS NULL;

CREATE TABLE hf_permit_operation (
  permit INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  outcome TEXT,
  PRIMARY KEY (permit, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_obligation (
  seq INTEGER PRIMARY KEY,
  permit INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  log TEXT NOT NULL,
  class TEXT NOT NULL,
  action TEXT NOT NULL,
  identity TEXT NOT NULL,
  disposition TEXT NOT NULL,
  boundary TEXT,
  reason TEXT NOT NULL,
  count INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  last_at TEXT NOT NULL,
  closed_at TEXT,
  evidence TEXT
) STRICT;
CREATE UNIQUE INDEX hf_obligation_open
  ON hf_obligation (identity, log, class, action, ifnull(boundary, ''), disposition, reason) WHERE closed_at IS NULL;
CREATE INDEX hf_obligation_permit ON hf_obligation (permit);
CREATE INDEX hf_obligation_owed ON hf_obligation (log, seq) WHERE closed_at IS NULL;
`;
