import {
  type EventDraft,
  type Fault,
  LIMITS,
  type OperationResult,
  type PushOperation,
  RECOVERY,
  type RecordedChange,
  type RefusalCode,
  utf8Length,
} from '@holdfast/core';
import type { DeskWriter } from './desk.ts';
import type { LocalEntities } from './local.ts';
import { BY_ACTION, readTally, type TallyRow } from './outbox-index.ts';
import type { ActionOutcome, OutboxCounts, PushBatch } from './replica-state.ts';
import { faultText, type ReplicaStore, readFault, readObject } from './replica-store.ts';
import type { EntityKey } from './tables.ts';

/**
 * The outbox: every committed batch that is not yet confirmed and not closed by a person (OB7). A row's bytes are final;
 * only a rebase makes them again, under a new request id (OB3).
 */
export interface OutboxRow {
  readonly seq: number;
  readonly log: string;
  readonly actionId: string;
  readonly requestId: string;
  readonly state: string;
  readonly drafts: readonly EventDraft[];
  readonly frame: OutboxFrame;
  readonly identity: string;
  readonly label: string | null;
  readonly rebases: number;
  /** Answered with `version-conflict`: to be judged once the head is here. */
  readonly judgeAt: number | null;
  readonly fault: Fault | null;
  readonly heldBy: string | null;
  readonly answer: AcceptedAnswer | null;
  /** A person wants it gone: what takes it back if it was accepted (OB3). */
  readonly wish: readonly RecordedChange[] | null;
}

export interface OutboxFrame {
  readonly merge: 'fields' | 'author';
  readonly needs?: readonly string[];
  readonly requires?: readonly (readonly [string, string])[];
  readonly expectedLogVersion?: number;
  readonly scope?: 'log';
}

export type AcceptedAnswer = Extract<OperationResult, { status: 'accepted' }>;

const SENT_COLUMNS = 'seq, action_id, request_id, state, drafts, events, bytes, frame, retry_at, judge_at, held_by';
const COLUMNS =
  'seq, log, action_id, request_id, state, drafts, frame, identity, label, rebases, judge_at, fault, held_by, answer, wish';

export const readRow = (row: Readonly<Record<string, unknown>>): OutboxRow => ({
  seq: row['seq'] as number,
  log: row['log'] as string,
  actionId: row['action_id'] as string,
  requestId: row['request_id'] as string,
  state: row['state'] as string,
  drafts: JSON.parse(row['drafts'] as string) as EventDraft[],
  frame: JSON.parse(row['frame'] as string) as OutboxFrame,
  identity: row['identity'] as string,
  label: row['label'] as string | null,
  rebases: row['rebases'] as number,
  judgeAt: row['judge_at'] as number | null,
  fault: readFault(row['fault']),
  heldBy: row['held_by'] as string | null,
  answer: readObject(row['answer']) as AcceptedAnswer | null,
  wish: row['wish'] === null ? null : (JSON.parse(row['wish'] as string) as RecordedChange[]),
});

/** States whose changes are part of local state (ST1), unless held. */
export const LOCAL_STATES: ReadonlySet<string> = new Set(['queued', 'sending', 'waiting', 'accepted']);

const FLOWING_SQL = "state IN ('queued', 'sending', 'waiting', 'accepted') AND held_by IS NULL";

/** A definite answer, or a judgement over one, is behind these (OB3). */
const ANSWERED_STATES: ReadonlySet<string> = new Set(['accepted', 'parked', 'refused']);

export class Outbox {
  readonly #store: ReplicaStore;
  readonly #desk: DeskWriter;
  /** Answered in this transaction: not owed any more, though the obligation is still open. */
  readonly #answered = new Set<string>();
  #granted: GrantedWish[] = [];
  readonly #tally: () => readonly TallyRow[];
  readonly #first: () => number | null;

