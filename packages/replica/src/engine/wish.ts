import { inverseOf, seenAfter } from './inverse.ts';
import { isLocal, keysOf, type OutboxRow, type Wish } from './outbox-row.ts';
import type { PeopleParts } from './people.ts';

/** Said once: what a person saw then is what counts. Undo has nothing more to take back of it, or it would do so twice. */
export function giveUpLater(parts: PeopleParts, row: OutboxRow): void {
  if (row.wish !== null) return;
  parts.outbox.wish(row, wishOf(parts, row));
  parts.outbox.forgetUndo(row);
}

/**
 * What takes a batch back, worked out while its effect can still be told from what came after it. An entity that it made goes
 * with all that was built on it by then.
 */
function wishOf({ entities }: PeopleParts, row: OutboxRow): Wish {
  if (!isLocal(row)) return { changes: [], seen: [] };
  const parts = keysOf(row).map((key) => {
    const entity = entities.get(key);
    const after = entities.stateBefore(entity, row.seq + 1);
    const changes = inverseOf(entity, entities.stateBefore(entity, row.seq), after);
    const isMade = changes.some((change) => change.do === 'delete');
    return { changes, seen: seenAfter(changes, () => ({ local: isMade ? entity.local : after })) };
  });
  return { changes: parts.flatMap(({ changes }) => changes), seen: parts.flatMap(({ seen }) => seen) };
}
