import type { EntityFacts } from './entity-facts.ts';
import type { EventDraft } from './events.ts';
import { assert } from './faults.ts';
import { foldChange } from './fold.ts';
import type { Json, JsonObject } from './json.ts';
import { type Decision, decide, type JudgedTheirs, type Line, readTheirs } from './rebase-event.ts';
import type { ClashFact, Notice } from './rebase-facts.ts';
import type { ResolutionEffect } from './resolution.ts';

/**
 * The replica's judging after a `version-conflict` (6.4), and of the dependents of a resolved operation (ST3): pure, over
 * what the replica has ingested. What holds is made again on the confirmed state of now; what does not is parked with
 * both sides. It decides nothing about time, attempts or request ids (OB3).
 */
export interface RebaseRequest {
  /**
   * The operation that was answered, and after it, in outbox order, every later pending one that touches one of its
   * entities or is reached from it through `prior` or `needs`: a chain is rebased whole, so that it costs one round trip
   * and no link is left hanging. None of them may be sending or owed.
   */
  readonly operations: readonly PendingOperation[];
  readonly factsOf: (type: string, id: string) => EntityFacts;
  readonly editedWhileDeleted: (type: string) => 'keep' | 'delete' | 'ask';
  /** Names of the entity's invariants that these fields break (MG4). */
  readonly brokenRules: (type: string, fields: JsonObject) => readonly string[];
  /** The `prior` of an own event that is neither in `operations` nor confirmed: of parked or closed work in the chain. */
  readonly priorOf?: (eventId: string) => string | undefined;
  /** What the author saw in a field before the event; undefined for unset. Only shown to people. */
  readonly seenBefore?: (eventId: string, field: string) => Json | undefined;
  /** ST3: the resolution, or discarding, that these operations depend on. */
  readonly resolved?: Resolved;
}

export interface PendingOperation {
  readonly actionId: string;
  readonly merge: 'fields' | 'author';
  readonly events: readonly EventDraft[];
  readonly needs?: readonly string[] | undefined;
}

export interface Resolved {
  /**
   * For an event of the closed operation: the event that took its place, or null where none did. Undefined for any other
   * event.
   */
  readonly replacementOf: (eventId: string) => string | null | undefined;
  /** What it changed against what the dependents were made on; undefined for an entity that it does not touch. */
  readonly effectOn: (type: string, id: string) => ResolutionEffect | undefined;
}

export type Rebased =
  /** Drafts with new base and prior, under the same event ids; their request needs a new id. */
  | {
      readonly outcome: 'rebased';
      readonly actionId: string;
      readonly events: readonly EventDraft[];
      readonly notices: readonly Notice[];
    }
  /** Its stored bytes stand. */
  | { readonly outcome: 'unchanged'; readonly actionId: string }
  /** Theirs did all of it, or it was decided against: nothing is left to send. */
  | { readonly outcome: 'nothing-left'; readonly actionId: string; readonly notices: readonly Notice[] }
  | {
      readonly outcome: 'parked';
      readonly actionId: string;
      readonly kind: 'clash' | 'rule';
      readonly facts: readonly ClashFact[];
      /** The invariants that it would break, where `kind` is `rule`. */
      readonly rules: readonly string[];
    }
  /** Depends on one that was parked here; its bytes stand. */
  | { readonly outcome: 'held'; readonly actionId: string; readonly by: string };

/**
 * Judges each operation in order, on top of those before it that hold.
 *
 * Notices (MG6): an own delete that was dropped under `keep` is `not-deleted`; an own edit that was dropped under
 * `delete` is `overwritten`. What is decided here against *their* change is marked in the draft (`meta.holdfast`), so that
 * their replica can tell them (`noticesOf`).
 *
 * Rules: MG1, MG4, MG5, MG6, OB3, ST3.
 */
export function rebase(request: RebaseRequest): readonly Rebased[] {
  const run = new Run(request);
  return request.operations.map((operation) => run.judge(operation));
}

