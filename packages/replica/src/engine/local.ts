import { type EventDraft, foldChange } from '@holdfast/core';
import { type Base, baseText, type Confirmed, readBase } from './base.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { EntityKey, EntityTable, HeldRow, HeldState, RowSync } from './tables.ts';

export type { Confirmed } from './base.ts';

/**
 * Local state is confirmed state and, in outbox order, the pending changes on top (ST1). An entity with pending changes has
 * its confirmed state in its base; one without has it in its row.
 *
 * A `LocalEntities` lives as long as one transaction: it reads each entity once, and writes it once, at `flush`.
 */
export interface LocalEntity {
  readonly key: EntityKey;
  readonly table: EntityTable;
  readonly row: HeldRow | undefined;
  readonly storedBase: Base | undefined;
  base: Base | undefined;
  /** What people see. */
  local: HeldState | undefined;
  confirmed: Confirmed;
  isTouched: boolean;
}

/** `arrival` of pending rows: after every version that a log can have, in local order (SC8). */
export const PENDING_ARRIVAL = 2 ** 52;

export class LocalEntities {
  readonly #store: ReplicaStore;
  readonly #entities = new Map<string, LocalEntity>();
  readonly #drafts = new Map<number, readonly EventDraft[]>();
  #hasAside: boolean | null = null;

  constructor(store: ReplicaStore) {
    this.#store = store;
  }

  get(key: EntityKey): LocalEntity {
    const name = `${key.log} ${key.type} ${key.id}`;
    const known = this.#entities.get(name);
    if (known !== undefined) return known;
    const table = this.#store.tableOf(key.type);
    const row = table.read(key.log, key.id);
    const base = this.#readBase(key, row);
    const entity: LocalEntity = {
      key,
      table,
      row,
      storedBase: base,
      base,
      local: row?.state,
      confirmed: base?.confirmed ?? this.#confirmedOf(key, row),
      isTouched: false,
    };
    this.#entities.set(name, entity);
    return entity;
  }

  /** The last event that the next commit would be made on top of. */
  priorOf(entity: LocalEntity): string | undefined {
    return entity.base === undefined || entity.base.pending.length === 0 ? undefined : entity.base.lastEvent;
  }

  /** A commit put one more operation on the entity; `local` is what it left. */
  addPending(entity: LocalEntity, seq: number, lastEvent: string, local: HeldState | undefined): void {
    const pending = entity.base?.pending ?? [];
    entity.base = {
      confirmed: entity.confirmed,
      pending: pending.at(-1) === seq ? pending : [...pending, seq],
      lastEvent,
    };
    entity.local = local;
    entity.isTouched = true;
  }

  /** Confirmed state moved; local state follows when flushed (IN2). */
  setConfirmed(entity: LocalEntity, confirmed: Confirmed): void {
    entity.confirmed = confirmed;
    if (entity.base !== undefined) entity.base = { ...entity.base, confirmed };
    entity.isTouched = true;
    entity.local = this.#reapplied(entity);
  }

  /** The operations of the local state that touch the entity are now these. */
  setPending(entity: LocalEntity, pending: readonly number[]): void {
    entity.isTouched = true;
    if (pending.length === 0) entity.base = undefined;
    else {
      const last = this.draftsOf(pending.at(-1) as number).findLast((draft) => isOn(draft, entity.key));
      entity.base = { confirmed: entity.confirmed, pending, lastEvent: last?.id ?? '' };
    }
    entity.local = this.#reapplied(entity);
  }

  /** Its row must say again whether somebody's attention is needed. */
  touch(entity: LocalEntity): void {
    entity.isTouched = true;
  }

  /** Work was set aside, or is not any more: what rows say of it is asked again. */
  asideChanged(): void {
    this.#hasAside = null;
  }

  /** What the entity is with only the pending work before an outbox seq on it. */
  stateBefore(entity: LocalEntity, seq: number): HeldState | undefined {
    return this.#reapplied(entity, seq);
  }

  /** An operation's drafts were made again. */
  forgetDrafts(seq: number): void {
    this.#drafts.delete(seq);
  }

