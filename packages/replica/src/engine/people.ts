import {
  type Change,
  type EventDraft,
  type Json,
  type JsonObject,
  type Notice,
  type RecordedChange,
  type Resolved,
  resolutionEffect,
  uuidv7,
} from '@holdfast/core';
import { type Choice, checkChoice, entityOfChosen } from './check-choice.ts';
import { type CommitParts, commitInside } from './commit.ts';
import type { DeskWriter } from './desk.ts';
import { FaultError, stop } from './fault-error.ts';
import { seenAfter, withoutChanged } from './inverse.ts';
import type { Judge } from './judge.ts';
import { keepLeftOut, moveDone } from './kept-drafts.ts';
import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import { BY_ACTION } from './outbox-index.ts';
import { keysOf, type OutboxRow } from './outbox-row.ts';
import type { CommitRequest } from './replica-state.ts';
import type { ReplicaStore } from './replica-store.ts';
import { recordedAsOfToday, type TodayParts } from './resolve-change.ts';
import { giveUpLater } from './wish.ts';

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
  readonly log: string;
  readonly entity: { readonly type: string; readonly id: string };
  readonly facts: string;
}

/** By the entry's id, or by the action id of the batch that waits. */
function deskRow(store: ReplicaStore, id: string): DeskRow | null {
  const row = store.database
    .prepare("SELECT * FROM main.hf_desk WHERE id = ? OR (action_id = ? AND needs = 'answer') ORDER BY needs LIMIT 1")
    .get(id, id);
  if (row === undefined) return null;
  return {
    id: row['id'] as string,
    revision: row['revision'] as number,
    needs: row['needs'] as string,
    actionId: row['action_id'] as string,
    log: row['log'] as string,
    entity: { type: row['entity_type'] as string, id: row['entity_id'] as string },
    facts: row['facts'] as string,
  };
}

export function resolveInside(
  parts: PeopleParts,
  request: { readonly ids: readonly string[]; readonly choice: Choice; readonly revision?: number },
): void {
  for (const id of request.ids) {
    const entry = deskRow(parts.store, id) ?? stop('not-found', { desk: id });
    if (request.revision !== undefined && entry.revision !== request.revision)
      stop('conflict-changed', { desk: id, shown: request.revision, revision: entry.revision });
    if (entry.needs === 'nothing') answerNotice(parts, entry, request.choice);
    else resolveOne(parts, entry, request.choice);
  }
}

// ── work that waits ─────────────────────────────────────────────────────────────────────────────────────────────────

function resolveOne(parts: PeopleParts, entry: DeskRow, choice: Choice): void {
  const { store, outbox, entities } = parts;
  const row = outbox.byAction(entry.actionId) ?? stop('not-found', { desk: entry.id });
  if (outbox.isUnanswered(row)) stop('conflict-changed', { desk: entry.id, state: row.state });
  checkChoice(store, choice, entry.entity, keysOf(row));
  const changes =
    choice === 'theirs'
      ? []
      : recordedAsOfToday(todayParts(parts, row, entry), row.drafts, choice === 'mine' ? {} : choice);
  // A resolution that equals theirs writes no batch (ST3).
  if (changes.length === 0) {
    close(parts, row);
    return;
  }
  const dependents = outbox.dependents.of(entities, row);
  const actionId = uuidv7(store.nowMs(), store.platform.random);
  outbox.closeAs(entities, row, { state: 'replaced', by: actionId });
  entities.flush();
  const { inverse } = commitInside(wireCommit(parts), {
    actionId,
    log: row.log,
    changes,
    seen: [],
    reads: [],
    ...(row.label === null ? {} : { label: row.label }),
  });
  store.database.prepare(`UPDATE main.hf_outbox SET replaces = ? WHERE ${BY_ACTION}`).run(row.actionId, actionId);
  const replacement = outbox.byAction(actionId);
  moveDone(store, row.log, row.actionId, actionId);
  if (choice === 'mine' && replacement !== undefined) keepLeftOut(store, row, replacement);
  carryUndoOver(parts, row, actionId, inverse());
  entities.flush();
  parts.judge.rejudge(entities, dependents, resolvedBy(parts, row, { replacement, dependents }), row);
}

