import {
  type EntityState,
  fail,
  type JsonObject,
  type Outcome,
  ok,
  RUN_TIME_TYPE,
  StateSignature,
  type StoredEvent,
  type Through,
} from '@holdfast/core';
import { pendingKeys } from './base.ts';
import type { DeskWriter } from './desk.ts';
import { stop } from './fault-error.ts';
import { foldHeld, noteDeletion, readPage } from './ingest.ts';
import type { LocalEntities } from './local.ts';
import type { Logs } from './logs.ts';
import type { LostWork } from './lost-work.ts';
import type { Outbox } from './outbox.ts';
import type { BootstrapPage, BootstrapProgress, IngestPage, IngestReport } from './replica-state.ts';
import type { ReplicaStore } from './replica-store.ts';
import { naming } from './row-fault.ts';
import { readStoredEvent } from './stored-events.ts';
import { type EntityKey, type EntityTable, type HeldState, quoted, SYNCED } from './tables.ts';

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

/** An entity with work of this replica, and the outbox seqs of that work. */
interface Pending {
  readonly key: EntityKey;
  readonly seqs: readonly number[];
}

/** What folding needs of an event: null where its bytes were erased. */
interface FoldedEvent {
  readonly event: StoredEvent | null;
  readonly version: number;
  readonly chain: string;
}

export class BootstrapState {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #logs: Logs;
  readonly #lost: LostWork;
  readonly #desk: DeskWriter;

