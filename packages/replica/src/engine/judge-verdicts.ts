import {
  assert,
  type ClashFact,
  canonical,
  clashFacts,
  type EventDraft,
  fieldsOf,
  type Json,
  judgeEvent,
  type Notice,
  type Rebased,
  theirsSince,
  utf8Length,
  uuidv7,
} from '@holdfast/core';
import type { DeskWriter } from './desk.ts';
import { isHistoryGone } from './history-gone.ts';
import type { JudgeFacts } from './judge-facts.ts';
import { doneAt, keepDone } from './kept-drafts.ts';
import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import type { OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';

/** Carries out what was judged: rewritten under a new request id, closed, held, or on the desk, and always one of them. */
export class Verdicts {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #desk: DeskWriter;
  readonly #facts: JudgeFacts;

  constructor(parts: JudgeParts, facts: JudgeFacts) {
    this.#store = parts.store;
    this.#outbox = parts.outbox;
    this.#desk = parts.desk;
    this.#facts = facts;
  }

  apply(
    entities: LocalEntities,
    rows: readonly OutboxRow[],
    verdicts: readonly Rebased[],
    counts: { merged: number; parked: number },
  ): void {
    verdicts.forEach((verdict, at) => {
      const row = rows[at] as OutboxRow;
      const isAnswered = row.judgeAt !== null;
      switch (verdict.outcome) {
        case 'rebased':
          if (!this.#keepDone(entities, row, verdict)) return;
          counts.merged += isAnswered ? 1 : 0;
          this.#rewrite(entities, row, verdict.events);
          for (const notice of verdict.notices) this.#desk.tell(row, notice);
          return;
        case 'unchanged':
          // Its bytes stand; a request that was answered once needs a new id to be judged again.
          if (isAnswered || row.heldBy !== null) this.#rewrite(entities, row, row.drafts);
          else this.#outbox.putBack(entities, row);
          return;
        case 'nothing-left': {
          // Theirs did all of it: it is in the log, by other hands. Or it was decided against, and its author is told.
          const { log } = row;
          const isTheirs = verdict.notices.length === 0;
          const version = doneAt(this.#store, row);
          for (const notice of verdict.notices) this.#desk.tell(row, notice);
          if (!this.#keepDone(entities, row, { events: [], notices: verdict.notices })) return;
          this.#outbox.closeAs(entities, row, isTheirs ? { state: 'ordered', log, version } : { state: 'discarded' });
          return;
        }
        case 'parked': {
          counts.parked += 1;
          const fault =
            verdict.kind === 'rule'
              ? ({ code: 'rule-broken', facts: { rules: verdict.rules } } as const)
              : ({ code: 'version-conflict' } as const);
          this.#outbox.setAside(entities, row, 'parked', fault);
          this.#desk.open(row, verdict.kind, fault, verdict.facts);
          return;
        }
        case 'held':
          this.#outbox.hold(entities, row, verdict.by);
      }
    });
  }

  /**
   * Keeps what theirs did of it, for as long as they may be lost (HL1). False where they are lost already, and may never come
   * back: then all of it waits for a person.
   */
  #keepDone(
    entities: LocalEntities,
    row: OutboxRow,
    left: { readonly events: readonly EventDraft[]; readonly notices: readonly Notice[] },
  ): boolean {
    const against = new Set(left.notices.map(({ eventId }) => eventId));
    const sent = new Set(left.events.map(({ id }) => id));
    const gone = row.drafts.filter(({ id }) => !sent.has(id) && !against.has(id));
    if (gone.length === 0) return true;
    if (isHistoryGone(this.#store.database, row.log)) {
      const fault = { code: 'version-conflict' } as const;
      this.#outbox.setAside(entities, row, 'parked', fault);
      this.#desk.open(row, 'clash', fault, this.#bothSides(entities, row));
      return false;
    }
    const version = doneAt(this.#store, { log: row.log, drafts: gone });
    keepDone(this.#store, row, { gone: new Set(gone.map(({ id }) => id)), against, version });
    return true;
  }

  /** For work that nobody judged: what clashes now, or else what it wrote where others wrote, beside what is there. */
  #bothSides(entities: LocalEntities, row: OutboxRow): readonly ClashFact[] {
    const sides = row.drafts.map((event) => {
      const key = { log: row.log, type: event.entityType, id: event.entityId };
      const facts = this.#facts.of(entities, key, { base: event.base, rows: [row], isLast: false });
      const since = { base: event.base, prior: this.#inLog(event), max: Number.POSITIVE_INFINITY };
      const found = theirsSince(facts.events, since);
      const theirs = found.isTooMany ? [] : found.theirs;
      return {
        event,
        facts,
        theirs,
        judgement: judgeEvent(
          event.change,
          theirs.map(({ change }) => change),
        ),
      };
    });
    const seenBefore = (eventId: string, field: string) => this.#facts.seenBefore(row.log, [row], eventId, field);
    const clashing = sides.filter(({ judgement }) => judgement.verdict === 'clash');
    if (clashing.length > 0) return clashing.flatMap((side) => clashFacts({ ...side, seenBefore }));
    return sides.flatMap((side) => {
      const theirs = side.theirs.map((_, at) => at);
      if (theirs.length === 0) return [];
      const fields = fieldsOf(side.event.change);
      return clashFacts({
        ...side,
        judgement: { verdict: 'clash', fields: fields.length === 0 ? 'entity' : fields, theirs },
        seenBefore,
      });
    });
  }

  /** Where the chain below an event enters the log: the newest own event that is not pending. */
  #inLog({ prior }: EventDraft): string | undefined {
    let own = prior;
    const passed = new Set<string>();
    for (let below = own; below !== undefined; below = this.#facts.priorOf(below)) {
      assert(!passed.has(below), `the chain below the event ${prior} has no end`);
      passed.add(below);
      own = below;
    }
    return own;
  }

  /** New bytes under a new request id; event ids and action id stay (OB3). */
  newBytes(entities: LocalEntities, row: OutboxRow, drafts: readonly EventDraft[]): void {
    const texts = drafts.map((draft) => canonical(draft as unknown as Json));
    const { database, platform } = this.#store;
    const requestId = uuidv7(this.#store.nowMs(), platform.random);
    database
      .prepare('INSERT OR REPLACE INTO main.hf_request (request_id, action_id) VALUES (?, ?)')
      .run(requestId, row.actionId);
    database
      .prepare(
        'UPDATE main.hf_outbox SET request_id = ?, drafts = ?, events = ?, bytes = ?, answer = NULL WHERE seq = ?',
      )
      .run(
        requestId,
        `[${texts.join(',')}]`,
        drafts.length,
        texts.reduce((bytes, text) => bytes + utf8Length(text), 0),
        row.seq,
      );
    this.#outbox.takeOut(entities, row);
    entities.forgetDrafts(row.seq);
    this.#store.tracker.outbox = true;
  }

  /** Queued anew with new bytes. */
  #rewrite(entities: LocalEntities, row: OutboxRow, drafts: readonly EventDraft[]): void {
    this.newBytes(entities, row, drafts);
    this.#store.database
      .prepare(
        "UPDATE main.hf_outbox SET rebases = ?, state = 'queued', judge_at = NULL, retry_at = NULL, held_by = NULL, fault = NULL WHERE seq = ?",
      )
      .run(row.rebases + (row.judgeAt === null ? 0 : 1), row.seq);
    // What it builds on may itself still wait for a person (ST2).
    const frame = this.#outbox.bySeq(row.seq)?.frame ?? row.frame;
    const holder = this.#outbox.dependents.holderOf(entities, { ...row, drafts, frame });
    if (holder === null) this.#outbox.putBack(entities, { ...row, drafts });
    else this.#outbox.hold(entities, { ...row, drafts, state: 'queued' }, holder);
  }

  /** OB3, I16: somebody else is always first. A person decides. */
  giveUp(entities: LocalEntities, row: OutboxRow, counts: { parked: number }): void {
    counts.parked += 1;
    const fault = { code: 'version-conflict', facts: { ...row.fault?.facts, rebases: row.rebases } } as const;
    this.#outbox.setAside(entities, row, 'parked', fault);
    this.#desk.open(row, 'clash', fault, this.#bothSides(entities, row));
  }
}

export interface JudgeParts {
  readonly store: ReplicaStore;
  readonly outbox: Outbox;
  readonly desk: DeskWriter;
}
