import { copyFileSync, cpSync, existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counter, defineSchema, entity, integer, oneOf, schemaData, setOf, type Tx, text } from '@holdfast/core';
import { createSeededRandom, createVirtualTime, type SeededRandom, type VirtualTime } from '@holdfast/replica/testing';
import type { Violation } from './checkers.ts';
import { createSimulatedDevice, removeFile, type SimulatedDevice } from './device.ts';
import { worldDigest } from './digest.ts';
import { unlessFull } from './disk.ts';
import { attendHosts, signOut, takeOver, transfer } from './hosts.ts';
import type { Lasting } from './lasting.ts';
import { createWorldLedger, removeFolder, type WorldLedger } from './ledger.ts';

/** Few entities, few fields, small value sets: most seeds clash (workloads that conflict often). */
export const worldSchema = defineSchema({
  note: entity({
    title: text(),
    status: oneOf(['open', 'doing', 'closed'], { otherwise: 'open', default: 'open', onClash: 'last' }),
    level: integer({ default: 0, onClash: 'max' }),
    body: text({ optional: true }),
    tags: setOf(text()),
    votes: counter(),
  }),
  mark: entity({ name: text(), upTo: integer({ default: 0, onClash: 'max' }) }, { key: ['name'] }),
  draft: entity({ body: text() }, { local: true }),
});
export type WorldSchema = typeof worldSchema;

/** The classes of faults that a seed may draw. */
export const FAULTS = [
  'crash',
  'partition',
  'one-way',
  'loss',
  'doubling',
  'lateness',
  'truncation',
  'portal',
  'ledger-restart',
  'clock-jump',
  'skew',
  'clone',
  'yesterday',
  'people',
  'sign-out',
  'take-over',
  'transfer',
  'rewind',
] as const;
export type FaultClass = (typeof FAULTS)[number];

/** Only worlds that are asked for it have these. A backup that is put back ends most of what else could happen. */
const ON_REQUEST: ReadonlySet<FaultClass> = new Set(['rewind']);

export interface World {
  readonly seed: number;
  readonly faults: ReadonlySet<FaultClass>;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly ledger: WorldLedger;
  readonly devices: SimulatedDevice<WorldSchema>[];
  readonly folder: string;
  readonly counts: Record<string, number>;
  /** Each step that was taken, for the trace. */
  readonly trace: string[];
  /** Promises that were broken while something was done. */
  readonly flaws: Violation[];
  /** What is not healed, once the other faults have stopped. */
  lasting: Lasting | null;
}

const ACCOUNTS = ['ana', 'ben', 'eve'];

export function createWorld(
  seed: number,
  options: { readonly devices?: number; readonly faults?: readonly FaultClass[] } = {},
): World {
  const random = createSeededRandom(seed);
  const time = createVirtualTime();
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-world-'));
  const ledger = createWorldLedger({
    folder: join(folder, 'ledger'),
    platform: { clock: time.clockFor({}), random: random.fork('ledger'), digest: worldDigest },
    schema: schemaData(worldSchema),
  });
  ledger.start();
  const drawn = random.fork('faults');
  const isDrawn = (fault: FaultClass): boolean => !ON_REQUEST.has(fault) && drawn.chance(0.45);
  const faults = new Set(options.faults ?? FAULTS.filter(isDrawn));
  const world: World = {
    seed,
    faults,
    time,
    random,
    ledger,
    devices: [],
    folder,
    counts: {},
    trace: [],
    flaws: [],
    lasting: null,
  };
  const count = options.devices ?? 2 + random.below(2);
  for (let at = 0; at < count; at += 1) addDevice(world, ACCOUNTS[at % ACCOUNTS.length] as string, `device-${at}`);
  for (const device of world.devices) device.start();
  return world;
}

export function addDevice(world: World, account: string, name: string): SimulatedDevice<WorldSchema> {
  const device = createSimulatedDevice({
    name,
    account,
    schema: worldSchema,
    folder: world.folder,
    time: world.time,
    random: world.random.fork(name),
    platform: { digest: worldDigest },
    ledger: () => world.ledger,
  });
  world.devices.push(device);
  return device;
}

export const counted = (world: World, what: string): void => {
  world.counts[what] = (world.counts[what] ?? 0) + 1;
};

