import {
  type EventDraft,
  type JsonObject,
  ownValue,
  type RecordedChange,
  type Resolved,
  resolutionEffect,
  uuidv7,
} from '@holdfast/core';
import { commitInside } from './commit.ts';
import type { DeskWriter } from './desk.ts';
import { stop } from './fault-error.ts';
import type { Judge } from './judge.ts';
import type { LocalEntities } from './local.ts';
import type { Outbox, OutboxRow } from './outbox.ts';
import type { ReplicaStore } from './replica-store.ts';

/** What a person decides about work that was set aside (OB6, ST3). Each decision is one transaction. */
export interface PeopleParts {
  readonly store: ReplicaStore;
  readonly entities: LocalEntities;
  readonly outbox: Outbox;
  readonly desk: DeskWriter;
  readonly judge: Judge;
}

interface DeskRow {
  readonly id: string;
  readonly revision: number;
  readonly needs: string;
  readonly actionId: string;
}

function deskRow(store: ReplicaStore, id: string): DeskRow {
  const row = store.database
    .prepare(
      'SELECT id, revision, needs, action_id FROM main.hf_desk WHERE id = ? OR action_id = ? ORDER BY needs LIMIT 1',
    )
    .get(id, id);
  if (row === undefined) return stop('not-found', { desk: id });
  return {
    id: row['id'] as string,
    revision: row['revision'] as number,
    needs: row['needs'] as string,
    actionId: row['action_id'] as string,
  };
}

export function resolveInside(
  parts: PeopleParts,
  request: {
    readonly ids: readonly string[];
    readonly choice: 'mine' | 'theirs' | JsonObject;
    readonly revision?: number;
  },
): void {
  for (const id of request.ids) {
    const entry = deskRow(parts.store, id);
    if (request.revision !== undefined && entry.revision !== request.revision)
      stop('conflict-changed', { desk: id, shown: request.revision, revision: entry.revision });
    if (entry.needs === 'nothing') {
      parts.desk.dismiss(entry.id);
      continue;
    }
    resolveOne(parts, entry, request.choice);
  }
}

function resolveOne(parts: PeopleParts, entry: DeskRow, choice: 'mine' | 'theirs' | JsonObject): void {
  const { store, outbox } = parts;
  const row = outbox.byAction(entry.actionId) ?? stop('not-found', { desk: entry.id });
  checkAnswered(row);
  const changes = choice === 'theirs' ? [] : changesFor(parts, row, choice === 'mine' ? null : choice);
  const dependents = outbox.dependentsOf(row);
  // A resolution that equals theirs writes no batch (ST3).
  if (changes.length === 0) outbox.closeAs(parts.entities, row, { state: 'discarded' });
  else outbox.closeAs(parts.entities, row, { state: 'replaced' });
  let replacement: OutboxRow | undefined;
  if (changes.length > 0) {
    parts.entities.flush();
    const actionId = uuidv7(store.nowMs(), store.platform.random);
    commitInside(parts, {
      actionId,
      log: row.log,
      changes,
      seen: [],
      reads: [],
      ...(row.label === null ? {} : { label: row.label }),
    });
    store.database.prepare('UPDATE main.hf_outbox SET replaces = ? WHERE action_id = ?').run(row.actionId, actionId);
    store.database
      .prepare('UPDATE main.hf_outcome SET outcome = ? WHERE action_id = ?')
      .run(JSON.stringify({ state: 'replaced', by: actionId }), row.actionId);
    parts.entities.flush();
    replacement = outbox.byAction(actionId);
  }
  parts.judge.rejudge(parts.entities, dependents, resolvedBy(parts, row, replacement), row);
}

/** Work that is sending or owed is neither resolved nor discarded until answered (OB3). */
function checkAnswered(row: OutboxRow): void {
  if (row.state === 'parked' || row.state === 'refused' || row.state === 'lost') return;
  stop('conflict-changed', { actionId: row.actionId, state: row.state });
}

