import { type Fault, LIMITS, type OperationResult, RECOVERY, type RefusalCode } from '@holdfast/core';
import type { DeskWriter } from './desk.ts';
import { keepDrafts } from './kept-drafts.ts';
import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import { type AcceptedAnswer, isLocal, type OutboxRow } from './outbox-row.ts';
import { faultText, type ReplicaStore } from './replica-store.ts';

/** What the ledger's answers make of the outbox: each code has its recovery (ER1), and each is carried out here. */
export class Answers {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #desk: DeskWriter;

  constructor(store: ReplicaStore, outbox: Outbox, desk: DeskWriter) {
    this.#store = store;
    this.#outbox = outbox;
    this.#desk = desk;
  }

  /** See `ReplicaState.recordResults`. Rows that ingest has retired already are not here any more. */
  recordResults(entities: LocalEntities, results: readonly OperationResult[], nowMs: number, head: number): void {
    this.#store.tracker.outbox = true;
    const held: string[] = [];
    for (const result of results) {
      this.#outbox.noteAnswered(result.requestId);
      const row = this.#outbox.byRequest(result.requestId);
      if (row === undefined) continue;
      if (result.status === 'accepted') this.#accepted(entities, row, result, head);
      else if (row.wish !== null) this.#outbox.grant(row, false);
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
    if (last <= head && !this.#isOfOthers(row, answer.firstVersion)) {
      keepDrafts(this.#store, row, answer.firstVersion);
      return this.#outbox.retire(entities, row, last);
    }
    this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET state = 'accepted', answer = ?, fault = NULL, retry_at = NULL, judge_at = NULL WHERE seq = ?",
      )
      .run(JSON.stringify(answer), row.seq);
    if (last <= head) this.askAgain(row.log, head);
    if (isLocal(row)) return;
    // It was held, and is in the log after all.
    this.#store.database.prepare('UPDATE main.hf_outbox SET held_by = NULL WHERE seq = ?').run(row.seq);
    this.#desk.closeFor(row.actionId);
    this.#outbox.putBack(entities, row);
    this.#outbox.letGo(entities, row);
  }

  /** What is here at the version that its answer promised is not it: the answer is older than that (HL1). */
  #isOfOthers({ log, actionId }: OutboxRow, version: number): boolean {
    const found = this.#store.database
      .prepare('SELECT action_id FROM main.hf_event WHERE log = ? AND version = ?')
      .get(log, version);
    return found !== undefined && found['action_id'] !== actionId;
  }

  #refused(entities: LocalEntities, row: OutboxRow, fault: Fault<RefusalCode>, nowMs: number): void {
    const set = (state: string, retryAtMs: number | null, judgeAt: number | null) =>
      this.#store.database
        .prepare('UPDATE main.hf_outbox SET state = ?, retry_at = ?, judge_at = ?, fault = ? WHERE seq = ?')
        .run(state, retryAtMs, judgeAt, faultText(fault), row.seq);
    // What it had said before is true no more.
    if (row.answer !== null)
      this.#store.database.prepare('UPDATE main.hf_outbox SET answer = NULL WHERE seq = ?').run(row.seq);
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
        this.#outbox.setAside(entities, row, 'refused', fault);
        this.#desk.open(row, deskKind(fault.code), fault);
        return;
      default:
        this.#outbox.setAside(entities, row, 'parked', fault);
        this.#desk.open(row, 'engine', fault);
    }
  }

  /** The ledger misses something that nothing in the outbox will ever bring: to ask again would never end. */
  #checkHeld(entities: LocalEntities, actionId: string): void {
    const row = this.#outbox.byAction(actionId);
    if (row === undefined || row.heldBy !== null) return;
    const holder = this.#outbox.dependents.holderOf(entities, row);
    if (holder !== null) return this.#outbox.hold(entities, row, holder);
    if (this.#outbox.dependents.namesWaiting(entities, row)) return;
    const fault = { code: 'prior-missing', facts: { reason: 'what it was made on is not on its way' } } as const;
    this.#outbox.setAside(entities, row, 'parked', fault);
    this.#desk.open(row, 'engine', fault);
  }

  /**
   * A version that was promised to own work came to somebody else, or with a state that came whole, in which nobody can see
   * whose it is: it is asked about again under its request id. It keeps the answer until then: the ledger may well have it.
   */
  askAgain(log: string, upTo: number): void {
    const { changes } = this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET state = 'queued' WHERE log = ? AND state = 'accepted' AND state <> 'queued' AND json_extract(answer, '$.firstVersion') + events - 1 <= ?",
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
        "UPDATE main.hf_outbox SET state = 'queued', judge_at = NULL WHERE log = ? AND state <> 'queued' AND (state = 'accepted' OR (state = 'waiting' AND judge_at IS NOT NULL))",
      )
      .run(log);
    this.#store.tracker.outbox = true;
  }
}

const faultOf = ({ code, details, message }: Extract<OperationResult, { status: 'refused' }>): Fault<RefusalCode> => ({
  code,
  ...(details === undefined ? {} : { facts: { ...details, ...(message === undefined ? {} : { message }) } }),
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
