import { chainStart, type Fault, LIMITS, type LogStanding, type Position, StateSignature } from '@holdfast/core';
import { stop } from './fault-error.ts';
import type { LocalEntities } from './local.ts';
import type { LostWork } from './lost-work.ts';
import type { Outbox } from './outbox.ts';
import type { FollowedLog } from './replica-state.ts';
import { faultText, type ReplicaStore, readFault } from './replica-store.ts';

/** Each log, and whether a person has chosen the ledger's history over its own (HL4). */
const LOG_SQL =
  "SELECT *, EXISTS (SELECT 1 FROM main.hf_setting WHERE name = 'adopting/' || log) AS adopting FROM main.hf_log WHERE followed = 1 ORDER BY log";

/** The logs that a replica follows: where it stands in each, and what the ledger last said of them. */
export class Logs {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #lost: LostWork;
  readonly #followed: () => readonly FollowedLog[];

  constructor(parts: { readonly store: ReplicaStore; readonly outbox: Outbox; readonly lost: LostWork }) {
    this.#outbox = parts.outbox;
    this.#store = parts.store;
    this.#lost = parts.lost;
    this.#followed = parts.store.remembered(['logs'], () =>
      parts.store.database
        .prepare(LOG_SQL)
        .all()
        .map((row) => this.#read(row)),
    );
  }

  all(): readonly FollowedLog[] {
    return this.#followed();
  }

  get(log: string): FollowedLog | undefined {
    return this.#followed().find((one) => one.log === log);
  }