/** My side again, on top of what is there now: as intents of today, by name in code. */
function changesFor(
  { store, entities }: PeopleParts,
  row: OutboxRow,
  values: JsonObject | null,
): readonly RecordedChange[] {
  const changes: RecordedChange[] = [];
  for (const draft of row.drafts) {
    const entity = entities.get({ log: row.log, type: draft.entityType, id: draft.entityId });
    const { model } = entity.table;
    if (model === null) continue;
    const name = (wire: string) => model.byWire.get(wire)?.name ?? wire;
    const about = { entity: model.type, id: draft.entityId } as const;
    const chosen = (fields: JsonObject): JsonObject =>
      Object.fromEntries(
        Object.entries(fields).map(([wire, value]) => [
          name(wire),
          values === null ? value : (ownValue(values, name(wire)) ?? value),
        ]),
      );
    const { change } = draft;
    const isThere = entity.local !== undefined;
    switch (change.op) {
      case 'delete':
        if (isThere) changes.push({ do: 'delete', ...about });
        break;
      case 'create':
      case 'restore':
        if (!isThere) changes.push({ do: 'create', ...about, fields: settable(model, chosen(change.fields)) });
        else changes.push({ do: 'update', ...about, set: settable(model, chosen(change.fields)) });
        break;
      case 'put':
        changes.push({ do: 'put', ...about, fields: settable(model, chosen(change.set)) });
        break;
      case 'update': {
        if (!isThere) {
          const last = store.database
            .prepare('SELECT fields FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
            .get(row.log, model.type, draft.entityId);
          const fields = last === undefined ? {} : (JSON.parse(last['fields'] as string) as JsonObject);
          const kept = Object.fromEntries(
            Object.entries({ ...fields, ...change.set }).map(([wire, value]) => [name(wire), value]),
          );
          changes.push({ do: 'restore', ...about, fields: settable(model, { ...kept, ...values }) });
          break;
        }
        const byName = <V>(of: Readonly<Record<string, V>> | undefined) =>
          Object.fromEntries(Object.entries(of ?? {}).map(([wire, value]) => [name(wire), value]));
        const unset = (change.unset ?? [])
          .map(name)
          .filter((field) => values === null || !Object.hasOwn(values, field));
        changes.push({
          do: 'update',
          ...about,
          ...(change.set === undefined && values === null
            ? {}
            : { set: { ...chosen(change.set ?? {}), ...onlyKnown(values, model.byName) } }),
          ...(unset.length === 0 ? {} : { unset }),
          ...(change.inc === undefined ? {} : { inc: byName(change.inc) }),
          ...(change.add === undefined ? {} : { add: byName(change.add) }),
          ...(change.remove === undefined ? {} : { remove: byName(change.remove) }),
        });
      }
    }
  }
  return changes.filter((change) => !isNoop(change));
}

const isNoop = (change: RecordedChange): boolean =>
  change.do === 'update' &&
  [change.set, change.inc, change.add, change.remove].every((part) => Object.keys(part ?? {}).length === 0) &&
  (change.unset ?? []).length === 0;

const onlyKnown = (values: JsonObject | null, known: ReadonlyMap<string, unknown>): JsonObject =>
  Object.fromEntries(Object.entries(values ?? {}).filter(([name, value]) => known.has(name) && value !== null));

const settable = (
  model: { readonly byName: ReadonlyMap<string, { readonly data: { readonly kind: string } }> },
  fields: JsonObject,
): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(([name]) => (model.byName.get(name)?.data.kind ?? 'serial') !== 'serial'),
  );

function resolvedBy({ entities, store }: PeopleParts, closed: OutboxRow, replacement: OutboxRow | undefined): Resolved {
  const on = (drafts: readonly EventDraft[], type: string, id: string) =>
    drafts.filter((draft) => draft.entityType === type && draft.entityId === id);
  const replacing = new Map<string, string | null>();
  for (const draft of closed.drafts) {
    const other = on(replacement?.drafts ?? [], draft.entityType, draft.entityId).at(-1);
    // Where nothing takes its place, what was built on it stands on the newest pending work of the entity.
    const key = { log: closed.log, type: draft.entityType, id: draft.entityId };
    replacing.set(draft.id, other?.id ?? entities.priorOf(entities.get(key)) ?? null);
  }
  return {
    replacementOf: (eventId) => replacing.get(eventId),
    effectOn: (type, id) => {
      const parked = on(closed.drafts, type, id).map((draft) => draft.change);
      if (parked.length === 0) return undefined;
      const replaced = on(replacement?.drafts ?? [], type, id).map((draft) => draft.change);
      const { confirmed } = entities.get({ log: closed.log, type, id });
      const last = store.database
        .prepare('SELECT fields FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
        .get(closed.log, type, id)?.['fields'] as string | undefined;
      return resolutionEffect({
        parked,
        confirmed: confirmed.state?.fields,
        ...(last === undefined ? {} : { lastFields: JSON.parse(last) as JsonObject }),
        replacement: replaced,
      });
    },
  };
}

/** Closes work without sending it; what was made on it is judged again, and named (ST3). */
export function discardInside(parts: PeopleParts, ids: readonly string[]): { readonly alsoHeld: readonly string[] } {
  const alsoHeld: string[] = [];
  for (const id of ids) {
    const entry = deskRow(parts.store, id);
    if (entry.needs === 'nothing') {
      parts.desk.dismiss(entry.id);
      continue;
    }
    const row = parts.outbox.byAction(entry.actionId) ?? stop('not-found', { desk: id });
    checkAnswered(row);
    const dependents = parts.outbox.dependentsOf(row);
    alsoHeld.push(...dependents.map((one) => one.actionId));
    parts.outbox.closeAs(parts.entities, row, { state: 'discarded' });
    parts.judge.rejudge(parts.entities, dependents, resolvedBy(parts, row, undefined), row);
  }
  return { alsoHeld };
}
