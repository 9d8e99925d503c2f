import { rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Database,
  type EventDraft,
  keyedId,
  type Platform,
  type RecordedChange,
  recordCommit,
  type Schema,
  type SchemaData,
  type SeenValue,
  schemaData,
  type Tx,
  uuidv7,
  type WireRequest,
  type WireResponse,
} from '@holdfast/core';
import {
  createDeviceNetwork,
  type DeviceClock,
  type DeviceNetwork,
  type LedgerEndpoint,
  type SeededRandom,
  type VirtualTime,
} from '@holdfast/replica/testing';
import {
  createEngineDevice,
  type EngineDevice,
  FailingDatabase,
  FailPlan,
  openNodeDatabase,
} from '@holdfast/replica/testing/engine';
import { watchAside } from './aside.ts';
import { watchOutbox } from './cells.ts';
import { type Disk, onDisk, unlessFull } from './disk.ts';
import { cutsOf, type JournalMark, markOf, watchSyncs } from './power.ts';
import { keepingPushes, type SentPush } from './repeat.ts';
import type { Violation } from './violation.ts';
import { owedNothing, type RowWatch, watchRows } from './watch-rows.ts';
import { createSentWatch, type SentWatch } from './watch-sent.ts';

/**
 * One device of a world: the real replica engine on a real SQLite file. It can crash, restart, be copied, wake up as it was
 * yesterday. What a person did on it is recorded outside, so that nothing it forgets can hide.
 */
export interface SimulatedDevice<S extends Schema> {
  readonly name: string;
  readonly account: string;
  readonly network: DeviceNetwork;
  readonly clock: DeviceClock;
  readonly file: string;
  readonly engine: EngineDevice | null;
  /** Its disk. While it is full, every statement that writes fails as SQLite fails. */
  readonly disk: Disk;
  /** The newest pushes that left it. */
  readonly pushes: readonly SentPush[];
  /** Where each log of its file stood when it was looked at last, and by which run of the host. */
  readonly seenAt: Map<string, { readonly engine: EngineDevice; readonly epoch: string | null; readonly head: number }>;
  /** Somebody on the way who answers in the ledger's place, or changes what it says. Null: nobody. */
  meddler: Meddler | null;
  /** Looks at each request as it leaves. */
  readonly sent: SentWatch;
  /** What was seen while it worked. Taken once. */
  takeFlaws(): readonly Violation[];
  /** What it shows to the ledger: another one after each sign-in. */
  readonly token: string;
  signIn(): void;
  /** Action ids of commits that resolved: durable here, for ever (I01). */
  readonly resolved: Set<string>;
  /** What each of them said, as it was first written. */
  readonly said: ReadonlyMap<string, readonly EventDraft[]>;
  /** What a copied file brought along: also another device's to answer for. */
  readonly inherited: Set<string>;
  /** Actions that two files of one account may close each in its own way: a copy, or yesterday's file. */
  readonly mayBeBoth: Set<string>;
  /** Actions that waited for a person, or for work that did. */
  readonly waited: Set<string>;
  /** From now on it answers for this commit (I01). */
  isDurable(actionId: string): void;
  /** Told once when the host that runs now is gone. */
  readonly whenGone: Set<() => void>;
  /** The file is kept as it is now; `forget`: it is back at that moment, and what came since is not this file's. */
  keep(): void;
  forget(): void;
  /** The process dies at its n-th statement from now, before or after that took effect. */
  killSoon(nth: number, isRunFirst: boolean): void;
  /** It is dead, or goes on to live. */
  calmDown(): void;
  /** Where its journal would end if the power went now. */
  withoutPower(): ReturnType<typeof cutsOf>;
  /** The journal ended there: what was committed later is not this file's. Gives how many commits that were. */
  forgetAfter(bytes: number): number;
  /** How its next starts open the file, for a test that stands between the engine and SQLite. Null: as usual. */
  openDatabase: ((file: string) => Database) | null;
  /** In the log `main` unless said otherwise. */
  commit<T>(build: (tx: Tx<S>) => T, log?: string): string | null;
  /** Whatever work this makes is durable from then on: accounted for to the end, and shown at once. */
  making<T>(run: () => T): T;
  /** The label of the commit that a person takes back, or makes again (CM7). Null: there is none, or it was refused. */
  takeBack(how: 'redo' | { readonly skipChanged: boolean }): string | null;
  /** What an app would commit, under a new action id. Null: its schema refuses it. */
  record<T>(build: (tx: Tx<S>) => T): {
    readonly actionId: string;
    readonly changes: readonly RecordedChange[];
    readonly seen: readonly SeenValue[];
  } | null;
  /** Another host opens the same file and is this device's from now on. Returns the one that still runs, outranked. */
  takeOver(): EngineDevice | null;
  start(): void;
  crash(): void;
  close(): Promise<void>;
}