  constructor(store: ReplicaStore, desk: DeskWriter) {
    this.#store = store;
    this.#desk = desk;
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
    const row = this.byAction(this.#actionOf(requestId));
    return row?.requestId === requestId ? row : undefined;
  }
  #actionOf(requestId: string): string {
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

  /** A batch that was not in this outbox, or not any more: as it was, under its ids. */
  insert(batch: BatchAgain): OutboxRow {
    const { database } = this.#store;
    const drafts = `[${batch.draftTexts.join(',')}]`;
    if (batch.requestId !== batch.actionId)
      database
        .prepare('INSERT OR REPLACE INTO main.hf_request (request_id, action_id) VALUES (?, ?)')
        .run(batch.requestId, batch.actionId);
    database
      .prepare(
        "INSERT INTO main.hf_outbox (seq, log, action_id, request_id, state, drafts, events, bytes, frame, identity, label, created_at) VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?)",
      )
      .run(
        batch.seq,
        batch.log,
        batch.actionId,
        batch.requestId,
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

  // ── sending ───────────────────────────────────────────────────────────────────────────────────────────────────────

  takePush({
    log,
    eventsMax,
    bytesMax,
    nowMs,
    only,
  }: {
    log: string;
    eventsMax: number;
    bytesMax: number;
    nowMs: number;
    only?: readonly string[];
  }): PushBatch {
    if (only !== undefined) return this.#named(log, only, { eventsMax, bytesMax });
    const operations: PushOperation[] = [];
    const blocked = new Set<string>();
    let events = 0;
    let bytes = 0;
    let after = Number.MIN_SAFE_INTEGER;
    for (;;) {
      const rows = this.#store.database
        .prepare(`SELECT ${SENT_COLUMNS} FROM main.hf_outbox WHERE log = ? AND seq > ? ORDER BY seq LIMIT 256`)
        .all(log, after);
      if (rows.length === 0) return { operations, events, bytes, more: false };
      for (const row of rows) {
        after = row['seq'] as number;
        if (!isDue(row, nowMs)) {
          if (row['state'] !== 'accepted') block(blocked, row);
          continue;
        }
        const drafts = JSON.parse(row['drafts'] as string) as EventDraft[];
        const frame = JSON.parse(row['frame'] as string) as OutboxFrame;
        if (isBlocked(blocked, drafts, frame)) {
          block(blocked, row);
          continue;
        }
        const isFull =
          operations.length > 0 && (events + drafts.length > eventsMax || bytes + (row['bytes'] as number) > bytesMax);
        // An operation with an expectation is alone in its push (LG5).
        const isAlone = frame.expectedLogVersion !== undefined;
        if (isFull || (isAlone && operations.length > 0)) return { operations, events, bytes, more: true };
        operations.push(pushOf(row, drafts, frame));
        events += drafts.length;
        bytes += row['bytes'] as number;
        if (isAlone || events >= eventsMax) return { operations, events, bytes, more: true };
      }
    }
  }

  /** These, as far as they still wait for an answer, in outbox order (OB3). */
  #named(
    log: string,
    requestIds: readonly string[],
    bounds: { readonly eventsMax: number; readonly bytesMax: number },
  ): PushBatch {
    const rows = requestIds.flatMap((requestId) => {
      const row = this.#store.database
        .prepare(`SELECT ${SENT_COLUMNS} FROM main.hf_outbox WHERE ${BY_ACTION} AND request_id = ? AND log = ?`)
        .get(this.#actionOf(requestId), requestId, log);
      const mayAsk = row !== undefined && row['state'] !== 'accepted' && LOCAL_STATES.has(row['state'] as string);
      return mayAsk ? [row] : [];
    });
    rows.sort((a, b) => (a['seq'] as number) - (b['seq'] as number));
    const operations: PushOperation[] = [];
    let events = 0;
    let bytes = 0;
    for (const row of rows) {
      const isFull =
        events + (row['events'] as number) > bounds.eventsMax || bytes + (row['bytes'] as number) > bounds.bytesMax;
      if (operations.length > 0 && isFull) return { operations, events, bytes, more: true };
      const drafts = JSON.parse(row['drafts'] as string) as EventDraft[];
      operations.push(pushOf(row, drafts, JSON.parse(row['frame'] as string) as OutboxFrame));
      events += row['events'] as number;
      bytes += row['bytes'] as number;
    }
    return { operations, events, bytes, more: false };
  }

  answeredSince(requestIds: readonly string[]): readonly { readonly requestId: string; readonly outcome: string }[] {
    return requestIds.flatMap((requestId) => {
      const row = this.byRequest(requestId);
      // Parked though it was owed: its history was adopted away, and no answer of that one can count any more (HL4).
      if (row !== undefined && !ANSWERED_STATES.has(row.state)) return [];
      const closed = this.#store.database
        .prepare("SELECT outcome ->> 'state' AS state FROM main.hf_outcome WHERE action_id = ?")
        .get(this.#actionOf(requestId));
      return [{ requestId, outcome: row?.state ?? (closed?.['state'] as string | undefined) ?? 'replaced' }];
    });
  }

  markSending(requestIds: readonly string[]): void {
    for (const requestId of requestIds)
      this.#store.database
        .prepare(
          `UPDATE main.hf_outbox SET state = 'sending', attempts = attempts + 1 WHERE ${BY_ACTION} AND request_id = ? AND state IN ('queued', 'waiting')`,
        )
        .run(this.#actionOf(requestId), requestId);
    this.#store.tracker.outbox = true;
  }

  markUnknown(requestIds: readonly string[], fault: Fault, retryAtMs: number | null): void {
    const state = retryAtMs === null ? 'queued' : 'waiting';
    for (const requestId of requestIds)
      this.#store.database
        .prepare(
          `UPDATE main.hf_outbox SET state = ?, retry_at = ?, fault = ? WHERE ${BY_ACTION} AND request_id = ? AND state IN ('sending', 'queued', 'waiting') AND judge_at IS NULL`,
        )
        .run(
          state,
          retryAtMs === null ? null : Math.ceil(retryAtMs),
          faultText(fault),
          this.#actionOf(requestId),
          requestId,
        );
    this.#store.tracker.outbox = true;
  }

  nextRetryAtMs(log: string): number | null {
    const row = this.#store.database
      .prepare(
        "SELECT min(retry_at) AS at FROM main.hf_outbox WHERE log = ? AND state = 'waiting' AND state <> 'queued' AND judge_at IS NULL",
      )
      .get(log);
    return (row?.['at'] as number | null | undefined) ?? null;
  }

  resetRetries(): void {
    this.#store.database
      .prepare("UPDATE main.hf_outbox SET retry_at = 0 WHERE state = 'waiting' AND retry_at > 0")
      .run();
  }

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

  // ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** See `ReplicaState.recordResults`. Rows that ingest has retired already are not here any more. */
  recordResults(entities: LocalEntities, results: readonly OperationResult[], nowMs: number, head: number): void {
    this.#store.tracker.outbox = true;
    const held: string[] = [];
    for (const result of results) {
      this.#answered.add(result.requestId);
      const row = this.byRequest(result.requestId);
      if (row === undefined) continue;
      if (result.status === 'accepted') this.#accepted(entities, row, result, head);
      else if (row.wish !== null) this.#granted.push({ row, isAccepted: false });
      else {
        this.#refused(entities, row, faultOf(result), nowMs);
        if (RECOVERY[result.code] === 'hold') held.push(row.actionId);
      }
    }
    for (const actionId of held) this.#checkHeld(entities, actionId);
  }

  #accepted(entities: LocalEntities, row: OutboxRow, answer: AcceptedAnswer, head: number): void {
    const last = answer.firstVersion + row.drafts.length - 1;
    // At or below the head it is in the confirmed state already: this transaction takes its change out of local state.
    if (last <= head) return this.retire(entities, row, last);
    this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET state = 'accepted', answer = ?, fault = NULL, retry_at = NULL, judge_at = NULL WHERE seq = ?",
      )
      .run(JSON.stringify(answer), row.seq);
    if (isLocal(row)) return;
    // It was held, and is in the log after all.
    this.#store.database.prepare('UPDATE main.hf_outbox SET held_by = NULL WHERE seq = ?').run(row.seq);
    this.#desk.closeFor(row.actionId);
    this.putBack(entities, row);
    this.letGo(entities, row);
  }

  #refused(entities: LocalEntities, row: OutboxRow, fault: Fault<RefusalCode>, nowMs: number): void {
    const set = (state: string, retryAtMs: number | null, judgeAt: number | null) =>
      this.#store.database
        .prepare('UPDATE main.hf_outbox SET state = ?, retry_at = ?, judge_at = ?, fault = ? WHERE seq = ?')
        .run(state, retryAtMs, judgeAt, faultText(fault), row.seq);
    switch (RECOVERY[fault.code]) {
      case 'judge':
        // What is held waits for the one that it names, and is judged with it.
        if (row.heldBy === null) set('waiting', null, versionOf(fault.facts));
        else set('queued', null, null);
        return;
      case 'hold':
        // What it builds on stands in front of it in the outbox: it is sent again once that has moved.
        set('queued', null, null);
        return;
      case 'check-position':
      case 'wait':
      case 'block':
      case 'retry':
        set('waiting', nowMs + retryAfter(fault.facts), null);
        return;
      case 'refuse':
      case 'preview-again':
        this.setAside(entities, row, 'refused', fault);
        this.#desk.open(row, deskKind(fault.code), fault);
        return;
      default:
        this.setAside(entities, row, 'parked', fault);
        this.#desk.open(row, 'engine', fault);
    }
  }

  /** The ledger misses something that nothing in the outbox will ever bring: to ask again would never end. */
  #checkHeld(entities: LocalEntities, actionId: string): void {
    const row = this.byAction(actionId);
    if (row === undefined || row.heldBy !== null) return;
    const holder = this.holderOf(entities, row);
    if (holder !== null) return this.hold(entities, row, holder);
    if (this.#namesWaiting(entities, row)) return;
    const fault = { code: 'prior-missing', facts: { reason: 'what it was made on is not on its way' } } as const;
    this.setAside(entities, row, 'parked', fault);
    this.#desk.open(row, 'engine', fault);
  }

  /** A version that was promised to own work came to somebody else: it is asked about again under its request id. */
  askAgain(log: string, upTo: number): void {
    const { changes } = this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET state = 'queued', answer = NULL WHERE log = ? AND state = 'accepted' AND state <> 'queued' AND json_extract(answer, '$.firstVersion') + events - 1 <= ?",
      )
      .run(log, upTo);
    if (changes > 0) this.#store.tracker.outbox = true;
  }

  /**
   * History may have been cut above the head: what was accepted, or is to be judged, at versions that are not here is asked
   * about again. The ledger says once more what it knows, or takes it.
   */
  newEpoch(log: string): void {
    this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET state = 'queued', answer = NULL, judge_at = NULL WHERE log = ? AND state <> 'queued' AND (state = 'accepted' OR (state = 'waiting' AND judge_at IS NOT NULL))",
      )
      .run(log);
    this.#store.tracker.outbox = true;
  }

