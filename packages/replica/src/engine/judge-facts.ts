import {
  type ConfirmedEvent,
  differenceAsChanges,
  type EntityFacts,
  type EventDraft,
  type Json,
  type JsonObject,
  ownValue,
} from '@holdfast/core';
import type { LocalEntities, LocalEntity } from './local.ts';
import type { OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';
import type { EntityKey } from './tables.ts';

/**
 * What judging needs to know of an entity: what it is now, and what happened to it since the judged work was made, as events
 * or, where the state came whole, as what differs from what its author saw.
 */
export class JudgeFacts {
  readonly #store: ReplicaStore;

  constructor(store: ReplicaStore) {
    this.#store = store;
  }

  of(
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
    const events = eventsSince(this.#store, key, base);
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
      events: isComplete ? events : this.standIns(entity, { base, version }),
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
      .run(log, type, id, version, headOf(this.#store, log));
    entities.setConfirmed(entity, { version, state: undefined });
  }

  /** In nobody's name: who changed the entity last need not have written what differs. */
  standIns(
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
      actor: '',
      recordedAt: '',
      change,
    }));
  }

  priorOf(eventId: string): string | undefined {
    // Of parked or closed work in the chain; its row is in the outbox as long as it is anywhere.
    const row = this.#store.database
      .prepare('SELECT drafts FROM main.hf_outbox WHERE instr(drafts, ?) > 0 LIMIT 1')
      .get(`"id":"${eventId}"`);
    if (row === undefined) return undefined;
    return (JSON.parse(row['drafts'] as string) as EventDraft[]).find((draft) => draft.id === eventId)?.prior;
  }

  /** What its author saw: the event that set the field last, at or below its base. Only shown to people. */
  seenBefore(log: string, rows: readonly OutboxRow[], eventId: string, field: string): Json | undefined {
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
}

/** The events of an entity above one of its versions that are here, oldest first. */
export const eventsSince = (
  { database }: ReplicaStore,
  { log, type, id }: EntityKey,
  base: number,
): readonly ConfirmedEvent[] =>
  database
    .prepare(
      'SELECT draft, envelope FROM main.hf_event WHERE log = ? AND type = ? AND entity = ? AND entity_version > ? ORDER BY entity_version',
    )
    .all(log, type, id, base)
    .map(confirmedEvent);

export const headOf = ({ database }: ReplicaStore, log: string): number =>
  database.prepare('SELECT head FROM main.hf_log WHERE log = ?').get(log)?.['head'] as number;

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
    ...(draft?.meta === undefined ? {} : { meta: draft.meta }),
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
