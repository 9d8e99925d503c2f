import type { EventDraft, Fault, PushOperation } from '@holdfast/core';
import type { Outbox } from './outbox.ts';
import { BY_ACTION } from './outbox-index.ts';
import { ANSWERED_STATES, LOCAL_STATES, type OutboxFrame, SENT_COLUMNS } from './outbox-row.ts';
import type { PushBatch } from './replica-state.ts';
import { faultText, type ReplicaStore } from './replica-store.ts';

/** What of the outbox is sent next, in its order and within its bounds, and what is known of what was sent (OB2 to OB4). */
export class Sending {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;

  constructor(store: ReplicaStore, outbox: Outbox) {
    this.#store = store;
    this.#outbox = outbox;
  }

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
        .get(this.#outbox.actionOf(requestId), requestId, log);
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
      const row = this.#outbox.byRequest(requestId);
      // Parked though it was owed: its history was adopted away, and no answer of that one can count any more (HL4).
      if (row !== undefined && !ANSWERED_STATES.has(row.state)) return [];
      const closed = this.#store.database
        .prepare("SELECT outcome ->> 'state' AS state FROM main.hf_outcome WHERE action_id = ?")
        .get(this.#outbox.actionOf(requestId));
      return [{ requestId, outcome: row?.state ?? (closed?.['state'] as string | undefined) ?? 'replaced' }];
    });
  }

  markSending(requestIds: readonly string[]): void {
    for (const requestId of requestIds)
      this.#store.database
        .prepare(
          `UPDATE main.hf_outbox SET state = 'sending', attempts = attempts + 1 WHERE ${BY_ACTION} AND request_id = ? AND state IN ('queued', 'waiting')`,
        )
        .run(this.#outbox.actionOf(requestId), requestId);
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
          this.#outbox.actionOf(requestId),
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
}

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
