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
  type OperationRow,
} from '../../engine/store-port.ts';
import { placeOf } from './format.ts';
import { entityRow, eventRow, operationRow, type SqlRow } from './rows.ts';
import type { WorkspaceFile } from './workspace-file.ts';

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
    writeAll(file, log.key, state, entityKeys, write);
    return { value, isChanged: true };
  });
}

type FoundLog = NonNullable<ReturnType<WorkspaceFile['log']>>;
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
  const accepted = new Set<string>();
  for (const action of read.needs) if (sql.actionAnywhere.get(action) !== undefined) accepted.add(action);
  const state: AppendState = {
    log: log.row,
    chains: readChains(file, log, read.versions),
    fences: readFences(file, log.key, read.replicas),
    byRequest: readOperations(file, read.requestIds, (id) => sql.operationByRequest.get(id, log.key)),
    byAction: readOperations(file, read.actionIds, (id) => sql.operationByAction.get(id, log.key)),
    accepted,
    events: readEvents(file, log.key, read.eventIds),
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

function readOperations(
  file: WorkspaceFile,
  ids: readonly string[],
  find: (id: string) => unknown,
): Map<string, OperationRow> {
  const found = new Map<string, OperationRow>();
  for (const id of ids) {
    const row = find(id) as SqlRow | undefined;
    if (row === undefined) continue;
    const last = row['last_place'] as number;
    const events = file.sql.results.all(last - (row['count'] as number), last) as SqlRow[];
    found.set(id, operationRow(row, events));
  }
  return found;
}

function readEvents(file: WorkspaceFile, log: number, ids: readonly string[]): Map<string, EventRow> {
  const found = new Map<string, EventRow>();
  for (const id of ids) {
    const row = file.sql.eventById.get(id, log) as SqlRow | undefined;
    if (row !== undefined) found.set(id, eventRow(row, row['type'] as string, row['entity_id'] as string));
  }
  return found;
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

function writeAll(file: WorkspaceFile, log: number, state: AppendState, keys: EntityKeys, write: AppendWrite): void {
  const { sql } = file;
  for (const entity of write.entities) writeEntity(file, log, keys, entity);
  for (const event of write.events)
    sql.addEvent.run(
      placeOf(log, event.version),
      log,
      event.id,
      keys.get(entityKey(event.entityType, event.entityId)) as number,
      event.entityVersion,
      event.previous,
      event.prior,
      event.assigned,
      event.chain,
      event.draft,
    );
  for (const operation of write.operations)
    sql.addOperation.run(
      placeOf(log, operation.firstVersion + operation.count - 1),
      log,
      operation.count,
      operation.requestId,
      operation.actionId,
      operation.identity,
      operation.replicaId,
      operation.actor,
      operation.recordedAt,
      operation.origin,
      operation.signature,
      operation.bytes,
      operation.partEvents,
    );
  if (write.operations.length > 0)
    sql.moveHead.run(write.head, write.chain, write.signature, JSON.stringify(write.serials ?? state.log.serials), log);
  for (const fence of write.fences) writeFence(file, log, state.fences.get(fence.replica), fence);
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
