import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Platform, type Schema, schemaData } from '@holdfast/core';
import { createTestLedger, type TestLedger } from '@holdfast/ledger/testing';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodeDigest } from '../adapters/node/platform.ts';
import { type Client, createClientOver, type HostProvider } from '../client/client.ts';
import type { Replica } from '../client/replica.ts';
import { examine } from '../engine/inspect.ts';
import { type ComposedHost, composeHost } from '../host/compose.ts';
import { createDeviceNetwork, type DeviceNetwork, type NetworkRules } from './network.ts';
import { createSeededRandom, type SeededRandom } from './seeded-random.ts';
import { createTestEndpoint } from './test-endpoint.ts';
import { createVirtualTime, type DeviceClock, type VirtualTime } from './virtual-time.ts';

/**
 * A world for tests: a ledger and any number of devices in this process, with the production engines on virtual time. The
 * same seed gives the same run. Nothing waits for real time: `settle` and `advance` move the clock.
 *
 * ```ts
 * await using world = await createWorld({ schema, seed: 7 });
 * const ana = await world.device('ana');
 * await ana.replica.commit((tx) => tx.issue.create({ title: 'A' }));
 * await world.settle();
 * ```
 */
export interface World<S extends Schema> extends AsyncDisposable {
  readonly seed: number;
  /** A new device; its account is its name unless another is given. The same name gives the same device. */
  device(name: string, options?: { readonly account?: string }): Promise<WorldDevice<S>>;
  readonly ledger: {
    readonly current: TestLedger;
    /** Killed where it stands, and started again on its files. */
    restart(): void;
  };
  /**
   * Moves the clock until everything committed is ordered, and every device that is online stands at the ledger's head.
   * Work that waits for a person does not hold it up. Rejects after ten virtual minutes, with what stands in the way.
   */
  settle(): Promise<void>;
  advance(ms: number): Promise<void>;
  /** True if all devices and the ledger have one chain and one state, to the bit. Rejects with what differs. */
  converged(): Promise<true>;
  readonly elapsedMs: number;
}

export interface WorldDevice<S extends Schema> {
  readonly name: string;
  /** Of the present run: after `restart` it is another object. */
  readonly replica: Replica<S>;
  offline(): void;
  online(): void;
  /** What the network does to this device: delays, loss, one direction only, a login page. */
  readonly network: NetworkRules;
  /** As after SIGKILL: what was durable is in the file, nothing else is anywhere. */
  crash(): Promise<void>;
  restart(): Promise<void>;
  /** A sleep of the machine, or a clock that is set. */
  jump(ms: number): void;
}

export interface WorldOptions<S extends Schema> {
  readonly schema: S;
  readonly seed?: number;
  readonly workspace?: string;
}

const LEDGER = 'http://ledger.test';
const SETTLE_MS = 10 * 60_000;

