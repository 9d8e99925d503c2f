import {
  type EntityState,
  fail,
  type JsonObject,
  type Outcome,
  ok,
  StateSignature,
  type Through,
} from '@holdfast/core';
import { stop } from './fault-error.ts';
import { foldHeld, readPage } from './ingest.ts';
import type { LocalEntities } from './local.ts';
import type { Logs } from './logs.ts';
import type { Outbox } from './outbox.ts';
import type { BootstrapPage, BootstrapProgress, IngestPage, IngestReport } from './replica-state.ts';
import type { ReplicaStore } from './replica-store.ts';
import { type EntityTable, type HeldState, quoted } from './tables.ts';

/**
 * State that is being fetched (5.3, 6.6). It lies in the same tables under a log name of its own, so that making it visible
 * is one rename in one transaction. Until then no query sees it: views leave out such logs.
 */
export const stagedLog = (log: string): string => `~${log}`;

interface Staged {
  readonly purpose: 'bootstrap' | 'repair';
  readonly from: Through;
  readonly epoch: string;
  readonly cursor: string | null;
  readonly scanned: boolean;
  readonly entities: number;
  readonly head: number;
  readonly chain: string;
  readonly signature: string;
  /** Per page, the last key that it covers and the version that it was read at; the last page covers the rest (BS1). */
  readonly ranges: readonly { readonly upTo: string | null; readonly asOf: number }[];
}

export class BootstrapState {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #logs: Logs;

  constructor(parts: { readonly store: ReplicaStore; readonly outbox: Outbox; readonly logs: Logs }) {
    this.#store = parts.store;
    this.#outbox = parts.outbox;
    this.#logs = parts.logs;
  }

