import { type EventDraft, type RequestRefusalCode, uuidv7 } from '@holdfast/core';
import type { Adopted, Judge } from './judge.ts';
import { doneDrafts, forgetDone, forgetDrafts, ownDraftsAbove, wholeAgain } from './kept-drafts.ts';
import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import { isLocal, type OutboxFrame, type OutboxRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';

const CHANGED = 'history-changed' satisfies RequestRefusalCode;

interface LostBatch {
  readonly actionId: string;
  readonly requestId: string;
  readonly draftTexts: readonly string[];
  /** With those that others had done. */
  readonly allTexts: readonly string[];
  /** Others had done all of it. */
  readonly isDone: boolean;
}

/** Entity version by `<type> <id>`. */
export type SeenVersions = ReadonlyMap<string, number>;

/**
 * Own work that a ledger acknowledged and has lost since (HL1 to HL4). It stands before everything else in the outbox,
 * because it was first; under its request ids, because it may still be found.
 */
export class LostWork {
  readonly #store: ReplicaStore;
  readonly #outbox: Outbox;
  readonly #judge: Judge;

  constructor(parts: { readonly store: ReplicaStore; readonly outbox: Outbox; readonly judge: Judge }) {
    this.#store = parts.store;
    this.#outbox = parts.outbox;
    this.#judge = parts.judge;
  }

  /**
   * HL1: own operations above the common version go back into the outbox as they were, and with them those that others had
   * done there: nobody else would ever do them again. What others had done of one of them comes back with `offer`, since its
   * request may still be found.
   */
  lose(entities: LocalEntities, log: string, commonVersion: number): void {
    const lost = this.#ownAbove(log, commonVersion).filter(
      ({ actionId }) => this.#outbox.byAction(actionId) === undefined && !this.#isClosed(actionId),
    );
    let seq = this.#outbox.edge('first') - lost.length;
    for (const { actionId, requestId, draftTexts, allTexts } of lost) {
      seq += 1;
      const again = {
        seq,
        log,
        actionId,
        requestId,
        draftTexts,
        frame: this.#frameOf(allTexts),
        identity: this.#identityOf(actionId),
        label: null,
        createdAt: this.#store.nowMs(),
      };
      const row = this.#outbox.insert(again, 'lost');
      this.#store.database.prepare('DELETE FROM main.hf_outcome WHERE action_id = ?').run(actionId);
      this.#outbox.setAside(entities, row, 'lost', { code: CHANGED });
    }
    forgetDrafts(this.#store, log, { above: commonVersion });
    for (const row of this.#accepted(log))
      if ((row.answer?.firstVersion ?? 0) > commonVersion)
        this.#outbox.setAside(entities, row, 'lost', { code: CHANGED });
  }

  /** HL3, first way: the tail is in the log again, same versions. What is in our confirmed state is confirmed again. */
  found(entities: LocalEntities, log: string): void {
    for (const row of this.#lost(log)) {
      const events = this.#store.database
        .prepare('SELECT count(*) AS n, max(version) AS version FROM main.hf_event WHERE log = ? AND action_id = ?')
        .get(log, row.actionId);
      const done = new Map(doneDrafts(this.#store, log, row.actionId).map(({ draft, version }) => [draft.id, version]));
      if (events?.['n'] === row.drafts.length) this.#outbox.retire(entities, row, events['version'] as number);
      else if (row.drafts.every(({ id }) => done.has(id))) {
        // Others have done it, and that is in the log again, too.
        this.#outbox.retire(entities, row, Math.max(...done.values()));
        this.#outbox.dependents.renameNeed(row, undefined);
      } else this.#queueAgain(entities, row);
    }
  }

  /**
   * For each entity that lost events touch: its version where both histories were one. Null: events above that are not
   * here, because the state came whole, so that nobody can say.
   */
  versionsAt(log: string, commonVersion: number): SeenVersions | null {
    const counted = this.#store.database
      .prepare(
        'SELECT head, (SELECT count(*) FROM main.hf_event WHERE log = ?1 AND version > ?2) AS events FROM main.hf_log WHERE log = ?1',
      )
      .get(log, commonVersion);
    if ((counted?.['events'] as number) < (counted?.['head'] as number) - commonVersion) return null;
    const rows = this.#store.database
      .prepare(
        'SELECT type, entity, min(entity_version) AS first FROM main.hf_event WHERE log = ? AND version > ? GROUP BY type, entity',
      )
      .all(log, commonVersion);
    return new Map(
      rows.map((row) => [`${String(row['type'])} ${String(row['entity'])}`, (row['first'] as number) - 1] as const),
    );
  }

  /**
   * HL4, adopt: offered on the ledger's state, each judged once, in its order; and with it the pending work that was made
   * on versions which are gone, and all that follows on the same entities.
   */
  offer(entities: LocalEntities, log: string, commonVersion: number, versionsAt: SeenVersions | null): void {
    const putBack = new Map(
      [...this.#lost(log), ...this.#flowing(log), ...this.#standing(log)]
        .flatMap((row) => this.#makeWhole(entities, row, commonVersion))
        .map(({ id, prior }) => [id, prior] as const),
    );
    // No answer of the history that is gone counts any more.
    this.#store.database.prepare("UPDATE main.hf_outbox SET answer = NULL WHERE log = ? AND state = 'lost'").run(log);
    for (const row of this.#lost(log)) this.#queueAgain(entities, row);
    entities.flush();
    const touched = new Set<string>();
    const baseInBoth = (draft: EventDraft): number =>
      versionsAt === null ? 0 : (versionsAt.get(keyOf(draft)) ?? draft.base);
    const flowing = this.#flowing(log);
    const offered = flowing.filter(({ drafts }) => {
      const isOffered = drafts.some((draft) => touched.has(keyOf(draft)) || draft.base > baseInBoth(draft));
      if (isOffered) for (const draft of drafts) touched.add(keyOf(draft));
      return isOffered;
    });
    const seenVersion = versionsAt === null ? null : (type: string, id: string) => versionsAt.get(`${type} ${id}`);
    const adopted = { seenVersion, priorOf: chainOf(flowing, putBack) };
    this.#judge.restate(entities, this.#standing(log), adopted);
    this.#judge.offer(entities, offered, adopted);
  }

  /**
   * What others had done of it above the common version is to be done with it; also where no answer came to what is left of
   * it. That was sent from where others had done theirs, and the ledger refuses what comes from a position that it has lost.
   * Gives what is part of it again.
   */
  #makeWhole(entities: LocalEntities, row: OutboxRow, commonVersion: number): readonly EventDraft[] {
    if (row.state === 'sending') return [];
    const has = new Set(row.drafts.map(({ id }) => id));
    const kept = doneDrafts(this.#store, row.log, row.actionId).filter(
      ({ version, draft }) => version > commonVersion && !has.has(draft.id),
    );
    if (kept.length === 0) return [];
    const drafts = wholeAgain(kept, row.drafts);
    this.#judge.remake(entities, row, drafts);
    const whole = { ...row, drafts };
    forgetDone(this.#store, whole);
    if (isLocal(row)) this.#outbox.putBack(entities, whole);
    else if (row.heldBy !== null) this.#outbox.hold(entities, whole, row.heldBy);
    else if (row.state !== 'lost')
      this.#outbox.setAside(entities, whole, row.state as 'parked' | 'refused', row.fault ?? { code: CHANGED });
    return drafts.filter(({ id }) => !has.has(id));
  }

  #queueAgain(entities: LocalEntities, row: OutboxRow): void {
    this.#store.database.prepare("UPDATE main.hf_outbox SET state = 'queued', fault = NULL WHERE seq = ?").run(row.seq);
    this.#store.tracker.outbox = true;
    forgetDone(this.#store, row);
    this.#outbox.putBack(entities, row);
    this.#outbox.letGo(entities, row);
  }

  #lost(log: string): readonly OutboxRow[] {
    return this.#rows(log, 'lost');
  }
  #accepted(log: string): readonly OutboxRow[] {
    return this.#rows(log, 'accepted');
  }
  #flowing(log: string): readonly OutboxRow[] {
    return this.#store.database
      .prepare(
        "SELECT seq FROM main.hf_outbox WHERE log = ? AND state IN ('queued', 'waiting') AND held_by IS NULL ORDER BY seq",
      )
      .all(log)
      .flatMap((row) => this.#outbox.bySeq(row['seq'] as number) ?? []);
  }
  /** Waits for a person, or for other work. */
  #standing(log: string): readonly OutboxRow[] {
    return this.#store.database
      .prepare(
        "SELECT seq FROM main.hf_outbox WHERE log = ? AND (state IN ('parked', 'refused') OR held_by IS NOT NULL) ORDER BY seq",
      )
      .all(log)
      .flatMap((row) => this.#outbox.bySeq(row['seq'] as number) ?? []);
  }
  #rows(log: string, state: 'lost' | 'accepted'): readonly OutboxRow[] {
    return this.#store.database
      .prepare('SELECT seq FROM main.hf_outbox WHERE log = ? AND state = ? ORDER BY seq')
      .all(log, state)
      .flatMap((row) => this.#outbox.bySeq(row['seq'] as number) ?? []);
  }

  /** By action, in the order of the log. Of one that others had done in part, only what was sent. */
  #ownAbove(log: string, version: number): readonly LostBatch[] {
    const above = ownDraftsAbove(this.#store, log, version);
    const byAction = Map.groupBy(above, ({ actionId }) => actionId);
    const batches = new Map<string, LostBatch>();
    for (const { actionId, requestId, isDone } of above) {
      const all = byAction.get(actionId) ?? [];
      const sent = all.filter((one) => !one.isDone);
      if (batches.has(actionId) || (isDone && sent.length > 0)) continue;
      batches.set(actionId, {
        actionId,
        // A request that was answered with `version-conflict` may be remembered: what others did is asked for anew.
        requestId: isDone ? uuidv7(this.#store.nowMs(), this.#store.platform.random) : requestId,
        draftTexts: (isDone ? all : sent).map(({ draftText }) => draftText),
        allTexts: all.map(({ draftText }) => draftText),
        isDone,
      });
    }
    return [...batches.values()];
  }

  /** What a retired batch does not keep: who merges it follows from what it writes (MG1). */
  #frameOf(draftTexts: readonly string[]): OutboxFrame {
    const isUnderRules = draftTexts.some((text) => {
      const { entityType, change } = JSON.parse(text) as EventDraft;
      const rules = this.#store.tables.get(entityType)?.model?.underRules;
      if (rules === undefined || rules.size === 0 || change.op === 'delete') return false;
      return [...rules].some((wire) => JSON.stringify(change).includes(`"${wire}"`));
    });
    return { merge: isUnderRules ? 'author' : 'fields' };
  }

  /** A person has discarded or replaced it since. */
  #isClosed(actionId: string): boolean {
    const sql = "SELECT 1 FROM main.hf_outcome WHERE action_id = ? AND json_extract(outcome, '$.state') <> 'ordered'";
    return this.#store.database.prepare(sql).get(actionId) !== undefined;
  }

  #identityOf(actionId: string): string {
    const row = this.#store.database.prepare('SELECT identity FROM main.hf_outcome WHERE action_id = ?').get(actionId);
    return (row?.['identity'] as string | undefined) ?? '';
  }
}

const keyOf = ({ entityType, entityId }: EventDraft): string => `${entityType} ${entityId}`;

/**
 * Own work on one entity as one chain again. `rows` are in outbox order. What was made on own work that was confirmed then
 * names it. `putBack`, each with its prior: while they were left out, later work named what they name, and names them now.
 */
function chainOf(rows: readonly OutboxRow[], putBack: ReadonlyMap<string, string | undefined>): Adopted['priorOf'] {
  const events = rows.flatMap(({ seq, drafts }) => drafts.map((draft) => ({ seq, id: draft.id, key: keyOf(draft) })));
  const byKey = Map.groupBy(events, ({ key }) => key);
  return (row, draft, hasSeenMore) => {
    const newest = byKey.get(keyOf(draft))?.findLast(({ seq }) => seq < row.seq)?.id;
    if (newest === undefined) return draft.prior;
    let below: string | undefined = newest;
    while (below !== undefined && putBack.has(below)) below = putBack.get(below);
    const isLeftOut = below !== newest && below === draft.prior;
    return isLeftOut || (draft.prior === undefined && hasSeenMore) ? newest : draft.prior;
  };
}
