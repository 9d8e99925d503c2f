import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counter, defineSchema, entity, oneOf, type Platform, type Schema, schemaData, text } from '@holdfast/core';
import { createTestLedger } from '@holdfast/ledger/testing';
import { openNodeDatabase } from '../../packages/replica/src/adapters/node/database.ts';
import { nodeDigest } from '../../packages/replica/src/adapters/node/platform.ts';
import { type Client, createClientOver } from '../../packages/replica/src/client/client.ts';
import type { Replica } from '../../packages/replica/src/client/replica.ts';
import { examine } from '../../packages/replica/src/engine/inspect.ts';
import type { SyncSettings } from '../../packages/replica/src/engine/sync/settings.ts';
import { type ComposedHost, composeHost } from '../../packages/replica/src/host/compose.ts';
import type { OpenChannel } from '../../packages/replica/src/link/messages.ts';
import { createDeviceNetwork, type DeviceNetwork } from '../../packages/replica/src/testing/network.ts';
import { createSeededRandom } from '../../packages/replica/src/testing/seeded-random.ts';
import { createTestEndpoint, type TestEndpoint } from '../../packages/replica/src/testing/test-endpoint.ts';
import {
  createVirtualTime,
  type DeviceClock,
  type VirtualTime,
} from '../../packages/replica/src/testing/virtual-time.ts';

/**
 * What exists of a browser without a browser: profiles with one replica file each, hosts that own the file one after the
 * other (a tab or a worker that can be killed, frozen and woken), and tabs that use whichever host is there, over a link
 * that clones every message. Production engines, real SQLite files, the real ledger, virtual time.
 */
export const tabsSchema = defineSchema({
  issue: entity({
    title: text(),
    status: oneOf(['todo', 'done'], { otherwise: 'todo', default: 'todo', onClash: 'last' }),
    votes: counter(),
  }),
});
export type TabsSchema = typeof tabsSchema;

const LEDGER = 'http://ledger.test';
const WORKSPACE = 'acme';
/** How soon a tab looks for the next host, in milliseconds. */
const REOPEN_MS = [50, 100, 200, 400, 800, 1_600, 3_200, 3_200, 3_200, 3_200];

export interface Browser {
  readonly time: VirtualTime;
  readonly endpoint: TestEndpoint;
  profile<S extends Schema = TabsSchema>(name: string, options?: ProfileOptions<S>): Profile<S>;
  /** Events in the log, verified from scratch; throws where the ledger contradicts itself. */
  eventsInLog(): Promise<number>;
  /** Moves the clock until the promise has settled; rejects after `limitMs`. */
  within<T>(limitMs: number, what: string, promise: Promise<T>): Promise<T>;
  until(what: string, done: () => boolean, limitMs?: number): Promise<void>;
  close(): Promise<void>;
}

export interface ProfileOptions<S extends Schema> {
  readonly account?: string;
  readonly schema?: S;
  readonly skewMs?: number;
  readonly settings?: Partial<SyncSettings>;
}

export interface Profile<S extends Schema> {
  readonly file: string;
  /** The host that new channels go to; null after a kill. */
  current: RunningHost | null;
  /** A new run of the host on the file; an earlier one is outranked by it, if it is still there. */
  start(schema?: Schema): RunningHost;
  tab(options?: { readonly schema?: Schema }): Promise<Replica<S>>;
  /** Called before each message of a link is handed over, in either direction, with its number from 1. */
  onMessage: ((number: number) => void) | null;
  /** Findings of the file of the present host, and rows that are still unsent. */
  look(): { readonly findings: readonly string[]; readonly unsent: number };
}

export interface RunningHost {
  readonly host: ComposedHost;
  readonly network: DeviceNetwork;
  readonly clock: DeviceClock;
  /** As after SIGKILL; its tabs find the port closed. */
  kill(): void;
  /** Its tabs find the port closed, and look for the present host; it goes on. */
  hangUp(): void;
  /** Nothing runs in it and nothing is told, as a browser does with a tab in the background. */
  freeze(): void;
  /** Everything that was held happens now, in its order. */
  thaw(): void;
}