// ── one step ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One thing that somebody does, or that happens (never in a calm world), drawn from the seed; then a little time passes. */
export async function step(world: World, isCalm = false): Promise<void> {
  const { random } = world;
  const device = random.pick(world.devices);
  if (isCalm || random.chance(0.6)) work(world, device);
  else disturb(world, device);
  await world.time.advance(random.pick([0, 1, 5, 20, 100, 500, 2_000]));
}

const TITLES = ['one', 'two', 'three'];
const TAGS = ['a', 'b', 'c'];

function work(world: World, device: SimulatedDevice<WorldSchema>): void {
  const { random } = world;
  const { engine } = device;
  if (engine === null) return;
  const ids = engine.database
    .prepareQuery('select id from note order by id')
    .statement.all()
    .map((row) => row['id'] as string);
  const id = ids.length === 0 ? null : random.pick(ids);
  const kind = random.below(12);
  const build = (tx: Tx<WorldSchema>): void => {
    const note = tx.note;
    if (id === null || (kind === 0 && ids.length < 5)) {
      note.create({ title: random.pick(TITLES) });
      return;
    }
    switch (kind) {
      case 1:
      case 2:
        return note.update(id as never, { title: random.pick(TITLES) });
      case 3:
        return note.update(id as never, { status: random.pick(['open', 'doing', 'closed'] as const) });
      case 4:
        return note.update(id as never, { votes: { by: 1 } });
      case 5:
        return note.update(id as never, { tags: { add: [random.pick(TAGS)] } });
      case 6:
        return note.update(id as never, { tags: { remove: [random.pick(TAGS)] } });
      case 7:
        return note.update(id as never, { body: random.chance(0.5) ? random.pick(TITLES) : null });
      case 8:
        return note.update(id as never, { level: random.below(5) });
      case 9:
        return note.delete(id as never);
      case 10:
        tx.mark.put({ name: random.pick(TAGS), upTo: random.below(9) });
        return;
      default:
        note.update(id as never, { title: random.pick(TITLES), votes: { by: 1 } });
        if (ids.length > 1) note.update(random.pick(ids) as never, { votes: { by: 1 } });
        tx.draft.create({ body: 'not sent' });
    }
  };
  const action = device.commit(build);
  counted(world, action === null ? 'commits refused' : 'commits');
  world.trace.push(`${device.name} commit ${kind} ${action === null ? 'refused' : 'durable'}`);
}

function disturb(world: World, device: SimulatedDevice<WorldSchema>): void {
  const { random, faults } = world;
  const possible = [...faults];
  if (possible.length === 0) return;
  const fault = random.pick(possible);
  const { rules } = device.network;
  world.trace.push(`${device.name} ${fault}`);
  counted(world, fault);
  switch (fault) {
    case 'crash':
      if (device.engine === null) device.start();
      else device.crash();
      return;
    case 'partition':
      rules.offline = !rules.offline;
      if (rules.offline) device.network.cut();
      else device.engine?.sync.kick('online');
      return;
    case 'one-way':
      if (random.chance(0.5)) rules.toLedger = !rules.toLedger;
      else rules.fromLedger = !rules.fromLedger;
      return;
    case 'loss':
      rules.loss = random.pick([0, 0.1, 0.4]);
      return;
    case 'doubling':
      rules.doubling = random.pick([0, 0.2, 0.6]);
      return;
    case 'lateness':
      rules.lateness = random.pick([0, 0.2]);
      rules.lateMs = random.pick([500, 5_000, 70_000]);
      rules.delayMs = random.pick([
        [1, 1],
        [1, 50],
        [20, 400],
      ] as const);
      return;
    case 'truncation':
      rules.truncation = random.pick([0, 0.2]);
      return;
    case 'portal':
      rules.portal = !rules.portal;
      return;
    case 'ledger-restart':
      if (world.ledger.up) world.ledger.kill();
      else world.ledger.start();
      return;
    case 'clock-jump':
      device.clock.jump(random.pick([1_000, 60_000, 8 * 3_600_000]));
      return;
    case 'skew':
      device.clock.skewMs = random.pick([-3_600_000, 0, 3_600_000, 315_360_000_000]);
      return;
    case 'clone':
      return clone(world, device);
    case 'yesterday':
      return yesterday(world, device);
    case 'people':
      return decide(world, device);
    case 'sign-out':
      return signOut(world, device);
    case 'take-over':
      return takeOver(world, device);
    case 'transfer':
      return transfer(world, device);
    case 'rewind':
      return rewind(world);
  }
}

