import {
  canonical,
  chainNext,
  chainStart,
  checkChain,
  type Digest,
  type EntityState,
  type EventDraft,
  foldChange,
  foldStored,
  type Json,
  type JsonObject,
  judgeEvent,
  type LogStanding,
  leafOf,
  type OperationResult,
  type OwnEventReference,
  operationIdentity,
  type Position,
  type PushOperation,
  StateSignature,
  type StoredEvent,
  splitEvent,
  type Through,
  theirsSince,
} from '@holdfast/core';
import type { BootstrapPage, IngestPage } from './replica-state.ts';

/**
 * A ledger of one log, as small as LG1 to LG4 allow: order, identity, clash, fold, chain, signature and snapshots, on
 * core's functions. It has no fences, limits, access or storage.
 */
export class TinyLedger {
  readonly identity: string;
  readonly epoch: string;
  readonly events: StoredEvent[] = [];
  readonly chains: string[];
  readonly signatures: string[];
  readonly #digest: Digest;
  readonly #entities = new Map<string, { version: number; last: number; state: EntityState | undefined }>();
  readonly #requests = new Map<string, { readonly identity: string; readonly first: number }>();
  readonly #actions = new Map<string, number>();
  #clock = Date.parse('2026-01-01T00:00:00.000Z');

  constructor(digest: Digest, facts: { readonly identity?: string; readonly epoch?: string } = {}) {
    this.#digest = digest;
    this.identity = facts.identity ?? '11'.repeat(32);
    this.epoch = facts.epoch ?? 'e1';
    this.chains = [chainStart(this.identity, digest)];
    this.signatures = [new StateSignature(digest).toHex()];
  }

