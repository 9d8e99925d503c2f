import {
  type AppendRead,
  type AppendState,
  type AppendVerdict,
  type AppendWrite,
  type EntityEvents,
  type EntityRow,
  type EventRow,
  entityKey,
  type FenceRow,
  type FenceWrite,
  type NewEvent,
  type OperationRow,
} from '../../engine/store-port.ts';
import { NAMES, nameOf, placeOf } from './format.ts';
import { entityRow, eventRow, operationRow, type SqlRow } from './rows.ts';
import type { FoundLog, WorkspaceFile } from './workspace-file.ts';

/** LG1 in one transaction of one file: read what the group needs, let the engine judge, write what it says. */
export function appendTo<T>(
  file: WorkspaceFile,
  logName: string,
  read: AppendRead,
  judge: (state: AppendState | undefined) => AppendVerdict<T>,
): T {
  return file.transact(() => {
    const log = file.log(logName);
    if (log === undefined) return { value: judge(undefined).value, isChanged: false };
    const { state, entityKeys } = readState(file, log, read);
    const { value, write } = judge(state);
    if (write === null) return { value, isChanged: false };
    writeAll(file, log, state, entityKeys, write);
    return { value, isChanged: true };
  });
}

/** SQLite's key of each entity that was read. */
type EntityKeys = Map<string, number>;

// ── read ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function readState(
  file: WorkspaceFile,
  log: FoundLog,
  read: AppendRead,
): { readonly state: AppendState; readonly entityKeys: EntityKeys } {
  const { sql } = file;
  const entityKeys: EntityKeys = new Map();
  const state: AppendState = {
    log: log.row,
    chains: readChains(file, log, read.versions),
    fences: readFences(file, log.key, read.replicas),
    ...readNamed(file, log.key, read),
    entities: readEntities(file, log.key, read, entityKeys),
    types: readTypes(file, log.row.log, read.types),
    typeCount: read.countsTypes
      ? ((sql.countLive.get(log.key, 'holdfast.entity-type') as SqlRow)['n'] as number)
      : null,
  };
  return { state, entityKeys };
}

export function readChains(file: WorkspaceFile, log: FoundLog, versions: readonly number[]): Map<number, string> {
  const chains = new Map<number, string>();
  for (const version of versions) {
    if (version > log.row.head) continue;
    const chain = version === log.row.head ? log.row.chain : file.chainAt(log.key, version);
    if (chain !== null) chains.set(version, chain);
  }
  return chains;
}

function readFences(file: WorkspaceFile, log: number, replicas: readonly string[]): Map<string, FenceRow> {
  const fences = new Map<string, FenceRow>();
  for (const replica of replicas) {
    const row = file.sql.replica.get(replica) as SqlRow | undefined;
    if (row === undefined) continue;
    const generation = row['generation'] as number;
    fences.set(replica, {
      replica,
      account: row['account'] as string,
      generation,
      instance: row['instance'] as string,
      permit: readPermit(file, log, replica, generation),
    });
  }
  return fences;
}

/** The highest permit number of this generation; an older generation's numbers count no more. */
export function readPermit(file: WorkspaceFile, log: number, replica: string, generation: number): number {
  const row = file.sql.permit.get(log, replica) as SqlRow | undefined;
  return row !== undefined && row['generation'] === generation ? (row['number'] as number) : 0;
}

type Named = Pick<AppendState, 'byRequest' | 'byAction' | 'events' | 'accepted'>;

/** Usually nothing: what a push brings is new. Therefore one statement looks for all ids, whatever they name. */
function readNamed(file: WorkspaceFile, log: number, read: AppendRead): Named {
  const byRequest = new Map<string, OperationRow>();
  const byAction = new Map<string, OperationRow>();
  const events = new Map<string, EventRow>();
  const accepted = new Set<string>();
  const requests = new Set(read.requestIds);
  const actions = new Set(read.actionIds);
  const needs = new Set(read.needs);
  const eventIds = new Set(read.eventIds);
  const wanted = [...requests.union(actions).union(needs).union(eventIds)].map(nameOf);
  for (const row of file.sql.names.all(JSON.stringify(wanted)) as SqlRow[]) {
    const { id, log: where, kind, place } = row as { id: string; log: number; kind: number; place: number };
    if (kind === NAMES.action && needs.has(id)) accepted.add(id);
    if (where !== log) continue;
    if (kind === NAMES.request && requests.has(id)) byRequest.set(id, readOperation(file, place));
    if (kind === NAMES.action && actions.has(id)) byAction.set(id, readOperation(file, place));
    if (kind === NAMES.event && eventIds.has(id)) events.set(id, readNamedEvent(file, place));
  }
  return { byRequest, byAction, events, accepted };
}

function readOperation(file: WorkspaceFile, last: number): OperationRow {
  const row = file.sql.operationAt.get(last) as SqlRow;
  return operationRow(row, file.sql.results.all(last - (row['count'] as number), last) as SqlRow[]);
}

function readNamedEvent(file: WorkspaceFile, place: number): EventRow {
  const row = file.sql.namedEvent.get(place) as SqlRow;
  return eventRow(row, row['type'] as string, row['entity_id'] as string);
}