  // ── owed work and wishes (OB3) ────────────────────────────────────────────────────────────────────────────────────

  /** Sent, and nobody knows whether it arrived: it is neither rebased, parked, resolved nor discarded. */
  isUnanswered(row: Pick<OutboxRow, 'state' | 'requestId'>): boolean {
    if (row.state === 'sending') return true;
    if (this.#answered.has(row.requestId)) return false;
    return (
      this.#store.database
        .prepare('SELECT 1 FROM main.hf_obligation WHERE identity = ? AND closed_at IS NULL LIMIT 1')
        .get(row.requestId) !== undefined
    );
  }

  /** A person wants it gone as soon as that can be: `inverse` takes it back if it was accepted. */
  wish(row: OutboxRow, inverse: readonly RecordedChange[]): void {
    this.#store.database
      .prepare('UPDATE main.hf_outbox SET wish = ? WHERE seq = ?')
      .run(JSON.stringify(inverse), row.seq);
    this.#store.tracker.outbox = true;
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
    if (row.wish !== null) this.#granted.push({ row, isAccepted: true });
  }

  /** Closed by a person, or nothing was left to send. What needed it needs what came in its place. */
  closeAs(entities: LocalEntities, row: OutboxRow, outcome: ActionOutcome): void {
    this.#close(entities, row, outcome);
    this.#renameNeed(row, outcome.state === 'replaced' ? outcome.by : undefined);
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
    for (const dependent of this.dependentsOf(entities, row)) this.hold(entities, dependent, row.actionId);
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
    this.#store.tracker.outbox = true;
  }

  /** What waited for a batch that flows, or is in the log after all, flows again unless something else holds it. */
  letGo(entities: LocalEntities, row: OutboxRow): void {
    this.#store.tracker.outbox = true;
    for (const dependent of this.dependentsOf(entities, row)) {
      if (dependent.heldBy === null) continue;
      const holder = this.holderOf(entities, dependent);
      this.#store.database.prepare('UPDATE main.hf_outbox SET held_by = ? WHERE seq = ?').run(holder, dependent.seq);
      if (holder === null) this.putBack(entities, dependent);
    }
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
    const { database } = this.#store;
    if (isAside)
      for (const { log, type, id } of keysOf(row))
        database
          .prepare('INSERT OR IGNORE INTO main.hf_aside (seq, log, type, id) VALUES (?, ?, ?, ?)')
          .run(row.seq, log, type, id);
    else if (row.heldBy !== null || !LOCAL_STATES.has(row.state))
      database.prepare('DELETE FROM main.hf_aside WHERE seq = ?').run(row.seq);
    else return;
    entities.asideChanged();
  }

  // ── who builds on whom (ST2) ──────────────────────────────────────────────────────────────────────────────────────

  /**
   * Later work that names a batch, directly or through others, by `prior` or `needs`; in outbox order. An event's prior is
   * of its own entity, so that what can name it is what is pending, or set aside, on the same entities.
   */
  dependentsOf(entities: LocalEntities, row: OutboxRow): readonly OutboxRow[] {
    const needing = this.#needing(row);
    const names = new Set<string>();
    const open = new Set<number>();
    const found: OutboxRow[] = [];
    const include = (one: OutboxRow) => {
      names.add(one.actionId);
      for (const draft of one.drafts) names.add(draft.id);
      for (const key of keysOf(one)) for (const seq of this.#on(entities, key)) if (seq > one.seq) open.add(seq);
      for (const seq of needing.get(one.actionId) ?? []) if (seq > one.seq) open.add(seq);
    };
    include(row);
    const looked = new Set<number>();
    for (;;) {
      const seq = lowest(open);
      if (seq === undefined) return found;
      open.delete(seq);
      if (looked.has(seq)) continue;
      looked.add(seq);
      const later = this.bySeq(seq);
      if (later === undefined || later.state === 'accepted' || !namesAny(later, names)) continue;
      found.push(later);
      include(later);
    }
  }

  /** Outbox seqs of the operations on one entity, pending or set aside. */
  #on(entities: LocalEntities, key: EntityKey): readonly number[] {
    const aside = this.#store.database
      .prepare('SELECT seq FROM main.hf_aside WHERE log = ? AND type = ? AND id = ?')
      .all(key.log, key.type, key.id);
    return [...(entities.get(key).base?.pending ?? []), ...aside.map((one) => one['seq'] as number)];
  }

  /** Action id → seqs of later work that needs it. */
  #needing(row: OutboxRow): ReadonlyMap<string, readonly number[]> {
    const needing = new Map<string, number[]>();
    for (const later of this.#store.database
      .prepare(`SELECT seq, frame FROM main.hf_outbox WHERE log = ? AND seq > ? AND instr(frame, '"needs"') > 0`)
      .all(row.log, row.seq))
      for (const action of (JSON.parse(later['frame'] as string) as OutboxFrame).needs ?? []) {
        const seqs = needing.get(action);
        if (seqs === undefined) needing.set(action, [later['seq'] as number]);
        else seqs.push(later['seq'] as number);
      }
    return needing;
  }

