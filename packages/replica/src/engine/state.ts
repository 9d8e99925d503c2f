import {
  type Database,
  type FaultCode,
  type Json,
  type Outcome,
  ok,
  type Platform,
  randomHex,
  type SchemaData,
} from '@holdfast/core';
import { BootstrapState } from './bootstrap-state.ts';
import { commitInside } from './commit.ts';
import { DeskWriter } from './desk.ts';
import { FaultError } from './fault-error.ts';
import { type FileOwner, openFile, syncedToMedium } from './file.ts';
import { ingestInside } from './ingest.ts';
import { createJournal } from './journal-store.ts';
import { Judge } from './judge.ts';
import { LocalEntities } from './local.ts';
import { Logs } from './logs.ts';
import { LostWork } from './lost-work.ts';
import { forgetLogsThatDoNotFit } from './open-check.ts';
import { Outbox } from './outbox.ts';
import { BY_ACTION, indexOutbox } from './outbox-index.ts';
import { packOf, unpackInside } from './pack.ts';
import { carryOutUnsentWishes, carryOutWishes, discardInside, type PeopleParts, resolveInside } from './people.ts';
import { releaseHeldByNothing } from './release-held.ts';
import type { ActionOutcome, CommitReceipt, ReplicaIdentity, ReplicaState } from './replica-state.ts';
import { ReplicaStore } from './replica-store.ts';
import { prune } from './retention.ts';
import { storedEvents } from './stored-events.ts';
import { redoInside, rememberUndo, undoInside, undoScopeOf, undoState } from './undo.ts';

export interface ReplicaStateParts extends FileOwner {
  readonly database: Database;
  readonly platform: Platform;
  readonly schema: SchemaData;
  /** 32 random hex digits: this run of the host. */
  readonly hostInstance: string;
  /** Logs to follow from the start. `main` always is. */
  readonly logs?: readonly string[];
}

/** A replica's state, and what only its composition root needs of it. */
export interface OpenedState extends ReplicaState {
  readonly store: ReplicaStore;
  /** Taken over, in the transaction that raises it (PM8): from then on the fence is ours. */
  takeOver(generation: number): void;
  readonly isNew: boolean;
  /** Repair: lets go what is held by a batch that is not here any more (ST2). Action ids. */
  releaseHeld(): readonly string[];
}

/** The fence, and a defect: nobody decided, and whoever asked cannot mend it. */
const NO_REFUSAL: ReadonlySet<FaultCode> = new Set(['outranked', 'engine-fault']);

/**
 * Opens a replica's file. At rest until `takeOver`: whoever composes the host raises the generation first, through the
 * coordinator, so that nothing is written by a host that is not the newest.
 *
 * Throws `FaultError`: `replica-too-new`, `replica-damaged`, `other-account`.
 */