  constructor(parts: {
    readonly store: ReplicaStore;
    readonly outbox: Outbox;
    readonly logs: Logs;
    readonly lost: LostWork;
    readonly desk: DeskWriter;
  }) {
    this.#lost = parts.lost;
    this.#desk = parts.desk;
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
    const name = stagedLog(log);
    this.#store.tracker.muted(() => {
      for (const entity of page.entities) {
        const { type, id, version } = entity;
        const key = { log: name, type, id };
        const table = this.#store.logTableOf(type);
        naming({ ...key, log }, version, () => table.write(key, undefined, heldOf(entity), SYNCED));
        signature.add(entity);
      }
    });
    const last = page.entities.at(-1);
    const upTo =
      page.next === null ? null : last === undefined ? (staged.ranges.at(-1)?.upTo ?? '') : keyText(last.type, last.id);
    this.#save(log, {
      ...staged,
      cursor: page.next,
      scanned: page.next === null,
      entities: staged.entities + page.entities.length,
      signature: signature.toHex(),
      ranges: withRange(staged.ranges, { upTo, asOf: page.asOf.version }),
    });
    this.#store.tracker.logs = true;
    return ok(undefined);
  }

  progress(log: string): BootstrapProgress | undefined {
    const staged = this.#find(log);
    if (staged === undefined) return undefined;
    const { purpose, from, epoch, cursor, scanned, entities, head, chain, ranges } = staged;
    const readAt = ranges.reduce((newest, range) => Math.max(newest, range.asOf), from.version);
    return { purpose, from, epoch, cursor, scanned, entities, head, chain, readAt };
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
    const insert = this.#store.database.prepare(
      'INSERT OR REPLACE INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    for (const one of read.value.events)
      insert.run(
        stagedLog(page.log),
        one.version,
        one.event?.id ?? '',
        one.event?.entityType ?? '',
        one.event?.entityId ?? '',
        one.envelope.entityVersion,
        one.envelope.actionId,
        one.own === null ? 0 : 1,
        one.draftText,
        one.event === null ? one.leaf : null,
        one.envelopeText,
        one.chain,
      );
    const last = read.value.events.at(-1);
    this.#fold(page.log, staged, read.value.events);
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

  /**
   * One transaction: what was fetched becomes what is seen; outbox and desk are kept and put on top of it again. A repair
   * that lies behind the visible head takes what it lacks from the events kept here: the head never moves back (IN1).
   */
  finish(log: string, entities: LocalEntities): void {
    const common = this.#logs.commonVersion(log);
    if (!this.#staged(log).scanned) stop('not-ready', { log, reason: 'not everything has been fetched' });
    if (common === null) this.#catchUp(log);
    const staged = this.#staged(log);
    const epochBefore = this.#logs.get(log)?.epoch ?? null;
    const pending = this.#rememberSeen(log, entities);
    const seenVersions = common === null ? null : this.#lost.versionsAt(log, common);
    entities.forget();
    this.#swap(log);
    this.#swapHistory(log, common);
    this.#store.database
      .prepare(
        "UPDATE main.hf_log SET epoch = ?, head = ?, chain = ?, signature = ?, stage = 'visible', bootstrap = NULL, whole_at = ?, synced_at = ? WHERE log = ?",
      )
      .run(staged.epoch, staged.head, staged.chain, staged.signature, staged.from.version, this.#store.nowIso(), log);
    for (const { key, seqs } of pending) entities.setPending(entities.get(key), seqs);
    this.#retireConfirmed(log, entities, staged, epochBefore);
    if (common !== null) {
      this.#logs.adopted(log);
      this.#lost.offer(entities, log, common, seenVersions);
    }
    const aside = this.#store.database.prepare('SELECT DISTINCT type, id FROM main.hf_aside WHERE log = ?').all(log);
    const touched = aside.map((row) => entities.get({ log, type: row['type'] as string, id: row['id'] as string }));
    for (const entity of touched) entities.touch(entity);
    this.#desk.refresh(touched);
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

  /** An event takes effect only above the version of the range that covers its entity (BS2). */
  #fold(name: string, staged: Staged, events: readonly FoldedEvent[]): void {
    const signature = new StateSignature(this.#store.platform.digest, staged.signature);
    const log = stagedLog(name);
    this.#store.tracker.muted(() => {
      for (const { event, version } of events) {
        if (event === null || version <= asOf(staged, keyText(event.entityType, event.entityId))) continue;
        const table = this.#store.logTableOf(event.entityType);
        const key = { log, type: event.entityType, id: event.entityId };
        naming({ ...key, log: name }, event.entityVersion, () => {
          const before = table.read(log, event.entityId);
          const after = foldHeld(before?.state, event);
          signature.replace(
            before === undefined ? undefined : { ...key, ...before.state },
            after === undefined ? undefined : { ...key, ...after },
          );
          table.write(key, before, after, SYNCED);
          noteDeletion(this.#store.database, key, before?.state, after, event);
        });
      }
    });
    const last = events.at(-1);
    this.#save(name, {
      ...staged,
      head: last?.version ?? staged.head,
      chain: last?.chain ?? staged.chain,
      signature: signature.toHex(),
    });
  }

  // ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Every table that may hold rows of the log, or of what is staged for it. */
  *#tables(log: string): Iterable<EntityTable> {
    for (const table of this.#store.tables.values()) if (table.model?.isLocal !== true) yield table;
    for (const row of this.#store.database
      .prepare('SELECT DISTINCT type FROM main.hf_entity WHERE log IN (?, ?)')
      .all(log, stagedLog(log))) {
      const table = this.#store.logTableOf(row['type'] as string);
      if (table.model === null) yield table;
    }
  }

  #swap(log: string): void {
    const { database, tracker } = this.#store;
    const tables = [...this.#tables(log)];
    for (const table of tables) table.removeAll(log);
    for (const { model } of tables)
      if (model !== null) {
        database.prepare(`UPDATE main.${quoted(model.type)} SET _log = ? WHERE _log = ?`).run(log, stagedLog(log));
        tracker.rows(model.type);
      }
    database.prepare('UPDATE main.hf_entity SET log = ? WHERE log = ?').run(log, stagedLog(log));
    tracker.rows('hf_entity');
    // Types may have come with the state (SC4): once own work stands on it again, their entities move out of `hf_entity`.
    tracker.definitions = true;
  }

  #clear(log: string): void {
    this.#store.tracker.muted(() => {
      for (const table of this.#tables(log)) table.removeAll(stagedLog(log));
    });
    this.#store.database.prepare('DELETE FROM main.hf_event WHERE log = ?').run(stagedLog(log));
    this.#store.database.prepare('DELETE FROM main.hf_deleted WHERE log = ?').run(stagedLog(log));
  }

  /** What the authors of pending work saw, for judging it against what came without its events. */
  #rememberSeen(log: string, entities: LocalEntities): readonly Pending[] {
    const { database } = this.#store;
    const insert = database.prepare('INSERT OR REPLACE INTO main.hf_seen (log, type, id, fields) VALUES (?, ?, ?, ?)');
    const pending = pendingKeys(this.#store, log);
    const aside = database
      .prepare('SELECT DISTINCT type, id FROM main.hf_aside WHERE log = ?')
      .all(log)
      .map((row) => ({ log, type: row['type'] as string, id: row['id'] as string }));
    for (const key of [...pending, ...aside]) {
      const seen = entities.get(key).confirmed.state;
      if (seen !== undefined) insert.run(log, key.type, key.id, JSON.stringify(seen.fields));
    }
    // Their bases lie in the rows that are swapped.
    database.prepare('DELETE FROM main.hf_base WHERE log = ?').run(log);
    return pending.map((key) => ({ key, seqs: entities.get(key).base?.pending ?? [] }));
  }

  /** Events of the visible log that what was fetched does not have yet, if it is the same history. */
  #catchUp(log: string): void {
    const staged = this.#staged(log);
    const { database } = this.#store;
    const visible = database.prepare('SELECT head, chain, stage FROM main.hf_log WHERE log = ?').get(log);
    if (visible?.['stage'] !== 'visible' || (visible['head'] as number) <= staged.head) return;
    const rows = database
      .prepare('SELECT * FROM main.hf_event WHERE log = ? AND version >= ? ORDER BY version')
      .all(log, staged.head);
    const missing = rows.filter((row) => (row['version'] as number) > staged.head);
    const before = rows.find((row) => row['version'] === staged.head);
    const isWhole = missing.length === (visible['head'] as number) - staged.head;
    if (!isWhole || (before !== undefined && before['chain'] !== staged.chain))
      stop('not-ready', { log, head: visible['head'], fetched: staged.head });
    this.#fold(
      log,
      staged,
      missing.map((row) => ({
        ...readStoredEvent(row),
        version: row['version'] as number,
        chain: row['chain'] as string,
      })),
    );
  }

  /** History that goes on is kept; others' acknowledged work that the ledger has lost is kept aside (HL4). */
  #swapHistory(log: string, common: number | null): void {
    const { database } = this.#store;
    if (common === null)
      database
        .prepare(
          'DELETE FROM main.hf_event WHERE log = ? AND version IN (SELECT version FROM main.hf_event WHERE log = ?)',
        )
        .run(log, stagedLog(log));
    else
      database
        .prepare('UPDATE main.hf_event SET log = ? WHERE log = ? AND version > ?')
        .run(`!${log}/${this.#store.nowIso()}`, log, common);
    database.prepare('UPDATE main.hf_event SET log = ? WHERE log = ?').run(log, stagedLog(log));
    if (common !== null) database.prepare('DELETE FROM main.hf_deleted WHERE log = ?').run(log);
    database.prepare('UPDATE OR REPLACE main.hf_deleted SET log = ? WHERE log = ?').run(log, stagedLog(log));
    for (const [type, { model }] of this.#store.tables)
      if (model?.isLocal !== true)
        database
          .prepare(
            `DELETE FROM main.hf_deleted WHERE log = ? AND type = ? AND id IN (SELECT _id FROM main.${quoted(type)} WHERE _log = ?)`,
          )
          .run(log, type, log);
  }

  /**
   * Own work whose events came with the state that was fetched. Where an answer only named a version below its head, the
   * ledger is asked: it may have lost that version since, and somebody else may have it now.
   */
  #retireConfirmed(log: string, entities: LocalEntities, staged: Staged, epochBefore: string | null): void {
    const { database } = this.#store;
    const confirmed = database
      .prepare(
        'SELECT action_id AS action, max(version) AS version FROM main.hf_event WHERE log = ? AND version > ? AND own = 1 GROUP BY action_id',
      )
      .all(log, staged.from.version);
    for (const { action, version } of confirmed) {
      const row = this.#outbox.byAction(action as string);
      if (row !== undefined && row.state !== 'lost') this.#outbox.retire(entities, row, version as number);
    }
    this.#outbox.answers.askAgain(log, staged.head);
    if (epochBefore !== staged.epoch) this.#outbox.answers.newEpoch(log);
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

/** Keys in the ledger's order: entity types first, then by bytes of (type, id), which are ASCII. NUL is in neither. */
const keyText = (type: string, id: string): string => `${type === RUN_TIME_TYPE ? 0 : 1}${type}\u0000${id}`;

/** Neighbours that were read at one version are one range. */
function withRange(ranges: Staged['ranges'], next: Staged['ranges'][number]): Staged['ranges'] {
  const isSame = ranges.at(-1)?.asOf === next.asOf;
  return [...(isSame ? ranges.slice(0, -1) : ranges), next];
}

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
