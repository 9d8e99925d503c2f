import type { EventDraft, StoredEvent } from '@holdfast/core';
import type { Violation } from './violation.ts';

/**
 * I13, I14: whose word was lost without a question. Held against the log are the drafts as a person wrote them, with the
 * version of the entity that this person saw; what a device made of them by rebasing is not believed. None of the engine's
 * rules is used, only these: two people who set one field to different values, neither knowing of the other, both stand in
 * the log only if the field has a rule; and nobody deletes what another edits meanwhile.
 */
export interface Author {
  readonly name: string;
  readonly account: string;
  /** By action: what was written here, as it was written first. */
  readonly said: ReadonlyMap<string, readonly EventDraft[]>;
}

export function checkIntent(author: Author, events: readonly StoredEvent[]): Violation[] {
  const inLog = new Map(events.map((event) => [event.id, event]));
  const written = new Map([...author.said.values()].flat().map((draft) => [draft.id, draft]));
  const byEntity = Map.groupBy(events, ({ entityType, entityId }) => `${entityType} ${entityId}`);
  return [...author.said.values()].flat().flatMap((draft) => {
    const event = inLog.get(draft.id);
    if (event === undefined) return [];
    const say = (what: string): Violation => ({
      invariant: 'I13',
      device: author.name,
      what: `version ${event.version} of ${draft.entityType} ${draft.entityId}: ${what}`,
    });
    const changed = otherValues(draft, event).map((what) => say(what));
    // What was made on top of work that a person decided about meanwhile is judged by that decision (ST3).
    if (!isLineInLog(draft, written, inLog)) return changed;
    const before = (byEntity.get(`${draft.entityType} ${draft.entityId}`) ?? []).filter(
      (one) => one.entityVersion > draft.base && one.entityVersion < event.entityVersion,
    );
    // It was brought back, or made again, by its author: what was said before is in what he saw then.
    const end = before.findLast(({ change }) => change.op === 'delete' || change.op === 'restore');
    if (end !== undefined && end.actor === author.account) return changed;
    // He made it, and edited nothing of what they had deleted: by its natural key it is only called the same (EV6).
    if (draft.change.op === 'put' && draft.base === 0 && end?.change.op === 'delete') return changed;
    const unseen = before.filter(({ actor, version }) => actor !== author.account && version >= (end?.version ?? 0));
    return [...changed, ...lostBeside(event, unseen).map((what) => say(what))];
  });
}

/** Whether all of its own work that it was made on is in the log. */
export function isLineInLog(
  draft: EventDraft,
  written: ReadonlyMap<string, EventDraft>,
  inLog: ReadonlyMap<string, StoredEvent>,
): boolean {
  for (let prior = draft.prior; prior !== undefined; prior = written.get(prior)?.prior)
    if (!inLog.has(prior)) return false;
  return true;
}

/** The values that an event sets: of an unset field, null. */
function valuesOf({ change }: EventDraft): ReadonlyMap<string, string> {
  if (change.op === 'delete') return new Map();
  if (change.op === 'create' || change.op === 'restore')
    return new Map(Object.entries(change.fields).map(([field, value]) => [field, JSON.stringify(value)]));
  const unset = change.op === 'update' ? (change.unset ?? []) : [];
  return new Map([
    ...Object.entries(change.set ?? {}).map(([field, value]) => [field, JSON.stringify(value)] as const),
    ...unset.map((field) => [field, 'null'] as const),
  ]);
}

/** A rebase may leave out what theirs did already; it never says another value than the person said. */
function otherValues(draft: EventDraft, event: StoredEvent): readonly string[] {
  // An edit that outlives a deletion brings the whole entity back, with the rest of its fields.
  if (event.change.op === 'restore' && draft.change.op !== 'restore') return [];
  const said = valuesOf(draft);
  return [...valuesOf(event)].flatMap(([field, value]) =>
    said.get(field) === value
      ? []
      : [`${field} is ${value} in the log, and was ${said.get(field)} when it was written`],
  );
}

function lostBeside(event: StoredEvent, unseen: readonly StoredEvent[]): readonly string[] {
  const { change } = event;
  if (change.op === 'delete')
    return unseen
      .filter(({ change: theirs }) => theirs.op === 'update' || theirs.op === 'put')
      .map(({ version }) => `deletes what ${version} had edited meanwhile`);
  if (change.op !== 'update' && change.op !== 'put') return [];
  const [end] = unseen;
  if (end?.change.op === 'delete') return [`edits what ${end.version} had deleted meanwhile`];
  const mine = valuesOf(event);
  return unseen.flatMap((theirs) =>
    [...valuesOf(theirs)].flatMap(([field, value]) =>
      mine.has(field) && mine.get(field) !== value && change.rules?.[field] === undefined
        ? [
            `${field} is set to ${mine.get(field)} over the ${value} of ${theirs.version}, which its author had not seen`,
          ]
        : [],
    ),
  );
}
