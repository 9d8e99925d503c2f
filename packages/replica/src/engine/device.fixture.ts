import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  Clock,
  Database,
  Json,
  JsonObject,
  LogStanding,
  Outcome,
  Platform,
  RecordedChange,
  SchemaData,
  StoredEvent,
} from '@holdfast/core';
import { uuidv7 } from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodeDigest } from '../adapters/node/platform.ts';
import { createSeededRandom } from '../testing/seeded-random.ts';
import type { CommitRequest, IngestReport } from './replica-state.ts';
import { type OpenedState, openReplicaState } from './state.ts';
import type { TinyLedger } from './tiny-ledger.fixture.ts';

/** A clock that only a test moves. */
export class HandClock implements Clock {
  ms = Date.parse('2026-01-01T00:00:00.000Z');
  now(): number {
    this.ms += 1;
    return this.ms;
  }
  monotonic(): number {
    return this.ms;
  }
  timer(): () => void {
    return () => undefined;
  }
  soon(run: () => void): void {
    run();
  }
}

export interface DeviceOptions {
  readonly schema: SchemaData;
  /** A path; a file of its own if absent, gone with `remove`. */
  readonly file?: string;
  readonly account?: string;
  readonly seed?: number;
  /** Stands between the engine and SQLite. */
  readonly through?: (database: Database) => Database;
}

/** One replica on a real SQLite database, with the cycle of a sync loop in a few calls and no network. */
export class Device {
  readonly platform: Platform & { readonly clock: HandClock };
  readonly options: DeviceOptions;
  state: OpenedState;
  database: Database;
  readonly file: string;
  readonly #folder: string | null;
  #run = 0;