  /** The set aside batch that a row is held by; null where it names none. */
  holderOf(entities: LocalEntities, row: OutboxRow): string | null {
    for (const named of this.#namedBy(entities, row)) {
      if (!LOCAL_STATES.has(named.state)) return named.actionId;
      if (named.heldBy !== null) return named.heldBy;
    }
    return null;
  }

  #namesWaiting(entities: LocalEntities, row: OutboxRow): boolean {
    return this.#namedBy(entities, row).length > 0;
  }

  /** Batches of the outbox that a row names by `prior` or `needs`. */
  #namedBy(entities: LocalEntities, row: OutboxRow): readonly OutboxRow[] {
    const named = new Map<number, OutboxRow>();
    for (const action of row.frame.needs ?? []) {
      const one = this.byAction(action);
      if (one !== undefined) named.set(one.seq, one);
    }
    const own = new Set(row.drafts.map((draft) => draft.id));
    for (const { prior, entityType, entityId } of row.drafts) {
      if (prior === undefined || own.has(prior)) continue;
      // The nearest first: a chain names what stands right before.
      const before = this.#on(entities, { log: row.log, type: entityType, id: entityId }).filter(
        (seq) => seq < row.seq,
      );
      for (const seq of before.sort((a, b) => b - a)) {
        const one = named.get(seq) ?? this.bySeq(seq);
        if (one?.drafts.some((draft) => draft.id === prior) !== true) continue;
        named.set(seq, one);
        break;
      }
    }
    return [...named.values()];
  }

  #renameNeed(row: OutboxRow, by: string | undefined): void {
    for (const seq of this.#needing(row).get(row.actionId) ?? []) {
      const later = this.bySeq(seq);
      if (later === undefined) continue;
      const needs = (later.frame.needs ?? []).flatMap((action) =>
        action !== row.actionId ? [action] : by === undefined ? [] : [by],
      );
      const { needs: _old, ...frame } = later.frame;
      this.#store.database
        .prepare('UPDATE main.hf_outbox SET frame = ? WHERE seq = ?')
        .run(JSON.stringify(needs.length === 0 ? frame : { ...frame, needs }), seq);
    }
  }
}