/** Closes work without a batch in its place; what was made on it is judged again (ST3). */
function close(parts: PeopleParts, row: OutboxRow): readonly OutboxRow[] {
  const { outbox, entities } = parts;
  const dependents = outbox.dependents.of(entities, row);
  outbox.closeAs(entities, row, { state: 'discarded' });
  entities.flush();
  parts.judge.rejudge(entities, dependents, resolvedBy(parts, row, { replacement: undefined, dependents }), row);
  return dependents;
}

const wireCommit = (parts: PeopleParts): CommitParts => ({
  store: parts.store,
  entities: parts.entities,
  names: 'wire',
});

/** What could be undone of the batch is now to be undone of the one that took its place. */
function carryUndoOver(
  { store, entities }: PeopleParts,
  { log, actionId }: OutboxRow,
  to: string,
  inverse: readonly RecordedChange[],
): void {
  const seen = seenAfter(inverse, (type, id) => entities.get({ log, type, id }));
  store.database
    .prepare('UPDATE main.hf_undo SET action_id = ?, inverse = ?, seen = ? WHERE action_id = ?')
    .run(to, JSON.stringify(inverse), JSON.stringify(seen), actionId);
}

function todayParts({ store, entities }: PeopleParts, row: OutboxRow, entry: DeskRow): TodayParts {
  return {
    fieldsOf: (type, id) => entities.get({ log: row.log, type, id }).local?.fields,
    lastFieldsOf: (type, id) => lastFieldsOf(store, row.log, type, id),
    /** A person names fields as the app does; those of other entities of the batch with their entity before them. */
    fieldNamed: (name) => {
      const { type, id, field } = entityOfChosen(name, entry.entity);
      return { type, id, wire: store.tableOf(type).model?.byName.get(field)?.wire ?? field };
    },
    isNumbered: (type, wire) => store.tableOf(type).model?.byWire.get(wire)?.data.kind === 'serial',
  };
}

function lastFieldsOf(store: ReplicaStore, log: string, type: string, id: string): JsonObject | undefined {
  const row = store.database
    .prepare('SELECT fields FROM main.hf_deleted WHERE log = ? AND type = ? AND id = ?')
    .get(log, type, id);
  return typeof row?.['fields'] === 'string' ? (JSON.parse(row['fields']) as JsonObject) : undefined;
}

/** What the dependents of a closed batch must know of it (ST3). */
function resolvedBy(
  { entities, store, outbox }: PeopleParts,
  closed: OutboxRow,
  of: { readonly replacement: OutboxRow | undefined; readonly dependents: readonly OutboxRow[] },
): Resolved {
  const { replacement } = of;
  const moved = new Set(of.dependents.map(({ seq }) => seq));
  const on = (drafts: readonly EventDraft[], type: string, id: string) =>
    drafts.filter((draft) => draft.entityType === type && draft.entityId === id);
  const replacing = new Map<string, string | null>();
  for (const draft of closed.drafts) {
    const other = on(replacement?.drafts ?? [], draft.entityType, draft.entityId).at(-1);
    // Where nothing takes its place, what was built on it stands on the newest pending work of the entity that was not: it
    // goes behind that, and a chain that named any of itself would have no end.
    const key = { log: closed.log, type: draft.entityType, id: draft.entityId };
    const below = entities.get(key).base?.pending.findLast((seq) => !moved.has(seq));
    const standing = below === undefined ? [] : on(outbox.bySeq(below)?.drafts ?? [], key.type, key.id);
    replacing.set(draft.id, (other ?? standing.at(-1))?.id ?? null);
  }
  return {
    replacementOf: (eventId) => replacing.get(eventId),
    effectOn: (type, id) => {
      const parked = on(closed.drafts, type, id).map((draft) => draft.change);
      if (parked.length === 0) return undefined;
      const last = lastFieldsOf(store, closed.log, type, id);
      return resolutionEffect({
        parked,
        confirmed: entities.get({ log: closed.log, type, id }).confirmed.state?.fields,
        ...(last === undefined ? {} : { lastFields: last }),
        replacement: on(replacement?.drafts ?? [], type, id).map((draft) => draft.change),
      });
    },
  };
}

