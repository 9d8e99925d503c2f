import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspectReplica } from '@holdfast/replica/inspect';
import { auditLog, type FileFacts, factsOf } from '../../packages/cli/src/demo/audit.ts';
import { type Child, startChild } from '../../packages/cli/src/demo/child.ts';
import type { DeviceAsks } from './device-program.ts';
import type { LedgerAsks } from './ledger-program.ts';

export type Ledger = Child<LedgerAsks>;
export type Device = Child<DeviceAsks>;

/** One ledger and its devices as processes, on files that outlive them. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'));
  /** Action ids of commits that resolved: what must never be lost. */
  readonly committed = new Set<string>();
  readonly #children: { stop(): Promise<void> }[] = [];
  #url = '';

  get url(): string {
    return this.#url;
  }

  /** At the same port as before, since devices know their ledger by its address. */
  async startLedger(): Promise<Ledger> {
    const port = this.#url === '' ? '0' : new URL(this.#url).port;
    const child = startChild<LedgerAsks>(new URL('./ledger-program.ts', import.meta.url), [
      join(this.folder, 'ledger'),
      port,
    ]);
    this.#children.push(child);
    this.#url = await child.ask('url', null);
    return child;
  }

  /**
   * `via`: another address of the ledger, such as a proxy's. `mode`: what it does about a host that has the file open.
   * Throws what the device said if it could not open its replica.
   */
  async startDevice(name: string, via = this.#url, mode: 'polite' | 'take-over' = 'polite'): Promise<Device> {
    const child = startChild<DeviceAsks>(new URL('./device-program.ts', import.meta.url), [
      name,
      join(this.folder, name),
      via,
      mode,
    ]);
    this.#children.push(child);
    await child.ask('issues', null);
    return child;
  }

  fileOf(name: string): string {
    const dir = join(this.folder, name);
    const found = readdirSync(dir).filter((file) => file.endsWith('.holdfast'));
    if (found.length !== 1) throw new Error(`There are ${found.length} replica files in ${dir}.`);
    return join(dir, found[0] as string);
  }

  facts(name: string): FileFacts {
    using inspection = inspectReplica(this.fileOf(name));
    return factsOf(inspection);
  }

  /** Everything that may be said of a world at rest, from its files and the ledger's log. */
  async audit(ledger: Ledger, names: readonly string[]): Promise<Audited> {
    const verified = await ledger.ask('verify', null);
    const { lost, doubled } = await auditLog(this.#url, 'ana-token', this.committed, new Set());
    const files = names.map((name) => this.facts(name));
    return {
      lost,
      doubled,
      chains: new Set([verified?.chain, ...files.map(({ chain }) => chain)]).size,
      signatures: new Set([verified?.signature, ...files.map(({ signature }) => signature)]).size,
      findings: (verified?.problems.length ?? 1) + files.reduce((sum, { findings }) => sum + findings, 0),
      unsent: files.reduce((sum, { unsent }) => sum + unsent, 0),
      obligationsOpen: files.reduce((sum, { obligationsOpen }) => sum + obligationsOpen, 0),
    };
  }

  async close(): Promise<void> {
    // Devices first, the ledger last.
    for (const child of this.#children.reverse()) await child.stop().catch(() => undefined);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface Audited {
  /** Commits that are nowhere in the log. */
  readonly lost: number;
  readonly doubled: number;
  /** How many different ones the ledger and the files have: 1. */
  readonly chains: number;
  readonly signatures: number;
  /** Of the doctor in every file, and of the ledger's verification. */
  readonly findings: number;
  readonly unsent: number;
  readonly obligationsOpen: number;
}

export const WHOLE: Audited = {
  lost: 0,
  doubled: 0,
  chains: 1,
  signatures: 1,
  findings: 0,
  unsent: 0,
  obligationsOpen: 0,
};