export interface BatchAgain {
  readonly seq: number;
  readonly log: string;
  readonly actionId: string;
  readonly requestId: string;
  readonly draftTexts: readonly string[];
  readonly frame: OutboxFrame;
  readonly identity: string;
  readonly label: string | null;
  readonly createdAt: number;
}

/** A person's wish to have work gone, now that its answer is known. */
export interface GrantedWish {
  readonly row: OutboxRow;
  readonly isAccepted: boolean;
}

export const isLocal = (row: Pick<OutboxRow, 'state' | 'heldBy'>): boolean =>
  LOCAL_STATES.has(row.state) && row.heldBy === null;

const lowest = (seqs: ReadonlySet<number>): number | undefined => (seqs.size === 0 ? undefined : Math.min(...seqs));

const namesAny = (row: OutboxRow, names: ReadonlySet<string>): boolean =>
  row.drafts.some((draft) => draft.prior !== undefined && names.has(draft.prior)) ||
  (row.frame.needs ?? []).some((action) => names.has(action));

const faultOf = ({ code, details, message }: Extract<OperationResult, { status: 'refused' }>): Fault<RefusalCode> => ({
  code,
  ...(details === undefined ? {} : { facts: { ...details, ...(message === undefined ? {} : { message }) } }),
});

export const keysOf = (row: Pick<OutboxRow, 'log' | 'drafts'>) => {
  const keys = new Map(
    row.drafts.map((draft) => [
      `${draft.entityType} ${draft.entityId}`,
      { log: row.log, type: draft.entityType, id: draft.entityId },
    ]),
  );
  return [...keys.values()];
};

