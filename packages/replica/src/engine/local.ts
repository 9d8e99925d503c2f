import { type EventDraft, foldChange } from '@holdfast/core';
import { type Base, baseText, type Confirmed, readBase } from './base.ts';
import type { ReplicaStore } from './replica-store.ts';
import { naming } from './row-fault.ts';
import type { EntityKey, EntityTable, HeldRow, HeldState, RowSync } from './tables.ts';

export type { Confirmed } from './base.ts';

/** One entity as this transaction has it so far. */
export interface LocalEntity {
  readonly name: string;
  readonly key: EntityKey;
  readonly table: EntityTable;
  row: HeldRow | undefined;
  storedBase: Base | undefined;
  base: Base | undefined;
  /** What people see. */
  local: HeldState | undefined;
  confirmed: Confirmed;
}

/** Bounds of what is kept between transactions. */
const ENTITIES_KEPT = 2_048;
const UNITS_KEPT = 2 * 2 ** 20;
const DRAFTS_KEPT = 2_048;

/** `arrival` of pending rows: after every version that a log can have, in local order (SC8). */
export const PENDING_ARRIVAL = 2 ** 52;

/**
 * Local state is confirmed state and, in outbox order, the pending changes on top (ST1). An entity with pending changes has
 * its confirmed state in its base; one without has it in its row.
 *
 * Each entity is read once and written once, at `flush`. Rows that were read or written lately are kept beyond the
 * transaction: only the owner of the file writes them, all of it through here (I22), and a rollback makes a new `LocalEntities`.
 * What goes past it (a swap of a log's rows, a type that is declared) must say so with `forget`.
 */
export class LocalEntities {
  readonly #store: ReplicaStore;
  readonly #entities = new Map<string, LocalEntity>();
  readonly #touched = new Set<LocalEntity>();
  readonly #drafts = new Map<number, readonly EventDraft[]>();
  #hasAside: boolean | null = null;
  /** Entities without a row: what is deleted has its version elsewhere, where it may be forgotten. */
  readonly #absent = new Set<string>();
  /** Code units of the rows that are kept, and how many drafts. */
  #kept = 0;
  #draftsKept = 0;

  constructor(store: ReplicaStore) {
    this.#store = store;
  }

  /** As the app names it. */
  get(key: EntityKey): LocalEntity {
    return this.#find(nameOf(key), key, this.#store.tableOf(key.type));
  }

  /** As the log has it: another one only where the app's type of this name is local. */
  ofLog(key: EntityKey): LocalEntity {
    const table = this.#store.logTableOf(key.type);
    const isAside = table !== this.#store.tableOf(key.type);
    return this.#find(isAside ? ` ${nameOf(key)}` : nameOf(key), key, table);
  }

