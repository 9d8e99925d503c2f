import {
  type EventDraft,
  type Fault,
  LIMITS,
  type OperationResult,
  type PushOperation,
  RECOVERY,
  type RefusalCode,
} from '@holdfast/core';
import type { DeskWriter } from './desk.ts';
import type { LocalEntities } from './local.ts';
import type { ActionOutcome, OutboxCounts, PushBatch } from './replica-state.ts';
import { faultText, type ReplicaStore, readObject } from './replica-store.ts';

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
  readonly heldBy: string | null;
  readonly answer: AcceptedAnswer | null;
}

export interface OutboxFrame {
  readonly merge: 'fields' | 'author';
  readonly needs?: readonly string[];
  readonly requires?: readonly (readonly [string, string])[];
  readonly expectedLogVersion?: number;
  readonly scope?: 'log';
}

export type AcceptedAnswer = Extract<OperationResult, { status: 'accepted' }>;

const COLUMNS = 'seq, log, action_id, request_id, state, drafts, frame, identity, label, rebases, held_by, answer';

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
  heldBy: row['held_by'] as string | null,
  answer: readObject(row['answer']) as AcceptedAnswer | null,
});

/** States whose changes are part of local state (ST1), unless held. */
export const LOCAL_STATES: ReadonlySet<string> = new Set(['queued', 'sending', 'waiting', 'accepted']);

export class Outbox {
  readonly #store: ReplicaStore;
  readonly #desk: DeskWriter;