  draftsOf(seq: number): readonly EventDraft[] {
    const known = this.#drafts.get(seq);
    if (known !== undefined) return known;
    const row = this.#store.database.prepare('SELECT drafts FROM main.hf_outbox WHERE seq = ?').get(seq);
    const drafts = row === undefined ? [] : (JSON.parse(row['drafts'] as string) as EventDraft[]);
    this.#drafts.set(seq, drafts);
    return drafts;
  }

  /** Rows were swapped under it: what was read is not true any more. Nothing of it may be waiting to be written. */
  forget(): void {
    this.#entities.clear();
  }

  /** Writes every touched entity once. */
  flush(): void {
    for (const entity of this.#entities.values()) if (entity.isTouched) this.#write(entity);
    this.#entities.clear();
    this.#drafts.clear();
  }

  #write(entity: LocalEntity): void {
    const { key, table, row, base, storedBase, local } = entity;
    const text = base === undefined ? null : baseText(base, local);
    table.write(key, row, local, { sync: this.#syncOf(entity), base: text });
    const isRowless = base !== undefined && local === undefined;
    const wasRowless = storedBase !== undefined && row === undefined;
    if (isRowless)
      this.#store.database
        .prepare('INSERT OR REPLACE INTO main.hf_base (log, type, id, base) VALUES (?, ?, ?, ?)')
        .run(key.log, key.type, key.id, text);
    else if (wasRowless)
      this.#store.database
        .prepare('DELETE FROM main.hf_base WHERE log = ? AND type = ? AND id = ?')
        .run(key.log, key.type, key.id);
  }

  #syncOf(entity: LocalEntity): RowSync {
    const { log, type, id } = entity.key;
    const { database } = this.#store;
    this.#hasAside ??= database.prepare('SELECT 1 FROM main.hf_aside LIMIT 1').get() !== undefined;
    if (this.#hasAside) {
      const aside = database.prepare('SELECT 1 FROM main.hf_aside WHERE log = ? AND type = ? AND id = ? LIMIT 1');
      if (aside.get(log, type, id) !== undefined) return 'attention';
    }
    return entity.base === undefined ? 'synced' : 'pending';
  }

  #reapplied(entity: LocalEntity, before = Number.POSITIVE_INFINITY): HeldState | undefined {
    let state = entity.confirmed.state;
    for (const seq of entity.base?.pending.filter((one) => one < before) ?? [])
      for (const draft of this.draftsOf(seq))
        if (isOn(draft, entity.key))
          state = withDraft(state, draft, { seq, account: this.#store.account, version: entity.confirmed.version });
    return state;
  }

  #readBase(key: EntityKey, row: HeldRow | undefined): Base | undefined {
    if (row !== undefined) return row.base === null ? undefined : readBase(row.base, row.state);
    const stored = this.#store.database
      .prepare('SELECT base FROM main.hf_base WHERE log = ? AND type = ? AND id = ?')
      .get(key.log, key.type, key.id);
    return stored === undefined ? undefined : readBase(stored['base'] as string, undefined);
  }

  #confirmedOf(key: EntityKey, row: HeldRow | undefined): Confirmed {
    if (row !== undefined) return { version: row.state.version, state: row.state };
    const deleted = this.#store.database
      .prepare('SELECT version FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
      .get(key.log, key.type, key.id);
    return { version: (deleted?.['version'] as number | undefined) ?? 0, state: undefined };
  }
}

export const isOn = (draft: EventDraft, key: EntityKey): boolean =>
  draft.entityId === key.id && draft.entityType === key.type;

/** One pending change on top of a state. One that cannot apply has no effect until it is judged (ST1). */
export function withDraft(
  state: HeldState | undefined,
  draft: EventDraft,
  by: { readonly seq: number; readonly account: string; readonly version: number },
): HeldState | undefined {
  const folded = foldChange(state?.fields, draft.change);
  if (!folded.ok) return state;
  if (folded.value === undefined) return undefined;
  const made = state?.meta ?? { createdBy: by.account, createdAt: draft.at, arrival: PENDING_ARRIVAL + by.seq };
  return {
    version: by.version,
    fields: folded.value,
    meta: {
      createdBy: made.createdBy,
      createdAt: made.createdAt,
      arrival: made.arrival,
      updatedBy: by.account,
      updatedAt: draft.at,
    },
  };
}