  /** A backup from when the log had `version` events: what came after it is lost. */
  restoredTo(version: number, epoch = `${this.epoch}'`): TinyLedger {
    const copy = new TinyLedger(this.#digest, { identity: this.identity, epoch });
    for (const event of this.events.slice(0, version)) copy.#append(event);
    for (const [requestId, known] of this.#requests) if (known.first <= version) copy.#requests.set(requestId, known);
    for (const [actionId, first] of this.#actions) if (first <= version) copy.#actions.set(actionId, first);
    return copy;
  }

  get head(): number {
    return this.events.length;
  }
  get through(): Through {
    return this.at(this.head);
  }
  at(version: number): Through {
    return { version, chain: this.chains[version] as string };
  }
  get signature(): string {
    return this.signatures.at(-1) as string;
  }
  get entities(): readonly EntityState[] {
    return [...this.#entities.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, { state }]) => (state === undefined ? [] : [state]));
  }
  entity(type: string, id: string): EntityState | undefined {
    return this.#entities.get(keyOf(type, id))?.state;
  }

  /** LG11's order, each operation on its own. */
  push(
    operations: readonly PushOperation[],
    by: { readonly actor: string; readonly replicaId: string },
  ): readonly OperationResult[] {
    return operations.map((operation) => this.#judge(operation, by));
  }

  #judge(operation: PushOperation, by: { readonly actor: string; readonly replicaId: string }): OperationResult {
    const { requestId, actionId, events } = operation;
    const refused = (code: string, details: JsonObject = {}): OperationResult =>
      ({ requestId, status: 'refused', code, details }) as OperationResult;
    const identity = operationIdentity(
      actionId,
      events.map((event) => canonical(event as unknown as Json)),
      this.#digest,
    );
    const known = this.#requests.get(requestId);
    if (known !== undefined)
      return known.identity === identity ? this.#accepted(requestId, known.first) : refused('idempotency-mismatch');
    const chain = checkChain(events);
    if (!chain.ok) return refused(chain.fault.code, chain.fault.facts as JsonObject);
    const elsewhere = this.#actions.get(actionId);
    if (elsewhere !== undefined) return this.#accepted(requestId, elsewhere);
    const need = operation.needs?.find((action) => !this.#actions.has(action));
    if (need !== undefined) return refused('prior-missing', { needs: need });
    const mark = this.head;
    // One operation, one instant.
    this.#clock += 1_000;
    const recordedAt = new Date(this.#clock).toISOString();
    for (const [index, event] of events.entries()) {
      const refusal = this.#one(event, operation);
      if (refusal !== null) {
        this.#cutTo(mark);
        return refused(refusal.code, refusal.details);
      }
      const before = this.#entities.get(keyOf(event.entityType, event.entityId));
      this.#append({
        ...event,
        version: this.head + 1,
        entityVersion: (before?.version ?? 0) + 1,
        actor: by.actor,
        recordedAt,
        requestId,
        actionId,
        replicaId: by.replicaId,
        index,
        count: events.length,
      });
    }
    const missing = operation.requires?.find(([type, id]) => this.entity(type, id) === undefined);
    if (missing !== undefined) {
      this.#cutTo(mark);
      return refused('missing-reference', { type: missing[0], id: missing[1] });
    }
    this.#requests.set(requestId, { identity, first: mark + 1 });
    this.#actions.set(actionId, mark + 1);
    return this.#accepted(requestId, mark + 1);
  }

  #one(event: EventDraft, { merge }: PushOperation): { code: string; details: JsonObject } | null {
    const { entityType: type, entityId: id } = event;
    const known = this.#entities.get(keyOf(type, id)) ?? { version: 0, last: 0, state: undefined };
    if (event.prior !== undefined && !this.events.some((one) => one.id === event.prior))
      return { code: 'prior-missing', details: { prior: event.prior } };
    if (event.base > known.version) return { code: 'base-ahead', details: { type, id } };
    const conflict = {
      code: 'version-conflict',
      details: { type, id, entityVersion: known.version, version: known.last, event: event.id },
    };
    const of = this.events.filter((one) => one.entityType === type && one.entityId === id);
    const found = theirsSince(of, { base: event.base, prior: event.prior });
    if (found.isTooMany) return conflict;
    const { verdict } = judgeEvent(
      event.change,
      found.theirs.map((their) => their.change),
    );
    if (verdict === 'clash' || (found.theirs.length > 0 && merge === 'author')) return conflict;
    const folded = verdict === 'apply' ? foldChange(known.state?.fields, event.change) : null;
    return folded === null || folded.ok
      ? null
      : { code: 'invalid-event', details: (folded.fault.facts ?? {}) as JsonObject };
  }

  #append(event: StoredEvent): void {
    const key = keyOf(event.entityType, event.entityId);
    const before = this.#entities.get(key)?.state;
    const { draft, envelope } = splitEvent(event);
    const after = foldStored(before, event);
    this.events.push(event);
    this.chains.push(
      chainNext(
        this.chains.at(-1) as string,
        leafOf(draft, this.#digest),
        canonical(envelope as unknown as Json),
        this.#digest,
      ),
    );
    const signature = new StateSignature(this.#digest, this.signature);
    signature.replace(before, after);
    this.signatures.push(signature.toHex());
    this.#entities.set(key, { version: event.entityVersion, last: event.version, state: after });
  }

  #cutTo(version: number): void {
    if (this.head === version) return;
    const kept = this.events.slice(0, version);
    this.events.length = 0;
    this.chains.length = 1;
    this.signatures.length = 1;
    this.#entities.clear();
    for (const event of kept) this.#append(event);
  }

  #accepted(requestId: string, first: number): OperationResult {
    const { count, actor, recordedAt, requestId: under } = this.events[first - 1] as StoredEvent;
    return {
      requestId,
      status: 'accepted',
      firstVersion: first,
      entityVersions: this.events.slice(first - 1, first - 1 + count).map((event) => event.entityVersion),
      recordedAt,
      actor,
      ...(under === requestId ? {} : { acceptedUnder: under }),
    };
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whole operations after a version, at most about `limit` events. Own operations of `requests` come as references. */
  page(
    after: number,
    options: { readonly limit?: number; readonly requests?: ReadonlySet<string>; readonly replicaId?: string } = {},
  ): IngestPage {
    let last = Math.min(this.head, after + (options.limit ?? 512));
    while (last < this.head && (this.events[last] as StoredEvent).index > 0) last += 1;
    const events = this.events
      .slice(after, last)
      .map((event): StoredEvent | OwnEventReference =>
        options.requests?.has(event.requestId) === true && event.replicaId === options.replicaId
          ? { version: event.version, requestId: event.requestId, index: event.index }
          : event,
      );
    return { log: 'main', epoch: this.epoch, events, through: this.at(last), head: this.head };
  }

  /** State in the ledger's order, `limit` entities a page. */
  statePage(cursor: string | null, limit = 100): BootstrapPage {
    const all = this.entities.filter((one) => cursor === null || keyOf(one.type, one.id) > cursor);
    const page = all.slice(0, limit);
    const last = page.at(-1);
    return {
      asOf: this.through,
      entities: page,
      after: cursor,
      next: all.length > limit && last !== undefined ? keyOf(last.type, last.id) : null,
    };
  }

  standing(positions: readonly Position[], signature?: string): LogStanding {
    const isIn = ({ version, chain }: Position) => this.chains[version] === chain;
    const facts = { log: 'main', identity: this.identity, epoch: this.epoch, head: this.through } as const;
    const [newest] = positions;
    if (newest !== undefined && !isIn(newest)) {
      const commonVersion = Math.max(0, ...positions.filter(isIn).map(({ version }) => version));
      return { ...facts, status: 'history-changed', commonVersion, healing: false };
    }
    const at = newest?.version ?? 0;
    return {
      ...facts,
      status: at < this.head ? 'behind' : 'ok',
      role: 'writer',
      ...(signature === undefined ? {} : { signature: this.signatures[at] === signature ? 'equal' : 'differs' }),
    };
  }

  /** The state as a fold of its events from the beginning; for comparing with tables. */
  fold(upTo: number): ReadonlyMap<string, EntityState> {
    const states = new Map<string, EntityState>();
    for (const event of this.events.slice(0, upTo)) {
      const key = keyOf(event.entityType, event.entityId);
      const next = foldStored(states.get(key), event);
      if (next === undefined) states.delete(key);
      else states.set(key, next);
    }
    return states;
  }
}

export const keyOf = (type: string, id: string): string => `${type}\u0000${id}`;