class Run {
  readonly #request: RebaseRequest;
  readonly #lines = new Map<string, Line>();
  readonly #theirs = new Map<string, JudgedTheirs>();
  readonly #chains = new Map<string, Chain>();
  /** Dropped event → what its successors name instead. */
  readonly #dropped = new Map<string, string | undefined>();
  /** Event, or action, of a parked or held operation → the parked operation. */
  readonly #parked = new Map<string, string>();

  constructor(request: RebaseRequest) {
    this.#request = request;
  }

  judge(operation: PendingOperation): Rebased {
    const { actionId } = operation;
    for (const event of operation.events) this.#noteChain(event);
    const by = this.#holderOf(operation);
    if (by !== undefined) return this.#setAside(operation, by, { outcome: 'held', actionId, by });

    const before = this.#copyLines(operation);
    const events: EventDraft[] = [];
    const notices: Notice[] = [];
    const facts: ClashFact[] = [];
    for (const event of operation.events) {
      const decision = this.#decide(operation, event);
      if (decision.do === 'park') facts.push(...decision.facts);
      else if (decision.do === 'write') events.push(this.#written(event, decision));
      else {
        this.#dropped.set(event.id, this.#mapped(event.prior));
        if (decision.notice !== undefined) notices.push(decision.notice);
      }
    }
    const rules = facts.length > 0 ? [] : this.#newlyBroken(before);
    if (facts.length > 0 || rules.length > 0) {
      for (const [key, line] of before) this.#lines.set(key, line);
      const kind = facts.length > 0 ? 'clash' : 'rule';
      return this.#setAside(operation, actionId, { outcome: 'parked', actionId, kind, facts, rules });
    }
    if (events.length === 0) return { outcome: 'nothing-left', actionId, notices };
    const isUnchanged =
      events.length === operation.events.length && events.every((event, at) => event === operation.events[at]);
    return isUnchanged ? { outcome: 'unchanged', actionId } : { outcome: 'rebased', actionId, events, notices };
  }

  #decide(operation: PendingOperation, event: EventDraft): Decision {
    const line = this.#lineOf(event);
    const { entityType: type, entityId: id } = event;
    return decide({
      event,
      line,
      theirs: this.#theirsOf(event, line),
      mayStaySame: operation.merge === 'fields' && this.#mapped(event.prior) === event.prior,
      editedWhileDeleted: this.#request.editedWhileDeleted(type),
      resolution: this.#request.resolved?.effectOn(type, id),
      seenBefore: this.#request.seenBefore,
    });
  }

