import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  defineSchema,
  entity,
  type Fault,
  type Fetch,
  HEADERS,
  type JsonObject,
  type Random,
  randomHex,
  type SocketEvents,
  schemaData,
  text,
  uuidv7,
  type WireRequest,
  type WireResponse,
} from '@holdfast/core';
import { createTestLedger } from '@holdfast/ledger/testing';
import { openNodeDatabase } from '../../adapters/node/database.ts';
import { nodeDigest } from '../../adapters/node/platform.ts';
import { createDeviceNetwork, type DeviceNetwork } from '../../testing/network.ts';
import { createSeededRandom } from '../../testing/seeded-random.ts';
import { createTestEndpoint, type TestEndpoint } from '../../testing/test-endpoint.ts';
import { createVirtualTime, type DeviceClock, type VirtualTime } from '../../testing/virtual-time.ts';
import { type Coordinator, createCoordinator } from '../coordinator.ts';
import { type OpenedState, openReplicaState } from '../state.ts';
import type { SyncSettings } from './settings.ts';
import { createSyncEngine, type SyncEngine } from './sync-engine.ts';

/**
 * Sync engines on real state, real SQLite and the real ledger, on virtual time; between them stands a script that may
 * answer in the ledger's place, lose an answer, or hold it back.
 */
export const schema = defineSchema({
  note: entity({ title: text(), body: text({ optional: true }) }),
});

export type Script = (url: string, request: WireRequest, forward: Fetch) => Promise<WireResponse> | undefined;

export interface Sent {
  readonly method: string;
  /** Below the workspace, without query. */
  readonly path: string;
  readonly url: string;
  readonly body: JsonObject | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly atMs: number;
}

export interface BenchDevice {
  readonly name: string;
  readonly state: OpenedState;
  readonly coordinator: Coordinator;
  readonly sync: SyncEngine;
  readonly clock: DeviceClock;
  readonly network: DeviceNetwork;
  readonly sent: Sent[];
  /** Frames that the device sent on its socket. */
  readonly frames: JsonObject[];
  /** What the engine hears of each socket it ever opened. */
  readonly connections: SocketEvents[];
  readonly told: (Fault | null)[];
  script: Script | null;
  token: () => string | Promise<string>;
  /** Text in, text out or null to swallow it: what comes to the device on its socket. */
  onMessage: ((text: string) => string | null) | null;
  /** Creates a note, or changes one; the action id. */
  create(title: string): { readonly id: string; readonly action: string };
  update(id: string, set: JsonObject): string;
  titles(): readonly string[];
  owed(): readonly string[];
  crash(): void;
  restart(): void;
  paths(from?: number): readonly string[];
}

export interface Bench {
  readonly time: VirtualTime;
  readonly endpoint: TestEndpoint;
  device(name: string, options?: { readonly account?: string; readonly settings?: Partial<SyncSettings> }): BenchDevice;
  /** Another ledger stands under the same name, and knows nothing. */
  replaceLedger(): void;
  /** The ledger's files are copied; the function puts them back, and what it accepted since is gone there. */
  backUp(): () => void;
  /** Runs until it holds; fails the test otherwise. */
  until(what: string, done: () => boolean, limitMs?: number): Promise<void>;
  close(): void;
}