/** `honest` asks the ledger, as if nobody stood between, or with what `other` changes of the request. */
export type Meddler = (
  request: { readonly url: string } & WireRequest,
  honest: (other?: Partial<{ readonly url: string } & WireRequest>) => Promise<WireResponse>,
) => Promise<WireResponse>;

export interface DeviceParts<S extends Schema> {
  readonly name: string;
  readonly account: string;
  readonly schema: S;
  readonly folder: string;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly platform: Pick<Platform, 'digest'>;
  readonly ledger: () => LedgerEndpoint;
  /** Followed besides `main`. */
  readonly logs?: readonly string[];
  /** `killSoon` will be called. */
  readonly mayBeKilled?: boolean;
  /** `withoutPower` will be called. */
  readonly mayLosePower?: boolean;
  /** Stands between the engine and SQLite. */
  readonly through?: (database: Database) => Database;
}

export function createSimulatedDevice<S extends Schema>(parts: DeviceParts<S>): SimulatedDevice<S> {
  const { name, schema, time, random, through = (database) => database } = parts;
  const data: SchemaData = schemaData(schema);
  const network = createDeviceNetwork({ time, random: random.fork('network'), ledger: parts.ledger });
  const file = join(parts.folder, `${name}.sqlite`);
  const resolved = new Set<string>();
  const said = new Map<string, readonly EventDraft[]>();
  const inherited = new Set<string>();
  const pushes: SentPush[] = [];
  const flaws: Violation[] = [];
  const flawed = (of: Omit<Violation, 'device'>): void => void flaws.push({ ...of, device: name });
  const sent = createSentWatch(flawed);
  const rows = new Map<EngineDevice, RowWatch>();
  let newestGeneration = 0;
  const fetch = keepingPushes((url, request) => {
    const { meddler } = self;
    return meddler === null
      ? network.fetch(url, request)
      : meddler({ url, ...request }, (other = {}) => network.fetch(other.url ?? url, { ...request, ...other }));
  }, pushes);
  const disk: Disk = { isFull: false };
  let signIns = 0;
  const tokenNow = () => `${parts.account}/writer/${name}-${signIns}`;
  const mayBeBoth = new Set<string>();
  const waited = new Set<string>();
  let kept: ReadonlySet<string> = new Set();
  const plan = new FailPlan();
  let synced: JournalMark = { salt: '', bytes: 0 };
  let endedAt: JournalMark = synced;
  /** Where the journal ended when each commit had resolved. */
  const durableAt = new Map<string, JournalMark>();
  /** What only some worlds need costs something at each statement. */
  const openFile = (): Database => {
    const inner = openNodeDatabase({ file });
    const mortal = parts.mayBeKilled === true ? new FailingDatabase(inner, plan) : inner;
    const noteSync = () => {
      synced = markOf(file);
    };
    return onDisk(through(parts.mayLosePower === true ? watchSyncs(mortal, noteSync) : mortal), disk);
  };
  let clock = time.clockFor({ skewMs: 0 });
  let engine: EngineDevice | null = null;
  let starts = 0;
  let hasLostPower = false;
  // Of this device's whole life: what its file forgets, its ids may not repeat.
  let commits = 0;
  /** As a new process opens the file. Bounded by the steps of a world. */
  const outranked: EngineDevice[] = [];
  const open = (): EngineDevice => {
    starts += 1;
    const opened = createEngineDevice({
      file,
      schema: data,
      account: parts.account,
      ...(parts.logs === undefined ? {} : { logs: parts.logs }),
      platform: { clock, random: random.fork(`start-${starts}`), digest: parts.platform.digest },
      database: self.openDatabase?.(file) ?? openFile(),
      isAfterPowerLoss: hasLostPower,
      token: tokenNow,
      // Before it can be lost on the way: what counts is that it left. A host that was outranked answers for itself.
      fetch: (url, request) => {
        sent.leaves(opened.database, { url, ...request });
        return fetch(url, request);
      },
      openSocket: network.openSocket,
    });
    hasLostPower = false;
    try {
      const generation = opened.state.identity.generation;
      if (generation <= newestGeneration)
        flawed({ invariant: 'I23', what: `a host began at generation ${generation}, after ${newestGeneration}` });
      newestGeneration = generation;
      watchOutbox(opened.database);
      watchAside(opened.database, waited);
      rows.set(opened, watchRows(opened.database, flawed));
      // At every change, not only at every tenth step: what a status says is what a person sees.
      opened.sync.subscribe(({ logs }) => {
        for (const { log, phase, head, ledgerHead } of logs)
          if (phase === 'live' && ledgerHead !== null && head < ledgerHead)
            flawed({ invariant: 'I30', what: `${log} says live at ${head} of ${ledgerHead}` });
      });
      opened.sync.start();
    } catch (cause) {
      clock.stop();
      opened.abandon();
      throw cause;
    }
    return opened;
  };
  /** What is durable from now on: it is accounted for to the end, and shown at once. */
  const note = (actionId: string): void => {
    if (engine === null) return;
    self.isDurable(actionId);
    const row = engine.database.prepare('SELECT drafts FROM main.hf_outbox WHERE action_id = ?').get(actionId);
    const drafts = JSON.parse((row?.['drafts'] as string | undefined) ?? '[]') as EventDraft[];
    said.set(actionId, drafts);
    // What was made on top of work that a person decided about comes after the decision.
    const last = engine.database.prepare('SELECT action_id FROM main.hf_outbox ORDER BY seq DESC LIMIT 1').get();
    if (last !== undefined && last['action_id'] !== actionId) return;
    for (const what of notShown(engine.database, drafts)) flawed({ invariant: 'I18', what });
  };
  /** The process answers nobody any more. */
  const cutOff = (): void => {
    network.cut();
    for (const tell of self.whenGone) tell();
    self.whenGone.clear();
  };
  const self: SimulatedDevice<S> = {
    name,
    openDatabase: null,
    account: parts.account,
    network,
    file,
    resolved,
    said,
    inherited,
    mayBeBoth,
    waited,
    whenGone: new Set(),
    disk,
    pushes,
    seenAt: new Map(),
    meddler: null,
    sent,
    takeFlaws: () => {
      const owing = engine === null ? undefined : rows.get(engine)?.takeOwing();
      if (engine !== null && owing !== undefined)
        for (const what of owedNothing(engine.database, owing)) flawed({ invariant: 'I21', what });
      return flaws.splice(0);
    },
    get token() {
      return tokenNow();
    },
    signIn: () => {
      signIns += 1;
      // A host that was outranked, and does not know it yet, is told like any other.
      for (const host of [...outranked, engine]) host?.sync.credentialsChanged();
    },
    keep: () => {
      kept = new Set(resolved);
    },
    forget: () => {
      newestGeneration = 0;
      sent.forget();
      for (const action of [...resolved]) {
        mayBeBoth.add(action);
        if (!kept.has(action)) resolved.delete(action);
      }
    },
    isDurable: (actionId) => {
      resolved.add(actionId);
      if (parts.mayLosePower === true) durableAt.set(actionId, markOf(file));
    },
    killSoon: (nth, isRunFirst) => {
      if (engine === null || plan.isDead) return;
      const cause = new Error('killed');
      const struck = (): void => {
        // What it is in the middle of goes on to throw, and nobody hears of it.
        cutOff();
        time.at(0, () => self.crash());
      };
      plan.arm(nth, { cause, isDeadAfter: true, isRunFirst, struck });
    },
    calmDown: () => {
      if (plan.isDead) self.crash();
      else plan.disarm();
    },
    withoutPower: () => {
      endedAt = markOf(file);
      return cutsOf(file, synced);
    },
    forgetAfter: (bytes) => {
      sent.forget();
      hasLostPower = true;
      let lost = 0;
      for (const action of [...resolved]) {
        const at = durableAt.get(action);
        if (at === undefined || at.salt !== endedAt.salt || at.bytes <= bytes) continue;
        mayBeBoth.add(action);
        resolved.delete(action);
        lost += 1;
      }
      return lost;
    },
    get clock() {
      return clock;
    },
    get engine() {
      return engine;
    },
    commit: (build, log = 'main') => {
      const recorded = engine === null ? null : self.record(build);
      if (engine === null || recorded === null) return null;
      const { actionId, changes, seen } = recorded;
      const label = `${name} ${commits}`;
      const outcome = unlessFull(() => engine?.state.commit({ actionId, log, label, changes, seen, reads: [] }));
      if (outcome === undefined || !outcome.ok) return null;
      if (outcome.value.eventIds.length > 0) note(actionId);
      return actionId;
    },
    making: (run) => {
      const of = engine;
      if (of === null) return run();
      const actions = () =>
        of.database
          .prepare('SELECT action_id AS action FROM main.hf_outbox ORDER BY seq')
          .all()
          .map(({ action }) => action as string);
      const before = new Set(actions());
      const result = run();
      for (const action of actions()) if (!before.has(action)) note(action);
      return result;
    },
    takeBack: (how) => {
      if (engine === null) return null;
      const { state } = engine;
      const outcome = unlessFull(() =>
        self.making(() => (how === 'redo' ? state.redo('main') : state.undo('main', how))),
      );
      return outcome?.ok === true ? (outcome.value?.label ?? null) : null;
    },
    record: (build) => {
      commits += 1;
      const idRandom = random.fork(`ids-${commits}`);
      const newId = () => uuidv7(clock.now(), idRandom);
      const recorded = recordCommit(
        schema,
        data,
        { newId, keyedId: (type, values) => keyedId(type, values, parts.platform.digest) },
        build,
      );
      return recorded.ok ? { actionId: newId(), changes: recorded.value.changes, seen: recorded.value.seen } : null;
    },
    start: () => {
      if (engine !== null) return;
      clock = time.clockFor({ skewMs: clock.skewMs });
      // Where the disk is full it does not open, and is opened again later.
      engine = unlessFull(open) ?? null;
    },
    takeOver: () => {
      if (engine === null || disk.isFull) return null;
      const before = engine;
      outranked.push(before);
      engine = open();
      return before;
    },
    crash: () => {
      plan.revive();
      if (engine === null) return;
      clock.stop();
      for (const host of [...outranked.splice(0), engine]) host.abandon();
      engine = null;
      cutOff();
    },
    close: async () => {
      if (engine === null) return;
      const closing = engine.close();
      let isDone = false;
      void closing.then(() => {
        isDone = true;
      });
      await time.until(() => isDone, 60_000);
      for (const host of outranked.splice(0)) host.abandon();
      engine = null;
    },
  };
  return self;
}

/** I18: what was committed here a moment ago, and is not what a reader sees. A value under a rule may lose to another. */
function notShown(database: Database, drafts: readonly EventDraft[]): readonly string[] {
  return drafts.flatMap(({ entityType, entityId, change }) => {
    if (entityType !== 'note' || change.op === 'put') return [];
    const row = database.prepare('SELECT * FROM note WHERE id = ?').get(entityId);
    if (change.op === 'delete') return row === undefined ? [] : [`note ${entityId} was deleted here, and is shown`];
    const values = Object.entries(change.op === 'update' ? (change.set ?? {}) : change.fields);
    return values.flatMap(([field, value]) =>
      typeof value !== 'string' || row?.[field] === value
        ? []
        : [`note ${entityId} ${field} was set to ${value}, and is shown as ${row?.[field]}`],
    );
  });
}

export const removeFile = (file: string): void => {
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
};
