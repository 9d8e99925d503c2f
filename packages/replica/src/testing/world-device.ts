import { join } from 'node:path';
import type { Fault, Platform, Schema } from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodeDigest } from '../adapters/node/platform.ts';
import { createClientOver, type HostProvider } from '../client/client.ts';
import type { Replica } from '../client/replica.ts';
import { type ComposedHost, composeHost } from '../host/compose.ts';
import type { ChannelEvents, OpenChannel } from '../link/messages.ts';
import {
  CRASH_POINTS,
  CrashPlan,
  type CrashPoint,
  crashingClock,
  crashingDatabase,
  crashingEndpoint,
  crashingFetch,
} from './crash-points.ts';
import {
  createDeviceNetwork,
  type DeviceNetwork,
  MISHAPS,
  type Mishap,
  type NetworkCounts,
  type NetworkRules,
  REQUEST_KINDS,
  type RequestKind,
} from './network.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { TestEndpoint } from './test-endpoint.ts';
import type { DeviceClock, VirtualTime } from './virtual-time.ts';
import { differencesOf, type LedgerLog } from './world-differences.ts';
import type { WorldDifference } from './world-error.ts';

/** `up` is from the device to the ledger, `down` the other way. */
export type Direction = 'up' | 'down';

/** One device of a test world: the production host and client over ports that a test controls. */
export interface WorldDevice<S extends Schema> {
  readonly name: string;
  /** Of the present run: after `restart` it is another object. Throws while the device is down. */
  readonly replica: Replica<S>;
  /** False after a crash, until `restart`. */
  readonly isRunning: boolean;
  /** The point of `crashAt` at which it died last; null if it never did. */
  readonly diedAt: CrashPoint | null;

  /** As an operating system that knows it: every connection is cut, and nothing leaves. */
  offline(): void;
  online(): void;
  /**
   * Closes one direction, and tells nobody: what is sent that way never arrives, and the other end does not notice. A
   * push with `down` blocked is taken by the ledger, and its author does not know.
   */
  block(direction: Direction): void;
  /** Opens it again; without a direction both. What was lost stays lost. */
  unblock(direction?: Direction): void;
  /** Cuts every open connection now, once. */
  cut(): void;
  /** What happens to the next request of that kind. `any` unless one is named. */
  next(mishap: Mishap, kind?: RequestKind): void;
  /** What the network does to every message of this device: delays in milliseconds, probabilities, a login page. */
  readonly network: NetworkRules;
  /** What the network has done so far. */
  readonly counts: Readonly<NetworkCounts>;

  /** Now, as after SIGKILL: what was durable is in the file, nothing else is anywhere. Commits in work reject. */
  crash(): Promise<void>;
  /**
   * Dies, as `crash`, when it next comes to the point; `after` says how often it passes it unharmed first. Null takes
   * it back. One point is armed at a time, and a restart keeps it.
   */
  crashAt(point: CrashPoint | null, options?: { readonly after?: number }): void;
  /** A new run of the app on the file as it is. Crashes first if it runs. */
  restart(): Promise<void>;

  /** A sleep of the machine: `ms` > 0 pass on both its clocks at once, and no timer fires in between. */
  jump(ms: number): void;
  /** Sets its wall clock this far from true time, either way. Durations are not touched. */
  skew(ms: number): void;
}

export interface DeviceParts<S extends Schema> {
  readonly name: string;
  readonly account: string;
  readonly ledger: string;
  readonly schema: S;
  readonly workspace: string;
  readonly folder: string;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly endpoint: TestEndpoint;
  readonly skewMs: number;
}

export class Device<S extends Schema> implements WorldDevice<S> {
  readonly #parts: DeviceParts<S>;
  readonly #network: DeviceNetwork;
  readonly #plan: CrashPlan;
  #clock: DeviceClock;
  #sleptMs = 0;
  #skewMs: number;
  #starts = 0;
  #host: ComposedHost | null = null;
  #replica: Replica<S> | null = null;
  #diedAt: CrashPoint | null = null;
  readonly #channels = new Set<ChannelEvents>();

