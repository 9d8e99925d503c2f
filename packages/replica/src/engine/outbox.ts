import { type Fault, utf8Length } from '@holdfast/core';
import { Answers } from './answers.ts';
import { Dependents } from './dependents.ts';
import type { DeskWriter } from './desk.ts';
import type { LocalEntities } from './local.ts';
import { BY_ACTION, readTally, type TallyRow } from './outbox-index.ts';
import {
  type BatchAgain,
  COLUMNS,
  FLOWING_SQL,
  type GrantedWish,
  isLocal,
  keysOf,
  LOCAL_STATES,
  type OutboxRow,
  readRow,
  type Wish,
} from './outbox-row.ts';
import type { ActionOutcome, OutboxCounts } from './replica-state.ts';
import { faultText, type ReplicaStore } from './replica-store.ts';
import { Sending } from './sending.ts';

/**
 * The outbox: every committed batch that is not yet confirmed and not closed by a person (OB7). Here is what a batch is in,
 * and how it comes and goes; `sending`, `answers` and `dependents` each have their own file.
 */
export class Outbox {
  readonly #store: ReplicaStore;
  readonly #desk: DeskWriter;
  /** Answered in this transaction: not owed any more, though the obligation is still open. */
  readonly #answered = new Set<string>();
  #granted: GrantedWish[] = [];
  readonly #tally: () => readonly TallyRow[];
  readonly #first: () => number | null;

  readonly sending: Sending;
  readonly answers: Answers;
  readonly dependents: Dependents;