export async function createWorld<const S extends Schema>(options: WorldOptions<S>): Promise<World<S>> {
  const { schema, seed = 1, workspace = 'world' } = options;
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-world-'));
  const random = createSeededRandom(seed);
  const time = createVirtualTime({ runsDueByItself: true });
  const endpoint = createTestEndpoint(() =>
    createTestLedger({
      folder: join(folder, 'ledger'),
      platform: { clock: time.clockFor({}), random: random.fork('ledger'), digest: nodeDigest },
      schema: schemaData(schema),
    }),
  );
  endpoint.start();
  const devices = new Map<string, Device<S>>();

  const settled = async (): Promise<void> => {
    const isDone = await time.until(() => [...devices.values()].every((device) => device.isSettled()), SETTLE_MS);
    // A device at its head may be behind one that pushed last: look once more after the socket had its say.
    if (!isDone)
      throw new Error(`The world does not settle: ${[...devices.values()].map((device) => device.tell()).join('; ')}`);
  };

  return {
    seed,
    get elapsedMs() {
      return time.elapsedMs;
    },
    device: async (name, { account = name } = {}) => {
      const known = devices.get(name);
      if (known !== undefined) return known;
      const device = new Device({
        name,
        account,
        schema,
        workspace,
        folder,
        time,
        random: random.fork(name),
        endpoint,
      });
      devices.set(name, device);
      await device.restart();
      return device;
    },
    ledger: {
      get current() {
        return endpoint.current;
      },
      restart: () => {
        endpoint.kill();
        endpoint.start();
      },
    },
    settle: async () => {
      for (let round = 0; round < 3; round += 1) {
        await settled();
        await time.advance(50);
      }
      await settled();
    },
    advance: (ms) => time.advance(ms),
    converged: async () => {
      const report = await endpoint.current.engine.verify({ workspace, log: 'main' });
      const differences = [...devices.values()].flatMap((device) => device.differencesFrom(report));
      for (const problem of report?.problems ?? [])
        differences.push(`ledger: ${problem.what} ${problem.expected} ≠ ${problem.found}`);
      if (differences.length > 0) throw new Error(`Not converged:\n${differences.join('\n')}`);
      return true;
    },
    [Symbol.asyncDispose]: async () => {
      for (const device of devices.values()) await device.crash();
      endpoint.kill();
      time.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface DeviceParts<S extends Schema> {
  readonly name: string;
  readonly account: string;
  readonly schema: S;
  readonly workspace: string;
  readonly folder: string;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly endpoint: ReturnType<typeof createTestEndpoint>;
}

type Verified = Awaited<ReturnType<TestLedger['engine']['verify']>>;

class Device<S extends Schema> implements WorldDevice<S> {
  readonly #parts: DeviceParts<S>;
  readonly #network: DeviceNetwork;
  #clock: DeviceClock;
  #starts = 0;
  #host: ComposedHost | null = null;
  #client: Client<S> | null = null;
  #replica: Replica<S> | null = null;

  constructor(parts: DeviceParts<S>) {
    this.#parts = parts;
    this.#clock = parts.time.clockFor({});
    this.#network = createDeviceNetwork({
      time: parts.time,
      random: parts.random.fork('network'),
      ledger: () => parts.endpoint,
    });
  }

  get name(): string {
    return this.#parts.name;
  }
  get network(): NetworkRules {
    return this.#network.rules;
  }
  get replica(): Replica<S> {
    if (this.#replica === null) throw new Error(`${this.name} has crashed. Call restart().`);
    return this.#replica;
  }

  offline(): void {
    this.#network.rules.offline = true;
    this.#network.cut();
  }
  online(): void {
    this.#network.rules.offline = false;
    this.#host?.sync.kick('online');
  }
  jump(ms: number): void {
    this.#clock.jump(ms);
  }

  async crash(): Promise<void> {
    if (this.#host === null) return;
    const { database } = this.#host.state.store;
    this.#clock.stop();
    this.#network.cut();
    if (database.inTransaction) database.exec('ROLLBACK');
    database.close();
    this.#host = null;
    this.#client = null;
    this.#replica = null;
  }

  async restart(): Promise<void> {
    await this.crash();
    this.#starts += 1;
    const { name, account, schema, workspace, folder, time, random } = this.#parts;
    this.#clock = time.clockFor({ skewMs: this.#clock.skewMs });
    const platform: Platform = { clock: this.#clock, random: random.fork(`start-${this.#starts}`), digest: nodeDigest };
    const provider: HostProvider = {
      platform,
      open: (request) => {
        const host = composeHost({
          ...request,
          database: openNodeDatabase({ file: join(folder, `${name}.holdfast`) }),
          platform,
          fetch: this.#network.fetch,
          openSocket: this.#network.openSocket,
          place: { storage: 'durable', host: 'here' },
        });
        this.#host = host;
        return Promise.resolve(host);
      },
      workspaces: () => Promise.resolve([]),
    };
    this.#client = createClientOver({
      schema,
      ledger: LEDGER,
      account: { id: account, token: () => account },
      provider,
    });
    this.#replica = await this.#client.open(workspace);
  }

  isSettled(): boolean {
    if (this.#host === null || this.#network.rules.offline) return true;
    const { state, coordinator, sync } = this.#host;
    const log = state.log('main');
    if (log === undefined || log.stage !== 'visible' || sync.status.phase !== 'live') return false;
    if (log.blocked !== null) return true;
    return (
      state.flowing('main').count === 0 &&
      coordinator.obligations.open().length === 0 &&
      log.head === (log.ledgerHead ?? log.head)
    );
  }

  tell(): string {
    if (this.#host === null) return `${this.name} has crashed`;
    const { state, sync } = this.#host;
    const { phase, reason } = sync.status;
    return `${this.name} is ${phase}${reason === null ? '' : ` (${reason.code})`}, ${state.flowing('main').count} batches on their way, head ${state.log('main')?.head}`;
  }

  differencesFrom(ledger: Verified): string[] {
    if (this.#host === null || ledger === null) return [];
    const { state } = this.#host;
    const log = state.log('main');
    const found = examine(state.store).findings.map(({ check, what }) => `${this.name}: ${check}: ${what}`);
    if (log === undefined) return found;
    if (log.chain !== ledger.chain) found.push(`${this.name}: head ${log.head} of ${ledger.events}, another chain`);
    else if (log.signature !== ledger.signature) found.push(`${this.name}: another state than the ledger's`);
    return found;
  }
}