  #read(row: Readonly<Record<string, unknown>>): FollowedLog {
    const read = readLog(row);
    const isAdopting = read.blocked === null && row['adopting'] === 1;
    return isAdopting ? { ...read, repairing: true, adopting: true } : read;
  }

  follow(log: string): void {
    const empty = new StateSignature(this.#store.platform.digest).toHex();
    this.#store.database
      .prepare('INSERT INTO main.hf_log (log, signature) VALUES (?, ?) ON CONFLICT (log) DO UPDATE SET followed = 1')
      .run(log, empty);
    this.#store.tracker.logs = true;
  }

  /** Its rows and its unsent work stay; it is only not synced any more. */
  unfollow(log: string): void {
    this.#store.database.prepare('UPDATE main.hf_log SET followed = 0 WHERE log = ?').run(log);
    this.#store.tracker.logs = true;
  }

  block(log: string, fault: Fault | null): void {
    this.#store.database
      .prepare('UPDATE main.hf_log SET blocked = ? WHERE log = ?')
      .run(fault === null ? null : faultText(fault), log);
    this.#store.tracker.logs = true;
  }

  /** The head, then versions ever further apart, down to the oldest whose chain is here, and the beginning. */
  positions(log: string): readonly Position[] {
    const { database, platform } = this.#store;
    const row = database.prepare('SELECT identity, epoch, head, chain, stage FROM main.hf_log WHERE log = ?').get(log);
    if (row === undefined || row['epoch'] === null || row['stage'] !== 'visible') return [];
    const epoch = row['epoch'] as string;
    const head = row['head'] as number;
    const positions: Position[] = [{ epoch, version: head, chain: row['chain'] as string }];
    for (let back = 1; head - back > 0 && positions.length < LIMITS.handshakePositionsMax - 1; back *= 2) {
      const event = database
        .prepare('SELECT version, chain FROM main.hf_event WHERE log = ? AND version = ?')
        .get(log, head - back);
      if (event === undefined) break;
      positions.push({ epoch, version: head - back, chain: event['chain'] as string });
    }
    // What is known of a changed history already needs no further question.
    const common = this.get(log)?.blocked?.facts?.['commonVersion'];
    if (typeof common === 'number')
      for (const known of this.positionsBetween(log, common - 1, common + 2))
        if (positions.every(({ version }) => version !== known.version)) positions.push(known);
    if (head > 0 && row['identity'] !== null)
      positions.push({ epoch, version: 0, chain: chainStart(row['identity'] as string, platform.digest) });
    return positions;
  }

  positionsBetween(log: string, above: number, below: number): readonly Position[] {
    const { database } = this.#store;
    const epoch = database.prepare('SELECT epoch FROM main.hf_log WHERE log = ?').get(log)?.['epoch'];
    if (typeof epoch !== 'string') return [];
    const between = 'FROM main.hf_event WHERE log = ? AND version > ? AND version < ?';
    const n = database.prepare(`SELECT count(*) AS n ${between}`).get(log, above, below)?.['n'] as number;
    const apart = Math.ceil(n / (LIMITS.handshakePositionsMax / 2));
    return database
      .prepare(
        `SELECT version, chain FROM (SELECT version, chain, row_number() OVER (ORDER BY version DESC) - 1 AS at ${between})
         WHERE at % ? = 0 ORDER BY version DESC`,
      )
      .all(log, above, below, Math.max(1, apart))
      .map((row) => ({ epoch, version: row['version'] as number, chain: row['chain'] as string }));
  }

  recordStanding(entities: LocalEntities, standing: LogStanding): void {
    const { database, tracker } = this.#store;
    tracker.logs = true;
    const row = database
      .prepare('SELECT identity, epoch, head, blocked FROM main.hf_log WHERE log = ?')
      .get(standing.log);
    if (row === undefined) return;
    if (!('head' in standing)) {
      this.block(standing.log, {
        code: standing.status,
        ...(standing.status === 'moved' && standing.to !== undefined ? { facts: { to: standing.to } } : {}),
      });
      return;
    }
    if (standing.status === 'history-changed') {
      const blocked = readFault(row['blocked']);
      if (blocked?.code === 'history-changed' && blocked.facts?.['commonVersion'] === standing.commonVersion) return;
      this.#lost.lose(entities, standing.log, standing.commonVersion);
      this.block(standing.log, {
        code: 'history-changed',
        facts: {
          commonVersion: standing.commonVersion,
          head: row['head'],
          ledgerHead: standing.head.version,
          healing: standing.healing,
        },
      });
      database.prepare('UPDATE main.hf_log SET ledger_head = ? WHERE log = ?').run(standing.head.version, standing.log);
      return;
    }
    const first = row['identity'] === null;
    // A socket may have brought more while this answer was on its way: what is applied here, the ledger has (I08).
    database
      .prepare(
        "UPDATE main.hf_log SET identity = ?, epoch = ?, ledger_head = max(?, head), attest = CASE WHEN head = ? THEN ifnull(?, attest) ELSE attest END, blocked = CASE WHEN json_extract(blocked, '$.code') IN ('moved', 'deleted', 'not-allowed', 'history-changed') THEN NULL ELSE blocked END WHERE log = ?",
      )
      .run(
        standing.identity,
        standing.epoch,
        standing.head.version,
        standing.head.version,
        standing.head.attest ?? null,
        standing.log,
      );
    if (row['epoch'] !== standing.epoch) this.#outbox.answers.newEpoch(standing.log);
    // Our position is in the log again (HL3): what was lost is there as it was.
    if (readFault(row['blocked'])?.code === 'history-changed') this.#lost.found(entities, standing.log);
    if (first) {
      const chain = chainStart(standing.identity, this.#store.platform.digest);
      database
        .prepare("UPDATE main.hf_log SET chain = ? WHERE log = ? AND head = 0 AND chain = ''")
        .run(chain, standing.log);
    }
  }

  /** HL4: the ledger's state is taken; a repair follows, after which lost work is offered again. */
  adopt(log: string): void {
    const found = this.get(log);
    if (found?.blocked?.code !== 'history-changed') stop('not-found', { log, reason: 'its history has not changed' });
    this.#store.database
      .prepare('INSERT OR REPLACE INTO main.hf_setting (name, value) VALUES (?, ?)')
      .run(`adopting/${log}`, JSON.stringify(found?.blocked?.facts?.['commonVersion'] ?? 0));
    this.block(log, null);
  }

  /** The ledger's state is here. */
  adopted(log: string): void {
    this.#store.database.prepare('DELETE FROM main.hf_setting WHERE name = ?').run(`adopting/${log}`);
    this.#store.tracker.logs = true;
  }

  /** While the ledger's state is being adopted: up to where its history is ours. */
  commonVersion(log: string): number | null {
    const row = this.#store.database.prepare('SELECT value FROM main.hf_setting WHERE name = ?').get(`adopting/${log}`);
    return row === undefined ? null : (JSON.parse(row['value'] as string) as number);
  }
}

export function readLog(row: Readonly<Record<string, unknown>>): FollowedLog {
  const bootstrap = row['bootstrap'] === null ? null : (JSON.parse(row['bootstrap'] as string) as { purpose: string });
  return {
    log: row['log'] as string,
    stage: row['stage'] as FollowedLog['stage'],
    identity: row['identity'] as string | null,
    epoch: row['epoch'] as string | null,
    head: row['head'] as number,
    chain: row['chain'] as string,
    signature: row['signature'] as string,
    attest: row['attest'] as string | null,
    ledgerHead: row['ledger_head'] as number | null,
    blocked: readFault(row['blocked']),
    lastSyncedAt: row['synced_at'] as string | null,
    repairing: bootstrap?.purpose === 'repair',
  };
}