  constructor(parts: DeviceParts<S>) {
    this.#parts = parts;
    this.#skewMs = parts.skewMs;
    this.#clock = parts.time.clockFor({ skewMs: parts.skewMs });
    this.#plan = new CrashPlan((at) => {
      this.#diedAt = at;
      this.#die();
    });
    const endpoint = crashingEndpoint(parts.endpoint, this.#plan);
    this.#network = createDeviceNetwork({
      time: parts.time,
      random: parts.random.fork('network'),
      ledger: () => endpoint,
    });
  }

  get name(): string {
    return this.#parts.name;
  }
  get network(): NetworkRules {
    return this.#network.rules;
  }
  get counts(): Readonly<NetworkCounts> {
    return this.#network.counts;
  }
  get isRunning(): boolean {
    return this.#host !== null;
  }
  get diedAt(): CrashPoint | null {
    return this.#diedAt;
  }
  get replica(): Replica<S> {
    if (this.#replica === null || this.#host === null) throw new Error(`${this.name} has crashed. Call restart().`);
    return this.#replica;
  }

  // ── network ───────────────────────────────────────────────────────────────────────────────────────────────────────

  offline(): void {
    this.#network.rules.offline = true;
    this.#network.cut();
  }
  online(): void {
    this.#network.rules.offline = false;
    this.#host?.sync.kick('online');
  }
  block(direction: Direction): void {
    oneOf('direction', direction, DIRECTIONS);
    this.#network.rules[RULE[direction]] = false;
  }
  unblock(direction?: Direction): void {
    if (direction !== undefined) oneOf('direction', direction, DIRECTIONS);
    for (const one of direction === undefined ? DIRECTIONS : [direction]) this.#network.rules[RULE[one]] = true;
  }
  cut(): void {
    this.#network.cut();
  }
  next(mishap: Mishap, kind: RequestKind = 'any'): void {
    oneOf('mishap', mishap, MISHAPS);
    oneOf('kind', kind, REQUEST_KINDS);
    this.#network.next(mishap, kind);
  }

  // ── clock ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  jump(ms: number): void {
    if (!(ms > 0)) throw new RangeError('A sleep takes time. To set the wall clock back, call skew().');
    this.#sleptMs += ms;
    this.#clock.jump(ms);
  }
  skew(ms: number): void {
    this.#skewMs = ms;
    this.#clock.skewMs = ms;
  }

  // ── life ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  crash(): Promise<void> {
    this.#die();
    return Promise.resolve();
  }

  crashAt(point: CrashPoint | null, { after = 0 }: { readonly after?: number } = {}): void {
    if (point !== null) oneOf('crash point', point, Object.keys(CRASH_POINTS));
    if (!(Number.isInteger(after) && after >= 0))
      throw new RangeError(`after is ${after}: 0 or a whole number above it.`);
    this.#plan.arm(point, after);
  }

  /** The end of the world: whoever still waits is told what a client that is closed tells. */
  end(): void {
    this.#die({ code: 'closed' });
  }

  /** At once, wherever it stands: also inside a transaction or a request of its own. */
  #die(fault?: Fault): void {
    if (this.#host === null) return;
    const { database } = this.#host.state.store;
    this.#host = null;
    this.#replica = null;
    this.#clock.stop();
    if (database.inTransaction) database.exec('ROLLBACK');
    database.close();
    const channels = [...this.#channels];
    // First: a channel that is closed now must not reach the host, which is no more.
    this.#channels.clear();
    for (const channel of channels) {
      if (fault !== undefined) channel.tell({ tell: 'end', fault });
      channel.closed();
    }
    this.#network.cut();
  }

  async restart(): Promise<void> {
    this.#die();
    this.#starts += 1;
    const { name, account, ledger, schema, workspace, folder, time, random } = this.#parts;
    this.#clock = time.clockFor({ skewMs: this.#skewMs });
    if (this.#sleptMs > 0) this.#clock.jump(this.#sleptMs);
    const platform: Platform = {
      clock: crashingClock(this.#clock, this.#plan),
      random: random.fork(`start-${this.#starts}`),
      digest: nodeDigest,
    };
    const provider: HostProvider = {
      platform,
      open: (request) => {
        const host = composeHost({
          ...request,
          database: crashingDatabase(openNodeDatabase({ file: join(folder, `${name}.holdfast`) }), this.#plan),
          platform,
          fetch: crashingFetch(this.#network.fetch, this.#plan),
          openSocket: this.#network.openSocket,
          place: { storage: 'durable', host: 'here' },
        });
        this.#host = host;
        return Promise.resolve({
          openChannel: this.#watched(host.openChannel),
          get status() {
            return host.status;
          },
          close: () => host.close(),
        });
      },
      workspaces: () => Promise.resolve([]),
    };
    const client = createClientOver({ schema, ledger, account: { id: account, token: () => account }, provider });
    this.#replica = await client.open(workspace);
  }

  /** A crash ends every channel without a word, as the end of a process does. */
  #watched(open: OpenChannel): OpenChannel {
    return (events) => {
      this.#channels.add(events);
      const channel = open(events);
      return {
        send: (ask) => channel.send(ask),
        close: () => {
          if (this.#channels.delete(events)) channel.close();
        },
      };
    };
  }

  // ── looking at it ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Nothing is on its way, and it stands where it knows the ledger to stand. Down or offline: nothing is awaited. */
  isSettled(): boolean {
    if (this.#host === null || this.#network.rules.offline) return true;
    const { state, coordinator, sync } = this.#host;
    if (sync.status.phase !== 'live' || coordinator.obligations.open().length > 0) return false;
    return state.logs().every((log) => {
      if (log.stage !== 'visible') return false;
      if (log.blocked !== null) return true;
      return state.flowing(log.log) === 0 && log.head === (log.ledgerHead ?? log.head);
    });
  }

  /** Where it stands, in one line. */
  tell(): string {
    if (this.#host === null) return `${this.name} has crashed${this.#diedAt === null ? '' : ` (${this.#diedAt})`}`;
    const { state, coordinator, sync } = this.#host;
    const { phase, reason } = sync.status;
    const { offline, toLedger, fromLedger } = this.#network.rules;
    const net = [
      offline && phase !== 'offline' && 'offline',
      !toLedger && 'up blocked',
      !fromLedger && 'down blocked',
    ].filter(Boolean);
    const logs = state.logs().map(({ log, head, ledgerHead, blocked }) => {
      const to = ledgerHead === null || ledgerHead === head ? '' : ` of ${ledgerHead}`;
      const by = blocked === null ? '' : `, blocked: ${blocked.code}`;
      return `${log} at ${head}${to}, ${state.flowing(log)} batches on their way${by}`;
    });
    const owed = coordinator.obligations.open().length;
    return [
      `${this.name} is ${phase}${reason === null ? '' : ` (${reason.code})`}`,
      ...net,
      ...logs,
      ...(owed === 0 ? [] : [`${owed} outcomes unknown`]),
    ].join(', ');
  }

  logs(): readonly string[] {
    return this.#host?.state.logs().map(({ log }) => log) ?? [];
  }

  async differencesFrom(log: string, ledger: LedgerLog | null): Promise<readonly WorldDifference[]> {
    return this.#host === null ? [] : differencesOf(this.name, this.#host.state, log, ledger);
  }
}

/** Tests are often plain JavaScript: a name that nobody knows would never come true, and its test pass. */
function oneOf(what: string, given: string, allowed: readonly string[]): void {
  if (!allowed.includes(given)) throw new RangeError(`There is no ${what} "${given}". Allowed: ${allowed.join(', ')}.`);
}

const DIRECTIONS: readonly Direction[] = ['up', 'down'];
const RULE = { up: 'toLedger', down: 'fromLedger' } as const;
