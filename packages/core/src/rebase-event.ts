import type { ConfirmedEvent, EntityFacts } from './entity-facts.ts';
import type { Change, EventDraft } from './events.ts';
import type { EntityFields } from './fields.ts';
import { foldChange } from './fold.ts';
import type { Json, JsonObject } from './json.ts';
import { type Judgement, judgeAgainst, type TheirsIndex, theirsIndex } from './merge.ts';
import { type ClashFact, clashFacts, type Notice, noticeAgainst, seenBy } from './rebase-facts.ts';
import { type ResolutionEffect, withoutFields } from './resolution.ts';
import { theirsSince } from './theirs.ts';
import { fieldsOf } from './writers.ts';

/** One entity while operations are put on it, one after the other. */
export interface Line {
  readonly type: string;
  readonly facts: EntityFacts;
  /** Its state so far; undefined: absent. */
  fields: EntityFields;
  /** Own pending work has brought the deleted entity back: their deletion is answered. */
  isRevived: boolean;
}

/** Theirs, read once for all events that share a base and a chain. */
export interface JudgedTheirs {
  readonly events: readonly ConfirmedEvent[];
  readonly index: TheirsIndex;
}

/** What MG5 decided, and the last version of the entity that the author had really seen. Written into `meta.holdfast`. */
export interface Mark {
  readonly under: 'keep' | 'delete';
  readonly seen: number;
  /** Of a restore: the fields that its author edited. The others are as they were, and somebody else's. */
  readonly edited?: readonly string[];
}

export type Decision =
  | {
      readonly do: 'write';
      readonly change: Change;
      readonly mark?: Mark;
      /** Its bytes stand: the ledger will find it the same as theirs. */
      readonly isSame?: true;
    }
  | { readonly do: 'drop'; readonly notice?: Notice }
  | { readonly do: 'park'; readonly facts: readonly ClashFact[] };

export interface Question {
  readonly event: EventDraft;
  readonly line: Line;
  readonly theirs: JudgedTheirs;
  /** The ledger merges, and nothing below the event was dropped or replaced. */
  readonly mayStaySame: boolean;
  readonly editedWhileDeleted: 'keep' | 'delete' | 'ask';
  readonly resolution: ResolutionEffect | undefined;
  readonly seenBefore: ((eventId: string, field: string) => Json | undefined) | undefined;
}

/** Decides about one event on its line. */
export function decide(question: Question): Decision {
  const { event, line, theirs, resolution } = question;
  const change = asWritten(event.change, theirs.index, line.facts);

  // What a person decided is no edit that MG5 could be asked about: what clashes with it goes to a person again.
  if (resolution !== undefined && resolution.changes.length > 0) {
    const judgement = judgeAgainst(change, theirsIndex(resolution.changes));
    if (judgement.verdict === 'clash') return park(question, judgement, []);
  }
  // Both sides deleted it: nothing of it is left to disagree about.
  if (change.op === 'delete' && line.facts.fields === undefined)
    return line.fields === undefined ? asSame(question) : { do: 'write', change };

  const open = withoutAnswers(theirs, line, resolution);
  const judgement = judgeAgainst(change, open.index);
  if (judgement.verdict === 'same') return asSame(question);
  if (judgement.verdict === 'clash')
    return (
      editAgainstDelete(question, change, open) ??
      deleteAgainstEdits(question, change, open) ??
      park(question, judgement, open.events)
    );
  return foldChange(line.fields, change).ok ? { do: 'write', change } : parkWhole(question);
}

/** Theirs for an event with this base on this chain (LG4), without what the author's chain has answered. */
export function readTheirs(
  facts: EntityFacts,
  since: { readonly base: number; readonly anchor: string | undefined; readonly hasCreate: boolean },
): JudgedTheirs {
  const { base, anchor, hasCreate } = since;
  const found = theirsSince(facts.events, { base, prior: anchor, max: Number.POSITIVE_INFINITY });
  const { theirs, chain } = found.isTooMany ? { theirs: [], chain: [] } : found;
  // An own restore was made on the deletions below its base.
  const answered = chain.reduce((seen, own) => (own.change?.op === 'restore' ? Math.max(seen, own.base) : seen), 0);
  return indexed(
    theirs.filter((their) => {
      // Equal creates count as one, also where the author's own is still pending.
      if (their.change?.op === 'create') return !hasCreate;
      return their.change?.op !== 'delete' || their.entityVersion > answered;
    }),
  );
}

