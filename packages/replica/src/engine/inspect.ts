import { chainNext, leafOfText, type SignedEntity, type SqlRow, sameValue, signatureOf } from '@holdfast/core';
import { pendingKeys } from './base.ts';
import { DatabaseFault } from './database-fault.ts';
import { LocalEntities } from './local.ts';
import { keysOf, LOCAL_STATES, readRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';
import { damageOf } from './whole-file.ts';

/**
 * The invariants of a replica file, checked against each other from scratch (doctor). Reads only; says what is wrong,
 * where, and what is safe to do about it.
 */
export interface Finding {
  readonly check:
    | 'sqlite'
    | 'chain'
    | 'cursor'
    | 'signature'
    | 'projection'
    | 'outbox'
    | 'conservation'
    | 'permits'
    | 'desk';
  readonly log?: string;
  readonly what: string;
  /** What a person can safely do. */
  readonly next: string;
}

export interface Examination {
  readonly findings: readonly Finding[];
  readonly checked: {
    readonly logs: number;
    readonly events: number;
    readonly entities: number;
    readonly batches: number;
    readonly permits: number;
    readonly obligations: number;
  };
}

const FINDINGS_MAX = 100;

export function examine(store: ReplicaStore): Examination {
  const found: Finding[] = [];
  const find = (finding: Finding) => {
    if (found.length < FINDINGS_MAX) found.push(finding);
  };
  const isReadable = checkFile(store, find);
  /** Of a damaged file as much as can be read, and once that it is damaged. */
  const reading = <T>(work: () => T, instead: T): T => {
    try {
      return work();
    } catch (cause) {
      if (!(cause instanceof DatabaseFault) || cause.code !== 'damaged') throw cause;
      if (isReadable) find(damaged(cause.message));
      return instead;
    }
  };
  const logs = reading(
    () => store.database.prepare('SELECT log, head, chain, signature, stage, whole_at FROM main.hf_log').all(),
    [],
  );
  const counts = { events: 0, entities: 0 };
  for (const row of logs) {
    const log = row['log'] as string;
    counts.events += reading(() => checkChain(store, log, row, find), 0);
    if (row['stage'] === 'visible')
      counts.entities += reading(() => checkState(store, log, row['signature'] as string, find), 0);
  }
  const batches = reading(() => checkOutbox(store, find), 0);
  const permits = reading(() => checkPermits(store, find), { permits: 0, obligations: 0 });
  return { findings: found, checked: { logs: logs.length, ...counts, batches, ...permits } };
}

const damaged = (what: string): Finding => ({
  check: 'sqlite',
  what,
  next: 'Pack what is unsent, move the file aside, and open a new replica.',
});

/** False: it is damaged. */
function checkFile({ database }: ReplicaStore, find: Find): boolean {
  const damage = damageOf(database);
  if (damage !== null) find(damaged(damage));
  return damage === null;
}

type Find = (finding: Finding) => void;

/** I07, I08: the events kept here continue each other up to the head. */
function checkChain(store: ReplicaStore, log: string, at: SqlRow, find: Find): number {
  const head = at['head'] as number;
  const rows = store.database
    .prepare('SELECT version, draft, leaf, envelope, chain FROM main.hf_event WHERE log = ? ORDER BY version')
    .all(log);
  let before: { readonly version: number; readonly chain: string } | null = null;
  for (const row of rows) {
    const version = row['version'] as number;
    if (before !== null && version === before.version + 1) {
      const leaf =
        row['draft'] === null ? (row['leaf'] as string) : leafOfText(row['draft'] as string, store.platform.digest);
      const expected = chainNext(before.chain, leaf, row['envelope'] as string, store.platform.digest);
      if (expected !== row['chain'])
        find({
          check: 'chain',
          log,
          what: `version ${version} does not continue version ${before.version}`,
          next: 'Pack what is unsent, move the file aside, and open a new replica: it fetches the log’s state again.',
        });
    }
    before = { version, chain: row['chain'] as string };
  }
  const last = rows.at(-1);
  const isAtHead = last !== undefined && last['version'] === head && last['chain'] === at['chain'];
  // A state that came whole brings no events.
  const cameWhole = head === at['whole_at'] && (last === undefined || (last['version'] as number) < head);
  // Before the first state is here, and while a log is fetched again, older events may lie there.
  if (at['stage'] === 'visible' && !isAtHead && !cameWhole)
    find({
      check: 'cursor',
      log,
      what: `the head says ${head}, the newest event is ${String(last?.['version'] ?? 'not here')}`,
      next: 'Repair from the ledger; unsent work is kept.',
    });
  return rows.length;
}

/** I11, DG2: rows are confirmed state with pending changes on top, and confirmed state has the signature that the head says. */
function checkState(store: ReplicaStore, log: string, signature: string, find: Find): number {
  const entities = new LocalEntities(store);
  const signed: SignedEntity[] = [];
  const keys = new Map<string, { readonly type: string; readonly id: string }>();
  for (const type of typesOf(store, log))
    for (const { id } of store.logTableOf(type).all(log)) keys.set(`${type} ${id}`, { type, id });
  for (const { type, id } of pendingKeys(store, log)) keys.set(`${type} ${id}`, { type, id });
  for (const { type, id } of keys.values()) {
    const entity = entities.ofLog({ log, type, id });
    const { state } = entity.confirmed;
    if (state !== undefined) signed.push({ type, id, version: state.version, fields: state.fields });
    const shown = entity.local;
    entities.setPending(entity, entity.base?.pending ?? []);
    if (!sameValue(shown === undefined ? null : shown.fields, entity.local === undefined ? null : entity.local.fields))
      find({
        check: 'projection',
        log,
        what: `${type}/${id} shows something else than its events say`,
        next: 'Repair from the ledger; unsent work is kept.',
      });
  }
  if (signatureOf(signed, store.platform.digest) !== signature)
    find({
      check: 'signature',
      log,
      what: 'the confirmed state has another signature than the head says',
      next: 'Repair from the ledger; unsent work is kept.',
    });
  return signed.length;
}

function typesOf(store: ReplicaStore, log: string): readonly string[] {
  const aside = store.database
    .prepare('SELECT DISTINCT type FROM main.hf_entity WHERE log = ?')
    .all(log)
    .map((row) => row['type'] as string);
  return [...new Set([...store.tables.keys(), ...aside])];
}

/** I02, I13: every batch is in one place, and local state names exactly the batches that it holds. */
function checkOutbox(store: ReplicaStore, find: Find): number {
  const { database } = store;
  const rows = database.prepare('SELECT * FROM main.hf_outbox ORDER BY seq').all().map(readRow);
  const pendingOn = new Map<string, readonly number[]>();
  const entities = new LocalEntities(store);
  for (const key of pendingKeys(store))
    pendingOn.set(`${key.log} ${key.type} ${key.id}`, entities.get(key).base?.pending ?? []);
  const seqs = new Set(rows.map((row) => row.seq));
  const actions = new Set(rows.map((row) => row.actionId));
  for (const row of rows) {
    if (row.heldBy !== null && !actions.has(row.heldBy))
      find({
        check: 'outbox',
        log: row.log,
        what: `batch ${row.actionId} is held by ${row.heldBy}, which is not in the outbox: nothing will let it go`,
        next: 'Run "holdfast replica doctor --repair": it packs unsent work and lets it go.',
      });
    const isLocal = LOCAL_STATES.has(row.state) && row.heldBy === null;
    for (const { log, type, id } of keysOf(row)) {
      const isIn = (pendingOn.get(`${log} ${type} ${id}`) ?? []).includes(row.seq);
      if (isIn !== isLocal)
        find({
          check: 'outbox',
          log,
          what: `batch ${row.actionId} is ${row.state}${row.heldBy === null ? '' : ' and held'}, and is ${isIn ? '' : 'not '}in local state of ${type}/${id}`,
          next: 'Pack what is unsent, then repair.',
        });
    }
    if (database.prepare('SELECT 1 FROM main.hf_outcome WHERE action_id = ?').get(row.actionId) !== undefined)
      find({
        check: 'conservation',
        log: row.log,
        what: `batch ${row.actionId} is in the outbox and has an outcome`,
        next: 'Nothing is lost: it is sent again under its id, and accepted once.',
      });
    const isAside = row.state === 'parked' || row.state === 'refused';
    const isOnDesk =
      database.prepare("SELECT 1 FROM main.hf_desk WHERE action_id = ? AND needs = 'answer'").get(row.actionId) !==
      undefined;
    if (isAside !== isOnDesk)
      find({
        check: 'desk',
        log: row.log,
        what: `batch ${row.actionId} is ${row.state}, and is ${isOnDesk ? '' : 'not '}on the desk`,
        next: 'Nothing is lost; open the replica again.',
      });
  }
  for (const [key, pending] of pendingOn)
    for (const seq of pending)
      if (!seqs.has(seq))
        find({
          check: 'outbox',
          what: `${key} names a batch that is not in the outbox`,
          next: 'Repair from the ledger; unsent work is kept.',
        });
  return rows.length;
}

/** I20, I21, PM10: what was sent and is not answered is permitted or owed, and no local commit was left half done. */
function checkPermits(store: ReplicaStore, find: Find): { readonly permits: number; readonly obligations: number } {
  const { database } = store;
  for (const row of database
    .prepare("SELECT permit_id, log FROM main.hf_permit WHERE state = 'local-commit-entered' AND ended_at IS NULL")
    .all())
    find({
      check: 'permits',
      log: row['log'] as string,
      what: `permit ${String(row['permit_id'])} was left in a local commit: other code wrote to this file`,
      next: 'Run "holdfast replica doctor --repair": it packs unsent work and ends the permit as owed.',
    });
  for (const row of database
    .prepare("SELECT action_id, request_id, log FROM main.hf_outbox WHERE state = 'sending'")
    .all()) {
    const requestId = row['request_id'] as string;
    const isPermitted = database
      .prepare(
        'SELECT 1 FROM main.hf_permit_operation o JOIN main.hf_permit p ON p.seq = o.permit WHERE o.request_id = ? AND p.ended_at IS NULL',
      )
      .get(requestId);
    const isOwed = database
      .prepare('SELECT 1 FROM main.hf_obligation WHERE identity = ? AND closed_at IS NULL')
      .get(requestId);
    if (isPermitted === undefined && isOwed === undefined)
      find({
        check: 'permits',
        log: row['log'] as string,
        what: `batch ${String(row['action_id'])} is sending, under no permit and owed by none`,
        next: 'Open the replica: it is sent again under its id.',
      });
  }
  const count = (sql: string) => (database.prepare(sql).get()?.['n'] as number | undefined) ?? 0;
  return {
    permits: count('SELECT count(*) AS n FROM main.hf_permit'),
    obligations: count('SELECT count(*) AS n FROM main.hf_obligation'),
  };
}
