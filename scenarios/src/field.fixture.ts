import { cpSync, rmSync } from 'node:fs';
import type { WireResponse } from '@holdfast/core';
import { expect } from 'vitest';
import { openNodeDatabase } from '../../packages/replica/src/adapters/node/database.ts';
import { type FailHow, FailingDatabase } from '../../packages/replica/src/engine/crash-kit.fixture.ts';
import { checkQuiet, checkStep } from '../../simulation/src/checkers.ts';
import type { SimulatedDevice } from '../../simulation/src/device.ts';
import { createWorld, type World, type WorldSchema } from '../../simulation/src/world.ts';

/**
 * Where the experiments run: a world of the simulation without weather, whose messages a test can hold, lose and count.
 * Production engines, real SQLite files, virtual time.
 */
export type FieldDevice = SimulatedDevice<WorldSchema>;

export interface Field extends Disposable {
  readonly world: World;
  readonly devices: readonly FieldDevice[];
  /** Lets virtual time pass until everything due has happened; a minute unless said otherwise. */
  pass(ms?: number): Promise<void>;
  /** At rest every checker of the simulation is silent. */
  expectHealthy(): Promise<void>;
  /** Stands in the way of requests: calls `next` for what the ledger would answer. */
  intercept(handle: Intercept | null): void;
  /** Frames of the ledger reach nobody, until `unmute` ends the sockets that missed some. */
  mute(): void;
  unmute(): void;
  /** What went over sockets: JSON texts. */
  readonly frames: { readonly toLedger: string[]; readonly toDevices: string[] };
  /** A promise that virtual time keeps. */
  later(ms: number): Promise<void>;
  /** The ledger's files are copied; `restore` puts them back as they were, with the ledger stopped meanwhile. */
  backup(): void;
  restore(): void;
  /** The ledger's files are gone, as after `rm -r`; it starts again on an empty folder. */
  wipe(): void;
}

export interface Intercepted {
  readonly url: string;
  readonly method: string;
  readonly body: string;
  /** The account that asks. */
  readonly account: string;
}
export type Intercept = (request: Intercepted, next: () => Promise<WireResponse>) => Promise<WireResponse>;

export async function createField(seed: number, devices = 2): Promise<Field> {
  const world = createWorld(seed, { devices, faults: [], logs: 1 });
  const { ledger, time } = world;
  const { fetch, accept } = ledger;
  const frames = { toLedger: [] as string[], toDevices: [] as string[] };
  let handle: Intercept | null = null;
  let isMute = false;
  const asEver = (url: string, request: Parameters<typeof fetch>[1]) => fetch(url, request);
  ledger.fetch = (url, request) => {
    const next = () => asEver(url, request);
    if (handle === null) return next();
    // A device's token begins with its account.
    const [account = ''] = (request.headers['authorization'] ?? '').replace('Bearer ', '').split('/');
    return handle({ url, method: request.method, body: String(request.body ?? ''), account }, next);
  };
  const field: Field = {
    world,
    devices: world.devices,
    mute: () => {
      isMute = true;
    },
    unmute: () => {
      isMute = false;
      for (const { network } of world.devices) network.cut();
    },
    frames,
    pass: (ms = 60_000) => time.advance(ms),
    // The ledger's files may have been put back, and a repair be right.
    expectHealthy: async () => expect(await checkQuiet(world, { isTampered: true })).toEqual([]),
    intercept: (next) => {
      handle = next;
    },
    later: (ms) => new Promise((resolve) => void time.at(ms, resolve)),
    backup: () => {
      ledger.kill();
      cpSync(ledger.folder, `${ledger.folder}-backup`, { recursive: true });
      ledger.start();
    },
    restore: () => {
      ledger.kill();
      rmSync(ledger.folder, { recursive: true });
      cpSync(`${ledger.folder}-backup`, ledger.folder, { recursive: true });
      ledger.start();
    },
    wipe: () => {
      ledger.kill();
      rmSync(ledger.folder, { recursive: true });
      ledger.start();
    },
    [Symbol.dispose]: () => {
      for (const device of world.devices) device.crash();
      ledger.kill();
      rmSync(world.folder, { recursive: true, force: true });
    },
  };
  ledger.accept = (url, peer) => {
    const connection = accept(url, {
      send: (text) => {
        frames.toDevices.push(text);
        if (!isMute) peer.send(text);
      },
      close: peer.close,
    });
    return {
      message: (text) => {
        frames.toLedger.push(text);
        connection.message(text);
      },
      closed: () => connection.closed(),
    };
  };
  await field.pass();
  return field;
}

export const isPush = ({ method, url }: Intercepted): boolean => method === 'POST' && url.endsWith('/push');

/** Titles as a query of the app sees them, in order. */
export function titles({ engine }: FieldDevice): string[] {
  const rows = engine?.database.prepareQuery('select title from note order by title, id').statement.all() ?? [];
  return rows.map((row) => row['title'] as string);
}

export function createNote(device: FieldDevice, title: string): string {
  let id = '';
  const action = device.commit((tx) => {
    id = tx.note.create({ title });
  });
  if (action === null) throw new Error(`${device.name} could not create ${title}`);
  return id;
}

export function goOffline({ network }: FieldDevice): void {
  network.rules.offline = true;
  network.cut();
}
export function goOnline({ network, engine }: FieldDevice): void {
  network.rules.offline = false;
  engine?.sync.kick('online');
}

export const headOf = ({ engine }: FieldDevice): number => engine?.state.log('main')?.head ?? -1;

/** What is wrong in the open files just now. */
export const wrongNow = (field: Field): readonly unknown[] => checkStep(field.world);

/** From the next start on, the device's statements can be made to fail. */
export function failing(device: FieldDevice): {
  arm(nth: number, how: FailHow): void;
  /** The process is gone: an open transaction with it. */
  kill(): void;
  readonly ran: number;
} {
  let database: FailingDatabase | null = null;
  device.openDatabase = (file) => {
    database = new FailingDatabase(openNodeDatabase({ file }));
    return database;
  };
  return {
    arm: (nth, how) =>
      database?.arm(nth, {
        ...how,
        struck: () => {
          if (how.isDeadAfter !== true) return;
          device.clock.stop();
          device.network.rules.offline = true;
        },
      }),
    kill: () => {
      database?.close();
      // Each connection that ends is told to an engine that cannot write any more.
      for (let tries = 0; device.engine !== null && tries < 10; tries += 1) {
        try {
          device.crash();
        } catch {}
      }
      device.network.rules.offline = false;
    },
    get ran() {
      return database?.ran ?? 0;
    },
  };
}