export function openReplicaState(parts: ReplicaStateParts): OpenedState {
  const { database, platform } = parts;
  const { isNew } = openFile(database, platform, parts);
  indexOutbox(database);
  const store = new ReplicaStore({
    database,
    platform,
    schema: parts.schema,
    hostInstance: parts.hostInstance,
    account: parts.account,
  });
  const desk = new DeskWriter(store);
  const outbox = new Outbox(store, desk);
  const judge = new Judge({ store, outbox, desk });
  const lost = new LostWork({ store, outbox, judge });
  const logs = new Logs({ store, outbox, lost });
  const bootstrap = new BootstrapState({ store, outbox, logs, lost, desk });
  const journal = createJournal(store);
  let entities = new LocalEntities(store);
  store.onRollback(() => {
    entities = new LocalEntities(store);
    outbox.forget();
  });
  const people = (): PeopleParts => ({ store, entities, outbox, desk, judge });
  let depth = 0;
  /** A transaction that leaves every entity it touched written. */
  const writing = <T>(work: () => T): T => {
    depth += 1;
    try {
      return store.write(() => {
        const result = work();
        carryOutWishes(people());
        entities.flush();
        if (store.followDefinitions()) entities.forget();
        return result;
      });
    } finally {
      depth -= 1;
      if (depth === 0) outbox.forget();
    }
  };
  /** A refusal is a value, and nothing is left of what was refused: inside another transaction it undoes all of that. */
  const deciding = <T>(work: () => T): Outcome<T> => {
    try {
      return ok(writing(work));
    } catch (cause) {
      const isRefusal = cause instanceof FaultError && !NO_REFUSAL.has(cause.fault.code);
      if (isRefusal && depth === 0) return { ok: false, fault: cause.fault };
      throw cause;
    }
  };
  /** Up to which version everything that the ledger has is here. */
  const readableOf = (log: string): number => {
    const { head = 0, ledgerHead = null } = logs.get(log) ?? {};
    return ledgerHead !== null && head >= ledgerHead ? Number.MAX_SAFE_INTEGER : head;
  };
  const headOf = (log: string): number => logs.get(log)?.head ?? 0;

  return {
    store,
    isNew,
    types: () => Object.fromEntries(store.runTimeTypes),
    typeFaults: () => store.typeFaults(),
    get identity(): ReplicaIdentity {
      return {
        replicaId: outbox.replicaId,
        ledger: parts.ledger,
        account: parts.account,
        workspace: parts.workspace,
        generation: store.generation,
        hostInstance: parts.hostInstance,
      };
    },
    takeOver: (generation) => {
      store.generation = generation;
      indexOutbox(database);
      store.openTables();
      entities = new LocalEntities(store);
      writing(() => {
        for (const log of new Set(['main', ...(parts.logs ?? [])])) if (logs.get(log) === undefined) logs.follow(log);
        for (const log of forgetLogsThatDoNotFit(store)) journal.write('log-forgotten', { log });
      });
    },
    prune: () => writing(() => prune(store)),
    write: (work) => writing(work),
    read: (work) => store.read(work),
    onChange: (listener) => store.onChange(listener),

    logs: () => logs.all(),
    log: (name) => logs.get(name),
    follow: (log) => writing(() => logs.follow(log)),
    unfollow: (log) => writing(() => logs.unfollow(log)),
    positions: (log) => logs.positions(log),
    positionsBetween: (log, above, below) => logs.positionsBetween(log, above, below),
    recordStanding: (standing) => writing(() => logs.recordStanding(entities, standing)),
    block: (log, fault) => writing(() => logs.block(log, fault)),
    adopt: (log) => writing(() => logs.adopt(log)),
    renewReplicaId: () =>
      syncedToMedium(database, () =>
        writing(
          () =>
            void database
              .prepare('UPDATE main.hf_coordinator SET replica_id = ? WHERE one = 1')
              .run(randomHex(platform.random, 16)),
        ),
      ),

    commit: (request) =>
      deciding((): CommitReceipt => {
        const { receipt, inverse } = commitInside({ store, entities }, request);
        if (!receipt.repeated && undoScopeOf(request) !== null) rememberUndo(people(), request, inverse());
        return receipt;
      }),
    outcome: (actionId) => outcomeOf(store, actionId),

    takePush: (request) =>
      writing(() => {
        carryOutUnsentWishes(people(), request.log);
        judge.judgeDue(entities, request.log, readableOf(request.log));
        entities.flush();
        return outbox.sending.takePush(request);
      }),
    answeredSince: (requestIds) => outbox.sending.answeredSince(requestIds),
    markSending: (requestIds) => writing(() => outbox.sending.markSending(requestIds)),
    markUnknown: (requestIds, fault, retryAtMs) =>
      writing(() => outbox.sending.markUnknown(requestIds, fault, retryAtMs)),
    recordResults: (log, results, nowMs) =>
      writing(() => {
        outbox.answers.recordResults(entities, results, nowMs, headOf(log));
        judge.judgeDue(entities, log, headOf(log));
      }),
    nextRetryAtMs: (log) => outbox.sending.nextRetryAtMs(log),
    resetRetries: () => writing(() => outbox.sending.resetRetries()),
    flowing: (log) => outbox.flowing(log),
    newestFlowing: (log) => outbox.newestFlowing(log),
    isFlowing: (log, upTo) => outbox.isFlowing(log, upTo),
    counts: () => outbox.counts(),

    ingest: (page, into) =>
      writing(() => (into === 'bootstrap' ? bootstrap.ingest(page) : ingestInside({ ...people() }, page))),
    beginBootstrap: (log, from, epoch, purpose) => {
      writing(() => bootstrap.begin(log, from, epoch, purpose));
    },
    bootstrapPage: (log, page) => writing(() => bootstrap.page(log, page)),
    bootstrapCursor: (log) => bootstrap.progress(log),
    bootstrapSignature: (log) => bootstrap.signature(log),
    finishBootstrap: (log) => writing(() => bootstrap.finish(log, entities)),
    discardBootstrap: (log) => writing(() => bootstrap.discard(log)),

    desk: () => desk.list((actionId) => heldCount(store, actionId)),
    resolve: (request) => deciding(() => resolveInside(people(), request)),
    discard: (ids) => deciding(() => discardInside(people(), ids)),
    releaseHeld: () => writing(() => releaseHeldByNothing({ store, entities, outbox })),
    undo: (scope, options) => deciding(() => undoInside(people(), scope, options)),
    redo: (scope) => deciding(() => redoInside(people(), scope)),
    undoState: (scope) => store.read(() => undoState({ store }, scope)),
    history: ({ log, type, id }) => storedEvents(store, log, type, id),

    pack: () => packOf(store),
    unpack: (bytes) => {
      const taken = deciding(() => {
        const outcome = unpackInside({ store, entities, outbox }, bytes);
        if (!outcome.ok) throw new FaultError(outcome.fault);
        return outcome.value;
      });
      return taken;
    },
    journal,
    setting: (name) => {
      const row = database.prepare('SELECT value FROM main.hf_setting WHERE name = ?').get(`app/${name}`);
      return row === undefined ? undefined : (JSON.parse(row['value'] as string) as Json);
    },
    setSetting: (name, value) =>
      writing(
        () =>
          void database
            .prepare('INSERT OR REPLACE INTO main.hf_setting (name, value) VALUES (?, ?)')
            .run(`app/${name}`, JSON.stringify(value)),
      ),
    close: () => database.close(),
  };
}

function outcomeOf(store: ReplicaStore, actionId: string): ActionOutcome | undefined {
  const row = store.database
    .prepare(`SELECT seq, state, held_by, fault FROM main.hf_outbox WHERE ${BY_ACTION}`)
    .get(actionId);
  if (row !== undefined) {
    const fault =
      row['fault'] === null
        ? { code: 'needs-attention' as const }
        : (JSON.parse(row['fault'] as string) as { code: 'needs-attention' });
    if (row['state'] === 'refused') return { state: 'refused', fault };
    if (row['state'] === 'parked' || row['state'] === 'lost' || row['held_by'] !== null)
      return { state: 'needs-attention', fault };
    return { state: 'pending', seq: row['seq'] as number };
  }
  const closed = store.database.prepare('SELECT outcome FROM main.hf_outcome WHERE action_id = ?').get(actionId);
  return closed === undefined ? undefined : (JSON.parse(closed['outcome'] as string) as ActionOutcome);
}

const heldCount = (store: ReplicaStore, actionId: string): number =>
  (store.database.prepare('SELECT count(*) AS n FROM main.hf_outbox WHERE held_by = ?').get(actionId)?.['n'] as
    | number
    | undefined) ?? 0;