  begin(log: string, from: Through, epoch: string, purpose: 'bootstrap' | 'repair'): void {
    this.#clear(log);
    const signature = new StateSignature(this.#store.platform.digest).toHex();
    this.#save(log, {
      purpose,
      from,
      epoch,
      cursor: null,
      scanned: false,
      entities: 0,
      head: from.version,
      chain: from.chain,
      signature,
      ranges: [],
    });
    if (purpose === 'bootstrap')
      this.#store.database.prepare("UPDATE main.hf_log SET stage = 'bootstrapping' WHERE log = ?").run(log);
    this.#store.tracker.logs = true;
  }

  page(log: string, page: BootstrapPage): Outcome<void> {
    const staged = this.#staged(log);
    if (page.after !== staged.cursor || staged.scanned)
      return fail('page-gap', { log, reason: 'not the page that was asked for' });
    if (page.asOf.version < staged.from.version)
      return fail('page-gap', { log, reason: 'older than the position it began from' });
    const signature = new StateSignature(this.#store.platform.digest, staged.signature);
    for (const entity of page.entities) {
      const held = heldOf(entity);
      const table = this.#store.tableOf(entity.type);
      table.write({ log: stagedLog(log), type: entity.type, id: entity.id }, undefined, held, 'synced');
      signature.add(entity);
    }
    const last = page.entities.at(-1);
    const upTo =
      page.next === null ? null : last === undefined ? (staged.ranges.at(-1)?.upTo ?? '') : keyText(last.type, last.id);
    this.#save(log, {
      ...staged,
      cursor: page.next,
      scanned: page.next === null,
      entities: staged.entities + page.entities.length,
      signature: signature.toHex(),
      ranges: [...staged.ranges, { upTo, asOf: page.asOf.version }],
    });
    this.#store.tracker.logs = true;
    return ok(undefined);
  }

  progress(log: string): BootstrapProgress | undefined {
    const staged = this.#find(log);
    if (staged === undefined) return undefined;
    const { purpose, from, epoch, cursor, scanned, entities, head, chain } = staged;
    return { purpose, from, epoch, cursor, scanned, entities, head, chain };
  }

  signature(log: string): string {
    return this.#staged(log).signature;
  }

  /** Events from H on: an event takes effect only above the version of the range that covers its entity (BS2). */
  ingest(page: IngestPage): Outcome<IngestReport, 'page-gap' | 'chain-mismatch' | 'not-following'> {
    const staged = this.#find(page.log);
    if (staged === undefined) return fail('not-following', { log: page.log });
    const read = readPage({ digest: this.#store.platform.digest, outbox: this.#outbox }, page, staged);
    if (!read.ok) return read;
    const signature = new StateSignature(this.#store.platform.digest, staged.signature);
    const log = stagedLog(page.log);
    const insert = this.#store.database.prepare(
      'INSERT OR REPLACE INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    for (const one of read.value.events) {
      const { event } = one;
      insert.run(
        log,
        one.version,
        event?.id ?? '',
        event?.entityType ?? '',
        event?.entityId ?? '',
        one.envelope.entityVersion,
        one.envelope.actionId,
        one.own === null ? 0 : 1,
        one.draftText,
        event === null ? one.leaf : null,
        one.envelopeText,
        one.chain,
      );
      if (event === null || one.version <= asOf(staged, keyText(event.entityType, event.entityId))) continue;
      const table = this.#store.tableOf(event.entityType);
      const before = table.read(log, event.entityId);
      const after = foldHeld(before?.state, event);
      const key = { type: event.entityType, id: event.entityId };
      signature.replace(
        before === undefined ? undefined : { ...key, ...before.state },
        after === undefined ? undefined : { ...key, ...after },
      );
      table.write({ log, ...key }, before, after, 'synced');
    }
    const last = read.value.events.at(-1);
    this.#save(page.log, {
      ...staged,
      head: last?.version ?? staged.head,
      chain: last?.chain ?? staged.chain,
      signature: signature.toHex(),
    });
    this.#store.tracker.logs = true;
    return ok({
      applied: read.value.events.length,
      ignored: read.value.ignored,
      head: last?.version ?? staged.head,
      confirmed: [],
      merged: 0,
      parked: 0,
    });
  }

  /** One transaction: what was fetched becomes what is seen; outbox and desk are kept and put on top of it again. */
  finish(log: string, entities: LocalEntities): void {
    const { database } = this.#store;
    const staged = this.#staged(log);
    if (!staged.scanned) stop('not-ready', { log, reason: 'not everything has been fetched' });
    const isAdopting = this.#logs.isAdopting(log);
    const pending = database.prepare('SELECT type, id FROM main.hf_base WHERE log = ?').all(log);
    for (const row of pending) {
      const [type, id] = [row['type'] as string, row['id'] as string];
      const seen = entities.get({ log, type, id }).confirmed.state;
      if (seen === undefined) continue;
      database
        .prepare('INSERT OR REPLACE INTO main.hf_seen (log, type, id, fields) VALUES (?, ?, ?, ?)')
        .run(log, type, id, JSON.stringify(seen.fields));
    }
    entities.forget();
    for (const table of this.#tables(log)) this.#swap(table, log);
    if (isAdopting) this.#setAsideHistory(log, staged);
    else
      database
        .prepare(
          'DELETE FROM main.hf_event WHERE log = ? AND version IN (SELECT version FROM main.hf_event WHERE log = ?)',
        )
        .run(log, stagedLog(log));
    database.prepare('UPDATE main.hf_event SET log = ? WHERE log = ?').run(log, stagedLog(log));
    database
      .prepare(
        "UPDATE main.hf_log SET epoch = ?, head = ?, chain = ?, signature = ?, stage = 'visible', bootstrap = NULL, synced_at = ? WHERE log = ?",
      )
      .run(staged.epoch, staged.head, staged.chain, staged.signature, this.#store.nowIso(), log);
    for (const row of pending) {
      const type = row['type'] as string;
      const id = row['id'] as string;
      const entity = entities.get({ log, type, id });
      const fetched = entity.table.read(log, id);
      const version = fetched?.state.version ?? deletedVersion(this.#store, log, type, id);
      entities.setConfirmed(entity, { version, state: fetched?.state });
    }
    this.#retireAccepted(log, entities, staged.head);
    if (isAdopting) this.#requeueLost(log, entities);
    this.#store.tracker.logs = true;
  }

  discard(log: string): void {
    this.#clear(log);
    this.#store.database
      .prepare(
        "UPDATE main.hf_log SET bootstrap = NULL, stage = CASE stage WHEN 'bootstrapping' THEN 'new' ELSE stage END WHERE log = ?",
      )
      .run(log);
    this.#store.tracker.logs = true;
  }

  // ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Every table that may hold rows of the log, or of what is staged for it. */
  *#tables(log: string): Iterable<EntityTable> {
    for (const table of this.#store.tables.values()) if (table.model?.isLocal !== true) yield table;
    for (const row of this.#store.database
      .prepare('SELECT DISTINCT type FROM main.hf_entity WHERE log IN (?, ?)')
      .all(log, stagedLog(log))) {
      const type = row['type'] as string;
      if (!this.#store.tables.has(type)) yield this.#store.tableOf(type);
    }
  }

  #swap(table: EntityTable, log: string): void {
    table.removeAll(log);
    const name = table.model === null ? 'hf_entity' : table.model.type;
    const column = table.model === null ? 'log' : '_log';
    this.#store.database
      .prepare(`UPDATE main.${quoted(name)} SET ${column} = ? WHERE ${column} = ?`)
      .run(log, stagedLog(log));
    this.#store.tracker.rows(name);
  }

  #clear(log: string): void {
    for (const table of this.#tables(log)) table.removeAll(stagedLog(log));
    this.#store.database.prepare('DELETE FROM main.hf_event WHERE log = ?').run(stagedLog(log));
  }

  /** Acknowledged work of others that the ledger has lost is kept aside, and can be exported (HL4). */
  #setAsideHistory(log: string, staged: Staged): void {
    const aside = `!${log}/${this.#store.nowIso()}`;
    this.#store.database.prepare('UPDATE main.hf_event SET log = ? WHERE log = ? AND version > ?').run(aside, log, 0);
    this.#store.database.prepare('DELETE FROM main.hf_setting WHERE name = ?').run(`adopting/${log}`);
    this.#store.database.prepare('DELETE FROM main.hf_deleted WHERE log = ?').run(log);
    void staged;
  }

  /** Accepted ahead of a gap, and now within what was fetched (IN1). */
  #retireAccepted(log: string, entities: LocalEntities, head: number): void {
    for (const found of this.#store.database
      .prepare("SELECT seq FROM main.hf_outbox WHERE log = ? AND state = 'accepted'")
      .all(log)) {
      const row = this.#outbox.bySeq(found['seq'] as number);
      if (row?.answer === null || row === undefined) continue;
      const last = row.answer.firstVersion + row.drafts.length - 1;
      if (last <= head) this.#outbox.retire(entities, row, last);
    }
  }

  #requeueLost(log: string, entities: LocalEntities): void {
    for (const found of this.#store.database
      .prepare("SELECT seq FROM main.hf_outbox WHERE log = ? AND state = 'lost' ORDER BY seq")
      .all(log)) {
      const seq = found['seq'] as number;
      this.#store.database
        .prepare("UPDATE main.hf_outbox SET state = 'queued', fault = NULL, held_by = NULL WHERE seq = ?")
        .run(seq);
      const row = this.#outbox.bySeq(seq);
      if (row !== undefined) this.#outbox.putBack(entities, row);
    }
  }

  #find(log: string): Staged | undefined {
    const text = this.#store.database.prepare('SELECT bootstrap FROM main.hf_log WHERE log = ?').get(log)?.[
      'bootstrap'
    ];
    return typeof text === 'string' ? (JSON.parse(text) as Staged) : undefined;
  }

  #staged(log: string): Staged {
    return this.#find(log) ?? stop('not-ready', { log, reason: 'nothing is being fetched' });
  }

  #save(log: string, staged: Staged): void {
    this.#store.database.prepare('UPDATE main.hf_log SET bootstrap = ? WHERE log = ?').run(JSON.stringify(staged), log);
  }
}

/** Keys in the ledger's order: by bytes of (type, id). NUL is in neither. */
const keyText = (type: string, id: string): string => `${type}\u0000${id}`;

function asOf({ ranges, from }: Staged, key: string): number {
  for (const range of ranges) if (range.upTo === null || key <= range.upTo) return range.asOf;
  return from.version;
}

const heldOf = (entity: EntityState): HeldState => ({
  version: entity.version,
  fields: entity.fields as JsonObject,
  meta: {
    createdBy: entity.createdBy,
    createdAt: entity.createdAt,
    updatedBy: entity.updatedBy,
    updatedAt: entity.updatedAt,
    arrival: entity.arrival,
  },
});

const deletedVersion = (store: ReplicaStore, log: string, type: string, id: string): number =>
  (store.database
    .prepare('SELECT version FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
    .get(log, type, id)?.['version'] as number | undefined) ?? 0;