function isDue(row: Readonly<Record<string, unknown>>, nowMs: number): boolean {
  if (row['held_by'] !== null || row['judge_at'] !== null) return false;
  if (row['state'] === 'queued') return true;
  return row['state'] === 'waiting' && ((row['retry_at'] as number | null) ?? 0) <= nowMs;
}

/** What builds on work that stays behind stays behind too. */
function block(blocked: Set<string>, row: Readonly<Record<string, unknown>>): void {
  blocked.add(row['action_id'] as string);
  for (const draft of JSON.parse(row['drafts'] as string) as EventDraft[]) blocked.add(draft.id);
}

const isBlocked = (blocked: ReadonlySet<string>, drafts: readonly EventDraft[], frame: OutboxFrame): boolean =>
  blocked.size > 0 &&
  (drafts.some((draft) => draft.prior !== undefined && blocked.has(draft.prior)) ||
    (frame.needs ?? []).some((action) => blocked.has(action)));

const pushOf = (
  row: Readonly<Record<string, unknown>>,
  events: readonly EventDraft[],
  frame: OutboxFrame,
): PushOperation => ({
  requestId: row['request_id'] as string,
  actionId: row['action_id'] as string,
  events,
  ...frame,
});

/** Up to which version theirs must be read before it can be judged. */
const versionOf = (facts: Fault['facts']): number => {
  const version = facts?.['logVersion'] ?? facts?.['version'];
  return typeof version === 'number' ? version : 0;
};

function retryAfter(facts: Fault['facts']): number {
  const ms = facts?.['retryAfterMs'];
  return Math.min(LIMITS.retryMaxMs, Math.max(LIMITS.retryMinMs, typeof ms === 'number' ? ms : 5 * LIMITS.retryMinMs));
}

const deskKind = (code: RefusalCode) =>
  code === 'missing-reference' ? 'missing-reference' : code === 'not-allowed' ? 'no-access' : 'refused';
