import type {
  EntitiesRead,
  EntitiesRows,
  EntityKey,
  EntityRow,
  EventText,
  LogRow,
  MeetRead,
  MeetState,
  MeetVerdict,
  MetLog,
  OperationOutline,
  PageRead,
  PageRows,
  ReplicaRow,
  UsageRow,
} from '../../engine/store-port.ts';
import { readChains, readPermit } from './append.ts';
import { placeAfterLog, placeOf, versionAt } from './format.ts';
import { entityRow, eventText, outlineRow, type SqlRow } from './rows.ts';
import type { FoundLog, WorkspaceFile } from './workspace-file.ts';

/**
 * Reads of one file. The connection belongs to this process alone and every read here is synchronous, so that several
 * statements see one snapshot without a transaction.
 */
export function pageOf(file: WorkspaceFile, logName: string, read: PageRead): PageRows | undefined {
  const log = file.log(logName);
  if (log === undefined) return undefined;
  const from = placeOf(log.key, read.after);
  const operations = outlinesAfter(file, log.key, read);
  const to = read.choose(log.row, operations);
  if (to === null) return { log: log.row, operations, events: [], chains: new Map() };
  const last = placeOf(log.key, to);
  return {
    log: log.row,
    operations,
    events: eventsOf(operations, file.sql.eventTexts.all(from, last) as SqlRow[]),
    chains: new Map(
      (file.sql.chains.all(read.allChains === true ? from : last - 1, last) as SqlRow[]).map((row) => [
        versionAt(row['place'] as number),
        row['chain'] as string,
      ]),
    ),
  };
}

/** The first operation may be larger than everything that was asked for. */
function outlinesAfter(file: WorkspaceFile, log: number, { after, eventsMax }: PageRead): readonly OperationOutline[] {
  const from = placeOf(log, after);
  const rows = file.sql.outlines.all(from, from + eventsMax) as SqlRow[];
  if (rows.length > 0) return rows.map(outlineRow);
  const first = file.sql.operationOf.get(from + 1, placeAfterLog(log)) as SqlRow | undefined;
  return first === undefined ? [] : [outlineRow(first)];
}

/** Both lists are in order, so one walk finds each event's operation. */
function eventsOf(operations: readonly OperationOutline[], rows: readonly SqlRow[]): readonly EventText[] {
  let at = 0;
  return rows.map((row) => {
    const version = versionAt(row['place'] as number);
    let operation = operations[at] as OperationOutline;
    while (version >= operation.firstVersion + operation.count) {
      at += 1;
      operation = operations[at] as OperationOutline;
    }
    return eventText(row, operation);
  });
}

export function entitiesOf(file: WorkspaceFile, logName: string, read: EntitiesRead): EntitiesRows | undefined {
  const log = file.log(logName);
  if (log === undefined) return undefined;
  const after = read.after ?? { type: '', id: '' };
  const rows = (
    read.part === 'run-time-types'
      ? file.sql.entitiesOfType.iterate(log.key, 'holdfast.entity-type', after.id)
      : file.sql.entitiesBut.iterate(log.key, after.type, after.id, 'holdfast.entity-type')
  ) as Iterable<SqlRow>;
  const entities: EntityRow[] = [];
  let bytes = 0;
  let more = false;
  for (const row of rows) {
    const entity = entityRow(row);
    bytes += entity.fields?.length ?? 0;
    if (entities.length === read.max || (entities.length > 0 && bytes > read.bytesMax)) {
      more = true;
      break;
    }
    entities.push(entity);
  }
  return { log: log.row, entities, more };
}

export function entityOf(
  file: WorkspaceFile,
  logName: string,
  { type, id }: EntityKey,
): { readonly log: LogRow; readonly entity: EntityRow | undefined } | undefined {
  const log = file.log(logName);
  if (log === undefined) return undefined;
  const row = file.sql.entity.get(log.key, type, id) as SqlRow | undefined;
  return { log: log.row, entity: row === undefined ? undefined : entityRow(row) };
}

export function historyOf(
  file: WorkspaceFile,
  logName: string,
  read: EntityKey & { readonly after: number; readonly max: number },
): readonly EventText[] | undefined {
  const log = file.log(logName);
  if (log === undefined) return undefined;
  const row = file.sql.entity.get(log.key, read.type, read.id) as SqlRow | undefined;
  if (row === undefined) return [];
  return versionsOf(file, log.key, row['last_version'] as number, read.after)
    .slice(0, read.max)
    .map((version) => {
      const place = placeOf(log.key, version);
      const operation = outlineRow(file.sql.operationOf.get(place, placeAfterLog(log.key)) as SqlRow);
      return eventText(file.sql.eventText.get(place) as SqlRow, operation);
    });
}

