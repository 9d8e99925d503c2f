import type { ConfirmedEvent, EntityFacts } from './entity-facts.ts';
import type { Change, EventDraft } from './events.ts';
import { ownValue } from './fields.ts';
import { foldChange } from './fold.ts';
import type { Json } from './json.ts';
import type { Judgement } from './merge.ts';
import { editedFields, fieldsOf, writerOf } from './writers.ts';

/** One line of a desk entry: what a person is shown to decide about (OB6). An absent value is unset, or deleted. */
export interface ClashFact {
  readonly eventId: string;
  readonly entityType: string;
  readonly entityId: string;
  /** null: about the whole entity. The fields that I wrote follow, for the choice what to keep. */
  readonly field: string | null;
  readonly base?: Json;
  readonly mine?: Json;
  readonly theirs?: Json;
  readonly mineOp: Change['op'];
  /** Absent where it clashes with a person's own resolution, or where the bytes of theirs were erased. */
  readonly theirsOp?: Change['op'];
  /**
   * Who wrote what is shown as theirs, and when: of the whole entity, or of this field. Absent where nobody did since, and
   * where nobody here knows, because the state came whole.
   */
  readonly by?: string;
  readonly at?: string;
}

/** What the engine decided against somebody's change (MG6). */
export interface Notice {
  readonly kind: 'overwritten' | 'not-deleted';
  /** The event that did not prevail. */
  readonly eventId: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly field: string | null;
  readonly mine?: Json;
  readonly theirs?: Json;
  readonly by?: string;
  readonly at?: string;
}

interface ClashedEvent {
  readonly event: EventDraft;
  readonly judgement: Judgement;
  /** What the judgement's places point into. */
  readonly theirs: readonly ConfirmedEvent[];
  readonly facts: EntityFacts;
  readonly seenBefore: ((eventId: string, field: string) => Json | undefined) | undefined;
}

/**
 * Both sides of a clash, per field. Who and when: of the whole entity, the newest of theirs that clashes; of a field, who
 * gave it the value that is there, or nobody, where it is what the author saw.
 */
export function clashFacts({ event, judgement, theirs, facts, seenBefore }: ClashedEvent): readonly ClashFact[] {
  if (judgement.verdict !== 'clash') return [];
  const newest = theirs[judgement.theirs.at(-1) ?? -1];
  const about = {
    eventId: event.id,
    entityType: event.entityType,
    entityId: event.entityId,
    mineOp: event.change.op,
    ...(newest?.change != null && { theirsOp: newest.change.op }),
  };
  const isWhole = judgement.fields === 'entity';
  const fields = isWhole ? (editedFields(event) ?? fieldsOf(event.change)) : judgement.fields;
  const since = newest === undefined ? [] : facts.events.filter((their) => their.entityVersion > event.base);
  const perField = fields.map((field): ClashFact => {
    const base = seenBefore?.(event.id, field);
    const mine = valueAfter(event.change, field, base);
    const now = ownValue(facts.fields ?? facts.lastFields, field);
    return {
      ...about,
      field,
      ...(base !== undefined && { base }),
      ...(mine !== undefined && { mine }),
      ...(now !== undefined && { theirs: now }),
      ...signed(writerOf(field, since, base)),
    };
  });
  return isWhole ? [{ ...about, ...signed(newest), field: null }, ...perField] : perField;
}

const signed = (their: ConfirmedEvent | undefined): Pick<ClashFact, 'by' | 'at'> =>
  their === undefined || their.actor === '' ? {} : { by: their.actor, at: their.recordedAt };

export function noticeAgainst(kind: Notice['kind'], event: EventDraft, their: ConfirmedEvent | undefined): Notice {
  return {
    kind,
    eventId: event.id,
    entityType: event.entityType,
    entityId: event.entityId,
    field: null,
    ...signed(their),
  };
}

/**
 * The last version of its entity that the author of an event had really seen: its base, unless MG5 once carried it over
 * more than that.
 */
export function seenBy(event: Pick<EventDraft, 'base' | 'meta'>): number {
  const mark = event.meta?.['holdfast'];
  const seen = typeof mark === 'object' && mark !== null && 'seen' in mark ? mark.seen : undefined;
  return typeof seen === 'number' ? Math.min(seen, event.base) : event.base;
}

/** What the change leaves in one field where its author saw `before`. */
function valueAfter(change: Change, field: string, before: Json | undefined): Json | undefined {
  if (change.op === 'create' || change.op === 'restore') return ownValue(change.fields, field);
  const folded = foldChange(before === undefined ? {} : { [field]: before }, change);
  return folded.ok ? ownValue(folded.value, field) : undefined;
}