export function createBench(
  seed = 1,
  limits: NonNullable<Parameters<typeof createTestLedger>[0]['limits']> = {},
): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sync-'));
  const time = createVirtualTime();
  const random = createSeededRandom(seed);
  let ledgers = 0;
  const ledgerFolder = () => join(folder, `ledger ${ledgers}`);
  const endpoint = createTestEndpoint(() =>
    createTestLedger({
      folder: ledgerFolder(),
      platform: { clock: time.clockFor({}), random: random.fork(`ledger ${ledgers}`), digest: nodeDigest },
      schema: schemaData(schema),
      limits,
    }),
  );
  endpoint.start();
  const devices: Device[] = [];
  return {
    time,
    endpoint,
    device: (name, { account = 'ana', settings = {} } = {}) => {
      const device = new Device({ name, account, settings, folder, time, seed, endpoint });
      devices.push(device);
      device.restart();
      return device;
    },
    replaceLedger: () => {
      endpoint.kill();
      ledgers += 1;
      endpoint.start();
    },
    backUp: () => {
      const [files, kept] = [ledgerFolder(), `${ledgerFolder()} kept`];
      cpSync(files, kept, { recursive: true });
      return () => {
        endpoint.kill();
        rmSync(files, { recursive: true });
        cpSync(kept, files, { recursive: true });
        endpoint.start();
      };
    },
    until: async (what, done, limitMs = 120_000) => {
      if (await time.until(done, limitMs)) return;
      const told = devices.map((device) => `${device.name}: ${JSON.stringify(device.sync.status)}`);
      throw new Error(`Not within ${limitMs} ms: ${what}\n${told.join('\n')}`);
    },
    close: () => {
      for (const device of devices) device.crash();
      if (endpoint.up) endpoint.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** It is at the ledger's head, and everything has left it. */
export const isLive = ({ sync }: BenchDevice): boolean => sync.status.phase === 'live' && sync.status.unsent === 0;

/** Ana and Ben, both at work. */
export async function twoLive(bench: Bench): Promise<[ana: BenchDevice, ben: BenchDevice]> {
  const [ana, ben] = [bench.device('ana'), bench.device('ben', { account: 'ben' })];
  for (const { sync } of [ana, ben]) sync.start();
  await bench.until('both live', () => isLive(ana) && isLive(ben));
  return [ana, ben];
}

interface DeviceParts {
  readonly name: string;
  readonly account: string;
  readonly settings: Partial<SyncSettings>;
  readonly folder: string;
  readonly time: VirtualTime;
  readonly seed: number;
  readonly endpoint: TestEndpoint;
}

class Device implements BenchDevice {
  readonly #parts: DeviceParts;
  readonly sent: Sent[] = [];
  readonly frames: JsonObject[] = [];
  readonly connections: SocketEvents[] = [];
  readonly told: (Fault | null)[] = [];
  readonly network: DeviceNetwork;
  script: Script | null = null;
  onMessage: ((text: string) => string | null) | null = null;
  token: () => string | Promise<string>;
  state!: OpenedState;
  coordinator!: Coordinator;
  sync!: SyncEngine;
  clock!: DeviceClock;
  #close: (() => void) | null = null;
  #starts = 0;

  constructor(parts: DeviceParts) {
    this.#parts = parts;
    const { time, endpoint, seed, name } = parts;
    this.token = () => parts.account;
    this.#ids = createSeededRandom(parts.seed).fork(`ids ${parts.name}`);
    this.network = createDeviceNetwork({
      time,
      random: createSeededRandom(seed).fork(`network ${name}`),
      ledger: () => endpoint,
    });
  }

  get name(): string {
    return this.#parts.name;
  }

  restart(): void {
    const { time, folder, name, account, seed, settings } = this.#parts;
    this.#starts += 1;
    const random = createSeededRandom(seed).fork(`${name} ${this.#starts}`);
    const clock = time.clockFor({});
    const platform = { clock, random, digest: nodeDigest };
    const database = openNodeDatabase({ file: join(folder, `${name}.sqlite`) });
    const hostInstance = randomHex(random, 16);
    const identity = { ledger: 'http://ledger.test', account, workspace: 'acme' };
    const state = openReplicaState({ database, platform, schema: schemaData(schema), hostInstance, ...identity });
    const coordinator = createCoordinator({
      database,
      clock,
      newId: () => uuidv7(clock.now(), random),
      hostInstance,
      isActive: (log) => state.log(log) !== undefined,
    });
    database.exec('BEGIN IMMEDIATE');
    const generation = coordinator.raiseGeneration();
    database.exec('COMMIT');
    state.takeOver(generation);
    Object.assign(this, { state, coordinator, clock });
    this.sync = createSyncEngine({
      state,
      coordinator,
      fetch: (url, request) => this.#fetch(url, request),
      openSocket: (url, events) => {
        this.connections.push(events);
        const socket = this.network.openSocket(url, {
          ...events,
          message: (given) => {
            const heard = this.onMessage === null ? given : this.onMessage(given);
            if (heard !== null) events.message(heard);
          },
        });
        return {
          ...socket,
          send: (given) => {
            this.frames.push(JSON.parse(given) as JsonObject);
            socket.send(given);
          },
        };
      },
      platform,
      ledgerUrl: 'http://ledger.test',
      workspace: 'acme',
      token: () => this.token(),
      settings,
      onSignInNeeded: (fault) => this.told.push(fault),
    });
    this.#close = () => {
      clock.stop();
      this.network.cut();
      if (database.inTransaction) database.exec('ROLLBACK');
      database.close();
    };
  }

  crash(): void {
    this.#close?.();
    this.#close = null;
  }

  #fetch(url: string, request: WireRequest): Promise<WireResponse> {
    const { pathname } = new URL(url);
    this.sent.push({
      method: request.method,
      path: pathname.replace('/v1/workspaces/acme', ''),
      url,
      body: request.body === undefined ? null : (JSON.parse(request.body) as JsonObject),
      headers: request.headers,
      atMs: this.#parts.time.elapsedMs,
    });
    const forward: Fetch = (to, given) => this.network.fetch(to, given);
    return this.script?.(url, request, forward) ?? forward(url, request);
  }

  create(title: string): { readonly id: string; readonly action: string } {
    const id = this.#newId();
    return { id, action: this.#commit({ do: 'create', entity: 'note', id, fields: { title } }) };
  }

  update(id: string, set: JsonObject): string {
    return this.#commit({ do: 'update', entity: 'note', id, set });
  }

  #commit(change: Parameters<OpenedState['commit']>[0]['changes'][number]): string {
    const actionId = this.#newId();
    const outcome = this.state.commit({ actionId, log: 'main', changes: [change], seen: [], reads: [] });
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.fault));
    return actionId;
  }

  #newId(): string {
    return uuidv7(this.clock.now(), this.#ids);
  }
  readonly #ids: Random;

  titles(): readonly string[] {
    return this.state.store.database
      .prepare('SELECT title FROM note ORDER BY title')
      .all()
      .map((row) => row['title'] as string);
  }

  owed(): readonly string[] {
    return this.coordinator.obligations
      .open()
      .filter((one) => one.class === 'push')
      .map(({ identity }) => identity);
  }

  paths(from = 0): readonly string[] {
    return this.sent.slice(from).map(({ path }) => path);
  }
}

