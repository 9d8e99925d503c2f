import { expect } from 'vitest';
import {
  type AppendRead,
  type AppendState,
  type AppendWrite,
  type EntityRow,
  entityKey,
  type LedgerStore,
  type LogRow,
  type NewEvent,
  type NewLog,
  type OperationRow,
} from '../../packages/ledger/src/engine/store-port.ts';

/** Rows as the engine would write them, for the contract of ledger stores. */
export const AT = '2026-11-30T00:00:00.000Z';
export const REF = { workspace: 'acme', log: 'main' };
export const digestOf = (name: string | number): string => String(name).padStart(64, '0');

export const newLog = (name = 'a'): NewLog => ({
  identity: digestOf(`1d${name}`),
  epoch: `epoch-${name}`,
  chain: digestOf(0),
  signature: digestOf(0),
  createdAt: AT,
});

export const NOTHING: AppendRead = {
  versions: [],
  replicas: [],
  requestIds: [],
  actionIds: [],
  needs: [],
  eventIds: [],
  entities: [],
  types: [],
  countsTypes: false,
};

/** One operation's rows on top of a log, as the engine would write them. */
export interface Made {
  readonly operation: OperationRow;
  readonly events: readonly NewEvent[];
  readonly entities: readonly EntityRow[];
}

export interface MadeEvent {
  readonly id: string;
  readonly type?: string;
  readonly entity: string;
  readonly entityVersion: number;
  readonly previous?: number;
  readonly prior?: string;
  readonly draft?: string;
  readonly fields?: string | null;
  readonly assigned?: string;
}

/** As much of one as a store may read. */
export const draftOf = ({ id, prior }: MadeEvent): string => JSON.stringify({ id, prior });

export function make(
  head: number,
  requestId: string,
  events: readonly MadeEvent[],
  more: Partial<OperationRow> = {},
): Made {
  const rows = events.map(
    (event, at): NewEvent => ({
      id: event.id,
      version: head + 1 + at,
      entityType: event.type ?? 'issue',
      entityId: event.entity,
      entityVersion: event.entityVersion,
      previous: event.previous ?? 0,
      prior: event.prior ?? null,
      draft: event.draft ?? draftOf(event),
      assigned: event.assigned ?? null,
      chain: digestOf(head + 1 + at),
    }),
  );
  const entities = new Map<string, EntityRow>();
  for (const [at, event] of events.entries())
    entities.set(entityKey(event.type ?? 'issue', event.entity), {
      type: event.type ?? 'issue',
      id: event.entity,
      version: event.entityVersion,
      lastVersion: head + 1 + at,
      fields: event.fields === undefined ? '{"title":"one"}' : event.fields,
      createdBy: 'ana',
      createdAt: AT,
      updatedBy: 'ana',
      updatedAt: AT,
      arrival: head + 1 + at,
      assigned: event.assigned ?? null,
    });
  const given = events.filter(({ assigned }) => assigned !== undefined);
  const operation: OperationRow = {
    firstVersion: head + 1,
    count: events.length,
    requestId,
    actionId: `action of ${requestId}`,
    identity: digestOf('9'),
    replicaId: 'replica',
    actor: 'ana',
    recordedAt: AT,
    origin: null,
    signature: digestOf(`5${head}`),
    bytes: 100,
    partEvents: null,
    entityVersions: events.map(({ entityVersion }) => entityVersion),
    assigned:
      given.length === 0
        ? null
        : Object.fromEntries(given.map(({ id, assigned }) => [id, JSON.parse(assigned as string)])),
    ...more,
  };
  return { operation, events: rows, entities: [...entities.values()] };
}

export function writeOf(log: LogRow, made: readonly Made[], more: Partial<AppendWrite> = {}): AppendWrite {
  const events = made.flatMap((one) => one.events);
  const last = events[events.length - 1];
  return {
    head: last?.version ?? log.head,
    chain: last?.chain ?? log.chain,
    signature: made[made.length - 1]?.operation.signature ?? log.signature,
    serials: null,
    operations: made.map((one) => one.operation),
    events,
    entities: made.flatMap((one) => one.entities),
    fences: [],
    ...more,
  };
}

export const reading = (read: Partial<AppendRead>): AppendRead => ({ ...NOTHING, ...read });

/** Appends one operation of events after the present head, reading what its entities need. */
export const append = async (
  store: LedgerStore,
  requestId: string,
  events: readonly MadeEvent[],
  more: Partial<AppendWrite> = {},
  ref = REF,
): Promise<void> => {
  const entities = events.map(({ type, entity }) => ({ type: type ?? 'issue', id: entity, after: null, theirsMax: 0 }));
  await store.append(
    ref,
    reading({ entities, replicas: (more.fences ?? []).map(({ replica }) => replica) }),
    (state) => {
      const { log } = state as AppendState;
      return { value: undefined, write: writeOf(log, [make(log.head, requestId, events)], more) };
    },
  );
};

/** Looks, and changes nothing. */
export const look = async (store: LedgerStore, read: Partial<AppendRead>, ref = REF): Promise<AppendState> => {
  const state = await store.append(ref, reading(read), (found) => ({ value: found, write: null }));
  expect(state).toBeDefined();
  return state as AppendState;
};

export const wholePage = async (store: LedgerStore, after: number, to: number | null = null) =>
  store.page(REF, {
    after,
    eventsMax: 1_000,
    allChains: true,
    choose: (_log, operations) => {
      const last = operations[operations.length - 1];
      return to ?? (last === undefined ? null : last.firstVersion + last.count - 1);
    },
  });
