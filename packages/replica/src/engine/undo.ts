import { LIMITS, type RecordedChange, uuidv7 } from '@holdfast/core';
import { commitInside } from './commit.ts';
import { seenAfter } from './inverse.ts';
import { discardInside, type PeopleParts } from './people.ts';
import type { CommitRequest } from './replica-state.ts';

/** Undo and redo (CM7): the stored inverse, committed with what the action left as the seen values. */
interface UndoRow {
  readonly seq: number;
  readonly actionId: string;
  readonly log: string;
  readonly label: string;
  readonly inverse: readonly RecordedChange[];
  readonly seen: CommitRequest['seen'];
}

/** Remembers how to take an action back. In the transaction of the commit. */
export function rememberUndo(
  parts: PeopleParts,
  request: CommitRequest,
  inverse: readonly RecordedChange[],
  state: 'done' | 'undone' = 'done',
): void {
  const scope = request.undo === false ? null : (request.undo ?? (request.label === undefined ? null : 'main'));
  if (scope === null || inverse.length === 0) return;
  const { database } = parts.store;
  const seen = seenAfter(inverse, (type, id) => parts.entities.get({ log: request.log, type, id }));
  database
    .prepare(
      'INSERT INTO main.hf_undo (scope, state, action_id, log, label, inverse, seen) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
    .run(
      scope,
      state,
      request.actionId,
      request.log,
      request.label ?? '',
      JSON.stringify(inverse),
      JSON.stringify(seen),
    );
  // A new action ends what could be redone.
  if (state === 'done') database.prepare("DELETE FROM main.hf_undo WHERE scope = ? AND state = 'undone'").run(scope);
  database
    .prepare('DELETE FROM main.hf_undo WHERE scope = ? AND seq <= (SELECT max(seq) FROM main.hf_undo) - ?')
    .run(scope, LIMITS.undoKept);
}

export function undoInside(
  parts: PeopleParts,
  scope: string,
  options: { readonly skipChanged: boolean },
): { readonly label: string } | null {
  const row = newest(parts, scope, 'done');
  if (row === null) return null;
  const { store, outbox } = parts;
  store.database.prepare('DELETE FROM main.hf_undo WHERE seq = ?').run(row.seq);
  const pending = outbox.byAction(row.actionId);
  if (pending !== undefined && (pending.state === 'parked' || pending.state === 'refused')) {
    // It has no effect to take back: undoing it is discarding it.
    discardInside(parts, [row.actionId]);
    return { label: row.label };
  }
  commitBack(parts, row, scope, 'undone', options.skipChanged);
  return { label: row.label };
}

export function redoInside(parts: PeopleParts, scope: string): { readonly label: string } | null {
  const row = newest(parts, scope, 'undone');
  if (row === null) return null;
  parts.store.database.prepare('DELETE FROM main.hf_undo WHERE seq = ?').run(row.seq);
  commitBack(parts, row, scope, 'done', false);
  return { label: row.label };
}

function commitBack(
  parts: PeopleParts,
  row: UndoRow,
  scope: string,
  state: 'done' | 'undone',
  skipChanged: boolean,
): void {
  const { store, entities } = parts;
  const actionId = uuidv7(store.nowMs(), store.platform.random);
  const request: CommitRequest = {
    actionId,
    log: row.log,
    label: row.label,
    undo: scope,
    changes: row.inverse,
    seen: skipChanged ? [] : row.seen,
    reads: [],
  };
  const { inverse } = commitInside(parts, request);
  entities.flush();
  const kept = state === 'done' ? undoneOf(parts, scope) : [];
  rememberUndo(parts, request, inverse, state);
  // Redoing one keeps the others that can be redone.
  for (const one of kept) reinsert(parts, scope, one);
}

const undoneOf = (parts: PeopleParts, scope: string) =>
  parts.store.database
    .prepare("SELECT * FROM main.hf_undo WHERE scope = ? AND state = 'undone' ORDER BY seq")
    .all(scope);

function reinsert(parts: PeopleParts, scope: string, row: Readonly<Record<string, unknown>>): void {
  parts.store.database
    .prepare(
      "INSERT INTO main.hf_undo (scope, state, action_id, log, label, inverse, seen) VALUES (?, 'undone', ?, ?, ?, ?, ?)",
    )
    .run(
      scope,
      row['action_id'] as string,
      row['log'] as string,
      row['label'] as string,
      row['inverse'] as string,
      row['seen'] as string,
    );
}

function newest(parts: PeopleParts, scope: string, state: 'done' | 'undone'): UndoRow | null {
  const row = parts.store.database
    .prepare('SELECT * FROM main.hf_undo WHERE scope = ? AND state = ? ORDER BY seq DESC LIMIT 1')
    .get(scope, state);
  if (row === undefined) return null;
  return {
    seq: row['seq'] as number,
    actionId: row['action_id'] as string,
    log: row['log'] as string,
    label: row['label'] as string,
    inverse: JSON.parse(row['inverse'] as string) as RecordedChange[],
    seen: JSON.parse(row['seen'] as string) as CommitRequest['seen'],
  };
}

export function undoState(parts: Pick<PeopleParts, 'store'>, scope: string) {
  const top = (state: string) =>
    parts.store.database
      .prepare('SELECT label FROM main.hf_undo WHERE scope = ? AND state = ? ORDER BY seq DESC LIMIT 1')
      .get(scope, state)?.['label'] as string | undefined;
  const [label, redoLabel] = [top('done'), top('undone')];
  return {
    can: label !== undefined,
    ...(label === undefined ? {} : { label }),
    canRedo: redoLabel !== undefined,
    ...(redoLabel === undefined ? {} : { redoLabel }),
  };
}
