import { LIMITS, ownValue, type RecordedChange, type SeenValue, uuidv7 } from '@holdfast/core';
import { commitInside } from './commit.ts';
import { stop } from './fault-error.ts';
import { addedSince, seenAfter, withoutChanged } from './inverse.ts';
import { discardInside, type PeopleParts } from './people.ts';
import type { CommitRequest } from './replica-state.ts';

/**
 * Undo and redo (CM7): the stored inverse, by wire name, committed with what the action left as the seen values. One
 * stack per scope, the last 200 labelled actions; a new action ends what could be redone.
 */
interface UndoRow {
  readonly seq: number;
  readonly actionId: string;
  readonly log: string;
  readonly label: string;
  /** Actions of one group are undone together (CM6). */
  readonly group: string | null;
  readonly inverse: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
}

type Stack = 'done' | 'undone';

export const undoScopeOf = ({ undo, label }: Pick<CommitRequest, 'undo' | 'label'>): string | null =>
  undo === false ? null : (undo ?? (label === undefined ? null : 'main'));

/** In the transaction of the commit. */
export function rememberUndo(
  parts: PeopleParts,
  request: CommitRequest,
  inverse: readonly RecordedChange[],
  options: { readonly stack: Stack; readonly endsRedo: boolean } = { stack: 'done', endsRedo: true },
): void {
  const scope = undoScopeOf(request);
  if (scope === null || inverse.length === 0) return;
  const { database } = parts.store;
  const seen = seenAfter(inverse, (type, id) => parts.entities.get({ log: request.log, type, id }));
  const { lastInsertRowid } = database
    .prepare(
      'INSERT INTO main.hf_undo (scope, state, action_id, log, label, part_of, inverse, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    )
    .run(
      scope,
      options.stack,
      request.actionId,
      request.log,
      request.label ?? '',
      request.undoGroup ?? null,
      JSON.stringify(inverse),
      JSON.stringify(seen),
    );
  if (options.endsRedo) database.prepare("DELETE FROM main.hf_undo WHERE scope = ? AND state = 'undone'").run(scope);
  if (lastInsertRowid % PRUNED_EVERY === 0 && request.undoGroup === undefined)
    forgetOldest(parts, scope, options.stack);
}

/** Looked after once in a while, so that an action costs one insert. */
const PRUNED_EVERY = 50;

function forgetOldest({ store: { database } }: PeopleParts, scope: string, stack: Stack): void {
  const surplus = database
    .prepare('SELECT seq FROM main.hf_undo WHERE scope = ? AND state = ? ORDER BY seq DESC LIMIT 1 OFFSET ?')
    .get(scope, stack, LIMITS.undoKept);
  if (surplus !== undefined)
    database
      .prepare('DELETE FROM main.hf_undo WHERE scope = ? AND state = ? AND seq <= ?')
      .run(scope, stack, surplus['seq'] as number);
}

export function undoInside(
  parts: PeopleParts,
  scope: string,
  options: { readonly skipChanged: boolean },
): { readonly label: string } | null {
  const rows = newestOf(parts, scope, 'done');
  for (const row of rows) takeBack(parts, scope, row, 'undone', options.skipChanged);
  return rows[0] === undefined ? null : { label: rows[0].label };
}

export function redoInside(parts: PeopleParts, scope: string): { readonly label: string } | null {
  const rows = newestOf(parts, scope, 'undone');
  for (const row of rows) takeBack(parts, scope, row, 'done', false);
  return rows[0] === undefined ? null : { label: rows[0].label };
}

function takeBack(parts: PeopleParts, scope: string, row: UndoRow, onto: Stack, skipChanged: boolean): void {
  const { store, entities, outbox } = parts;
  store.database.prepare('DELETE FROM main.hf_undo WHERE seq = ?').run(row.seq);
  // Also where nothing of it is left to take back: whoever shows what can be undone shows the one before it.
  store.tracker.outbox = true;
  const batch = outbox.byAction(row.actionId);
  if (batch !== undefined && (batch.heldBy !== null || ['parked', 'refused', 'lost'].includes(batch.state))) {
    // It has no effect to take back: undoing it is discarding it.
    discardInside(parts, [row.actionId]);
    return;
  }
  const open = stillThere(parts, row, skipChanged);
  if (open.changes.length === 0) return;
  const request: CommitRequest = {
    actionId: uuidv7(store.nowMs(), store.platform.random),
    log: row.log,
    label: row.label,
    undo: scope,
    ...(row.group === null ? {} : { undoGroup: row.group }),
    changes: open.changes,
    seen: open.seen,
    reads: [],
  };
  const { inverse } = commitInside({ ...parts, names: 'wire' }, request);
  rememberUndo(parts, request, inverse(), { stack: onto, endsRedo: false });
  entities.flush();
}

/**
 * What can still be taken back. Where somebody changed an entity or a field since, the undo is refused with what is there
 * now, or leaves it as it is.
 */
function stillThere(
  { entities }: PeopleParts,
  { log, inverse, seen }: UndoRow,
  skipChanged: boolean,
): { readonly changes: readonly RecordedChange[]; readonly seen: readonly SeenValue[] } {
  const changes = inverse.flatMap((change): readonly RecordedChange[] => {
    const { entity: type, id } = change;
    const { local } = entities.get({ log, type, id });
    const isMoved = (change.do === 'restore') === (local !== undefined);
    if (isMoved && !skipChanged)
      stop('changed-meanwhile', { fields: [], entity: type, id, deleted: local === undefined });
    if (isMoved) return [];
    if (skipChanged) return withoutChanged(change, seen, entities.get({ log, type, id }));
    const added = change.do === 'delete' ? addedSince(change, seen, entities.get({ log, type, id })) : [];
    const fields = added.map((field) => {
      const now = ownValue(local?.fields, field) ?? null;
      return { entity: type, id, field, seen: null, now, mine: null };
    });
    return fields.length > 0 ? stop('changed-meanwhile', { fields }) : [change];
  });
  return { changes, seen: skipChanged ? [] : seen };
}

/** The newest action of a stack, with the others of its group; newest first. */
function newestOf(parts: PeopleParts, scope: string, stack: Stack): readonly UndoRow[] {
  const { database } = parts.store;
  const newest = database
    .prepare('SELECT * FROM main.hf_undo WHERE scope = ? AND state = ? ORDER BY seq DESC LIMIT 1')
    .get(scope, stack);
  if (newest === undefined) return [];
  const group = newest['part_of'] as string | null;
  const rows =
    group === null
      ? [newest]
      : database
          .prepare('SELECT * FROM main.hf_undo WHERE scope = ? AND state = ? AND part_of = ? ORDER BY seq DESC')
          .all(scope, stack, group);
  return rows.map((row) => ({
    seq: row['seq'] as number,
    actionId: row['action_id'] as string,
    log: row['log'] as string,
    label: row['label'] as string,
    group: row['part_of'] as string | null,
    inverse: JSON.parse(row['inverse'] as string) as RecordedChange[],
    seen: JSON.parse(row['seen'] as string) as SeenValue[],
  }));
}

export function undoState(parts: Pick<PeopleParts, 'store'>, scope: string) {
  const top = (stack: Stack) =>
    parts.store.database
      .prepare('SELECT label FROM main.hf_undo WHERE scope = ? AND state = ? ORDER BY seq DESC LIMIT 1')
      .get(scope, stack)?.['label'] as string | undefined;
  const [label, redoLabel] = [top('done'), top('undone')];
  return {
    can: label !== undefined,
    ...(label === undefined ? {} : { label }),
    canRedo: redoLabel !== undefined,
    ...(redoLabel === undefined ? {} : { redoLabel }),
  };
}