/** Log versions of an entity's events after an entity version, oldest first: its list is walked from the newest back. */
function versionsOf(file: WorkspaceFile, log: number, last: number, after: number): readonly number[] {
  const versions: number[] = [];
  for (let version = last; version > 0; ) {
    const row = file.sql.previousOf.get(placeOf(log, version)) as SqlRow;
    if ((row['entity_version'] as number) <= after) break;
    versions.push(version);
    version = row['previous'] as number;
  }
  return versions.reverse();
}

export function replicasOf(file: WorkspaceFile): readonly ReplicaRow[] {
  const proven = new Map<string, Record<string, number>>();
  for (const row of file.sql.proven.all() as SqlRow[]) {
    const replica = row['replica'] as string;
    let versions = proven.get(replica);
    if (versions === undefined) {
      versions = Object.create(null) as Record<string, number>;
      proven.set(replica, versions);
    }
    versions[row['name'] as string] = row['proven'] as number;
  }
  return (file.sql.replicas.all() as SqlRow[]).map((row) => ({
    replica: row['id'] as string,
    account: row['account'] as string,
    generation: row['generation'] as number,
    instance: row['instance'] as string,
    firstSeenAt: row['first_seen_at'] as string,
    lastSeenAt: row['last_seen_at'] as string,
    app: row['app'] as string | null,
    health: row['health'] as string | null,
    proven: proven.get(row['id'] as string) ?? {},
  }));
}

export const usageOf = (file: WorkspaceFile): readonly UsageRow[] =>
  file.logs().map(({ key, row, operations }) => {
    const counts = file.sql.usage.get({ 1: key }) as SqlRow;
    return {
      log: row,
      operations,
      entities: counts['entities'] as number,
      replicas: counts['replicas'] as number,
      bytes: counts['bytes'] as number,
    };
  });

export function recordProvenIn(
  file: WorkspaceFile,
  logName: string,
  proven: readonly { readonly replica: string; readonly version: number }[],
): void {
  file.transact(() => {
    const log = file.log(logName);
    if (log === undefined) return { value: undefined, isChanged: false };
    for (const { replica, version } of proven) file.sql.raiseProven.run(version, log.key, replica);
    return { value: undefined, isChanged: true };
  });
}

/** The fence of one replica, and what a handshake compares, in one transaction. */
export function meetIn<T>(
  file: WorkspaceFile,
  read: MeetRead,
  judge: (state: MeetState | undefined) => MeetVerdict<T>,
): T {
  return file.transact(() => {
    const row = file.sql.replica.get(read.replica) as SqlRow | undefined;
    const generation = (row?.['generation'] as number | undefined) ?? 0;
    const logs = new Map<string, MetLog>();
    const keys = new Map<string, number>();
    for (const wanted of read.logs) {
      const log = file.log(wanted.log);
      if (log === undefined) continue;
      keys.set(wanted.log, log.key);
      logs.set(wanted.log, {
        log: log.row,
        chains: readChains(file, log, wanted.versions),
        signature: signatureAt(file, log, wanted.signatureAt),
        permit: readPermit(file, log.key, read.replica, generation),
      });
    }
    const fence =
      row === undefined
        ? undefined
        : {
            replica: read.replica,
            account: row['account'] as string,
            generation,
            instance: row['instance'] as string,
            permit: 0,
          };
    const { value, write } = judge({ fence, logs });
    if (write === null) return { value, isChanged: false };
    const { account, instance, at, app, health } = write;
    file.sql.putReplica.run(write.replica, account, write.generation, instance, at, at, app, health);
    for (const { log, permit, proven } of write.logs)
      file.sql.putPermit.run(keys.get(log) as number, write.replica, write.generation, permit, proven ?? 0, at);
    return { value, isChanged: true };
  });
}

function signatureAt(file: WorkspaceFile, log: FoundLog, version: number | null): string | null {
  if (version === null || version > log.row.head) return null;
  if (version === log.row.head) return log.row.signature;
  const row = file.sql.signatureAt.get(placeOf(log.key, version)) as SqlRow | undefined;
  return (row?.['signature'] as string | undefined) ?? null;
}
