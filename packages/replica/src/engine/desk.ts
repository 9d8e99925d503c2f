import {
  type ClashFact,
  type ConfirmedEvent,
  type EventDraft,
  editedFields,
  type Fault,
  type Json,
  LIMITS,
  type Notice,
  ownValue,
  sameValue,
  uuidv7,
  writerOf,
} from '@holdfast/core';
import { eventsSince } from './judge-facts.ts';
import type { LocalEntity } from './local.ts';
import type { OutboxRow } from './outbox-row.ts';
import type { DeskEntry } from './replica-state.ts';
import { faultText, type ReplicaStore, readFault } from './replica-store.ts';
import type { EntityKey, HeldState } from './tables.ts';

/**
 * The desk: what waits for a person, and what only tells (OB6). One entry for each batch that was set aside, with both
 * sides of every field; one for each notice.
 */
export class DeskWriter {
  readonly #store: ReplicaStore;

  /** How many entries wait for an answer. */
  readonly count: () => number;

  constructor(store: ReplicaStore) {
    this.#store = store;
    this.count = store.remembered(['desk'], () => {
      const row = store.database.prepare("SELECT count(*) AS n FROM main.hf_desk WHERE needs = 'answer'").get();
      return (row?.['n'] as number | undefined) ?? 0;
    });
  }

  /** An entry for a batch that was set aside; shown again with a new revision if it is there already. */
  open(row: OutboxRow, kind: DeskEntry['kind'], fault: Fault | null, facts: readonly ClashFact[] = []): void {
    const first = facts[0] ?? row.drafts[0];
    const before = this.#store.database
      .prepare("SELECT id, revision FROM main.hf_desk WHERE action_id = ? AND needs = 'answer'")
      .get(row.actionId);
    this.#store.database
      .prepare(
        "INSERT OR REPLACE INTO main.hf_desk (id, revision, kind, needs, action_id, log, label, entity_type, entity_id, facts, fault, created_at) VALUES (?, ?, ?, 'answer', ?, ?, ?, ?, ?, ?, ?, ?)",
      )
      .run(
        (before?.['id'] as string | undefined) ?? this.#newId(),
        ((before?.['revision'] as number | undefined) ?? 0) + 1,
        kind,
        row.actionId,
        row.log,
        row.label,
        first?.entityType ?? '',
        first?.entityId ?? '',
        JSON.stringify(facts.length > 0 ? facts : ownFacts(row.drafts)),
        fault === null ? null : faultText(fault),
        this.#store.nowMs(),
      );
    this.#store.tracker.desk = true;
  }

  /** Tells what the engine decided against own work; it can be taken back (MG6). */
  tell(
    of: { readonly log: string; readonly actionId: string; readonly drafts: readonly EventDraft[] },
    notice: Notice,
  ): void {
    const { database } = this.#store;
    const mine = of.drafts.find((draft) => draft.id === notice.eventId);
    database
      .prepare(
        "INSERT INTO main.hf_desk (id, revision, kind, needs, action_id, log, label, entity_type, entity_id, facts, fault, created_at) VALUES (?, 1, ?, 'nothing', ?, ?, NULL, ?, ?, ?, NULL, ?)",
      )
      .run(
        this.#newId(),
        notice.kind,
        of.actionId,
        of.log,
        notice.entityType,
        notice.entityId,
        JSON.stringify([{ ...notice, ...(mine === undefined ? {} : { change: mine.change }) }]),
        this.#store.nowMs(),
      );
    database
      .prepare(
        "DELETE FROM main.hf_desk WHERE id IN (SELECT id FROM main.hf_desk WHERE needs = 'nothing' ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET ?)",
      )
      .run(LIMITS.deskListedMax);
    this.#store.tracker.desk = true;
  }

