import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counter, defineSchema, entity, integer, oneOf, ref, schemaData, setOf, text } from '@holdfast/core';
import { createSeededRandom, createVirtualTime, type SeededRandom, type VirtualTime } from '@holdfast/replica/testing';
import type { Violation } from './checkers.ts';
import { createSimulatedDevice, type SimulatedDevice } from './device.ts';
import { worldDigest } from './digest.ts';
import { drawFaults, type FaultClass } from './fault-classes.ts';
import type { Lasting } from './lasting.ts';
import { createWorldLedger, type LedgerThrough, type WorldLedger } from './ledger.ts';
import { createTab, type Tab } from './tab.ts';

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
  /** Only plays write these. */
  comment: entity({ text: text(), note: ref('note', { optional: true }) }),
});
export type WorldSchema = typeof worldSchema;

export interface World {
  readonly seed: number;
  readonly faults: ReadonlySet<FaultClass>;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly ledger: WorldLedger;
  readonly devices: SimulatedDevice<WorldSchema>[];
  readonly folder: string;
  /** Tabs of devices whose host runs elsewhere: of the first device, where `tab` or `tab-people` is drawn. */
  readonly tabs: readonly Tab[];
  /** What every device follows: `main`, and another one in some worlds. */
  readonly logs: readonly string[];
  readonly counts: Record<string, number>;
  /** Each step that was taken, for the trace. */
  readonly trace: string[];
  /** Promises that were broken while something was done. */
  readonly flaws: Violation[];
  /** What is not healed, once the other faults have stopped. */
  lasting: Lasting | null;
}

/** What the checkers look at: a world, or a bench of the crash kit, which has no people and no weather. */
export type Examined = Pick<World, 'ledger' | 'devices' | 'time' | 'lasting' | 'faults' | 'logs'>;

const ACCOUNTS = ['ana', 'ben', 'eve'];
const LOGS = ['main', 'side'];

export function createWorld(
  seed: number,
  options: {
    readonly devices?: number;
    readonly logs?: number;
    readonly faults?: readonly FaultClass[];
    /** Stands between the ledger's store and each of its connections. */
    readonly ledgerThrough?: LedgerThrough;
  } = {},
): World {
  const random = createSeededRandom(seed);
  const time = createVirtualTime();
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-world-'));
  const ledger = createWorldLedger({
    folder: join(folder, 'ledger'),
    platform: { clock: time.clockFor({}), random: random.fork('ledger'), digest: worldDigest },
    schema: schemaData(worldSchema),
    ...(options.ledgerThrough === undefined ? {} : { through: options.ledgerThrough }),
  });
  ledger.start();
  const faults = new Set(options.faults ?? drawFaults(random.fork('faults')));
  const world: World = {
    seed,
    faults,
    time,
    random,
    ledger,
    devices: [],
    tabs: [],
    folder,
    logs: LOGS.slice(0, options.logs ?? (random.fork('logs').chance(0.6) ? 2 : 1)),
    counts: {},
    trace: [],
    flaws: [],
    lasting: null,
  };
  const count = options.devices ?? 2 + random.below(2);
  for (let at = 0; at < count; at += 1) addDevice(world, ACCOUNTS[at % ACCOUNTS.length] as string, `device-${at}`);
  for (const device of world.devices) device.start();
  const [first] = world.devices;
  if (!IN_TABS.some((fault) => faults.has(fault)) || first === undefined) return world;
  const tab = createTab({ device: first, time, random: random.fork('tab'), schema: worldSchema });
  tab.open();
  return Object.assign(world, { tabs: [tab] });
}

/** What happens in a tab of the first device. */
const IN_TABS: readonly FaultClass[] = ['tab', 'tab-people', 'freeze'];

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
    logs: world.logs,
    mayBeKilled: world.faults.has('kill'),
    mayLosePower: world.faults.has('power-cut'),
  });
  world.devices.push(device);
  return device;
}

export const counted = (world: World, what: string): void => {
  world.counts[what] = (world.counts[what] ?? 0) + 1;
};
