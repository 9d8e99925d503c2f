import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Schema, schemaData } from '@holdfast/core';
import { createTestLedger, type TestLedger } from '@holdfast/ledger/testing';
import { nodeDigest } from '../adapters/node/platform.ts';
import { createSeededRandom } from './seeded-random.ts';
import { createTestEndpoint } from './test-endpoint.ts';
import { createVirtualTime } from './virtual-time.ts';
import { Device, type WorldDevice } from './world-device.ts';
import { readLedgerLog } from './world-differences.ts';
import { type WorldDifference, WorldError } from './world-error.ts';

/**
 * A world for tests: a ledger and any number of devices in this process, with the production engines on virtual time. The
 * same seed gives the same run. Nothing waits for real time: `settle`, `run` and `advance` move the clock. docs/TESTING.md
 * is its guide.
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
  /**
   * A new device, running and online; its account is its name unless another is given. The same name gives the same
   * device. `skewMs`: how far its wall clock is from true time.
   */
  device(name: string, options?: { readonly account?: string; readonly skewMs?: number }): Promise<WorldDevice<S>>;
  readonly ledger: WorldLedger;
  /**
   * Moves the clock until everything committed is ordered, and every device that is up and online stands at the ledger's
   * head. Work that waits for a person does not hold it up. Rejects with `world-timeout` after ten virtual minutes, or
   * `limitMs`, and says what stands in the way.
   */
  settle(options?: { readonly limitMs?: number }): Promise<void>;
  /**
   * Moves the clock, event by event, until `done` says true. Rejects with `world-timeout` after `limitMs` of virtual
   * time, ten minutes unless given; `what` is how the fault names it. `done` is asked after every event: keep it cheap.
   */
  run(done: () => boolean, options?: { readonly limitMs?: number; readonly what?: string }): Promise<void>;
  /** Runs everything that is due in the next `ms` of virtual time. */
  advance(ms: number): Promise<void>;
  /**
   * True if every device that is up and the ledger have one chain and one confirmed state, to the bit, in every log that
   * the device follows, and nothing is on its way. Rejects with `world-differs`: which device, which entity and field,
   * and what each side holds. What waits for a person is no difference.
   */
  converged(): Promise<true>;
  /** Of virtual time, since the world began. */
  readonly elapsedMs: number;
}

export interface WorldLedger {
  /** Throws while it is stopped. */
  readonly current: TestLedger;
  readonly isRunning: boolean;
  /** Killed where it stands: nothing is finished; what it had acknowledged is in its files. */
  stop(): void;
  start(): void;
  /** `stop`, and started again on its files. */
  restart(): void;
}

export interface WorldOptions<S extends Schema> {
  readonly schema: S;
  /** 1 unless given. Another seed gives other ids, delays and losses. */
  readonly seed?: number;
  readonly workspace?: string;
}

const LEDGER = 'http://ledger.test';
const LIMIT_MS = 10 * 60_000;
const LISTED_MAX = 50;

/** See `World`. Its files are in a temporary folder, which goes with it. */
export async function createWorld<const S extends Schema>(options: WorldOptions<S>): Promise<World<S>> {
  const { schema, seed = 1, workspace = 'world' } = options;
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-world-'));
  const random = createSeededRandom(seed);
  const time = createVirtualTime({ runsDueByItself: true });
  let starts = 0;
  const endpoint = createTestEndpoint(() => {
    starts += 1;
    return createTestLedger({
      folder: join(folder, 'ledger'),
      // Another run, other salts.
      platform: { clock: time.clockFor({}), random: random.fork(`ledger-${starts}`), digest: nodeDigest },
      schema: schemaData(schema),
    });
  });
  endpoint.start();
  const devices = new Map<string, Device<S>>();

  const run: World<S>['run'] = async (done, { limitMs = LIMIT_MS, what = 'what was waited for' } = {}) => {
    const beganMs = time.elapsedMs;
    if (await time.until(done, limitMs)) return;
    const standing = [...devices.values()].map((device) => device.tell());
    if (!endpoint.up) standing.push('the ledger is stopped');
    const ranMs = time.elapsedMs - beganMs;
    throw new WorldError(
      'world-timeout',
      `After ${ranMs} ms of virtual time (seed ${seed}), ${what} has not come:\n${standing.join('\n')}`,
      { what, limitMs, seed, elapsedMs: time.elapsedMs, standing },
    );
  };
  const settled = (limitMs: number) =>
    run(() => [...devices.values()].every((device) => device.isSettled()), { limitMs, what: 'settled' });

  return {
    seed,
    get elapsedMs() {
      return time.elapsedMs;
    },
    device: async (name, { account = name, skewMs = 0 } = {}) => {
      const known = devices.get(name);
      if (known !== undefined) return known;
      const device = new Device({
        name,
        account,
        ledger: LEDGER,
        schema,
        workspace,
        folder,
        time,
        random: random.fork(name),
        endpoint,
        skewMs,
      });
      devices.set(name, device);
      await device.restart();
      return device;
    },
    ledger: {
      get current() {
        return endpoint.current;
      },
      get isRunning() {
        return endpoint.up;
      },
      stop: () => endpoint.kill(),
      start: () => endpoint.start(),
      restart: () => {
        endpoint.kill();
        endpoint.start();
      },
    },
    settle: async ({ limitMs = LIMIT_MS } = {}) => {
      // A device at its head may be behind one that pushed last: look again after the sockets had their say.
      for (let round = 0; round < 3; round += 1) {
        await settled(limitMs);
        await time.advance(50);
      }
      await settled(limitMs);
    },
    run,
    advance: (ms) => time.advance(ms),
    converged: async () => {
      const differences: WorldDifference[] = [];
      const logs = new Set(['main', ...[...devices.values()].flatMap((device) => device.logs())]);
      for (const log of logs) {
        const ledger = await readLedgerLog(endpoint.current, workspace, log);
        differences.push(...(ledger?.problems ?? []));
        for (const device of devices.values()) differences.push(...(await device.differencesFrom(log, ledger)));
      }
      if (differences.length === 0) return true;
      const listed = differences.slice(0, LISTED_MAX);
      const more = differences.length > listed.length ? `\nand ${differences.length - listed.length} more` : '';
      throw new WorldError(
        'world-differs',
        `Not converged (seed ${seed}):\n${listed.map(({ line }) => line).join('\n')}${more}`,
        { seed, found: differences.length },
        listed,
      );
    },
    [Symbol.asyncDispose]: async () => {
      for (const device of devices.values()) device.end();
      endpoint.kill();
      time.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