  constructor(store: ReplicaStore, desk: DeskWriter) {
    this.#store = store;
    this.#desk = desk;
    this.sending = new Sending(store, this);
    this.answers = new Answers(store, this, desk);
    this.dependents = new Dependents(store, this);
    this.#tally = store.remembered(['outbox'], () => readTally(store.database));
    this.#first = store.remembered(['outbox'], () => {
      const first = store.database.prepare('SELECT created_at AS at FROM main.hf_outbox ORDER BY seq LIMIT 1').get();
      return (first?.['at'] as number | undefined) ?? null;
    });
  }

  /** Of this file, as its events' envelopes name it. */
  get replicaId(): string {
    return this.#store.database.prepare('SELECT replica_id FROM main.hf_coordinator WHERE one = 1').get()?.[
      'replica_id'
    ] as string;
  }

  /** A batch's first request id is its action id; those made by a rebase are in `hf_request` (OB3). */
  byRequest(requestId: string): OutboxRow | undefined {
    const row = this.byAction(this.actionOf(requestId));
    return row?.requestId === requestId ? row : undefined;
  }
  /** Of an unknown request, its own id: the first request of a batch bears its action id. */
  actionOf(requestId: string): string {
    const known = this.#store.database
      .prepare('SELECT action_id FROM main.hf_request WHERE request_id = ?')
      .get(requestId);
    return (known?.['action_id'] as string | undefined) ?? requestId;
  }
  byAction(actionId: string): OutboxRow | undefined {
    const row = this.#store.database.prepare(`SELECT ${COLUMNS} FROM main.hf_outbox WHERE ${BY_ACTION}`).get(actionId);
    return row === undefined ? undefined : readRow(row);
  }
  bySeq(seq: number): OutboxRow | undefined {
    const row = this.#store.database.prepare(`SELECT ${COLUMNS} FROM main.hf_outbox WHERE seq = ?`).get(seq);
    return row === undefined ? undefined : readRow(row);
  }
  isEmpty(): boolean {
    return this.#store.database.prepare('SELECT 1 FROM main.hf_outbox LIMIT 1').get() === undefined;
  }

  /** A batch that was not in this outbox, or not any more: as it was, under its ids. `lost`: to be set aside at once (HL1). */
  insert(batch: BatchAgain, state: 'queued' | 'lost' = 'queued'): OutboxRow {
    const { database } = this.#store;
    const drafts = `[${batch.draftTexts.join(',')}]`;
    if (batch.requestId !== batch.actionId)
      database
        .prepare('INSERT OR REPLACE INTO main.hf_request (request_id, action_id) VALUES (?, ?)')
        .run(batch.requestId, batch.actionId);
    database
      .prepare(
        'INSERT INTO main.hf_outbox (seq, log, action_id, request_id, state, drafts, events, bytes, frame, identity, label, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      )
      .run(
        batch.seq,
        batch.log,
        batch.actionId,
        batch.requestId,
        state,
        drafts,
        batch.draftTexts.length,
        batch.draftTexts.reduce((bytes, text) => bytes + utf8Length(text), 0),
        JSON.stringify(batch.frame),
        batch.identity,
        batch.label,
        batch.createdAt,
      );
    this.#store.tracker.outbox = true;
    return this.byAction(batch.actionId) as OutboxRow;
  }

  /** Where a batch would stand before, or behind, all others. */
  edge(of: 'first' | 'last'): number {
    const row = this.#store.database.prepare('SELECT min(seq) AS first, max(seq) AS last FROM main.hf_outbox').get();
    return ((row?.[of] as number | null | undefined) ?? 0) + (of === 'first' ? -1 : 1);
  }

  // ── how much ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Batches of the local state that are on their way. */
  flowing(log: string): number {
    let flowing = 0;
    for (const row of this.#tally())
      if (row.log === log && !row.isHeld && LOCAL_STATES.has(row.state)) flowing += row.count;
    return flowing;
  }

  /** The outbox seq of the newest of them. */
  newestFlowing(log: string): number | null {
    const row = this.#store.database
      .prepare(`SELECT seq FROM main.hf_outbox WHERE log = ? AND ${FLOWING_SQL} ORDER BY seq DESC LIMIT 1`)
      .get(log);
    return (row?.['seq'] as number | undefined) ?? null;
  }

  isFlowing(log: string, upTo: number): boolean {
    return (
      this.#store.database
        .prepare(`SELECT 1 FROM main.hf_outbox WHERE log = ? AND seq <= ? AND ${FLOWING_SQL} ORDER BY seq LIMIT 1`)
        .get(log, upTo) !== undefined
    );
  }

  /** Costs the same however long the outbox is. The first in line is taken for the oldest. */
  counts(): OutboxCounts {
    const of = { unsent: 0, sending: 0, waiting: 0, held: 0, parked: 0, lost: 0 };
    for (const { state, isHeld, count } of this.#tally()) {
      of.unsent += count;
      if (isHeld) of.held += count;
      switch (state) {
        case 'sending':
          of.sending += count;
          break;
        case 'waiting':
          of.waiting += count;
          break;
        case 'parked':
        case 'refused':
          of.parked += count;
          break;
        case 'lost':
          of.lost += count;
          break;
      }
    }
    return { ...of, attention: this.#desk.count(), oldestUnsentAtMs: this.#first() };
  }

  // ── owed work and wishes (OB3) ────────────────────────────────────────────────────────────────────────────────────

  /** Sent, and nobody knows whether it arrived: it is neither rebased, parked, resolved nor discarded. */
  isUnanswered(row: Pick<OutboxRow, 'state' | 'requestId' | 'answer'>): boolean {
    if (row.state === 'sending') return true;
    if (this.#answered.has(row.requestId)) return false;
    // Accepted once, and asked about again.
    if (row.answer !== null && (row.state === 'queued' || row.state === 'waiting')) return true;
    return (
      this.#store.database
        .prepare('SELECT 1 FROM main.hf_obligation WHERE identity = ? AND closed_at IS NULL LIMIT 1')
        .get(row.requestId) !== undefined
    );
  }

  /** A person wants it gone as soon as that can be. */
  wish(row: OutboxRow, wish: Wish): void {
    this.#store.database.prepare('UPDATE main.hf_outbox SET wish = ? WHERE seq = ?').run(JSON.stringify(wish), row.seq);
    this.#store.tracker.outbox = true;
  }

  /** The ledger has said what became of it. */
  noteAnswered(requestId: string): void {
    this.#answered.add(requestId);
  }

  grant(row: OutboxRow, isAccepted: boolean): void {
    this.#granted.push({ row, isAccepted });
  }

  /** Wishes whose time has come: the answer is known, or it never left. Taken once. */
  takeWishes(): readonly GrantedWish[] {
    const granted = this.#granted;
    this.#granted = [];
    return granted;
  }

  /** Wishes about work that turned out not to have left. */
  wishesNotSent(log: string): readonly OutboxRow[] {
    return this.#store.database
      .prepare(`SELECT ${COLUMNS} FROM main.hf_outbox WHERE log = ? AND wish IS NOT NULL ORDER BY seq`)
      .all(log)
      .map(readRow)
      .filter((row) => (row.state === 'queued' || row.state === 'waiting') && !this.isUnanswered(row));
  }

  /** The transaction is over, or was undone: what it knew of answers is in the file now, or was never true. */
  forget(): void {
    this.#answered.clear();
    this.#granted = [];
  }

  // ── leaving and coming back ───────────────────────────────────────────────────────────────────────────────────────

  /** Confirmed: the row goes, its outcome stays; its change is in the confirmed state (OB7). */
  retire(entities: LocalEntities, row: OutboxRow, version: number): void {
    this.#close(entities, row, { state: 'ordered', log: row.log, version });
    if (!isLocal(row)) this.letGo(entities, row);
    if (row.wish !== null) this.grant(row, true);
  }

  /** Closed by a person, or nothing was left to send. What needed it needs what came in its place. */
  closeAs(entities: LocalEntities, row: OutboxRow, outcome: ActionOutcome): void {
    this.#close(entities, row, outcome);
    if (outcome.state === 'discarded') this.forgetUndo(row);
    this.dependents.renameNeed(row, outcome.state === 'replaced' ? outcome.by : undefined);
  }

  /** Nothing of it is left for undo to take back. */
  forgetUndo({ actionId }: OutboxRow): void {
    this.#store.database.prepare('DELETE FROM main.hf_undo WHERE action_id = ?').run(actionId);
    this.#store.tracker.outbox = true;
  }

  #close(entities: LocalEntities, row: OutboxRow, outcome: ActionOutcome): void {
    const { database } = this.#store;
    this.takeOut(entities, row);
    this.#noteAside(entities, row, false);
    database.prepare('DELETE FROM main.hf_outbox WHERE seq = ?').run(row.seq);
    entities.forgetDrafts(row.seq);
    if (row.requestId !== row.actionId)
      database.prepare('DELETE FROM main.hf_request WHERE action_id = ?').run(row.actionId);
    database
      .prepare('INSERT OR REPLACE INTO main.hf_outcome (action_id, identity, outcome, at) VALUES (?, ?, ?, ?)')
      .run(row.actionId, row.identity, JSON.stringify(outcome), this.#store.nowMs());
    this.#desk.closeFor(row.actionId);
    this.#store.settle(row.actionId, outcome);
    this.#store.tracker.outbox = true;
  }

  /** Parked, refused or lost: out of local state, whole on the desk; what builds on it is held (ST1, ST2). */
  setAside(entities: LocalEntities, row: OutboxRow, state: 'parked' | 'refused' | 'lost', fault: Fault): void {
    this.#store.database
      .prepare(
        'UPDATE main.hf_outbox SET state = ?, fault = ?, retry_at = NULL, judge_at = NULL, held_by = NULL WHERE seq = ?',
      )
      .run(state, faultText(fault), row.seq);
    this.takeOut(entities, row);
    this.#noteAside(entities, row, true);
    for (const dependent of this.dependents.of(entities, row)) this.hold(entities, dependent, row.actionId);
    this.#store.settle(row.actionId, { state: state === 'refused' ? 'refused' : 'needs-attention', fault });
    this.#store.tracker.outbox = true;
  }

  hold(entities: LocalEntities, row: OutboxRow, by: string): void {
    if (!LOCAL_STATES.has(row.state)) return;
    this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET held_by = ?, state = CASE state WHEN 'waiting' THEN 'queued' ELSE state END, judge_at = NULL, retry_at = NULL WHERE seq = ?",
      )
      .run(by, row.seq);
    this.takeOut(entities, row);
    this.#noteAside(entities, row, true);
    // Whoever awaits it learns what `outcome` says from now on: it may be a long time until a person decides.
    this.#store.settle(row.actionId, { state: 'needs-attention', fault: { code: 'needs-attention' } });
    this.#store.tracker.outbox = true;
  }

  /** What waited for a batch that flows, or is in the log after all, flows again unless something else holds it. */
  letGo(entities: LocalEntities, row: OutboxRow): void {
    this.#store.tracker.outbox = true;
    for (const dependent of this.dependents.of(entities, row)) {
      if (dependent.heldBy !== null) this.release(entities, dependent);
    }
  }

  /** It flows, unless something that it names is held or set aside itself. */
  release(entities: LocalEntities, row: OutboxRow): void {
    const holder = this.dependents.holderOf(entities, row);
    if (holder !== null) return this.hold(entities, row, holder);
    this.#store.database.prepare('UPDATE main.hf_outbox SET held_by = NULL WHERE seq = ?').run(row.seq);
    this.putBack(entities, row);
  }

  takeOut(entities: LocalEntities, row: OutboxRow): void {
    for (const key of keysOf(row)) {
      const entity = entities.get(key);
      const pending = entity.base?.pending ?? [];
      if (pending.includes(row.seq))
        entities.setPending(
          entity,
          pending.filter((seq) => seq !== row.seq),
        );
      else entities.touch(entity);
    }
  }

  putBack(entities: LocalEntities, row: OutboxRow): void {
    entities.forgetDrafts(row.seq);
    this.#noteAside(entities, row, false);
    for (const key of keysOf(row)) {
      const entity = entities.get(key);
      const pending = new Set([...(entity.base?.pending ?? []), row.seq]);
      entities.setPending(
        entity,
        [...pending].sort((a, b) => a - b),
      );
    }
  }

  /** Behind all other work of the outbox. */
  toEnd(entities: LocalEntities, row: OutboxRow): OutboxRow {
    const { database } = this.#store;
    const last = database.prepare('SELECT max(seq) AS seq FROM main.hf_outbox').get()?.['seq'] as number;
    if (last === row.seq) return row;
    this.takeOut(entities, row);
    database.prepare('UPDATE main.hf_outbox SET seq = ? WHERE seq = ?').run(last + 1, row.seq);
    entities.forgetDrafts(row.seq);
    database.prepare('UPDATE main.hf_aside SET seq = ? WHERE seq = ?').run(last + 1, row.seq);
    return { ...row, seq: last + 1 };
  }

  /** Rows of entities that something set aside touches say `attention` (ST1, SC8). */
  #noteAside(entities: LocalEntities, row: OutboxRow, isAside: boolean): void {
    const { database, tracker } = this.#store;
    if (isAside)
      for (const { log, type, id } of keysOf(row))
        database
          .prepare('INSERT OR IGNORE INTO main.hf_aside (seq, log, type, id) VALUES (?, ?, ?, ?)')
          .run(row.seq, log, type, id);
    else if (row.heldBy !== null || !LOCAL_STATES.has(row.state))
      database.prepare('DELETE FROM main.hf_aside WHERE seq = ?').run(row.seq);
    else return;
    entities.asideChanged();
    // An entry says how much waits for it.
    tracker.desk = true;
  }
}
