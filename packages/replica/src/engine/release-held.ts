import type { LocalEntities } from './local.ts';
import type { Outbox } from './outbox.ts';
import { COLUMNS, LOCAL_STATES, type OutboxRow, readRow } from './outbox-row.ts';
import type { ReplicaStore } from './replica-store.ts';

interface Parts {
  readonly store: ReplicaStore;
  readonly entities: LocalEntities;
  readonly outbox: Outbox;
}

/**
 * Held is derived (ST2), so that what names its holder wrongly may be asked again: work that is held by a batch that is in the
 * outbox no more flows again, behind all other work, unless something else holds it. Returns action ids.
 */
export function releaseHeldByNothing({ store, entities, outbox }: Parts): readonly string[] {
  const held = store.database
    .prepare(
      `SELECT ${COLUMNS} FROM main.hf_outbox WHERE held_by IS NOT NULL AND held_by NOT IN (SELECT action_id FROM main.hf_outbox) ORDER BY seq`,
    )
    .all()
    .map(readRow)
    .filter(({ state }) => LOCAL_STATES.has(state));
  for (const row of held) {
    renameNeeds({ store, entities, outbox }, row);
    const last = outbox.toEnd(entities, outbox.bySeq(row.seq) ?? row);
    outbox.release(entities, last);
  }
  entities.flush();
  return held.map(({ actionId }) => actionId);
}

/** What closing what it needs would have written into it (ST3). */
function renameNeeds({ store, outbox }: Parts, { seq, frame }: OutboxRow): void {
  const { needs: given = [], ...rest } = frame;
  const needs = given.flatMap((action) =>
    outbox.byAction(action) === undefined ? standsFor(store, action) : [action],
  );
  const now = needs.length === 0 ? rest : { ...rest, needs };
  store.database.prepare('UPDATE main.hf_outbox SET frame = ? WHERE seq = ?').run(JSON.stringify(now), seq);
}

/** Chains of replacements are as long as a person was patient. */
const REPLACED_MAX = 1_000;

/** The action that took the place of one that was closed; none where it was given up. One that nobody closed stands. */
function standsFor({ database }: ReplicaStore, action: string): readonly string[] {
  let now = action;
  for (let steps = 0; steps < REPLACED_MAX; steps += 1) {
    const row = database.prepare('SELECT outcome FROM main.hf_outcome WHERE action_id = ?').get(now);
    const outcome = JSON.parse((row?.['outcome'] as string | undefined) ?? '{}') as { state?: string; by?: string };
    if (outcome.state === 'discarded') return [];
    if (outcome.state !== 'replaced' || outcome.by === undefined) return [now];
    now = outcome.by;
  }
  return [];
}
