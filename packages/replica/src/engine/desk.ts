import {
  type ClashFact,
  type EventDraft,
  type Fault,
  type Json,
  LIMITS,
  type Notice,
  ownValue,
  uuidv7,
} from '@holdfast/core';
import type { OutboxRow } from './outbox.ts';
import type { DeskEntry } from './replica-state.ts';
import { faultText, type ReplicaStore, readFault } from './replica-store.ts';

/**
 * The desk: what waits for a person, and what only tells (OB6). One entry for each batch that was set aside, with both
 * sides of every field; one for each notice.
 */
export class DeskWriter {
  readonly #store: ReplicaStore;

  constructor(store: ReplicaStore) {
    this.#store = store;
  }

  count(): number {
    const row = this.#store.database.prepare("SELECT count(*) AS n FROM main.hf_desk WHERE needs = 'answer'").get();
    return (row?.['n'] as number | undefined) ?? 0;
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

  /** Tells what the engine decided; it can be taken back (MG6). */
  tell(log: string, actionId: string, notice: Notice): void {
    this.#store.database
      .prepare(
        "INSERT INTO main.hf_desk (id, revision, kind, needs, action_id, log, label, entity_type, entity_id, facts, fault, created_at) VALUES (?, 1, ?, 'nothing', ?, ?, NULL, ?, ?, ?, NULL, ?)",
      )
      .run(
        this.#newId(),
        notice.kind,
        actionId,
        log,
        notice.entityType,
        notice.entityId,
        JSON.stringify([notice]),
        this.#store.nowMs(),
      );
    this.#store.database
      .prepare(
        "DELETE FROM main.hf_desk WHERE id IN (SELECT id FROM main.hf_desk WHERE needs = 'nothing' ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET ?)",
      )
      .run(LIMITS.deskListedMax);
    this.#store.tracker.desk = true;
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
        const type = row['entity_type'] as string;
        const label = row['label'] as string | null;
        return {
          id: row['id'] as string,
          revision: row['revision'] as number,
          kind: row['kind'] as DeskEntry['kind'],
          needs: row['needs'] as DeskEntry['needs'],
          actionId,
          log: row['log'] as string,
          ...(label === null ? {} : { label }),
          entity: { type, id: row['entity_id'] as string },
          fields: this.#fieldsOf(type, JSON.parse(row['facts'] as string) as ClashFact[]),
          ...(fault === null ? {} : { fault }),
          held: row['needs'] === 'answer' ? heldBy(actionId) : 0,
        };
      });
  }

  #fieldsOf(type: string, facts: readonly ClashFact[]): DeskEntry['fields'] {
    const model = this.#store.tables.get(type)?.model;
    return facts.map((fact) => ({
      field: fact.field === null ? '*' : (model?.byWire.get(fact.field)?.name ?? fact.field),
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