function readEntities(file: WorkspaceFile, log: number, read: AppendRead, keys: EntityKeys): Map<string, EntityEvents> {
  const found = new Map<string, EntityEvents>();
  for (const wanted of read.entities) {
    const row = file.sql.entity.get(log, wanted.type, wanted.id) as SqlRow | undefined;
    if (row === undefined) continue;
    const name = entityKey(wanted.type, wanted.id);
    const key = row['key'] as number;
    keys.set(name, key);
    const entity = entityRow(row);
    found.set(name, { entity, events: readTheirs(file, log, entity, wanted.after, wanted.theirsMax) });
  }
  return found;
}

/** From the newest back. Nothing is looked up for an author who saw the newest version: the usual case. */
function readTheirs(
  file: WorkspaceFile,
  log: number,
  entity: EntityRow,
  after: number | null,
  max: number,
): readonly EventRow[] {
  const found: EventRow[] = [];
  if (after === null) return found;
  let version = entity.lastVersion;
  for (let left = Math.min(max, entity.version - after); left > 0 && version > 0; left -= 1) {
    const row = file.sql.eventAt.get(placeOf(log, version)) as SqlRow;
    found.push(eventRow(row, entity.type, entity.id));
    version = row['previous'] as number;
  }
  return found.reverse();
}

function readTypes(file: WorkspaceFile, log: string, types: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const type of types) {
    const row = file.sql.typeDefinition.get(log, 'holdfast.entity-type', type) as SqlRow | undefined;
    if (row !== undefined) found.set(type, row['fields'] as string);
  }
  return found;
}

// ── write ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function writeAll(
  file: WorkspaceFile,
  log: FoundLog,
  state: AppendState,
  keys: EntityKeys,
  { entities, operations, events, serials, fences }: AppendWrite,
): void {
  for (const entity of entities) writeEntity(file, log.key, keys, entity);
  const names: unknown[] = [];
  let at = 0;
  for (const [nth, operation] of operations.entries()) {
    const { firstVersion, count, requestId, actionId } = operation;
    const last = placeOf(log.key, firstVersion + count - 1);
    names.push([...nameOf(requestId), NAMES.request, last], [...nameOf(actionId), NAMES.action, last]);
    for (const end = at + count; at < end; at += 1) {
      const event = events[at] as NewEvent;
      names.push([...nameOf(event.id), NAMES.event, placeOf(log.key, event.version)]);
      writeEvent(file, log, keys, event, at === end - 1 ? { ...operation, nth: log.operations + nth + 1 } : null);
    }
  }
  if (names.length > 0) file.sql.addNames.run(log.key, JSON.stringify(names));
  if (serials !== null) file.sql.setSerials.run(JSON.stringify(serials), log.key);
  for (const fence of fences) writeFence(file, log.key, state.fences.get(fence.replica), fence);
}

/** `ends` is the operation whose last event this is. */
function writeEvent(
  { sql }: WorkspaceFile,
  log: FoundLog,
  keys: EntityKeys,
  event: NewEvent,
  ends: (OperationRow & { readonly nth: number }) | null,
): void {
  const place = placeOf(log.key, event.version);
  const entity = keys.get(entityKey(event.entityType, event.entityId)) as number;
  const { entityVersion, previous, chain, assigned, draft } = event;
  if (ends === null) {
    sql.addEvent.run(place, entity, entityVersion, previous, chain, assigned, draft);
    return;
  }
  sql.addLastEvent.run(
    place,
    entity,
    entityVersion,
    previous,
    chain,
    assigned,
    draft,
    ends.count,
    ends.nth,
    ends.requestId,
    ends.actionId,
    ends.identity,
    ends.replicaId,
    ends.actor,
    ends.recordedAt,
    ends.origin,
    ends.signature,
    ends.bytes,
    ends.partEvents,
  );
}

function writeEntity(file: WorkspaceFile, log: number, keys: EntityKeys, entity: EntityRow): void {
  const { sql } = file;
  const name = entityKey(entity.type, entity.id);
  const key = keys.get(name);
  const { version, lastVersion, fields, createdBy, createdAt, updatedBy, updatedAt, arrival, assigned } = entity;
  if (key !== undefined) {
    sql.changeEntity.run(
      version,
      lastVersion,
      fields,
      createdBy,
      createdAt,
      updatedBy,
      updatedAt,
      arrival,
      assigned,
      key,
    );
    return;
  }
  const added = sql.addEntity.run(
    log,
    entity.type,
    entity.id,
    version,
    lastVersion,
    fields,
    createdBy,
    createdAt,
    updatedBy,
    updatedAt,
    arrival,
    assigned,
  );
  keys.set(name, Number(added.lastInsertRowid));
}

function writeFence(file: WorkspaceFile, log: number, known: FenceRow | undefined, fence: FenceWrite): void {
  const { replica, account, generation, instance, permit, proven, at } = fence;
  if (known === undefined || known.generation !== generation || known.instance !== instance)
    file.sql.putReplica.run(replica, account, generation, instance, at, at, null, null);
  file.sql.putPermit.run(log, replica, generation, permit, proven ?? 0, at);
}
