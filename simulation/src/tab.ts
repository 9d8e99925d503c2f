import type { RecordedChange, SeenValue, Tx } from '@holdfast/core';
import type { DeviceClock, SeededRandom, VirtualTime } from '@holdfast/replica/testing';
import type { EngineDevice } from '@holdfast/replica/testing/engine';
import { FaultError } from '../../packages/replica/src/engine/fault-error.ts';
import { type Host, openHost } from '../../packages/replica/src/host/host.ts';
import { Link } from '../../packages/replica/src/link/link.ts';
import type { OpenChannel, RawRow } from '../../packages/replica/src/link/messages.ts';
import { openPortChannel, servePort } from '../../packages/replica/src/link/port.ts';
import { applyPatch } from '../../packages/replica/src/link/row-patch.ts';
import type { Violation } from './checkers.ts';
import type { SimulatedDevice } from './device.ts';
import { worldDigest } from './digest.ts';
import { createPortPair, type PortPair } from './port.ts';
import type { WorldSchema } from './world.ts';

/**
 * The tab of a device whose host runs elsewhere, in a worker: it reaches the host by a message port, and by nothing else.
 * A commit is asked for under its action id until somebody answers, also by the next tab, which finds written down what
 * the one before it had asked.
 */
export interface Tab {
  readonly device: SimulatedDevice<WorldSchema>;
  /** Also while it looks for its next host. */
  readonly isOpen: boolean;
  /** It is open, and the host that runs now has welcomed it. */
  readonly isServed: boolean;
  /** Commits that nobody has answered yet. */
  readonly unanswered: number;
  readonly counts: Record<'commits asked again' | 'commits repeated' | 'tabs killed', number>;
  /** Null: there was nothing to ask for. */
  commit(build: (tx: Tx<WorldSchema>) => void, log: string): string | null;
  open(): void;
  /** It is gone in the middle of whatever it did; its host lives on. */
  kill(): void;
  check(): readonly Violation[];
}

interface Asked {
  readonly log: string;
  readonly changes: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
}

const SHOWN = 'select id, title, votes from note order by id';
const REOPEN_MS = [10, 100, 1_000, 5_000, 5_000, 5_000];
/** Nobody decided: asked again. Anything else that a host says is its decision. */
const UNDECIDED: ReadonlySet<string> = new Set(['no-owner', 'outranked', 'closed', 'storage-full', 'aborted']);

export function createTab(parts: {
  readonly device: SimulatedDevice<WorldSchema>;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
}): Tab {
  const { device, time, random } = parts;
  const unanswered = new Map<string, Asked>();
  const refused = new Set<string>();
  const counts = { 'commits asked again': 0, 'commits repeated': 0, 'tabs killed': 0 };
  let page: Page | null = null;
  let isReopening = false;

  /** Asks, and hears the answer, if this page lives that long. */
  const ask = (of: Page, action: string, asked: Asked): void => {
    of.link.request('commit', { ...asked, reads: [] }, { id: action }).then(
      ({ repeated }) => {
        if (page !== of || !unanswered.delete(action)) return;
        if (repeated) counts['commits repeated'] += 1;
        device.resolved.add(action);
      },
      (cause: unknown) => {
        if (page !== of) return;
        const code = cause instanceof FaultError ? cause.fault.code : 'engine-fault';
        if (!UNDECIDED.has(code)) {
          if (unanswered.delete(action)) refused.add(action);
        } else {
          // Whether it was done, and when, nobody knows by now: later work may stand before it.
          device.waited.add(action);
          time.at(1_000, () => (page === of && unanswered.has(action) ? ask(of, action, asked) : undefined));
        }
      },
    );
  };

  const reopen = (of: Page): void => {
    of.close();
    page = null;
    isReopening = true;
    time.at(1_000, () => (isReopening ? self.open() : undefined));
  };

  const self: Tab = {
    device,
    counts,
    get isOpen() {
      return page !== null || isReopening;
    },
    get isServed() {
      return page !== null && page.servedBy !== null && page.servedBy === device.engine;
    },
    get unanswered() {
      return unanswered.size;
    },
    commit: (build, log) => {
      const recorded = page === null ? null : device.record(build);
      if (page === null || recorded === null) return null;
      const { actionId, changes, seen } = recorded;
      const asked = { log, changes, seen };
      unanswered.set(actionId, asked);
      ask(page, actionId, asked);
      return actionId;
    },
    open: () => {
      if (page !== null) return;
      isReopening = false;
      const opened = openPage({ device, time, random });
      page = opened;
      opened.link.listen({ ended: () => (page === opened ? reopen(opened) : undefined) });
      for (const [action, asked] of [...unanswered]) {
        counts['commits asked again'] += 1;
        ask(page, action, asked);
      }
    },
    kill: () => {
      isReopening = false;
      if (page === null) return;
      counts['tabs killed'] += 1;
      page.close();
      page = null;
    },
    check: () => {
      const say = (invariant: string, what: string): Violation => ({ invariant, device: device.name, what });
      const { engine } = device;
      const found = [...unanswered.keys()].map((action) => say('I25', `the tab still waits for its commit ${action}`));
      if (engine === null || page === null) return found;
      for (const action of refused)
        if (engine.state.outcome(action) !== undefined)
          found.push(say('I25', `the commit ${action} was refused to the tab, and was made`));
      const rows = engine.database.prepareQuery(SHOWN).statement.arrays();
      if (JSON.stringify(rows) !== JSON.stringify(page.rows))
        found.push(say('I18', `the tab shows ${page.rows.length} rows, and there are ${rows.length}, or others`));
      return found;
    },
  };
  return self;
}