  /** Puts the event on its line, and makes its draft again if anything of it is new. */
  #written(event: EventDraft, decision: Extract<Decision, { do: 'write' }>): EventDraft {
    if (decision.isSame) return event;
    const { change, mark } = decision;
    const line = this.#lineOf(event);
    const folded = foldChange(line.fields, change);
    if (folded.ok) line.fields = folded.value;
    if (mark?.under === 'keep') line.isRevived = true;
    const base = line.facts.version;
    const prior = this.#mapped(event.prior);
    if (change === event.change && base === event.base && prior === event.prior && mark === undefined) return event;
    const { prior: _old, ...draft } = event;
    return {
      ...draft,
      change,
      base,
      ...(prior !== undefined && { prior }),
      ...(mark !== undefined && { meta: { ...draft.meta, holdfast: { ...mark } } }),
    };
  }

  // ── chains ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A chain runs through pending events, which the log does not know; what counts is where it enters the log. */
  #noteChain(event: EventDraft): void {
    const below = event.prior === undefined ? NO_CHAIN : this.#chainAt(event.prior);
    this.#chains.set(event.id, { anchor: below.anchor, hasCreate: below.hasCreate || event.change.op === 'create' });
  }

  #chainAt(eventId: string): Chain {
    const known = this.#chains.get(eventId);
    if (known !== undefined) return known;
    let anchor = eventId;
    const isNew = withoutCircle(eventId);
    for (let next = this.#request.priorOf?.(anchor); next !== undefined; next = this.#request.priorOf?.(anchor)) {
      isNew(next);
      anchor = next;
      const joined = this.#chains.get(anchor);
      if (joined !== undefined) return joined;
    }
    return { anchor, hasCreate: false };
  }

  /** What a successor names instead of an event that was dropped, replaced or closed. */
  #mapped(prior: string | undefined): string | undefined {
    let own = prior;
    const isNew = withoutCircle(prior);
    while (own !== undefined) {
      isNew(own);
      if (this.#dropped.has(own)) own = this.#dropped.get(own);
      else {
        const replacement = this.#request.resolved?.replacementOf(own);
        if (replacement === undefined) return own;
        if (replacement !== null) return replacement;
        own = this.#request.priorOf?.(own);
      }
    }
    return undefined;
  }

  #theirsOf(event: EventDraft, { facts }: Line): JudgedTheirs {
    const below = event.prior === undefined ? NO_CHAIN : this.#chainAt(event.prior);
    const { entityType, entityId, base } = event;
    const key = JSON.stringify([entityType, entityId, base, below.anchor ?? null, below.hasCreate]);
    const known = this.#theirs.get(key);
    if (known !== undefined) return known;
    const theirs = readTheirs(facts, { base, ...below });
    this.#theirs.set(key, theirs);
    return theirs;
  }

  // ── an operation as a whole ───────────────────────────────────────────────────────────────────────────────────────

  #holderOf(operation: PendingOperation): string | undefined {
    const named = [...operation.events.map((event) => event.prior), ...(operation.needs ?? [])];
    for (const name of named) {
      const by = name === undefined ? undefined : this.#parked.get(name);
      if (by !== undefined) return by;
    }
    return undefined;
  }

  #setAside(operation: PendingOperation, by: string, result: Rebased): Rebased {
    this.#parked.set(operation.actionId, by);
    for (const event of operation.events) this.#parked.set(event.id, by);
    return result;
  }

  /** MG4: what held before and does not hold after. What the entity broke already is not held against the operation. */
  #newlyBroken(before: ReadonlyMap<string, Line>): readonly string[] {
    const names = new Set<string>();
    for (const [key, { type, fields }] of before) {
      const after = this.#lines.get(key)?.fields;
      if (after === undefined || after === fields) continue;
      const broken = fields === undefined ? [] : this.#request.brokenRules(type, fields);
      for (const name of this.#request.brokenRules(type, after)) if (!broken.includes(name)) names.add(name);
    }
    return [...names];
  }

  #copyLines(operation: PendingOperation): Map<string, Line> {
    return new Map(operation.events.map((event) => [keyOf(event), { ...this.#lineOf(event) }]));
  }

  #lineOf(event: EventDraft): Line {
    const key = keyOf(event);
    const known = this.#lines.get(key);
    if (known !== undefined) return known;
    const facts = this.#request.factsOf(event.entityType, event.entityId);
    const resolution = this.#request.resolved?.effectOn(event.entityType, event.entityId);
    const { fields } = facts.onto ?? (resolution === undefined ? facts : { fields: resolution.now });
    const isRevived = facts.fields === undefined && facts.version > 0 && fields !== undefined;
    const line: Line = { type: event.entityType, facts, fields, isRevived };
    this.#lines.set(key, line);
    return line;
  }
}

/** What an author's own work on an entity rests on, from one event of it down. */
interface Chain {
  /** The newest event of it that may be in the log; undefined where all of it is pending. */
  readonly anchor: string | undefined;
  /** The pending part began with a create. */
  readonly hasCreate: boolean;
}

const NO_CHAIN: Chain = { anchor: undefined, hasCreate: false };

const keyOf = (event: EventDraft): string => JSON.stringify([event.entityType, event.entityId]);

/** A chain whose events name each other would be followed for ever: that is a defect, and is told as one. */
function withoutCircle(of: string | undefined): (eventId: string) => void {
  const passed = new Set<string>();
  return (eventId) => {
    assert(!passed.has(eventId), `the chain below the event ${of} has no end`);
    passed.add(eventId);
  };
}