  constructor(store: ReplicaStore, desk: DeskWriter) {
    this.#store = store;
    this.#desk = desk;
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
    const row = this.#store.database.prepare(`SELECT ${COLUMNS} FROM main.hf_outbox WHERE action_id = ?`).get(actionId);
    return row === undefined ? undefined : readRow(row);
  }
  bySeq(seq: number): OutboxRow | undefined {
    const row = this.#store.database.prepare(`SELECT ${COLUMNS} FROM main.hf_outbox WHERE seq = ?`).get(seq);
    return row === undefined ? undefined : readRow(row);
  }
  isEmpty(): boolean {
    return this.#store.database.prepare('SELECT 1 FROM main.hf_outbox LIMIT 1').get() === undefined;
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
    const wanted = only === undefined ? null : new Set(only);
    const operations: PushOperation[] = [];
    const blocked = new Set<string>();
    let events = 0;
    let bytes = 0;
    let after = 0;
    for (;;) {
      const rows = this.#store.database
        .prepare(
          'SELECT seq, action_id, request_id, state, drafts, events, bytes, frame, retry_at, judge_at, held_by FROM main.hf_outbox WHERE log = ? AND seq > ? ORDER BY seq LIMIT 256',
        )
        .all(log, after);
      if (rows.length === 0) return { operations, events, bytes, more: false };
      for (const row of rows) {
        after = row['seq'] as number;
        const isWanted =
          wanted === null
            ? isDue(row, nowMs)
            : wanted.has(row['request_id'] as string) &&
              row['state'] !== 'accepted' &&
              LOCAL_STATES.has(row['state'] as string);
        if (!isWanted) {
          if (wanted === null && row['state'] !== 'accepted') block(blocked, row);
          continue;
        }
        const drafts = JSON.parse(row['drafts'] as string) as EventDraft[];
        const frame = JSON.parse(row['frame'] as string) as OutboxFrame;
        if (wanted === null && isBlocked(blocked, drafts, frame)) {
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

  markSending(requestIds: readonly string[]): void {
    for (const requestId of requestIds)
      this.#store.database
        .prepare(
          "UPDATE main.hf_outbox SET state = 'sending', attempts = attempts + 1 WHERE action_id = ? AND request_id = ? AND state IN ('queued', 'waiting')",
        )
        .run(this.#actionOf(requestId), requestId);
    this.#store.tracker.outbox = true;
  }

  markUnknown(requestIds: readonly string[], fault: Fault, retryAtMs: number | null): void {
    const state = retryAtMs === null ? 'queued' : 'waiting';
    for (const requestId of requestIds)
      this.#store.database
        .prepare(
          "UPDATE main.hf_outbox SET state = ?, retry_at = ?, fault = ? WHERE action_id = ? AND request_id = ? AND state IN ('sending', 'queued', 'waiting') AND judge_at IS NULL",
        )
        .run(state, retryAtMs, faultText(fault), this.#actionOf(requestId), requestId);
    this.#store.tracker.outbox = true;
  }

  nextRetryAtMs(log: string): number | null {
    const row = this.#store.database
      .prepare(
        "SELECT min(retry_at) AS at FROM main.hf_outbox WHERE log = ? AND state = 'waiting' AND judge_at IS NULL",
      )
      .get(log);
    return (row?.['at'] as number | null | undefined) ?? null;
  }

  resetRetries(): void {
    this.#store.database
      .prepare("UPDATE main.hf_outbox SET retry_at = 0 WHERE state = 'waiting' AND retry_at > 0")
      .run();
  }

  flowing(log: string, upTo?: number): { readonly count: number; readonly newest: number | null } {
    const row = this.#store.database
      .prepare(
        "SELECT count(*) AS n, max(seq) AS newest FROM main.hf_outbox WHERE log = ? AND seq <= ? AND state IN ('queued', 'sending', 'waiting', 'accepted') AND held_by IS NULL",
      )
      .get(log, upTo ?? Number.MAX_SAFE_INTEGER);
    return { count: (row?.['n'] as number) ?? 0, newest: (row?.['newest'] as number | null) ?? null };
  }

  counts(): OutboxCounts {
    const of = {
      unsent: 0,
      sending: 0,
      waiting: 0,
      held: 0,
      parked: 0,
      lost: 0,
      attention: 0,
      oldestUnsentAtMs: null as number | null,
    };
    const rows = this.#store.database
      .prepare(
        'SELECT state, held_by IS NOT NULL AS held, count(*) AS n, min(created_at) AS oldest FROM main.hf_outbox GROUP BY state, held_by IS NOT NULL',
      )
      .all();
    for (const row of rows) {
      const n = row['n'] as number;
      of.unsent += n;
      of.oldestUnsentAtMs = Math.min(of.oldestUnsentAtMs ?? Number.POSITIVE_INFINITY, row['oldest'] as number);
      if (row['held'] === 1) of.held += n;
      switch (row['state']) {
        case 'sending':
          of.sending += n;
          break;
        case 'waiting':
          of.waiting += n;
          break;
        case 'parked':
        case 'refused':
          of.parked += n;
          break;
        case 'lost':
          of.lost += n;
          break;
      }
    }
    of.attention = this.#desk.count();
    return of;
  }

  // ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** See `ReplicaState.recordResults`. Rows that ingest has retired already are not here any more. */
  recordResults(entities: LocalEntities, results: readonly OperationResult[], nowMs: number, head: number): void {
    this.#store.tracker.outbox = true;
    for (const result of results) {
      const row = this.byRequest(result.requestId);
      if (row === undefined) continue;
      if (result.status === 'accepted') this.#accepted(entities, row, result, head);
      else
        this.#refused(
          entities,
          row,
          {
            code: result.code,
            ...(result.details === undefined
              ? {}
              : { facts: { ...result.details, ...(result.message === undefined ? {} : { message: result.message }) } }),
          },
          nowMs,
        );
    }
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
  }

  #refused(entities: LocalEntities, row: OutboxRow, fault: Fault<RefusalCode>, nowMs: number): void {
    const set = (state: string, retryAtMs: number | null, judgeAt: number | null) =>
      this.#store.database
        .prepare('UPDATE main.hf_outbox SET state = ?, retry_at = ?, judge_at = ?, fault = ? WHERE seq = ?')
        .run(state, retryAtMs, judgeAt, faultText(fault), row.seq);
    switch (RECOVERY[fault.code]) {
      case 'judge':
        set('waiting', null, versionOf(fault.facts));
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
        this.setAside(entities, row, 'refused', fault);
        this.#desk.open(row, deskKind(fault.code), fault);
        return;
      default:
        this.setAside(entities, row, 'parked', fault);
        this.#desk.open(row, 'engine', fault);
    }
  }

  // ── leaving and coming back ───────────────────────────────────────────────────────────────────────────────────────

  /** Confirmed: the row goes, its outcome stays; its change is in the confirmed state (OB7). */
  retire(entities: LocalEntities, row: OutboxRow, version: number): void {
    this.takeOut(entities, row);
    this.#close(row, { state: 'ordered', log: row.log, version });
    this.#desk.closeFor(row.actionId);
  }

  /** Closed by a person, or nothing was left to send. */
  closeAs(entities: LocalEntities, row: OutboxRow, outcome: ActionOutcome): void {
    this.takeOut(entities, row);
    this.#close(row, outcome);
    this.#desk.closeFor(row.actionId);
  }

  #close(row: OutboxRow, outcome: ActionOutcome): void {
    const { database } = this.#store;
    database.prepare('DELETE FROM main.hf_outbox WHERE seq = ?').run(row.seq);
    if (row.requestId !== row.actionId)
      database.prepare('DELETE FROM main.hf_request WHERE action_id = ?').run(row.actionId);
    database
      .prepare('INSERT OR REPLACE INTO main.hf_outcome (action_id, identity, outcome, at) VALUES (?, ?, ?, ?)')
      .run(row.actionId, row.identity, JSON.stringify(outcome), this.#store.nowMs());
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
    for (const dependent of this.dependentsOf(row)) this.hold(entities, dependent, row.actionId);
    this.#store.settle(row.actionId, { state: state === 'refused' ? 'refused' : 'needs-attention', fault });
    this.#store.tracker.outbox = true;
  }

  hold(entities: LocalEntities, row: OutboxRow, by: string): void {
    this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET held_by = ?, state = CASE state WHEN 'sending' THEN state ELSE 'queued' END, judge_at = NULL WHERE seq = ?",
      )
      .run(by, row.seq);
    this.takeOut(entities, row);
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
    for (const key of keysOf(row)) {
      const entity = entities.get(key);
      const pending = new Set([...(entity.base?.pending ?? []), row.seq]);
      entities.setPending(
        entity,
        [...pending].sort((a, b) => a - b),
      );
    }
  }

  /** Later work that names one of these, directly or through others, by `prior` or `needs` (ST2). In outbox order. */
  dependentsOf(row: OutboxRow): readonly OutboxRow[] {
    const names = new Set([row.actionId, ...row.drafts.map((draft) => draft.id)]);
    const found: OutboxRow[] = [];
    for (const later of this.#candidates(row)) {
      const isNamed =
        later.drafts.some((draft) => draft.prior !== undefined && names.has(draft.prior)) ||
        (later.frame.needs ?? []).some((action) => names.has(action));
      if (!isNamed) continue;
      found.push(later);
      names.add(later.actionId);
      for (const draft of later.drafts) names.add(draft.id);
    }
    return found;
  }

  /** Later work that could depend on a row: it says `prior` or `needs` at all. */
  #candidates(row: OutboxRow): readonly OutboxRow[] {
    return this.#store.database
      .prepare(
        `SELECT ${COLUMNS} FROM main.hf_outbox WHERE log = ? AND seq > ? AND state <> 'accepted' AND (instr(frame, '"needs"') > 0 OR instr(drafts, '"prior"') > 0) ORDER BY seq`,
      )
      .all(row.log, row.seq)
      .map(readRow);
  }
}

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
