import type { JsonObject } from '@holdfast/core';
import type {
  EntityRow,
  EpochRow,
  EventRow,
  EventText,
  LogRow,
  OperationOutline,
  OperationRow,
} from '../../engine/store-port.ts';
import { versionAt } from './format.ts';

/** Between SQLite's rows and the port's: names and arithmetic, nothing else. */
export type SqlRow = Record<string, unknown>;

/** `last` is the log's last event; a log without one stands as it was made. */
export const logRow = (row: SqlRow, last: SqlRow | undefined, epochs: readonly EpochRow[]): LogRow => ({
  log: row['name'] as string,
  identity: row['identity'] as string,
  head: last === undefined ? 0 : versionAt(last['place'] as number),
  chain: (last ?? row)['chain'] as string,
  signature: (last ?? row)['signature'] as string,
  epochs,
  state: row['state'] as LogRow['state'],
  movedTo: row['moved_to'] as string | null,
  serials: JSON.parse(row['serials'] as string) as Record<string, number>,
  createdAt: row['created_at'] as string,
});

export function outlineRow(row: SqlRow): OperationOutline {
  const count = row['count'] as number;
  return {
    firstVersion: versionAt(row['place'] as number) - count + 1,
    count,
    requestId: row['request_id'] as string,
    actionId: row['action_id'] as string,
    replicaId: row['replica_id'] as string,
    actor: row['actor'] as string,
    recordedAt: row['recorded_at'] as string,
    origin: row['origin'] as string | null,
    signature: row['signature'] as string,
    bytes: row['bytes'] as number,
    partEvents: row['part_events'] as number | null,
  };
}

/** `events` are the operation's own, in order. */
export function operationRow(row: SqlRow, events: readonly SqlRow[]): OperationRow {
  const given = events.filter((event) => event['assigned'] !== null);
  return {
    ...outlineRow(row),
    identity: row['identity'] as string,
    entityVersions: events.map((event) => event['entity_version'] as number),
    assigned:
      given.length === 0
        ? null
        : Object.fromEntries(
            given.map((event) => [event['id'] as string, JSON.parse(event['assigned'] as string) as JsonObject]),
          ),
  };
}

export const eventRow = (row: SqlRow, entityType: string, entityId: string): EventRow => ({
  id: row['id'] as string,
  version: versionAt(row['place'] as number),
  entityType,
  entityId,
  entityVersion: row['entity_version'] as number,
  prior: row['prior'] as string | null,
  draft: row['draft'] as string | null,
});

export const eventText = (row: SqlRow, operation: OperationOutline): EventText => ({
  version: versionAt(row['place'] as number),
  entityVersion: row['entity_version'] as number,
  draft: row['draft'] as string | null,
  leaf: row['leaf'] as string | null,
  assigned: row['assigned'] as string | null,
  operation,
});

export const entityRow = (row: SqlRow): EntityRow => ({
  type: row['type'] as string,
  id: row['id'] as string,
  version: row['version'] as number,
  lastVersion: row['last_version'] as number,
  fields: row['fields'] as string | null,
  createdBy: row['created_by'] as string,
  createdAt: row['created_at'] as string,
  updatedBy: row['updated_by'] as string,
  updatedAt: row['updated_at'] as string,
  arrival: row['arrival'] as number,
  assigned: row['assigned'] as string | null,
});
