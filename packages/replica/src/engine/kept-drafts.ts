import { canonical, type EventDraft, type Json } from '@holdfast/core';
import { headOf } from './judge-facts.ts';
import type { OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';

/**
 * Own work that the ledger acknowledged, and whose events never came here, because the state came whole above them. A
 * ledger that loses it again (HL1) can be offered it only if its drafts are kept: as rows of `hf_event` under a log name
 * of their own, as far back as history is kept.
 */
export const keptLog = (log: string): string => `=${log}`;
const doneLog = (log: string, actionId: string): string => `${keptLog(log)}/${actionId}`;

/** Every log name that begins with this one and a slash; a log's own name has none. "0" is the next character. */
const BELOW = 'log > ? AND log < ?';
const namesBelow = (name: string): readonly [string, string] => [`${name}/`, `${name}0`];

/** `first`: the version of its first event. Nothing where its events are here. */
export function keepDrafts(store: ReplicaStore, row: OutboxRow, first: number): void {
  const isHere = store.database
    .prepare('SELECT 1 FROM main.hf_event WHERE log = ? AND version = ? AND action_id = ?')
    .get(row.log, first, row.actionId);
  if (isHere !== undefined) return;
  row.drafts.forEach((draft, at) => {
    insert(store, row, { draft, log: keptLog(row.log), version: first + at });
  });
}

/** A draft that others had done already, so that it was not sent. */
export interface DoneDraft {
  /** Among all the drafts of its action, from 0. */
  readonly place: number;
  /** The version at which the log had all of it. */
  readonly version: number;
  readonly draft: EventDraft;
}

/**
 * Own drafts that others had done already, all of an action or some of it. Should the ledger lose what did them (HL1), they
 * are to be done again. Each under a log name of its own, since several may be done at one version.
 *
 * `version`: at which the log had all of `gone`. `against`: what was decided against (MG6), which nobody does again.
 */
export function keepDone(
  store: ReplicaStore,
  row: OutboxRow,
  { gone, against, version }: { readonly gone: Ids; readonly against: Ids; readonly version: number },
): void {
  const all = inPlaces(doneDrafts(store, row.log, row.actionId), row.drafts).filter(
    ({ draft }) => !against.has(draft.id),
  );
  deleteDone(store, row);
  all.forEach(({ draft, done }, place) => {
    if (done === undefined && !gone.has(draft.id)) return;
    const log = `${doneLog(row.log, row.actionId)}/${String(place).padStart(4, '0')}`;
    insert(store, row, { draft, log, version: done ?? version });
  });
}

type Ids = ReadonlySet<string>;

/** The newest version of what they touch: what did them lies there or below. The head, where that came without events. */
export function doneAt(store: ReplicaStore, { log, drafts }: Pick<OutboxRow, 'log' | 'drafts'>): number {
  const head = headOf(store, log);
  const newest = store.database.prepare(
    'SELECT max(version) AS version FROM main.hf_event WHERE log = ? AND type = ? AND entity = ?',
  );
  const versions = drafts.map(({ entityType, entityId }) => newest.get(log, entityType, entityId)?.['version'] ?? head);
  return Math.max(...(versions as readonly number[]));
}

/**
 * Of an action that a person decided for, what its replacement did not have to say again, because others had done it: whole
 * entities only. It stands before what the replacement says.
 */
export function keepLeftOut(store: ReplicaStore, closed: OutboxRow, replacement: OutboxRow): void {
  const said = new Set(replacement.drafts.map(({ entityType, entityId }) => `${entityType} ${entityId}`));
  const left = closed.drafts.filter(({ entityType, entityId }) => !said.has(`${entityType} ${entityId}`));
  if (left.length === 0) return;
  const gone = new Set(left.map(({ id }) => id));
  const version = doneAt(store, { log: closed.log, drafts: left });
  keepDone(store, { ...replacement, drafts: [...left, ...replacement.drafts] }, { gone, against: new Set(), version });
}

/** In their places, with what is left of the action in the places between. */
function inPlaces(
  kept: readonly DoneDraft[],
  rest: readonly EventDraft[],
): { readonly draft: EventDraft; readonly done: number | undefined }[] {
  const all = rest.map((draft) => ({ draft, done: undefined as number | undefined }));
  for (const { place, version, draft } of kept) all.splice(place, 0, { draft, done: version });
  return all;
}

/**
 * What is left of an action, and what others had done of it, as one action again. Its events on one entity name each other in
 * turn, as when it was committed; the first of them what the rest of it named.
 */
export function wholeAgain(kept: readonly DoneDraft[], rest: readonly EventDraft[]): readonly EventDraft[] {
  const last = new Map<string, string>();
  return inPlaces(kept, rest).map(({ draft }) => {
    const { prior: own, ...of } = draft;
    const isOn = (one: EventDraft) => one.entityType === draft.entityType && one.entityId === draft.entityId;
    const key = `${draft.entityType} ${draft.entityId}`;
    const left = rest.find(isOn);
    const prior = last.get(key) ?? (left === undefined ? own : left.prior);
    last.set(key, draft.id);
    return prior === own ? draft : { ...of, ...(prior === undefined ? {} : { prior }) };
  });
}

/** What others had done of an action, in its order. */
export function doneDrafts({ database }: ReplicaStore, log: string, actionId: string): readonly DoneDraft[] {
  const name = doneLog(log, actionId);
  return database
    .prepare(`SELECT log, version, draft FROM main.hf_event WHERE ${BELOW} ORDER BY log`)
    .all(...namesBelow(name))
    .map((row) => ({
      place: Number((row['log'] as string).slice(name.length + 1)),
      version: row['version'] as number,
      draft: JSON.parse(row['draft'] as string) as EventDraft,
    }));
}

/** These drafts are sent after all. */
export function forgetDone({ database }: ReplicaStore, { log, actionId, drafts }: OutboxRow): void {
  const forget = database.prepare(`DELETE FROM main.hf_event WHERE ${BELOW} AND id = ?`);
  for (const { id } of drafts) forget.run(...namesBelow(doneLog(log, actionId)), id);
}

const deleteDone = ({ database }: ReplicaStore, { log, actionId }: OutboxRow): void =>
  void database.prepare(`DELETE FROM main.hf_event WHERE ${BELOW}`).run(...namesBelow(doneLog(log, actionId)));

/** A person's answer took the place of what was left of an action: what others had done of it goes with that. */
export function moveDone({ database }: ReplicaStore, log: string, from: string, to: string): void {
  const [old, name] = [doneLog(log, from), doneLog(log, to)];
  database
    .prepare(`UPDATE main.hf_event SET log = ? || substr(log, ?), action_id = ? WHERE ${BELOW}`)
    .run(name, old.length + 1, to, ...namesBelow(old));
}

/** Own drafts above a version whose events are not here; `isDone`: others had done it, under no request of ours. */
export interface KeptDraft {
  readonly actionId: string;
  readonly requestId: string;
  readonly draftText: string;
  readonly isDone: boolean;
}

export function ownDraftsAbove({ database }: ReplicaStore, log: string, version: number): readonly KeptDraft[] {
  const kept = keptLog(log);
  return database
    .prepare(
      `SELECT log, action_id, draft, envelope FROM main.hf_event WHERE (log IN (?, ?) OR (${BELOW})) AND version > ? AND own = 1 AND draft IS NOT NULL ORDER BY version, log`,
    )
    .all(log, kept, ...namesBelow(kept), version)
    .map((row) => ({
      actionId: row['action_id'] as string,
      requestId: (JSON.parse(row['envelope'] as string) as { readonly requestId: string }).requestId,
      draftText: row['draft'] as string,
      isDone: row['log'] !== log && row['log'] !== kept,
    }));
}

function insert(
  { database }: ReplicaStore,
  row: OutboxRow,
  at: { readonly draft: EventDraft; readonly log: string; readonly version: number },
): void {
  const { draft, log, version } = at;
  database
    .prepare(
      "INSERT OR REPLACE INTO main.hf_event (log, version, id, type, entity, entity_version, action_id, own, draft, leaf, envelope, chain) VALUES (?, ?, ?, ?, ?, 0, ?, 1, ?, NULL, ?, '')",
    )
    .run(
      log,
      version,
      draft.id,
      draft.entityType,
      draft.entityId,
      row.actionId,
      canonical(draft as unknown as Json),
      JSON.stringify({ requestId: row.requestId }),
    );
}

/** They are in the outbox again, or too far back. */
export function forgetDrafts(
  store: ReplicaStore,
  log: string,
  versions: { readonly above: number } | { readonly upTo: number },
): void {
  // What others have done stays, until it is sent after all: the history that did it may be found again.
  if ('above' in versions)
    store.database.prepare('DELETE FROM main.hf_event WHERE log = ? AND version > ?').run(keptLog(log), versions.above);
  else
    store.database
      .prepare(`DELETE FROM main.hf_event WHERE (log = ? OR (${BELOW})) AND version <= ?`)
      .run(keptLog(log), ...namesBelow(keptLog(log)), versions.upTo);
}
