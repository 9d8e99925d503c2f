import { hash } from 'node:crypto';
import { copyFileSync, cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type RecordedChange, type Schema, schemaData } from '@holdfast/core';
import { createSeededRandom, createVirtualTime, type SeededRandom, type VirtualTime } from '@holdfast/replica/testing';
import { FailingDatabase, FailPlan } from '@holdfast/replica/testing/engine';
import { createSimulatedDevice, type SimulatedDevice } from '../device.ts';
import { worldDigest } from '../digest.ts';
import { createWorldLedger, removeFolder, type WorldLedger } from '../ledger.ts';
import { failingSqlite } from './failing-sqlite.ts';
import { crashSchema } from './schema.ts';

export type Side = 'replica' | 'ledger';

/**
 * A ledger and a device on real files, with a plan of failure under the SQLite of one of them. The device that is looked
 * at is Ana's; others help to prepare. A bench on a copy of a prepared folder goes on from there.
 */
export class Bench {
  readonly folder: string;
  readonly time: VirtualTime;
  readonly ledger: WorldLedger;
  readonly devices: SimulatedDevice<Schema>[] = [];
  /** Nothing fails until it is armed. */
  readonly plan = new FailPlan();
  readonly #random: SeededRandom;
  readonly #side: Side;
  readonly #schema: Schema;
  /** After each statement of Ana's that left no transaction open. */
  onCommitted: (() => void) | null = null;
  #failing: FailingDatabase | null = null;
  /** What a timer or a turn of a host that lives threw at the platform: it would have ended the app's process (F13). */
  escaped: unknown = null;

  constructor(folder: string, options: { readonly side: Side; readonly seed: number; readonly schema?: Schema }) {
    this.folder = folder;
    this.#side = options.side;
    this.#schema = options.schema ?? crashSchema;
    this.#random = createSeededRandom(options.seed);
    this.time = createVirtualTime();
    const ledger = createWorldLedger({
      folder: join(folder, 'ledger'),
      platform: { clock: this.time.clockFor({}), random: this.#random.fork('ledger'), digest: worldDigest },
      schema: schemaData(crashSchema),
      ...(this.#side === 'ledger' ? { through: failingSqlite(this.plan) } : {}),
    });
    this.ledger = {
      ...ledger,
      get up() {
        return ledger.up;
      },
      get current() {
        return ledger.current;
      },
      fetch: (url, request) => ledger.fetch(inSmallPages(url), request),
    };
  }

  /** Time goes on where it was when the folder was prepared. */
  async begin(beganMs: number): Promise<void> {
    await this.time.advance(beganMs);
    this.ledger.start();
  }

  get ana(): SimulatedDevice<Schema> {
    return this.device('ana');
  }

  /** Named as its account, unless it is another device of the same. Not started. */
  device(name: string, account = name): SimulatedDevice<Schema> {
    const known = this.devices.find((device) => device.name === name);
    if (known !== undefined) return known;
    const device = createSimulatedDevice({
      name,
      account,
      schema: name === 'ana' ? this.#schema : crashSchema,
      folder: this.folder,
      time: this.time,
      random: this.#random.fork(name),
      platform: { digest: worldDigest },
      ledger: () => this.ledger,
      through: (inner) => {
        if (name !== 'ana' || this.#side !== 'replica') return inner;
        this.#failing = new FailingDatabase(inner, this.plan);
        this.#failing.onCommitted = () => this.onCommitted?.();
        return this.#failing;
      },
    });
    this.devices.push(device);
    return device;
  }

  /** Opens Ana's file. What fails on the way leaves no connection, as a host leaves none. */
  open(): void {
    try {
      this.ana.start();
    } catch (cause) {
      this.#failing?.close();
      throw cause;
    }
  }

  /** As an app commits, under an action id that is its name's: a repeat is the same commit. */
  commit(device: SimulatedDevice<Schema>, name: string, changes: readonly RecordedChange[], label?: string): string {
    const actionId = idOf(name);
    const outcome = device.engine?.state.commit({
      actionId,
      log: 'main',
      changes,
      seen: [],
      reads: [],
      ...(label === undefined ? {} : { label }),
    });
    if (outcome === undefined || !outcome.ok) throw new Error(`${name}: ${JSON.stringify(outcome?.fault)}`);
    device.resolved.add(actionId);
    return actionId;
  }

  /** Until every device that runs is at the head with nothing on its way, or Ana's process died. */
  async rest(): Promise<boolean> {
    return this.until(() => this.devices.every((device) => isAtRest(device)));
  }

  async until(done: () => boolean, limitMs = 10 * 60_000): Promise<boolean> {
    let asked: { readonly cause: unknown } | null = null;
    const look = () => {
      try {
        return done();
      } catch (cause) {
        asked = { cause };
        throw cause;
      }
    };
    try {
      return await this.time.until(() => this.plan.isDead || look(), limitMs);
    } catch (cause) {
      // Whoever asks is a caller, and may be told. A timer has none.
      if (asked === null && !this.plan.isDead) this.escaped ??= cause;
      throw cause;
    }
  }

  /** Everything that runs dies where it stands; the files are as they are at this moment. */
  kill(): void {
    const left = this.#filesLeft();
    this.plan.revive();
    for (const device of this.devices) device.crash();
    this.ledger.kill();
    this.time.stop();
    // Closing a connection tidies up; a kill does not.
    for (const [from, to] of left) {
      rmSync(to, { recursive: true, force: true });
      cpSync(from, to, { recursive: true });
      rmSync(from, { recursive: true });
    }
  }

  #filesLeft(): (readonly [string, string])[] {
    const left: (readonly [string, string])[] = [];
    for (const { file } of this.devices) {
      const aside = `${file}.left`;
      rmSync(aside, { force: true });
      if (!existsSync(file)) continue;
      for (const suffix of ['', '-wal']) {
        rmSync(`${aside}${suffix}`, { force: true });
        if (!existsSync(`${file}${suffix}`)) continue;
        copyFileSync(`${file}${suffix}`, `${aside}${suffix}`);
        left.push([`${aside}${suffix}`, `${file}${suffix}`]);
      }
    }
    const { folder } = this.ledger;
    if (existsSync(folder)) {
      rmSync(`${folder}.left`, { recursive: true, force: true });
      cpSync(folder, `${folder}.left`, { recursive: true });
      left.push([`${folder}.left`, folder]);
    }
    return left;
  }

  dispose(): void {
    for (const device of this.devices) device.crash();
    this.ledger.kill();
    this.time.stop();
    removeFolder(this.folder);
  }
}

export const idOf = (name: string): string => {
  const digits = hash('sha256', name, 'hex');
  return `01920000-0000-7${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6, 18)}`;
};

/** So that a few rows come in several pages. */
const inSmallPages = (url: string): string =>
  url.replace(/(\/entities\?limit=)\d+/, '$12').replace(/(&limit=)\d+/, '$14');

export function isAtRest({ engine }: SimulatedDevice<Schema>): boolean {
  if (engine === null) return true;
  const log = engine.state.log('main');
  if (log?.stage !== 'visible' || log.blocked !== null || engine.sync.status.phase !== 'live') return false;
  return (
    engine.state.flowing('main') === 0 &&
    engine.coordinator.obligations.open().length === 0 &&
    log.head === (log.ledgerHead ?? -1)
  );
}
