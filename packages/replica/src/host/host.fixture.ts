import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  counter,
  defineSchema,
  entity,
  type Fetch,
  flag,
  type OpenSocket,
  ref,
  schemaData,
  setOf,
  text,
} from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { nodePlatform } from '../adapters/node/platform.ts';
import { type ComposedHost, type ComposedParts, composeHost } from './compose.ts';
import type { Signal } from './observe.ts';

export const testSchema = defineSchema({
  issue: entity(
    {
      title: text({ max: 200 }),
      body: text({ default: '' }),
      done: flag({ default: false, onClash: 'last' }),
      labels: setOf(text()),
      votes: counter(),
    },
    { search: ['title'], events: (e) => ({ closed: () => e.set({ done: true }) }) },
  ),
  comment: entity({ issue: ref('issue'), body: text() }),
  panel: entity({ open: flag({ default: false }) }, { local: true }),
});
export type TestSchema = typeof testSchema;

/** No ledger can be reached, and no byte leaves: what a device in a tunnel has. */
export const noNetwork: { readonly fetch: Fetch; readonly openSocket: OpenSocket } = {
  fetch: () => Promise.reject(Object.assign(new Error('No network.'), { noByteLeft: true as const })),
  openSocket: (_, events) => {
    setImmediate(() => events.closed('no network'));
    return { send: () => undefined, close: () => undefined, bufferedBytes: 0 };
  },
};

export interface TestHost {
  readonly host: ComposedHost;
  readonly signals: Signal[];
  /** Runs of live queries so far. */
  readonly runs: () => number;
}

/** Folders that `removeFiles` removes. */
const folders: string[] = [];
export function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-host-'));
  folders.push(folder);
  return join(folder, 'replica.holdfast');
}
export function removeFiles(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** A real host on a real file or in memory, with the engine and without a ledger. */
export function openTestHost(options: Partial<ComposedParts> & { readonly file?: string } = {}): TestHost {
  const signals: Signal[] = [];
  const { file = ':memory:', ...parts } = options;
  const host = composeHost({
    database: openNodeDatabase({ file }),
    platform: nodePlatform,
    ...noNetwork,
    schema: schemaData(testSchema),
    ledger: 'http://ledger.test',
    account: 'ana',
    workspace: 'acme',
    place: { storage: file === ':memory:' ? 'memory' : 'durable', host: 'here' },
    observe: (signal) => signals.push(signal),
    ...parts,
  });
  return { host, signals, runs: () => signals.filter(({ name }) => name === 'live').length };
}
