import { checkChain } from './chain.ts';
import type { ConfirmedEvent, EntityFacts } from './entity-facts.ts';
import type { Change, EntityState, EventDraft, StoredEvent } from './events.ts';
import { foldChange, foldStored } from './fold.ts';
import type { JsonObject } from './json.ts';
import { type Judgement, judgeEvent } from './merge.ts';
import { type PendingOperation, type Rebased, type RebaseRequest, rebase } from './rebase.ts';
import { theirsSince } from './theirs.ts';

/**
 * A ledger with one entity, as small as LG4 allows: it keeps the rules of form, prior, base, theirs, clash, fold and
 * whole operations; it has no digests, fences, limits or storage.
 */
export class ModelLedger {
  readonly events: StoredEvent[];
  state: EntityState | undefined;
  lastFields: JsonObject | undefined;

  constructor(from?: ModelLedger) {
    this.events = from === undefined ? [] : [...from.events];
    this.state = from?.state;
    this.lastFields = from?.lastFields;
  }

  /** All events of the operation, or none. */
  push(operation: PendingOperation, actor = 'ana'): ModelAnswer {
    const chain = checkChain(operation.events);
    if (!chain.ok) return { code: chain.fault.code };
    const copy = new ModelLedger(this);
    const verdicts: string[] = [];
    for (const event of operation.events) {
      const answer = copy.#append(event, operation, actor);
      if (answer.verdicts === undefined) return answer;
      verdicts.push(...answer.verdicts);
    }
    Object.assign(this.events, copy.events);
    this.state = copy.state;
    this.lastFields = copy.lastFields;
    return { code: 'accepted', verdicts };
  }

  #append(event: EventDraft, operation: PendingOperation, actor: string): ModelAnswer {
    const { prior, base } = event;
    if (prior !== undefined && !this.events.some(({ id }) => id === prior)) return { code: 'prior-missing' };
    if (base > this.events.length) return { code: 'base-ahead' };
    const found = theirsSince(this.events, { base, prior });
    if (found.isTooMany) return { code: 'version-conflict' };
    const { theirs } = found;
    const judgement = judgeEvent(
      event.change,
      theirs.map((their) => their.change),
    );
    if (judgement.verdict === 'clash' || (theirs.length > 0 && operation.merge === 'author'))
      return { code: 'version-conflict', judgement, theirs };
    if (judgement.verdict === 'apply' && !foldChange(this.state?.fields, event.change).ok)
      return { code: 'invalid-event' };
    const version = this.events.length + 1;
    const stored: StoredEvent = { ...event, ...ENVELOPE, version, entityVersion: version, actor };
    const next = foldStored(this.state, stored);
    if (next === undefined && this.state !== undefined) this.lastFields = this.state.fields;
    this.events.push(stored);
    this.state = next;
    return { code: 'accepted', verdicts: [judgement.verdict] };
  }

  facts(since = 0): EntityFacts {
    const events: readonly ConfirmedEvent[] = this.events.slice(since);
    return { version: this.events.length, fields: this.state?.fields, lastFields: this.lastFields, events };
  }
}

export type ModelAnswer =
  | { readonly code: 'accepted'; readonly verdicts: readonly string[] }
  | {
      readonly code: string;
      readonly verdicts?: undefined;
      readonly judgement?: Judgement;
      readonly theirs?: readonly StoredEvent[];
    };

const INSTANT = '2026-01-01T00:00:00.000Z';
const ENVELOPE = {
  recordedAt: INSTANT,
  requestId: 'r',
  actionId: 'a',
  replicaId: 'p',
  index: 0,
  count: 1,
};

export const draftOf = (id: string, change: Change, base: number, prior?: string): EventDraft => ({
  id,
  type: 'issue.changed',
  entityType: 'issue',
  entityId: 'i',
  change,
  base,
  ...(prior !== undefined && { prior }),
  at: INSTANT,
  salt: '00'.repeat(16),
});

/** An operation of one event, whose action is named like it. */
export const operationOf = (...events: EventDraft[]): PendingOperation => ({
  actionId: `action of ${events[0]?.id}`,
  merge: 'fields',
  events,
});

/** What a replica that asks in every doubt does with a refused operation and what follows it. */
export const rebaseOn = (
  ledger: ModelLedger,
  operations: readonly PendingOperation[],
  options: Partial<RebaseRequest> = {},
): readonly Rebased[] =>
  rebase({
    operations,
    factsOf: () => ledger.facts(),
    editedWhileDeleted: () => 'ask',
    brokenRules: () => [],
    ...options,
  });
