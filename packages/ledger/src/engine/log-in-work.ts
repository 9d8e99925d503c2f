import {
  type Change,
  canonical,
  type Digest,
  type EntityEvent,
  type EntityState,
  type EventDraft,
  type JsonObject,
  RUN_TIME_TYPE,
  StateSignature,
} from '@holdfast/core';
import type { PageEvent } from './event-page.ts';
import {
  type AppendState,
  type AppendWrite,
  type EntityRow,
  type EventRow,
  entityKey,
  type FenceRow,
  type FenceWrite,
  type NewEvent,
  type OperationRow,
} from './store-port.ts';

/** An operation of the group, with its events as they stand in pages. */
export interface AcceptedOperation {
  readonly row: OperationRow;
  readonly events: readonly PageEvent[];
}

/**
 * A log as it is while a group is judged: what was read, with what was accepted so far on top. Lives for one group. An
 * operation that is refused leaves it as it was: `begin` notes, `undo` puts back.
 */
export class LogInWork {
  readonly read: AppendState;
  head: number;
  chain: string;
  serials: Readonly<Record<string, number>>;
  readonly signature: StateSignature;
  readonly operations: OperationRow[] = [];
  readonly events: NewEvent[] = [];
  readonly accepted: AcceptedOperation[] = [];
  readonly #entities = new Map<string, EntityInWork>();
  readonly #eventsById = new Map<string, EventRow>();
  readonly #byRequest = new Map<string, OperationRow>();
  readonly #byAction = new Map<string, OperationRow>();
  readonly #fences = new Map<string, FenceWrite>();
  /** Entities that the operation at hand has touched, as they were before it. */
  readonly #touched = new Map<EntityInWork, Before>();
  #serialsBefore: Readonly<Record<string, number>>;

  constructor(read: AppendState, digest: Digest) {
    this.read = read;
    const { log } = read;
    this.head = log.head;
    this.chain = log.chain;
    this.serials = log.serials;
    this.#serialsBefore = log.serials;
    this.signature = new StateSignature(digest, log.signature);
  }

  // ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

  byRequest(id: string): OperationRow | undefined {
    return this.#byRequest.get(id) ?? this.read.byRequest.get(id);
  }
  byAction(id: string): OperationRow | undefined {
    return this.#byAction.get(id) ?? this.read.byAction.get(id);
  }
  isAccepted(actionId: string): boolean {
    return this.read.accepted.has(actionId) || this.#byAction.has(actionId);
  }
  event(id: string): EventRow | undefined {
    return this.#eventsById.get(id) ?? this.read.events.get(id);
  }
  fence(replica: string): FenceRow | undefined {
    return this.#fences.get(replica) ?? this.read.fences.get(replica);
  }

  entity(type: string, id: string): EntityInWork {
    const key = entityKey(type, id);
    let entity = this.#entities.get(key);
    if (entity === undefined) {
      entity = entityInWork(type, id, this.read);
      this.#entities.set(key, entity);
    }
    return entity;
  }

  /** The definition of a run-time type, as the log in work has it; canonical fields. */
  definition(type: string): string | undefined {
    const own = this.#entities.get(entityKey(RUN_TIME_TYPE, type));
    if (own === undefined || own.version === (own.known?.version ?? 0)) return this.read.types.get(type);
    return own.state === undefined ? undefined : canonical(own.state.fields);
  }