  #find(name: string, key: EntityKey, table: EntityTable): LocalEntity {
    const known = this.#entities.get(name);
    if (known !== undefined) return known;
    const row = table.read(key.log, key.id);
    const base = this.#readBase(key, row);
    const entity: LocalEntity = {
      name,
      key,
      table,
      row,
      storedBase: base,
      base,
      local: row?.state,
      confirmed: base?.confirmed ?? this.#confirmedOf(key, table, row),
    };
    this.#entities.set(name, entity);
    this.#kept += sizeOf(row);
    if (row === undefined) this.#absent.add(name);
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
    this.#touched.add(entity);
  }

  /** Confirmed state moved; local state follows when flushed (IN2). */
  setConfirmed(entity: LocalEntity, confirmed: Confirmed): void {
    entity.confirmed = confirmed;
    if (entity.base !== undefined) entity.base = { ...entity.base, confirmed };
    this.#touched.add(entity);
    entity.local = this.#reapplied(entity);
  }

  /** The operations of the local state that touch the entity are now these. */
  setPending(entity: LocalEntity, pending: readonly number[]): void {
    this.#touched.add(entity);
    if (pending.length === 0) entity.base = undefined;
    else {
      const last = this.draftsOf(pending.at(-1) as number).findLast((draft) => isOn(draft, entity.key));
      entity.base = { confirmed: entity.confirmed, pending, lastEvent: last?.id ?? '' };
    }
    entity.local = this.#reapplied(entity);
  }

  /** Its row must say again whether somebody's attention is needed. */
  touch(entity: LocalEntity): void {
    this.#touched.add(entity);
  }

  /** Work was set aside, or is not any more: what rows say of it is asked again. */
  asideChanged(): void {
    this.#hasAside = null;
  }

  /** What the entity is with only the pending work before an outbox seq on it. */
  stateBefore(entity: LocalEntity, seq: number): HeldState | undefined {
    return this.#reapplied(entity, seq);
  }

  /** An operation's drafts were made again, or it is gone from this place of the outbox. */
  forgetDrafts(seq: number): void {
    this.#draftsKept -= this.#drafts.get(seq)?.length ?? 0;
    this.#drafts.delete(seq);
  }

  draftsOf(seq: number): readonly EventDraft[] {
    const known = this.#drafts.get(seq);
    if (known !== undefined) return known;
    const row = this.#store.database.prepare('SELECT drafts FROM main.hf_outbox WHERE seq = ?').get(seq);
    if (row === undefined) return [];
    const drafts = JSON.parse(row['drafts'] as string) as EventDraft[];
    this.keepDrafts(seq, drafts);
    return drafts;
  }

  /** What was just written, and will be asked for when theirs comes. */
  keepDrafts(seq: number, drafts: readonly EventDraft[]): void {
    this.#drafts.set(seq, drafts);
    this.#draftsKept += drafts.length;
  }

  /** Rows were swapped under it: what was read is not true any more. Nothing of it may be waiting to be written. */
  forget(): void {
    this.#entities.clear();
    this.#touched.clear();
    this.#absent.clear();
    this.#kept = 0;
  }

  /** Writes every touched entity once. */
  flush(): void {
    for (const entity of this.#touched) naming(entity.key, entity.confirmed.version, () => this.#write(entity));
    this.#touched.clear();
    for (const name of this.#absent) this.#entities.delete(name);
    this.#absent.clear();
    for (const seq of this.#drafts.keys()) {
      if (this.#draftsKept <= DRAFTS_KEPT) break;
      this.forgetDrafts(seq);
    }
    for (const [name, entity] of this.#entities) {
      if (this.#entities.size <= ENTITIES_KEPT && this.#kept <= UNITS_KEPT) break;
      this.#entities.delete(name);
      this.#kept -= sizeOf(entity.row);
    }
  }

  #write(entity: LocalEntity): void {
    const { key, table, row, base, storedBase, local } = entity;
    const text = base === undefined ? null : baseText(base, local);
    const written = table.write(key, row, local, { sync: this.#syncOf(entity), base: text });
    if (base !== undefined && local === undefined)
      this.#store.database
        .prepare('INSERT OR REPLACE INTO main.hf_base (log, type, id, base) VALUES (?, ?, ?, ?)')
        .run(key.log, key.type, key.id, text);
    else if (storedBase !== undefined && row === undefined)
      this.#store.database
        .prepare('DELETE FROM main.hf_base WHERE log = ? AND type = ? AND id = ?')
        .run(key.log, key.type, key.id);
    this.#kept += sizeOf(written) - sizeOf(row);
    entity.row = written;
    entity.storedBase = base;
    if (written === undefined) this.#absent.add(entity.name);
    else this.#absent.delete(entity.name);
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

  #confirmedOf(key: EntityKey, table: EntityTable, row: HeldRow | undefined): Confirmed {
    if (row !== undefined) return { version: row.state.version, state: row.state };
    if (table.model?.isLocal === true) return { version: 0, state: undefined };
    const deleted = this.#store.database
      .prepare('SELECT version FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
      .get(key.log, key.type, key.id);
    return { version: (deleted?.['version'] as number | undefined) ?? 0, state: undefined };
  }
}

const nameOf = ({ log, type, id }: EntityKey): string => `${log} ${type} ${id}`;

/** About how many code units a row holds. */
function sizeOf(row: HeldRow | undefined): number {
  let units = 0;
  for (const name in row?.raw) {
    const value = row.raw[name];
    units += typeof value === 'string' ? value.length : 8;
  }
  return units;
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
