import {
  type Database,
  OPERATION_GRID,
  OWNERSHIP_GRID,
  PERMIT_GRID,
  SESSION_GRID,
  type SqlValue,
} from '@holdfast/core';

/**
 * Which cells of the engine's machines a world takes. Grids are data, and a step looks its cell up: here every cell is
 * replaced by one that counts when it is looked up, so that neither core nor an engine knows that anybody watches. Nothing
 * steps the grid of operations, since SQL moves them: there the rows of the outbox are watched, and each move is named after
 * the cell that allows it. Obligations have no grid: theirs are opened and settled, per class.
 *
 * One world at a time: what was looked up since `cellsTaken` was called last.
 */
const WATCHED: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  permit: PERMIT_GRID,
  ownership: OWNERSHIP_GRID,
  session: SESSION_GRID,
};
const OBLIGATION_CLASSES = ['handshake', 'bootstrap', 'push', 'pull', 'repair', 'dispatch'] as const;

/** Every cell that may be taken, as `machine place signal`. What must never arrive is none of them. */
export const CELLS: readonly string[] = [
  ...Object.entries(WATCHED).flatMap(([machine, grid]) => cellsOf(machine, grid, (cell) => cell !== 'bug')),
  // What stays changes no row, so that nobody can see it.
  ...cellsOf('operation', OPERATION_GRID, (cell) => cell in OPERATION_GRID),
  ...OBLIGATION_CLASSES.flatMap((of) => [`obligation ${of} opened`, `obligation ${of} settled`]),
];
const known = new Set(CELLS);

export const machineOf = (cell: string): string => cell.slice(0, cell.indexOf(' '));

function cellsOf(
  machine: string,
  grid: Readonly<Record<string, Readonly<Record<string, string>>>>,
  isOne: (cell: string) => boolean,
): string[] {
  return Object.entries(grid).flatMap(([place, row]) =>
    Object.entries(row).flatMap(([signal, cell]) => (isOne(cell) ? [`${machine} ${place} ${signal}`] : [])),
  );
}

const taken = new Map<string, number>();
const take = (cell: string): void => void taken.set(cell, (taken.get(cell) ?? 0) + 1);
let isWatching = false;

/** From now on; once per process. */
export function watchCells(): void {
  if (isWatching) return;
  isWatching = true;
  for (const [machine, grid] of Object.entries(WATCHED))
    for (const [place, row] of Object.entries(grid))
      for (const [signal, cell] of Object.entries(row)) {
        const name = `${machine} ${place} ${signal}`;
        Object.defineProperty(row, signal, {
          enumerable: true,
          get: () => {
            take(name);
            return cell;
          },
        });
      }
}

export interface TakenCells {
  readonly cells: readonly string[];
  readonly unlisted: readonly string[];
  /** How often work was rebased by a merge, and parked. */
  readonly merged: number;
  readonly parked: number;
}

/** What was taken since it was asked last, sorted; `unlisted`: moves of an operation that no cell of its grid allows. */
export function cellsTaken(): TakenCells {
  const all = [...taken.keys()].sort();
  const times = (isOne: (cell: string) => boolean): number =>
    all.filter(isOne).reduce((sum, cell) => sum + (taken.get(cell) ?? 0), 0);
  const merged = times((cell) => cell === 'operation waiting rebased');
  const parked = times((cell) => cell.startsWith('operation ') && cell.endsWith(' parked'));
  taken.clear();
  return {
    cells: all.filter((cell) => known.has(cell)),
    unlisted: all.filter((cell) => cell.startsWith('unlisted ')),
    merged,
    parked,
  };
}

/** Watches the rows of one device's outbox and obligations, as this connection changes them. */
export function watchOutbox(database: Database): void {
  const left = new Map<SqlValue, string>();
  const others = new Set<SqlValue>();
  database.function('world_moved', (from, to, action, isJudged, isHeld, isMissing) => {
    // Its new request id is written first, its new state after it.
    const isOtherRequest = others.delete(action as SqlValue);
    const signal = signalOf({ from: `${from}`, to: `${to}`, isOtherRequest, isJudged, isHeld, isMissing });
    take(signal === null ? `unlisted ${from} to ${to}` : `operation ${from} ${signal}`);
    return null;
  });
  database.function('world_other', (action) => {
    others.add(action as SqlValue);
    return null;
  });
  database.function('world_left', (action, state) => {
    left.set(action as SqlValue, `${state}`);
    return null;
  });
  database.function('world_ended', (action, outcome) => {
    const from = left.get(action as SqlValue);
    left.delete(action as SqlValue);
    if (from !== undefined) take(`operation ${from} ${outcome === 'ordered' ? 'confirmed' : 'closed'}`);
    return null;
  });
  database.function('world_saw', (what) => {
    take(`${what}`);
    return null;
  });
  database.exec(TRIGGERS);
}

const TRIGGERS = `
CREATE TEMP TRIGGER IF NOT EXISTS world_moved AFTER UPDATE ON main.hf_outbox WHEN old.state <> new.state BEGIN
  SELECT world_moved(old.state, new.state, new.action_id, new.judge_at IS NOT NULL,
    new.held_by IS NOT NULL, ifnull(json_extract(new.fault, '$.code') = 'prior-missing', 0));
END;
CREATE TEMP TRIGGER IF NOT EXISTS world_rebased_by_merge AFTER UPDATE OF request_id ON main.hf_outbox
WHEN old.request_id <> new.request_id AND old.state = 'waiting' BEGIN SELECT world_other(new.action_id); END;
CREATE TEMP TRIGGER IF NOT EXISTS world_left AFTER DELETE ON main.hf_outbox BEGIN SELECT world_left(old.action_id, old.state); END;
CREATE TEMP TRIGGER IF NOT EXISTS world_ended AFTER INSERT ON main.hf_outcome BEGIN
  SELECT world_ended(new.action_id, json_extract(new.outcome, '$.state'));
END;
CREATE TEMP TRIGGER IF NOT EXISTS world_lost AFTER INSERT ON main.hf_outbox WHEN new.state = 'lost' BEGIN
  SELECT world_saw('operation confirmed history-changed');
END;
CREATE TEMP TRIGGER IF NOT EXISTS world_owed AFTER INSERT ON main.hf_obligation BEGIN
  SELECT world_saw('obligation ' || new.class || ' opened');
END;
CREATE TEMP TRIGGER IF NOT EXISTS world_settled AFTER UPDATE ON main.hf_obligation
WHEN old.closed_at IS NULL AND new.closed_at IS NOT NULL BEGIN
  SELECT world_saw('obligation ' || new.class || ' settled');
END;`;

/** The signal whose cell leads from one state to the other, told apart by what else the row says. Null: none does. */
function signalOf(move: {
  readonly from: string;
  readonly to: string;
  readonly isOtherRequest: boolean;
  readonly isJudged: unknown;
  readonly isHeld: unknown;
  readonly isMissing: unknown;
}): string | null {
  const row = OPERATION_GRID[move.from as keyof typeof OPERATION_GRID] as Readonly<Record<string, string>>;
  const signals = Object.keys(row).filter((signal) => row[signal] === move.to);
  if (signals.length < 2) return signals[0] ?? null;
  if (move.to === 'waiting') return move.isJudged === 1 ? 'must-judge' : 'postponed';
  if (move.from === 'sending') return move.isHeld === 1 || move.isMissing === 1 ? 'prior-missing' : 'restarted';
  // What waited, to be sent: as something else, or not for now, or as it was.
  if (move.isOtherRequest) return 'rebased';
  return move.isHeld === 1 ? 'held' : 'asked-again';
}