export function createBrowser(seed = 1, options: { readonly ledgerSkewMs?: number } = {}): Browser {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-tabs-'));
  const time = createVirtualTime({ runsDueByItself: true });
  const random = createSeededRandom(seed);
  const endpoint = createTestEndpoint(() =>
    createTestLedger({
      folder: join(folder, 'ledger'),
      platform: {
        clock: time.clockFor({ skewMs: options.ledgerSkewMs ?? 0 }),
        random: random.fork('ledger'),
        digest: nodeDigest,
      },
    }),
  );
  endpoint.start();
  const running = new Set<RunningHost>();
  const clients: Client<Schema>[] = [];

  const within: Browser['within'] = async (limitMs, what, promise) => {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    promise.then(over, over);
    if (!(await time.until(() => isOver, limitMs))) throw new Error(`Not within ${limitMs} ms: ${what}`);
    return promise;
  };

  return {
    time,
    endpoint,
    within,
    profile: (name, given = {}) => createProfile(name, given as ProfileOptions<Schema>) as never,
    eventsInLog: async () => {
      const report = await endpoint.current.engine.verify({ workspace: WORKSPACE, log: 'main' });
      if (report === null) return 0;
      if (report.problems.length > 0) throw new Error(JSON.stringify(report.problems));
      return report.events;
    },
    until: async (what, done, limitMs = 60_000) => {
      if (!(await time.until(done, limitMs))) throw new Error(`Not within ${limitMs} ms: ${what}`);
    },
    close: async () => {
      for (const one of [...running]) one.kill();
      if (endpoint.up) endpoint.kill();
      time.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };

  function createProfile(name: string, given: ProfileOptions<Schema>): Profile<Schema> {
    const { account = name, schema = tabsSchema, skewMs = 0, settings } = given;
    const file = join(folder, `${name}.holdfast`);
    let starts = 0;
    let tabs = 0;
    let messages = 0;

    const start = (of: Schema): RunningHost => {
      starts += 1;
      const gate = createGate();
      const clock = gate.clock(time.clockFor({ skewMs }));
      const network = createDeviceNetwork({
        time,
        random: random.fork(`${name} network ${starts}`),
        ledger: () => endpoint,
      });
      const host = composeHost({
        database: openNodeDatabase({ file }),
        platform: { clock, random: random.fork(`${name} ${starts}`), digest: nodeDigest },
        fetch: (url, request) => gate.promise(network.fetch(url, request)),
        openSocket: (url, events) =>
          network.openSocket(url, {
            open: () => gate.pass(() => events.open()),
            message: (message) => gate.pass(() => events.message(message)),
            closed: (reason) => gate.pass(() => events.closed(reason)),
          }),
        schema: schemaData(of),
        ledger: LEDGER,
        account,
        workspace: WORKSPACE,
        token: async () => account,
        place: { storage: 'durable', host: 'here' },
        ...(settings === undefined ? {} : { settings }),
      });
      const ports = new Set<() => void>();
      const one: RunningHost = {
        host,
        network,
        clock,
        kill: () => {
          if (!running.delete(one)) return;
          clock.stop();
          network.cut();
          const { database } = host.state.store;
          if (database.inTransaction) database.exec('ROLLBACK');
          database.close();
          if (profile.current === one) profile.current = null;
          for (const close of [...ports]) close();
        },
        hangUp: () => {
          for (const close of [...ports]) close();
        },
        freeze: gate.freeze,
        thaw: gate.thaw,
      };
      PORTS.set(one, { ports, gate });
      running.add(one);
      return one;
    };

    /** A port to the host that is there now. Every message is cloned and comes later, as over a real port. */
    const openChannel: OpenChannel = (events) => {
      const to = profile.current;
      const { ports, gate } = to === null ? { ports: new Set<() => void>(), gate: createGate() } : portsOf(to);
      let isOpen = true;
      const count = () => {
        messages += 1;
        profile.onMessage?.(messages);
      };
      const closed = () => {
        if (!isOpen) return;
        isOpen = false;
        ports.delete(closed);
        time.at(0, () => events.closed());
      };
      if (to === null) {
        closed();
        return { send: () => undefined, close: () => undefined };
      }
      ports.add(closed);
      const channel = to.host.openChannel({
        tell: (tell) => {
          const copy = structuredClone(tell);
          time.at(0, () => {
            if (!isOpen) return;
            count();
            if (isOpen) events.tell(copy);
          });
        },
        closed,
      });
      return {
        send: (ask) => {
          const copy = structuredClone(ask);
          time.at(0, () => {
            if (!isOpen) return;
            count();
            if (isOpen) gate.pass(() => channel.send(copy));
          });
        },
        close: () => {
          isOpen = false;
          ports.delete(closed);
          if (running.has(to)) gate.pass(() => channel.close());
        },
      };
    };

    const profile: Profile<Schema> = {
      file,
      current: null,
      onMessage: null,
      start: (of = schema) => {
        profile.current = start(of);
        return profile.current;
      },
      tab: async ({ schema: of = schema } = {}) => {
        tabs += 1;
        const platform: Platform = {
          clock: time.clockFor({ skewMs }),
          random: random.fork(`${name} tab ${tabs}`),
          digest: nodeDigest,
        };
        const client = createClientOver({
          schema: of,
          ledger: LEDGER,
          account: { id: account, token: () => account },
          provider: {
            platform,
            open: async () => ({
              openChannel,
              status: (profile.current as RunningHost).host.status,
              reopenMs: REOPEN_MS,
              close: async () => undefined,
            }),
            workspaces: async () => [],
          },
        });
        clients.push(client);
        return client.open(WORKSPACE);
      },
      look: () => {
        const { state } = (profile.current as RunningHost).host;
        return {
          findings: examine(state.store)
            .findings.filter(({ check }) => check !== 'permits')
            .map(({ check, what }) => `${check}: ${what}`),
          unsent: state.counts().unsent,
        };
      },
    };
    return profile;
  }
}

interface Ports {
  readonly ports: Set<() => void>;
  readonly gate: Gate;
}
const PORTS = new WeakMap<RunningHost, Ports>();
const portsOf = (one: RunningHost): Ports => PORTS.get(one) as Ports;

/** Holds whatever would run in a frozen process, and lets it go in its order. */
interface Gate {
  pass(run: () => void): void;
  promise<T>(given: Promise<T>): Promise<T>;
  clock(of: DeviceClock): DeviceClock;
  freeze(): void;
  thaw(): void;
}

function createGate(): Gate {
  let isFrozen = false;
  const held: (() => void)[] = [];
  const pass = (run: () => void) => {
    if (isFrozen) held.push(run);
    else run();
  };
  return {
    pass,
    promise: (given) =>
      new Promise((resolve, reject) => {
        given.then(
          (value) => pass(() => resolve(value)),
          (cause: unknown) => pass(() => reject(cause)),
        );
      }),
    clock: (of) =>
      Object.assign(Object.create(of) as DeviceClock, {
        timer: (ms: number, run: () => void) => of.timer(ms, () => pass(run)),
        soon: (run: () => void) => of.soon(() => pass(run)),
      }),
    freeze: () => {
      isFrozen = true;
    },
    thaw: () => {
      isFrozen = false;
      for (const run of held.splice(0)) run();
    },
  };
}
