import {
  brokenRules,
  type ClashFact,
  type ConfirmedEvent,
  canonical,
  clashFacts,
  differenceAsChanges,
  type EntityFacts,
  type EventDraft,
  fieldsOf,
  type Json,
  type JsonObject,
  LIMITS,
  ownValue,
  type Rebased,
  type Resolved,
  rebase,
  utf8Length,
  uuidv7,
} from '@holdfast/core';
import type { DeskWriter } from './desk.ts';
import type { LocalEntities, LocalEntity } from './local.ts';
import type { Outbox } from './outbox.ts';
import { keysOf, LOCAL_STATES, type OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { EntityKey } from './tables.ts';

type SeenVersion = (type: string, id: string) => number | undefined;

/**
 * Judging what the ledger answered with `version-conflict`, once theirs are here (6.4): merge and rebase, or park. The
 * rules are core's; this reads the facts, writes the verdicts, and keeps the outbox conserved.
 */
export class Judge {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #desk: DeskWriter;

  constructor(parts: { readonly store: ReplicaStore; readonly outbox: Outbox; readonly desk: DeskWriter }) {
    this.#store = parts.store;
    this.#outbox = parts.outbox;
    this.#desk = parts.desk;
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

  /** ST3: what depends on a batch that a person has closed. `resolved` says what came in its place. */
  rejudge(entities: LocalEntities, dependents: readonly OutboxRow[], resolved: Resolved, closed: OutboxRow): void {
    if (dependents.length === 0) return;
    const verdicts = this.#verdicts(entities, dependents, { resolved, closed });
    // What holds stands behind what it now builds on: all of it goes to the end, in its order.
    const moved = dependents.map((row) => this.#outbox.toEnd(entities, row));
    this.#apply(entities, moved, verdicts, { merged: 0, parked: 0 });
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
    if (answered.rebases >= LIMITS.automaticRebasesMax) this.#giveUp(entities, answered, counts);
    else this.#apply(entities, chain, this.#verdicts(entities, chain), counts);
    return true;
  }

  /**
   * HL4: work that the ledger has lost, on the state that was adopted. `seenVersion`: for each entity, its version where
   * both histories were one. Null: nobody knows it; what differs from what was seen is theirs.
   */
  offer(entities: LocalEntities, rows: readonly OutboxRow[], seenVersion: SeenVersion | null): void {
    if (rows.length === 0) return;
    const asSeen = rows.map((row) => this.#asSeen(entities, row, seenVersion));
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
    this.#apply(entities, asSeen, verdicts, { merged: 0, parked: 0 });
    entities.flush();
  }

  /** HL4: work that waits for a person, or for other work, is made on versions that are gone, too. It waits as it did. */
  restate(entities: LocalEntities, rows: readonly OutboxRow[], seenVersion: SeenVersion | null): void {
    for (const row of rows) this.#restate(entities, row, this.#asSeen(entities, row, seenVersion));
  }

  #restate(entities: LocalEntities, row: OutboxRow, asSeen: OutboxRow): void {
    if (asSeen.drafts.some((draft, at) => draft !== row.drafts[at])) this.#newBytes(entities, row, asSeen.drafts);
  }

  /** On bases that both histories know. */
  #asSeen(entities: LocalEntities, row: OutboxRow, seenVersion: SeenVersion | null): OutboxRow {
    const drafts = row.drafts.map((draft) => {
      const { entityType: type, entityId: id } = draft;
      const base =
        seenVersion === null
          ? this.#baseOnStandIns(entities, { log: row.log, type, id }, draft)
          : Math.min(seenVersion(type, id) ?? draft.base, draft.base);
      return base === draft.base ? draft : { ...draft, base };
    });
    return { ...row, drafts };
  }

  /** A version that what differs from what was seen lies above; the present one, where nothing does. */
  #baseOnStandIns(entities: LocalEntities, key: EntityKey, { base }: EventDraft): number {
    const entity = entities.get(key);
    const { version } = entity.confirmed;
    if (base === 0 || version === 0) return 0;
    return this.#standIns(entity, { base, version }).length === 0 ? version : version - 1;
  }

  /** OB3, I16: somebody else is always first. A person decides. */
  #giveUp(entities: LocalEntities, row: OutboxRow, counts: { parked: number }): void {
    counts.parked += 1;
    const fault = { code: 'version-conflict', facts: { ...row.fault?.facts, rebases: row.rebases } } as const;
    this.#outbox.setAside(entities, row, 'parked', fault);
    this.#desk.open(row, 'clash', fault, this.#bothSides(entities, row));
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
      if (row === undefined || !LOCAL_STATES.has(row.state) || row.heldBy !== null) continue;
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
        this.#factsOf(
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
      priorOf: (eventId) => closed?.drafts.find((draft) => draft.id === eventId)?.prior ?? this.#priorOf(eventId),
      seenBefore: (eventId, field) => this.#seenBefore(log, rows, eventId, field),
      ...(resolved === undefined ? {} : { resolved }),
    });
  }

  #factsOf(
    entities: LocalEntities,
    key: EntityKey,
    judged: {
      readonly base: number;
      readonly rows: readonly OutboxRow[];
      readonly isLast: boolean;
      readonly isSeenUnknown?: boolean;
    },
  ): EntityFacts {
    const { base, rows, isLast, isSeenUnknown = false } = judged;
    const { log, type, id } = key;
    const entity = entities.get(key);
    const { state } = entity.confirmed;
    if (state === undefined) this.#noteTold(entities, entity, toldVersion(rows, key));
    const { version } = entity.confirmed;
    const events = this.#store.database
      .prepare(
        'SELECT draft, envelope FROM main.hf_event WHERE log = ? AND type = ? AND entity = ? AND entity_version > ? ORDER BY entity_version',
      )
      .all(log, type, id, base)
      .map(confirmedEvent);
    // Else the state came whole, without these events: what differs from what was seen stands for them.
    const isTold = !isSeenUnknown || version === 0;
    const isComplete =
      isTold && events.length === version - base && (events[0]?.entityVersion ?? base + 1) === base + 1;
    const deleted =
      state === undefined
        ? this.#store.database
            .prepare('SELECT fields FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
            .get(log, type, id)
        : undefined;
    // Earlier pending work stays below what is judged; dependents of closed work stand on all of it.
    const first = isLast ? Number.POSITIVE_INFINITY : (rows[0]?.seq ?? 0);
    const hasEarlier = entity.base?.pending.some((seq) => seq < first) === true;
    return {
      version,
      fields: state?.fields,
      ...(typeof deleted?.['fields'] === 'string' ? { lastFields: JSON.parse(deleted['fields']) as JsonObject } : {}),
      events: isComplete ? events : this.#standIns(entity, { base, version }),
      ...(hasEarlier ? { onto: { fields: entities.stateBefore(entity, first)?.fields } } : {}),
    };
  }

  /** What it was before nobody here knows; what comes back is made on its version. */
  #noteTold(entities: LocalEntities, entity: LocalEntity, version: number): void {
    if (version <= entity.confirmed.version) return;
    const { log, type, id } = entity.key;
    this.#store.database
      .prepare(
        'INSERT INTO main.hf_deleted (log, type, id, version, fields, at) VALUES (?, ?, ?, ?, NULL, ?) ON CONFLICT (log, type, id) DO UPDATE SET version = excluded.version',
      )
      .run(log, type, id, version, this.#headOf(log));
    entities.setConfirmed(entity, { version, state: undefined });
  }

  #standIns(
    { key, confirmed }: LocalEntity,
    { base, version }: { readonly base: number; readonly version: number },
  ): readonly ConfirmedEvent[] {
    const seen = this.#store.database
      .prepare('SELECT fields FROM main.hf_seen WHERE log = ? AND type = ? AND id = ?')
      .get(key.log, key.type, key.id);
    const before = seen === undefined ? undefined : (JSON.parse(seen['fields'] as string) as JsonObject);
    const { state } = confirmed;
    return differenceAsChanges(before, state?.fields).map((change) => ({
      id: '',
      base,
      entityVersion: version,
      actor: state?.meta.updatedBy ?? '',
      recordedAt: state?.meta.updatedAt ?? this.#store.nowIso(),
      change,
    }));
  }

  #priorOf(eventId: string): string | undefined {
    // Of parked or closed work in the chain; its row is in the outbox as long as it is anywhere.
    const row = this.#store.database
      .prepare('SELECT drafts FROM main.hf_outbox WHERE instr(drafts, ?) > 0 LIMIT 1')
      .get(`"id":"${eventId}"`);
    if (row === undefined) return undefined;
    return (JSON.parse(row['drafts'] as string) as EventDraft[]).find((draft) => draft.id === eventId)?.prior;
  }

  /** What its author saw: the event that set the field last, at or below its base. Only shown to people. */
  #seenBefore(log: string, rows: readonly OutboxRow[], eventId: string, field: string): Json | undefined {
    const draft = rows.flatMap((row) => row.drafts).find((one) => one.id === eventId);
    if (draft === undefined) return undefined;
    const events = this.#store.database
      .prepare(
        'SELECT draft FROM main.hf_event WHERE log = ? AND type = ? AND entity = ? AND entity_version <= ? AND draft IS NOT NULL ORDER BY entity_version DESC LIMIT 50',
      )
      .all(log, draft.entityType, draft.entityId, draft.base);
    for (const row of events) {
      const { change } = JSON.parse(row['draft'] as string) as EventDraft;
      if (change.op === 'delete') return undefined;
      const values = change.op === 'create' || change.op === 'restore' ? change.fields : (change.set ?? {});
      const value = ownValue(values, field);
      if (value !== undefined) return value;
      if (change.op === 'update' && change.unset?.includes(field) === true) return undefined;
    }
    return undefined;
  }

  // ── verdicts ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #apply(
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
          const version = this.#headOf(log);
          for (const notice of verdict.notices) this.#desk.tell(row, notice);
          if (isTheirs && this.#isHistoryGone(log)) {
            // What did all of it is itself lost at the ledger (HL1), and may never come back.
            const fault = { code: 'version-conflict' } as const;
            this.#outbox.setAside(entities, row, 'parked', fault);
            this.#desk.open(row, 'clash', fault, this.#bothSides(entities, row));
            return;
          }
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

  /** For work that nobody judged: what it wrote, beside what is there. */
  #bothSides(entities: LocalEntities, row: OutboxRow): readonly ClashFact[] {
    return row.drafts.flatMap((event) => {
      const facts = this.#factsOf(
        entities,
        { log: row.log, type: event.entityType, id: event.entityId },
        { base: event.base, rows: [row], isLast: false },
      );
      const fields = fieldsOf(event.change);
      return clashFacts({
        event,
        judgement: {
          verdict: 'clash',
          fields: fields.length === 0 ? 'entity' : fields,
          theirs: facts.events.map((_, at) => at),
        },
        theirs: facts.events,
        facts,
        seenBefore: (eventId, field) => this.#seenBefore(row.log, [row], eventId, field),
      });
    });
  }

  #headOf(log: string): number {
    return this.#store.database.prepare('SELECT head FROM main.hf_log WHERE log = ?').get(log)?.['head'] as number;
  }

  /** What is confirmed here is not what the ledger has: from HL1 until its state is adopted (HL4). */
  #isHistoryGone(log: string): boolean {
    return (
      this.#store.database
        .prepare(
          "SELECT 1 FROM main.hf_log WHERE log = ?1 AND (json_extract(blocked, '$.code') = 'history-changed' OR EXISTS (SELECT 1 FROM main.hf_setting WHERE name = 'adopting/' || ?1))",
        )
        .get(log) !== undefined
    );
  }

  /** New bytes under a new request id; event ids and action id stay (OB3). */
  #newBytes(entities: LocalEntities, row: OutboxRow, drafts: readonly EventDraft[]): void {
    const texts = drafts.map((draft) => canonical(draft as unknown as Json));
    const { database, platform } = this.#store;
    const requestId = uuidv7(this.#store.nowMs(), platform.random);
    database
      .prepare('INSERT OR REPLACE INTO main.hf_request (request_id, action_id) VALUES (?, ?)')
      .run(requestId, row.actionId);
    database.prepare('UPDATE main.hf_outbox SET request_id = ?, drafts = ?, events = ?, bytes = ? WHERE seq = ?').run(
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
    this.#newBytes(entities, row, drafts);
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
}

const isUnknown = (
  entities: LocalEntities,
  row: OutboxRow | undefined,
  { entityType, entityId }: EventDraft,
): boolean =>
  row !== undefined && entities.get({ log: row.log, type: entityType, id: entityId }).confirmed.version === 0;

const confirmedEvent = (row: Readonly<Record<string, unknown>>): ConfirmedEvent => {
  const envelope = JSON.parse(row['envelope'] as string) as {
    entityVersion: number;
    actor: string;
    recordedAt: string;
  };
  const draft = row['draft'] === null ? null : (JSON.parse(row['draft'] as string) as EventDraft);
  return {
    id: draft?.id ?? '',
    ...(draft?.prior === undefined ? {} : { prior: draft.prior }),
    base: draft?.base ?? 0,
    entityVersion: envelope.entityVersion,
    actor: envelope.actor,
    recordedAt: envelope.recordedAt,
    change: draft?.change ?? null,
  };
};

/**
 * A deletion that came by a bootstrap is only an absence; how many events the entity had, the ledger said when it refused.
 */
function toldVersion(rows: readonly OutboxRow[], { type, id }: EntityKey): number {
  const versions = rows.flatMap(({ fault }) => {
    const facts = fault?.code === 'version-conflict' ? fault.facts : undefined;
    const isOnIt = facts?.['type'] === type && facts['id'] === id;
    return isOnIt && typeof facts['entityVersion'] === 'number' ? [facts['entityVersion']] : [];
  });
  return Math.max(0, ...versions);
}

function lowestBases(rows: readonly OutboxRow[]): Map<string, number> {
  const lowest = new Map<string, number>();
  for (const { drafts } of rows)
    for (const { entityType, entityId, base } of drafts) {
      const key = `${entityType} ${entityId}`;
      lowest.set(key, Math.min(lowest.get(key) ?? base, base));
    }
  return lowest;
}