// ── what stands between ─────────────────────────────────────────────────────────────────────────────────────────────

export const answer = (
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<WireResponse> => {
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return Promise.resolve({
    status,
    headers: { get: (name) => lower.get(name.toLowerCase()) ?? null },
    text: () => Promise.resolve(body),
  });
};

export const loginPage = (): Promise<WireResponse> =>
  answer(200, '<!doctype html><form action="/login">', { 'content-type': 'text/html; charset=utf-8' });

/** A refusal with the ledger's marks. */
export const refusal = (
  request: WireRequest,
  status: number,
  code: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<WireResponse> =>
  answer(status, JSON.stringify({ code, message: code, requestId: 'scripted' }), {
    'content-type': 'application/json',
    [HEADERS.protocol]: '1',
    [HEADERS.permit]: request.headers[HEADERS.permit] ?? '',
    ...headers,
  });

export const never = (): Promise<WireResponse> => new Promise(() => {});

/** Changes an answer of the ledger to a request of this kind. */
export const rewritten =
  (part: string, change: (body: any) => void): Script =>
  (url, request, forward) => {
    if (!url.includes(part)) return undefined;
    return forward(url, request).then(async (given) => {
      const text = await given.text();
      const body = JSON.parse(text);
      if (given.status === 200) change(body);
      return { status: given.status, headers: given.headers, text: () => Promise.resolve(JSON.stringify(body)) };
    });
  };

/** The answer, with other headers. */
export async function withHeaders(
  response: Promise<WireResponse>,
  headers: Readonly<Record<string, string | null>>,
): Promise<WireResponse> {
  const given = await response;
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    status: given.status,
    headers: {
      get: (name) => {
        const other = lower.get(name.toLowerCase());
        return other === undefined ? given.headers.get(name) : other;
      },
    },
    text: () => given.text(),
  };
}