interface Page {
  readonly link: Link;
  readonly rows: readonly RawRow[];
  /** The engines whose host has welcomed it, as long as it has heard nothing else. */
  readonly servedBy: EngineDevice | null;
  close(): void;
}

function openPage({ device, time, random }: Parameters<typeof createTab>[0]): Page {
  const clock: DeviceClock = time.clockFor({});
  const ports = new Set<PortPair>();
  let rows: readonly RawRow[] = [];
  let asked: EngineDevice | null = null;
  let servedBy: EngineDevice | null = null;
  const open: OpenChannel = (events) => {
    const { engine } = device;
    asked = engine;
    servedBy = null;
    const pair = createPortPair(time, random);
    ports.add(pair);
    if (engine === null) pair.kill('host');
    else {
      servePort(pair.host, hostOf(engine, device, random).openChannel);
      device.whenGone.add(() => pair.kill('host'));
    }
    return openPortChannel(pair.page)(events);
  };
  const link = new Link({ open, clock, reopenMs: REOPEN_MS });
  link.live('notes', SHOWN, [], {
    rows: ({ columns, patch }) => {
      rows = applyPatch(columns === undefined ? rows : [], patch, (row) => row as RawRow);
    },
    failing: () => undefined,
  });
  link.listen({
    welcome: () => {
      servedBy = asked;
    },
    lost: () => {
      servedBy = null;
    },
  });
  link.start();
  return {
    link,
    get servedBy() {
      return servedBy;
    },
    get rows() {
      return rows;
    },
    close: () => {
      clock.stop();
      for (const pair of ports) pair.kill('page');
    },
  };
}

const hosts = new WeakMap<EngineDevice, Host>();

/** The host of these engines, as a worker composes it. Whoever runs the engines closes their file. */
function hostOf(engine: EngineDevice, { clock }: SimulatedDevice<WorldSchema>, random: SeededRandom): Host {
  const known = hosts.get(engine);
  if (known !== undefined) return known;
  const { database, sync } = engine;
  const state: EngineDevice['state'] = Object.assign(Object.create(engine.state), { close: () => undefined });
  const host = openHost({
    database,
    state,
    sync,
    platform: { clock, random, digest: worldDigest },
    place: { storage: 'durable', host: 'here' },
    model: (type) => engine.state.store.tables.get(type)?.model ?? null,
  });
  hosts.set(engine, host);
  return host;
}