/** F34: the file is copied to a second machine of the same account; both go on. At most two copies a world. */
function clone(world: World, device: SimulatedDevice<WorldSchema>): void {
  if (world.devices.length >= 5 || device.engine !== null || !existsSync(device.file)) return;
  const copy = addDevice(world, device.account, `${device.name}-copy-${world.devices.length}`);
  copyReplica(device.file, copy.file);
  for (const action of device.resolved) {
    copy.inherited.add(action);
    copy.mayBeBoth.add(action);
    device.mayBeBoth.add(action);
  }
  counted(world, 'copies');
  copy.start();
}

/** F33: the file as it was when it was kept; what was committed since is on this device no more. */
function yesterday(world: World, device: SimulatedDevice<WorldSchema>): void {
  if (device.engine !== null || !existsSync(device.file)) return;
  const kept = `${device.file}.kept`;
  if (!existsSync(kept)) {
    copyReplica(device.file, kept);
    device.keep();
    return;
  }
  removeFile(device.file);
  copyReplica(kept, device.file);
  device.forget();
  counted(world, 'restored files');
}

/** HL1: the ledger's files are copied once; later they are put back, and what it accepted since is gone there. */
function rewind(world: World): void {
  const { folder } = world.ledger;
  const backup = `${folder}.backup`;
  world.ledger.kill();
  if (!existsSync(backup)) {
    if (existsSync(folder)) cpSync(folder, backup, { recursive: true });
  } else {
    removeFolder(folder);
    cpSync(backup, folder, { recursive: true });
    counted(world, 'ledgers rewound');
  }
  world.ledger.start();
}

/** What people do once the storm is over, as often as there is something to do. */
export function attend(world: World): void {
  adoptWhereStopped(world);
  attendHosts(world);
}

/** What a person answers to a ledger that lost its history: go on with what it has (HL4). */
function adoptWhereStopped(world: World): void {
  for (const { engine } of world.devices) {
    if (engine?.state.log('main')?.blocked?.code !== 'history-changed') continue;
    // A disk that is full does not take the choice: it is offered again.
    const isTaken = unlessFull(() => {
      engine.state.adopt('main');
      return true;
    });
    if (isTaken !== true) continue;
    engine.sync.kick('online');
    counted(world, 'adopted');
  }
}

function copyReplica(from: string, to: string): void {
  for (const suffix of ['', '-wal'])
    if (existsSync(`${from}${suffix}`)) copyFileSync(`${from}${suffix}`, `${to}${suffix}`);
}

/** What a person does with what waits for one. */
function decide(world: World, device: SimulatedDevice<WorldSchema>): void {
  const { random } = world;
  const state = device.engine?.state;
  if (state === undefined) return;
  const waiting = state.desk().filter((entry) => entry.needs === 'answer');
  if (waiting.length === 0) {
    const undone = state.undo('main', { skipChanged: random.chance(0.5) });
    if (undone.ok && undone.value !== null) counted(world, 'undone');
    return;
  }
  const entry = random.pick(waiting);
  const how = random.below(3);
  const outcome =
    how === 2
      ? state.discard([entry.id])
      : state.resolve({ ids: [entry.id], choice: how === 0 ? 'mine' : 'theirs', revision: entry.revision });
  if (outcome.ok) counted(world, ['resolved mine', 'resolved theirs', 'discarded'][how] as string);
}

/** Faults end: everybody runs, the network works, clocks go on as they are. */
export function heal(world: World): void {
  if (!world.ledger.up) world.ledger.start();
  for (const device of world.devices) {
    Object.assign(device.network.rules, {
      toLedger: true,
      fromLedger: true,
      delayMs: [1, 5],
      loss: 0,
      doubling: 0,
      lateness: 0,
      truncation: 0,
      portal: false,
      offline: false,
    });
    device.network.cut();
    device.start();
    device.engine?.sync.kick('online');
  }
  world.trace.push('heal');
}