  constructor(options: DeviceOptions) {
    this.options = options;
    this.#folder = options.file === undefined ? mkdtempSync(join(tmpdir(), 'holdfast-')) : null;
    this.file = options.file ?? join(this.#folder as string, 'replica.db');
    this.platform = { clock: new HandClock(), random: createSeededRandom(options.seed ?? 1), digest: nodeDigest };
    const opened = this.#open();
    this.state = opened.state;
    this.database = opened.database;
  }

  /** As after a kill: the connection goes, the file is opened by a new run of the host. */
  reopen(schema?: SchemaData): void {
    this.database.close();
    const opened = this.#open(schema);
    this.state = opened.state;
    this.database = opened.database;
  }

  remove(): void {
    this.database.close();
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true });
  }

  #open(schema: SchemaData = this.options.schema): { state: OpenedState; database: Database } {
    const { account = 'ana', through = (database) => database } = this.options;
    const database = through(openNodeDatabase({ file: this.file }));
    this.#run += 1;
    const state = openReplicaState({
      database,
      platform: this.platform,
      schema,
      ledger: 'http://ledger',
      account,
      workspace: 'acme',
      hostInstance: String(this.#run).padStart(32, '0'),
    });
    const generation = takeFence(database, String(this.#run).padStart(32, '0'));
    state.takeOver(generation);
    return { state, database };
  }

  newId(): string {
    return uuidv7(this.platform.clock.now(), this.platform.random);
  }

  request(changes: readonly RecordedChange[], more: Partial<CommitRequest> = {}): CommitRequest {
    return { actionId: this.newId(), log: 'main', changes, seen: [], reads: [], ...more };
  }

  /** Commits, and fails the test if that is refused. The action id is returned. */
  commit(changes: readonly RecordedChange[], more: Partial<CommitRequest> = {}): string {
    const request = this.request(changes, more);
    const outcome = this.state.commit(request);
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.fault));
    return request.actionId;
  }

  create(entity: string, fields: JsonObject, id: string = this.newId()): string {
    this.commit([{ do: 'create', entity, id, fields }]);
    return id;
  }
  update(entity: string, id: string, set: JsonObject): string {
    return this.commit([{ do: 'update', entity, id, set }]);
  }
  delete(entity: string, id: string): string {
    return this.commit([{ do: 'delete', entity, id }]);
  }

  /** What an app's query sees: by name in code. */
  row(type: string, id: string): Record<string, Json> | undefined {
    const row = this.database.prepare(`SELECT * FROM "${type}" WHERE id = ?`).get(id);
    return row === undefined ? undefined : ({ ...row } as Record<string, Json>);
  }
  rows(type: string): readonly Record<string, Json>[] {
    return this.database
      .prepare(`SELECT * FROM "${type}" ORDER BY id`)
      .all()
      .map((row) => ({ ...row }) as Record<string, Json>);
  }

  get head(): number {
    return this.state.log('main')?.head ?? 0;
  }

  // ── a sync loop in small ──────────────────────────────────────────────────────────────────────────────────────────

  /** First contact: handshake, scan, catch up, visible. */
  bootstrap(ledger: TinyLedger, pageSize = 100): void {
    this.handshake(ledger);
    this.fetch(ledger, 'bootstrap', pageSize);
  }

  /** One handshake; what it says of the log is recorded. */
  handshake(ledger: TinyLedger): LogStanding {
    const { state } = this;
    const log = state.log('main');
    const standing = ledger.standing(state.positions('main'), log?.stage === 'visible' ? log.signature : undefined);
    state.recordStanding(standing);
    return standing;
  }

  /** State whole, and the events since; `between` happens before each page. */
  fetch(ledger: TinyLedger, purpose: 'bootstrap' | 'repair', pageSize = 100, between: () => void = () => {}): void {
    const { state } = this;
    state.beginBootstrap('main', ledger.through, ledger.epoch, purpose);
    for (
      let cursor = state.bootstrapCursor('main');
      cursor?.scanned === false;
      cursor = state.bootstrapCursor('main')
    ) {
      between();
      good(state.bootstrapPage('main', ledger.statePage(cursor.cursor, pageSize)));
    }
    this.catchUpFetched(ledger);
    state.finishBootstrap('main');
  }

  catchUpFetched(ledger: TinyLedger): void {
    for (;;) {
      const head = this.state.bootstrapCursor('main')?.head ?? 0;
      if (head >= ledger.head) return;
      good(this.state.ingest(ledger.page(head, { limit: 7 }), 'bootstrap'));
    }
  }

  /** HL4: what a person may choose when the history has changed. */
  adopt(ledger: TinyLedger, pageSize = 100): void {
    this.state.adopt('main');
    this.fetch(ledger, 'repair', pageSize);
    this.state.recordStanding(ledger.standing(this.state.positions('main'), this.state.log('main')?.signature));
  }

  pull(ledger: TinyLedger, limit = 512): IngestReport {
    const outcome = this.state.ingest(ledger.page(this.head, { limit }));
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.fault));
    return outcome.value;
  }

  pullAll(ledger: TinyLedger): void {
    for (let round = 0; this.head < ledger.head && round < 1_000; round += 1) this.pull(ledger);
  }

  /** Takes what is due and marks it sending; the request is on its way. */
  take(only?: readonly string[]) {
    return this.state.write(() => {
      const batch = this.state.takePush({
        log: 'main',
        eventsMax: 512,
        bytesMax: 1_000_000,
        nowMs: this.platform.clock.now(),
        ...(only === undefined ? {} : { only }),
      });
      this.state.markSending(batch.operations.map(({ requestId }) => requestId));
      return batch.operations;
    });
  }

  /** The ledger judges; `isAnswered: false` loses the answer, `withEvents: false` answers with results only. */
  push(
    ledger: TinyLedger,
    how: { readonly isAnswered?: boolean; readonly withEvents?: boolean; readonly only?: readonly string[] } = {},
  ): number {
    const operations = this.take(how.only);
    if (operations.length === 0) return 0;
    const { replicaId, account } = this.state.identity;
    const results = ledger.push(operations, { actor: account, replicaId });
    const ids = operations.map(({ requestId }) => requestId);
    if (how.isAnswered === false) {
      this.state.markUnknown(ids, { code: 'request-timeout' }, null);
      return operations.length;
    }
    const position = this.head;
    this.state.write(() => {
      this.state.recordResults('main', results, this.platform.clock.now());
      if (how.withEvents === false) return;
      const outcome = this.state.ingest(ledger.page(position, { requests: new Set(ids), replicaId }));
      if (!outcome.ok) throw new Error(JSON.stringify(outcome.fault));
    });
    return operations.length;
  }

  /** As the coordinator leaves it when an answer did not come. */
  owe(requestId: string): void {
    this.database
      .prepare(
        "INSERT INTO main.hf_obligation (permit, generation, log, class, action, identity, disposition, reason, count, created_at, last_at) VALUES (1, 1, 'main', 'push', 'replay-operation-then-reconcile', ?, 'unknown', 'abandoned', 1, '', '')",
      )
      .run(requestId);
  }

  /** Push and pull until neither moves anything. */
  settle(ledger: TinyLedger): void {
    for (let round = 0; round < 200; round += 1) {
      this.state.resetRetries();
      const before = this.head;
      const sent = this.push(ledger);
      this.pullAll(ledger);
      if (sent === 0 && this.head === before) return;
    }
    throw new Error(
      `it never settles: ${JSON.stringify(this.state.counts())} ${JSON.stringify(this.database.prepare('SELECT seq, action_id, state, held_by, judge_at, rebases, fault, drafts, frame FROM main.hf_outbox').all())}`,
    );
  }
}

function good(outcome: Outcome<unknown>): void {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.fault));
}

/** PM8, as the host's composition does it: a new generation for a new run. */
export function takeFence(database: Database, hostInstance: string): number {
  database
    .prepare('UPDATE main.hf_coordinator SET generation = generation + 1, host_instance = ? WHERE one = 1')
    .run(hostInstance);
  return database.prepare('SELECT generation FROM main.hf_coordinator').get()?.['generation'] as number;
}

export const eventsOf = (ledger: TinyLedger, type: string, id: string): readonly StoredEvent[] =>
  ledger.events.filter((event) => event.entityType === type && event.entityId === id);