  /** Live run-time types; null where nobody asked. */
  get typeCount(): number | null {
    if (this.read.typeCount === null) return null;
    let count = this.read.typeCount;
    for (const entity of this.#entities.values())
      if (entity.type === RUN_TIME_TYPE)
        count +=
          Number(entity.state !== undefined) - Number(entity.known !== undefined && entity.known.fields !== null);
    return count;
  }

  // ── one operation ───────────────────────────────────────────────────────────────────────────────────────────────

  begin(): void {
    this.#touched.clear();
    this.#serialsBefore = this.serials;
  }

  /** What the entity was before the operation at hand. Call it before the first change. */
  touch(entity: EntityInWork): Before {
    let before = this.#touched.get(entity);
    if (before === undefined) {
      const { version, lastVersion, state, assigned, events } = entity;
      before = { version, lastVersion, state, assigned, eventCount: events.length };
      this.#touched.set(entity, before);
    }
    return before;
  }

  undo(): void {
    for (const [entity, before] of this.#touched) {
      entity.version = before.version;
      entity.lastVersion = before.lastVersion;
      entity.state = before.state;
      entity.assigned = before.assigned;
      entity.events.length = before.eventCount;
    }
    this.#touched.clear();
    this.serials = this.#serialsBefore;
  }

  /** The state signature with the operation at hand; only for one that is accepted. */
  sign(): string {
    for (const [entity, before] of this.#touched) this.signature.replace(before.state, entity.state);
    return this.signature.toHex();
  }

  accept(operation: OperationRow, events: readonly NewEvent[], texts: readonly PageEvent[]): void {
    for (const entity of this.#touched.keys()) entity.isChanged = true;
    this.#touched.clear();
    this.head = operation.firstVersion + operation.count - 1;
    this.chain = (events[events.length - 1] as NewEvent).chain;
    this.operations.push(operation);
    this.accepted.push({ row: operation, events: texts });
    this.#byRequest.set(operation.requestId, operation);
    this.#byAction.set(operation.actionId, operation);
    for (const event of events) {
      this.events.push(event);
      this.#eventsById.set(event.id, event);
    }
  }

  raiseFence(fence: FenceWrite): void {
    this.#fences.set(fence.replica, fence);
  }

  // ── the result ──────────────────────────────────────────────────────────────────────────────────────────────────

  write(): AppendWrite | null {
    if (this.operations.length === 0 && this.#fences.size === 0) return null;
    const entities: EntityRow[] = [];
    for (const entity of this.#entities.values()) if (entity.isChanged) entities.push(rowOf(entity));
    return {
      head: this.head,
      chain: this.chain,
      signature: this.signature.toHex(),
      serials: this.serials === this.read.log.serials ? null : this.serials,
      operations: this.operations,
      events: this.events,
      entities,
      fences: [...this.#fences.values()],
    };
  }
}

export interface EntityInWork {
  readonly type: string;
  readonly id: string;
  version: number;
  lastVersion: number;
  state: EntityState | undefined;
  /** Serial numbers that it was ever given. */
  assigned: JsonObject | null;
  /** In order of entity version; those after the lowest base in the group, then those of the group. */
  readonly events: EntityEvent[];
  /** Who wrote it last, for an absent one. */
  readonly known: EntityRow | undefined;
  isChanged: boolean;
}

interface Before {
  readonly version: number;
  readonly lastVersion: number;
  readonly state: EntityState | undefined;
  readonly assigned: JsonObject | null;
  readonly eventCount: number;
}

function entityInWork(type: string, id: string, read: AppendState): EntityInWork {
  const found = read.entities.get(entityKey(type, id));
  const row = found?.entity;
  return {
    type,
    id,
    version: row?.version ?? 0,
    lastVersion: row?.lastVersion ?? 0,
    state: row === undefined ? undefined : stateOf(row),
    assigned: row?.assigned == null ? null : (JSON.parse(row.assigned) as JsonObject),
    events: (found?.events ?? []).map((event) => new AcceptedEvent(event)),
    known: row,
    isChanged: false,
  };
}

/** The folded state of a stored entity; undefined while it is absent. */
export function stateOf(row: EntityRow): EntityState | undefined {
  if (row.fields === null) return undefined;
  const { type, id, version, createdBy, createdAt, updatedBy, updatedAt, arrival } = row;
  const fields = JSON.parse(row.fields) as JsonObject;
  return { type, id, version, fields, createdBy, createdAt, updatedBy, updatedAt, arrival };
}

function rowOf({ type, id, version, lastVersion, state, assigned, known }: EntityInWork): EntityRow {
  const kept = state ?? known;
  return {
    type,
    id,
    version,
    lastVersion,
    fields: state === undefined ? null : canonical(state.fields),
    createdBy: kept?.createdBy ?? '',
    createdAt: kept?.createdAt ?? '',
    updatedBy: kept?.updatedBy ?? '',
    updatedAt: kept?.updatedAt ?? '',
    arrival: kept?.arrival ?? 0,
    assigned: assigned === null ? null : canonical(assigned),
  };
}

/** An accepted event as merge reads it. Most are the author's own, whose change nobody looks at: it is parsed on demand. */
class AcceptedEvent implements EntityEvent {
  readonly id: string;
  readonly prior: string | null;
  readonly entityVersion: number;
  readonly #draft: string | null;
  #change: Change | null | undefined;

  constructor(row: EventRow) {
    this.id = row.id;
    this.prior = row.prior;
    this.entityVersion = row.entityVersion;
    this.#draft = row.draft;
  }

  get change(): Change | null {
    if (this.#change === undefined)
      this.#change = this.#draft === null ? null : (JSON.parse(this.#draft) as EventDraft).change;
    return this.#change;
  }
}
