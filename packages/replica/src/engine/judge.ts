import { brokenRules, type EventDraft, LIMITS, type Rebased, type Resolved, rebase } from '@holdfast/core';
import { JudgeFacts } from './judge-facts.ts';
import { type JudgeParts, Verdicts } from './judge-verdicts.ts';
import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import { keysOf, LOCAL_STATES, type OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { EntityKey } from './tables.ts';

type SeenVersion = (type: string, id: string) => number | undefined;

/** HL4: what is known of both histories. */
export interface Adopted {
  /**
   * For each entity its version where both histories were one. Null: nobody knows it; what differs from what was seen is
   * theirs.
   */
  readonly seenVersion: SeenVersion | null;
  /** What a draft names as its prior on top of all that is sent before it; `hasSeenMore`: than its base still says. */
  readonly priorOf: (row: OutboxRow, draft: EventDraft, hasSeenMore: boolean) => string | undefined;
}

/**
 * Judging what the ledger answered with `version-conflict`, once theirs are here (6.4): merge and rebase, or park. The
 * rules are core's; `JudgeFacts` reads what they need, `Verdicts` carries out what they say, and here is what is judged when,
 * and with what.
 */
export class Judge {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #facts: JudgeFacts;
  readonly #carryOut: Verdicts;

  constructor(parts: JudgeParts) {
    this.#store = parts.store;
    this.#outbox = parts.outbox;
    this.#facts = new JudgeFacts(parts.store);
    this.#carryOut = new Verdicts(parts, this.#facts);
  }

  /**
   * Judges everything that waited for a version at or below the head; `everything` where the ledger has no more to read, so
   * that a version which never comes is waited for by nobody.
   */
  judgeDue(entities: LocalEntities, log: string, head: number): { readonly merged: number; readonly parked: number } {
    const counts = { merged: 0, parked: 0 };
    // Each round takes the first; a chain is judged whole, so what remains is of other chains.
    for (let round = 0; round < LIMITS.outcomesKept; round += 1) {
      const found = this.#store.database
        .prepare(
          "SELECT seq FROM main.hf_outbox WHERE log = ? AND state = 'waiting' AND state <> 'queued' AND judge_at <= ? AND seq > ? ORDER BY seq LIMIT 1",
        )
        .get(log, head, this.#passed.at(-1) ?? Number.MIN_SAFE_INTEGER);
      if (found === undefined) break;
      const row = this.#outbox.bySeq(found['seq'] as number) as OutboxRow;
      if (!this.#judge(entities, row, head, counts)) this.#passed.push(row.seq);
    }
    this.#passed.length = 0;
    return counts;
  }

  /** Rows passed over in this round, because part of their chain is on its way. */
  readonly #passed: number[] = [];

  /**
   * ST3: what depends on a batch that a person has closed. `resolved` says what came in its place. What is set aside itself
   * waits for an answer of its own (OB6).
   */
  rejudge(entities: LocalEntities, dependents: readonly OutboxRow[], resolved: Resolved, closed: OutboxRow): void {
    if (dependents.length === 0) return;
    // What holds stands behind what it now builds on: all of it goes to the end, in its order.
    const own = dependents.filter(({ log, state }) => log === closed.log && LOCAL_STATES.has(state));
    if (own.length > 0) {
      const verdicts = this.#verdicts(entities, own, { resolved, closed });
      const moved = own.map((row) => this.#outbox.toEnd(entities, row));
      this.#carryOut.apply(entities, moved, verdicts, { merged: 0, parked: 0 });
    }
    for (const { log, actionId } of dependents) {
      // Of another log it only needed a definition (SC4): nothing happened to its entities by this.
      const other = log === closed.log ? undefined : this.#outbox.byAction(actionId);
      if (other !== undefined && LOCAL_STATES.has(other.state))
        this.#outbox.release(entities, this.#outbox.toEnd(entities, other));
    }
    entities.flush();
  }

  #judge(
    entities: LocalEntities,
    answered: OutboxRow,
    head: number,
    counts: { merged: number; parked: number },
  ): boolean {
    const chain = this.#chainOf(entities, answered);
    // Work that is sending or owed is neither rebased nor parked until answered (OB3).
    if (chain.some((row) => row.state === 'accepted' || this.#outbox.isUnanswered(row))) return false;
    if (chain.some((row) => (row.judgeAt ?? 0) > head)) return false;
    if (answered.rebases >= LIMITS.automaticRebasesMax) this.#carryOut.giveUp(entities, answered, counts);
    else this.#carryOut.apply(entities, chain, this.#verdicts(entities, chain), counts);
    return true;
  }

  /** HL4: work that the ledger has lost, on the state that was adopted. */
  offer(entities: LocalEntities, rows: readonly OutboxRow[], adopted: Adopted): void {
    if (rows.length === 0) return;
    const { seenVersion } = adopted;
    const asSeen = rows.map((row) => this.#asSeen(entities, row, adopted));
    const verdicts = this.#verdicts(entities, asSeen, { isSeenUnknown: seenVersion === null }).map(
      (verdict, at): Rebased => {
        const { actionId, drafts: events } = asSeen[at] as OutboxRow;
        const isStored = events.every((draft, index) => draft === rows[at]?.drafts[index]);
        // Of an entity that this history never knew, nobody can say that it is done: its creation may come back.
        if (verdict.outcome === 'nothing-left' && events.some((draft) => isUnknown(entities, rows[at], draft)))
          return { outcome: 'parked', actionId, kind: 'clash', facts: [], rules: [] };
        return verdict.outcome === 'unchanged' && !isStored
          ? { outcome: 'rebased', actionId, events, notices: [] }
          : verdict;
      },
    );
    verdicts.forEach(({ outcome }, at) => {
      if (outcome === 'held' || outcome === 'parked')
        this.#restate(entities, rows[at] as OutboxRow, asSeen[at] as OutboxRow);
    });
    this.#carryOut.apply(entities, asSeen, verdicts, { merged: 0, parked: 0 });
    entities.flush();
  }

  /** HL4: work that waits for a person, or for other work, is made on versions that are gone, too. It waits as it did. */
  restate(entities: LocalEntities, rows: readonly OutboxRow[], adopted: Adopted): void {
    for (const row of rows) this.#restate(entities, row, this.#asSeen(entities, row, adopted));
  }

  /** HL4: what others had done of it, and the ledger has lost, is part of it again. */
  remake(entities: LocalEntities, row: OutboxRow, drafts: readonly EventDraft[]): void {
    this.#carryOut.newBytes(entities, row, drafts);
  }

  #restate(entities: LocalEntities, row: OutboxRow, asSeen: OutboxRow): void {
    if (asSeen.drafts.some((draft, at) => draft !== row.drafts[at]))
      this.#carryOut.newBytes(entities, row, asSeen.drafts);
  }

  /**
   * On bases that both histories know. What was made on own work that was confirmed then, and is offered again now, names it:
   * no base says any more that its author had seen it.
   */
  #asSeen(entities: LocalEntities, row: OutboxRow, { seenVersion, priorOf }: Adopted): OutboxRow {
    const inRow = new Set<string>();
    const drafts = row.drafts.map((draft) => {
      const { entityType: type, entityId: id } = draft;
      const isFirst = !inRow.has(`${type} ${id}`);
      inRow.add(`${type} ${id}`);
      const base =
        seenVersion === null
          ? this.#baseOnStandIns(entities, { log: row.log, type, id }, draft)
          : Math.min(seenVersion(type, id) ?? draft.base, draft.base);
      const hasSeenMore = draft.base > 0 && (seenVersion === null || base < draft.base);
      const prior = isFirst ? priorOf(row, draft, hasSeenMore) : draft.prior;
      return base === draft.base && prior === draft.prior ? draft : { ...draft, base, ...(prior && { prior }) };
    });
    return { ...row, drafts };
  }

  /** A version that what differs from what was seen lies above; the present one, where nothing does. */
  #baseOnStandIns(entities: LocalEntities, key: EntityKey, { base }: EventDraft): number {
    const entity = entities.get(key);
    const { version } = entity.confirmed;
    if (base === 0 || version === 0) return 0;
    return this.#facts.standIns(entity, { base, version }).length === 0 ? version : version - 1;
  }

  /** The operation, and every later one of the local state on its entities or named through `prior` or `needs`. */
  #chainOf(entities: LocalEntities, first: OutboxRow): readonly OutboxRow[] {
    const names = new Set([first.actionId, ...first.drafts.map((draft) => draft.id)]);
    const keys = new Set(keysOf(first).map(({ type, id }) => `${type} ${id}`));
    const seqs = new Set<number>();
    for (const key of keysOf(first))
      for (const seq of entities.get(key).base?.pending ?? []) if (seq > first.seq) seqs.add(seq);
    for (const row of this.#outbox.dependents.of(entities, first)) seqs.add(row.seq);
    const chain = [first];
    for (const seq of [...seqs].sort((a, b) => a - b)) {
      const row = this.#outbox.bySeq(seq);
      // Of another log nothing is rebased by this: it is held if this is parked.
      if (row === undefined || row.log !== first.log || !LOCAL_STATES.has(row.state) || row.heldBy !== null) continue;
      const touches = row.drafts.some(
        (draft) =>
          keys.has(`${draft.entityType} ${draft.entityId}`) || (draft.prior !== undefined && names.has(draft.prior)),
      );
      if (!touches && !(row.frame.needs ?? []).some((action) => names.has(action))) continue;
      chain.push(row);
      names.add(row.actionId);
      for (const draft of row.drafts) {
        names.add(draft.id);
        keys.add(`${draft.entityType} ${draft.entityId}`);
      }
    }
    return chain;
  }

  #verdicts(
    entities: LocalEntities,
    rows: readonly OutboxRow[],
    how: {
      readonly resolved?: Resolved;
      readonly closed?: OutboxRow;
      /** What came since it was made is told by what differs, not by events (HL4). */
      readonly isSeenUnknown?: boolean;
    } = {},
  ): readonly Rebased[] {
    const { resolved, closed, isSeenUnknown = false } = how;
    const log = rows[0]?.log as string;
    const lowest = lowestBases(rows);
    return rebase({
      operations: rows.map(({ actionId, frame, drafts }) => ({
        actionId,
        merge: frame.merge,
        events: drafts,
        needs: frame.needs,
      })),
      factsOf: (type, id) =>
        this.#facts.of(
          entities,
          { log, type, id },
          { base: lowest.get(`${type} ${id}`) ?? 0, rows, isLast: resolved !== undefined, isSeenUnknown },
        ),
      editedWhileDeleted: (type) => this.#store.tables.get(type)?.model?.data.editedWhileDeleted ?? 'keep',
      brokenRules: (type, fields) => {
        const model = this.#store.tables.get(type)?.model;
        return model === null || model === undefined ? [] : brokenRules(model.data, fields);
      },
      // The chain below the closed batch is still the author's own, though its row has gone.
      priorOf: (eventId) => closed?.drafts.find((draft) => draft.id === eventId)?.prior ?? this.#facts.priorOf(eventId),
      seenBefore: (eventId, field) => this.#facts.seenBefore(log, rows, eventId, field),
      ...(resolved === undefined ? {} : { resolved }),
    });
  }
}

const isUnknown = (
  entities: LocalEntities,
  row: OutboxRow | undefined,
  { entityType, entityId }: EventDraft,
): boolean =>
  row !== undefined && entities.get({ log: row.log, type: entityType, id: entityId }).confirmed.version === 0;

function lowestBases(rows: readonly OutboxRow[]): Map<string, number> {
  const lowest = new Map<string, number>();
  for (const { drafts } of rows)
    for (const { entityType, entityId, base } of drafts) {
      const key = `${entityType} ${entityId}`;
      lowest.set(key, Math.min(lowest.get(key) ?? base, base));
    }
  return lowest;
}