// ── discarding ──────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Closes work without sending it; what was made on it is judged again, and named. Work that is sending, owed or accepted
 * is not touched: the wish is stored, and carried out once the answer is known (OB3).
 */
export function discardInside(parts: PeopleParts, ids: readonly string[]): { readonly alsoHeld: readonly string[] } {
  const alsoHeld: string[] = [];
  for (const id of ids) {
    const entry = deskRow(parts.store, id);
    if (entry?.needs === 'nothing') {
      parts.desk.dismiss(entry.id);
      continue;
    }
    const row = parts.outbox.byAction(entry?.actionId ?? id) ?? stop('not-found', { desk: id });
    if (row.state === 'accepted' || parts.outbox.isUnanswered(row)) giveUpLater(parts, row);
    else alsoHeld.push(...close(parts, row).map((one) => one.actionId));
  }
  return { alsoHeld };
}

/**
 * Wishes whose answer this transaction brought: gone if it was refused, taken back by a commit if it was accepted. What
 * anybody did to the same fields meanwhile stays: nobody is there to be asked.
 */
export function carryOutWishes(parts: PeopleParts): void {
  for (const { row, isAccepted } of parts.outbox.takeWishes()) {
    if (!isAccepted) {
      close(parts, row);
      continue;
    }
    const { changes: inverse, seen } = row.wish ?? { changes: [], seen: [] };
    const changes = inverse.flatMap((change) => {
      const entity = parts.entities.get({ log: row.log, type: change.entity, id: change.id });
      const isMoved = (change.do === 'restore') !== (entity.local === undefined);
      return isMoved ? [] : withoutChanged(change, seen, entity);
    });
    if (changes.length === 0) continue;
    parts.entities.flush();
    const actionId = uuidv7(parts.store.nowMs(), parts.store.platform.random);
    commitIfItMay(parts, { actionId, log: row.log, changes, seen: [], reads: [] });
    parts.entities.flush();
  }
}

/** What is refused now, as by a rule, is left as it is: what the log brought with it must come in all the same (IN1). */
function commitIfItMay(parts: PeopleParts, request: CommitRequest): void {
  try {
    commitInside(wireCommit(parts), request);
  } catch (cause) {
    if (!(cause instanceof FaultError)) throw cause;
  }
}

/** Wishes about work that turned out not to have left: nothing is to be asked any more. */
export function carryOutUnsentWishes(parts: PeopleParts, log: string): void {
  for (const row of parts.outbox.wishesNotSent(log)) close(parts, row);
}

// ── notices ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** MG6: it only told. `mine` takes it back by one commit; anything else takes note. */
function answerNotice(parts: PeopleParts, entry: DeskRow, choice: Choice): void {
  checkChoice(parts.store, choice, entry.entity, [entry.entity]);
  parts.desk.dismiss(entry.id);
  if (choice !== 'mine') return;
  const [fact] = JSON.parse(entry.facts) as readonly (Notice & { readonly change?: Change })[];
  const change = fact === undefined ? undefined : changeOf(fact);
  if (fact === undefined || change === undefined) return;
  const draft = { entityType: fact.entityType, entityId: fact.entityId, type: `${fact.entityType}.updated`, change };
  const changes = recordedAsOfToday(todayParts(parts, { log: entry.log } as OutboxRow, entry), [draft], {});
  if (changes.length === 0) return;
  const actionId = uuidv7(parts.store.nowMs(), parts.store.platform.random);
  commitInside(wireCommit(parts), { actionId, log: entry.log, changes, seen: [], reads: [] });
}

function changeOf({ kind, field, mine, change }: Notice & { readonly change?: Change }): Change | undefined {
  if (kind === 'not-deleted') return { op: 'delete' };
  if (field === null) return change;
  return mine === undefined ? { op: 'update', unset: [field] } : { op: 'update', set: { [field]: mine as Json } };
}