const indexed = (events: readonly ConfirmedEvent[]): JudgedTheirs => ({
  events,
  index: theirsIndex(events.map((event) => event.change)),
});

/**
 * The change as its author would write it today: a create on a deleted id that came by bootstrap is a `restore` (EV6), a
 * create beside their `put` is a `put`, which merges by field.
 */
function asWritten(change: Change, theirs: TheirsIndex, facts: EntityFacts): Change {
  if (change.op !== 'create' || theirs.ops.has('create')) return change;
  if (theirs.ops.has('put')) return { op: 'put', set: change.fields };
  return theirs.ops.size === 0 && facts.version > 0 ? { op: 'restore', fields: change.fields } : change;
}

/** Their deletions where own work has revived the entity, and the fields of theirs that a person has overruled. */
function withoutAnswers(theirs: JudgedTheirs, line: Line, resolution: ResolutionEffect | undefined): JudgedTheirs {
  const fields = resolution?.answered ?? [];
  if (!line.isRevived && fields.length === 0) return theirs;
  const open = theirs.events
    .filter((their) => !line.isRevived || their.change?.op !== 'delete')
    .map((their) => (their.change === null ? their : { ...their, change: withoutFields(their.change, fields) }));
  return indexed(open);
}

/**
 * Theirs did it already. The ledger accepts it as same on its old base; on a new one it would find nothing to do. Where it
 * would refuse the old base (the author merges, or they did more than that), the event is left out.
 */
function asSame({ event, theirs, mayStaySame }: Question): Decision {
  const isAccepted = mayStaySame && judgeAgainst(event.change, theirs.index).verdict === 'same';
  return isAccepted ? { do: 'write', change: event.change, isSame: true } : { do: 'drop' };
}

/** MG5: my edit, and they deleted the entity. Nothing but the deletion may stand in its way. */
function editAgainstDelete(question: Question, change: Change, theirs: JudgedTheirs): Decision | undefined {
  const { event, line } = question;
  if ((change.op !== 'update' && change.op !== 'put') || line.facts.fields !== undefined) return undefined;
  const deletion = theirs.events.findLast((their) => their.change?.op === 'delete');
  const others = theirs.events.filter((their) => their.change?.op !== 'delete');
  if (deletion === undefined || judgeAgainst(change, indexed(others).index).verdict !== 'apply') return undefined;
  if (question.editedWhileDeleted === 'delete')
    return { do: 'drop', notice: noticeAgainst('overwritten', event, deletion) };
  const fields = question.editedWhileDeleted === 'keep' ? keptFields(line.facts.lastFields, change) : undefined;
  if (fields === undefined) return undefined;
  const mark: Mark = { under: 'keep', seen: seenBy(event), edited: fieldsOf(change) };
  return { do: 'write', change: { op: 'restore', fields }, mark };
}

function keptFields(last: JsonObject | undefined, change: Change): EntityFields {
  const folded = last === undefined ? undefined : foldChange(last, change);
  return folded?.ok ? folded.value : undefined;
}

/** MG5: my delete, and they edited the entity, which lives. */
function deleteAgainstEdits(question: Question, change: Change, theirs: JudgedTheirs): Decision | undefined {
  const { event } = question;
  const isEdit = (their: ConfirmedEvent) => their.change?.op === 'update' || their.change?.op === 'put';
  if (change.op !== 'delete' || !theirs.events.every(isEdit)) return undefined;
  if (question.editedWhileDeleted === 'ask') return undefined;
  if (question.editedWhileDeleted === 'delete')
    return { do: 'write', change, mark: { under: 'delete', seen: seenBy(event) } };
  return { do: 'drop', notice: noticeAgainst('not-deleted', event, theirs.events.at(-1)) };
}

const parkWhole = (question: Question): Decision =>
  park(
    question,
    { verdict: 'clash', fields: 'entity', theirs: question.theirs.events.map((_, at) => at) },
    question.theirs.events,
  );

function park(question: Question, judgement: Judgement, theirs: readonly ConfirmedEvent[]): Decision {
  const { event, line, seenBefore } = question;
  return { do: 'park', facts: clashFacts({ event, judgement, theirs, facts: line.facts, seenBefore }) };
}
