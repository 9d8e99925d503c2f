import type { Json, StoredEvent } from '@holdfast/core';
import { foldFields } from './oracle.ts';
import { type Author, isLineInLog } from './oracle-intent.ts';
import type { Violation } from './violation.ts';

/**
 * I15: two people changed one entity, neither knowing of the other, and both are in the log. Had the second come first, it
 * would say the same now, but for fields of which the schema says that the last one counts. What each had seen is taken
 * from the drafts as they were written; events are folded plainly, and none of the engine's rules is used. Of whole
 * entities that are made, deleted or brought back the plays say how they end.
 */
export function checkSymmetry(author: Author, events: readonly StoredEvent[]): Violation[] {
  const inLog = new Map(events.map((event) => [event.id, event]));
  const drafts = [...author.said.values()].flat();
  const written = new Map(drafts.map((draft) => [draft.id, draft]));
  const byEntity = Map.groupBy(events, ({ entityType, entityId }) => `${entityType} ${entityId}`);
  return drafts.flatMap((draft) => {
    const event = inLog.get(draft.id);
    if (event === undefined || !isLineInLog(draft, written, inLog)) return [];
    const line = byEntity.get(`${event.entityType} ${event.entityId}`) ?? [];
    const at = line.indexOf(event);
    // Whatever its author had seen, and his own work, comes before it in any order.
    const from =
      1 + line.slice(0, at).findLastIndex((one) => one.entityVersion <= draft.base || one.actor === author.account);
    const unseen = line.slice(from, at);
    if (unseen.length === 0 || ![event, ...unseen].every(({ change: { op } }) => op === 'update' || op === 'put'))
      return [];
    const seen = line.slice(0, from);
    const [now, other] = [
      [...seen, ...unseen, event],
      [...seen, event, ...unseen],
    ].map((order) => textOf(order, lastOf([event, ...unseen])));
    if (now === other) return [];
    const what = `version ${event.version} of ${event.entityType} ${event.entityId} came after ${unseen.map(({ version }) => version)}, and makes it ${now}; before them it would be ${other}`;
    return [{ invariant: 'I15', device: author.name, what }];
  });
}

/** Fields of which the last change counts, by a rule that went with the change. */
const lastOf = (events: readonly StoredEvent[]): ReadonlySet<string> =>
  new Set(
    events.flatMap(({ change }) =>
      change.op === 'update' || change.op === 'put'
        ? Object.entries(change.rules ?? {}).flatMap(([field, rule]) => (rule === 'last' ? [field] : []))
        : [],
    ),
  );

function textOf(events: readonly StoredEvent[], without: ReadonlySet<string>): string {
  const [first] = events;
  const fields = foldFields(events, first?.entityType ?? '').get(first?.entityId ?? '') ?? {};
  const plain = (value: Json): Json => (Array.isArray(value) ? [...value].sort() : value);
  return JSON.stringify(
    Object.entries(fields)
      .filter(([field]) => !without.has(field))
      .map(([field, value]) => [field, plain(value)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