  /**
   * Theirs has moved on under entries that wait: what a person was shown is not true any more, so the revision is another
   * (F147). `entities` are those whose confirmed state moved.
   */
  refresh(entities: Iterable<LocalEntity>): void {
    const { database } = this.#store;
    if (database.prepare("SELECT 1 FROM main.hf_desk WHERE needs = 'answer' LIMIT 1").get() === undefined) return;
    const entries = database.prepare(
      "SELECT d.id, d.facts, o.drafts FROM main.hf_aside a JOIN main.hf_outbox o ON o.seq = a.seq JOIN main.hf_desk d ON d.action_id = o.action_id WHERE a.log = ? AND a.type = ? AND a.id = ? AND d.needs = 'answer'",
    );
    for (const { key, confirmed } of entities) {
      for (const row of entries.all(key.log, key.type, key.id)) {
        const before = JSON.parse(row['facts'] as string) as ClashFact[];
        const bases = new Map((JSON.parse(row['drafts'] as string) as EventDraft[]).map(({ id, base }) => [id, base]));
        const since = (eventId: string): Since => {
          const base = bases.get(eventId) ?? confirmed.version;
          return { base, version: confirmed.version, events: eventsSince(this.#store, key, base) };
        };
        const facts = before.map((fact) => nowOf(fact, { key, state: confirmed.state, since }));
        if (facts.every((fact, at) => fact === before[at])) continue;
        database
          .prepare('UPDATE main.hf_desk SET facts = ?, revision = revision + 1 WHERE id = ?')
          .run(JSON.stringify(facts), row['id'] as string);
        this.#store.tracker.desk = true;
      }
    }
  }

  closeFor(actionId: string): void {
    const { changes } = this.#store.database
      .prepare("DELETE FROM main.hf_desk WHERE action_id = ? AND needs = 'answer'")
      .run(actionId);
    if (changes > 0) this.#store.tracker.desk = true;
  }

  dismiss(id: string): void {
    this.#store.database.prepare("DELETE FROM main.hf_desk WHERE id = ? AND needs = 'nothing'").run(id);
    this.#store.tracker.desk = true;
  }

  list(heldBy: (actionId: string) => number): readonly DeskEntry[] {
    return this.#store.database
      .prepare('SELECT * FROM main.hf_desk ORDER BY needs, created_at, id LIMIT ?')
      .all(LIMITS.deskListedMax)
      .map((row) => {
        const actionId = row['action_id'] as string;
        const fault = readFault(row['fault']);
        const entity = { type: row['entity_type'] as string, id: row['entity_id'] as string };
        const label = row['label'] as string | null;
        return {
          id: row['id'] as string,
          revision: row['revision'] as number,
          kind: row['kind'] as DeskEntry['kind'],
          needs: row['needs'] as DeskEntry['needs'],
          actionId,
          log: row['log'] as string,
          ...(label === null ? {} : { label }),
          entity,
          fields: this.#fieldsOf(entity, JSON.parse(row['facts'] as string) as ClashFact[]),
          ...(fault === null ? {} : { fault }),
          held: row['needs'] === 'answer' ? heldBy(actionId) : 0,
        };
      });
  }

  /** Fields of other entities of the same batch are named with their entity. */
  #fieldsOf(entity: { readonly type: string; readonly id: string }, facts: readonly ClashFact[]): DeskEntry['fields'] {
    const named = (fact: ClashFact): string => {
      const model = this.#store.tables.get(fact.entityType)?.model;
      const field = fact.field === null ? '*' : (model?.byWire.get(fact.field)?.name ?? fact.field);
      const isHere = fact.entityType === entity.type && fact.entityId === entity.id;
      return isHere ? field : `${fact.entityType}/${fact.entityId}.${field}`;
    };
    return facts.map((fact) => ({
      field: named(fact),
      base: fact.base,
      mine: fact.mine,
      theirs: fact.theirs,
      by: fact.by ?? '',
      at: fact.at ?? '',
    }));
  }

  #newId(): string {
    return uuidv7(this.#store.nowMs(), this.#store.platform.random);
  }
}

interface Moved {
  readonly key: EntityKey;
  readonly state: HeldState | undefined;
  /** What happened to the entity after the base of one of the entry's own. */
  readonly since: (eventId: string) => Since;
}

/** Of one entity between two of its versions. `events`: those that are here, oldest first. */
interface Since {
  readonly base: number;
  readonly version: number;
  readonly events: readonly ConfirmedEvent[];
}

/** The same fact if nothing about it has moved. */
function nowOf(fact: ClashFact, { key, state, since }: Moved): ClashFact {
  if (fact.entityType !== key.type || fact.entityId !== key.id) return fact;
  const { theirs: before, theirsOp, by: _by, at: _at, ...rest } = fact;
  const theirs = fact.field === null ? undefined : ownValue(state?.fields ?? {}, fact.field);
  if (sameValue(before, theirs) && (theirsOp === 'delete') === (state === undefined)) return fact;
  const field = state === undefined ? null : fact.field;
  const writer = whoWrote(field, since(fact.eventId), fact.base);
  // There was no other side, and there is none: nobody has written this field since.
  const isOwn = theirsOp === undefined && before === undefined && writer === undefined;
  if (isOwn && state !== undefined) return fact;
  return {
    ...rest,
    ...(theirs === undefined ? {} : { theirs }),
    theirsOp: state === undefined ? 'delete' : theirsOp === 'delete' ? 'restore' : (theirsOp ?? 'update'),
    // Where its state came whole, without events, nobody here knows: who changed the entity last may not have touched it.
    ...(writer === undefined ? {} : { by: writer.actor, at: writer.recordedAt }),
  };
}

/**
 * Who wrote last, a field or (null) the entity. Undefined where nobody did, and where nobody here knows: what came whole came
 * without its events, and only those after it tell. `before`: what the field was at the base.
 */
function whoWrote(
  field: string | null,
  { base, version, events }: Since,
  before: Json | undefined,
): ConfirmedEvent | undefined {
  const isComplete = events.length === version - base;
  const known = isComplete
    ? events
    : events.filter(({ entityVersion }, at) => version - entityVersion === events.length - 1 - at);
  if (field === null) return known.at(-1);
  const writer = writerOf(field, known, isComplete ? before : undefined);
  // A restore carries what others wrote, and what it was before it is not known.
  const isCarried = !isComplete && writer?.change?.op === 'restore' && editedFields(writer) === undefined;
  return isCarried ? undefined : writer;
}

/** Where there is no other side, a person still sees what was written. */
function ownFacts(drafts: readonly EventDraft[]): readonly ClashFact[] {
  return drafts.flatMap((draft): ClashFact[] => {
    const about = {
      eventId: draft.id,
      entityType: draft.entityType,
      entityId: draft.entityId,
      mineOp: draft.change.op,
    };
    const { change } = draft;
    if (change.op === 'delete') return [{ ...about, field: null }];
    const values = change.op === 'create' || change.op === 'restore' ? change.fields : (change.set ?? {});
    const set = Object.keys(values).map(
      (field): ClashFact => ({ ...about, field, mine: ownValue(values, field) as Json }),
    );
    return set.length > 0 ? set : [{ ...about, field: null }];
  });
}
