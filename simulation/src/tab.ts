import type { RecordedChange, SeenValue, Tx } from '@holdfast/core';
import type { SeededRandom, VirtualTime } from '@holdfast/replica/testing';
import { FaultError } from '../../packages/replica/src/engine/fault-error.ts';
import type { Violation } from './checkers.ts';
import type { SimulatedDevice } from './device.ts';
import { notAsTheHost } from './tab-check.ts';
import { openPage, type Page, UNHEARD_MAX } from './tab-page.ts';
import { createTabPerson } from './tab-person.ts';
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
  readonly counts: Readonly<Record<string, number>>;
  /** Null: there was nothing to ask for. */
  commit(build: (tx: Tx<WorldSchema>) => void, log: string): string | null;
  /** What a person in front of it does next, with what it shows. Null: it is closed, or shows nothing yet. */
  act(): string | null;
  open(): void;
  /** Somebody looks at it again. */
  look(): void;
  /** It is gone in the middle of whatever it did; its host lives on. */
  kill(): void;
  /** It hears nothing and does nothing, until it is thawed: then everything at once. */
  freeze(): void;
  thaw(): void;
  readonly isFrozen: boolean;
  check(): readonly Violation[];
}

interface Asked {
  readonly log: string;
  readonly label: string;
  readonly changes: readonly RecordedChange[];
  readonly seen: readonly SeenValue[];
}

/** Nobody decided: asked again. Anything else that a host says is its decision. */
const UNDECIDED: ReadonlySet<string> = new Set(['no-owner', 'outranked', 'closed', 'storage-full', 'aborted']);

export function createTab(parts: {
  readonly device: SimulatedDevice<WorldSchema>;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly schema: WorldSchema;
}): Tab {
  const { device, time, random, schema } = parts;
  const unanswered = new Map<string, Asked>();
  const refused = new Set<string>();
  const counts = { 'commits asked again': 0, 'commits repeated': 0, 'tabs killed': 0, 'tabs frozen': 0 };
  const flaws: Violation[] = [];
  const say = (invariant: string, what: string): Violation => ({ invariant, device: device.name, what });
  const person = createTabPerson({
    random: random.fork('person'),
    flawed: (id, what) => void flaws.push(say(id, what)),
  });
  let commits = 0;
  let pages = 0;
  let page: Page | null = null;
  let isReopening = false;

  /** Asks, and hears the answer, if this page lives that long. */
  const ask = (of: Page, action: string, asked: Asked): void => {
    of.link.request('commit', { ...asked, reads: [] }, { id: action }).then(
      ({ repeated }) => {
        if (page !== of || !unanswered.delete(action)) return;
        if (repeated) counts['commits repeated'] += 1;
        device.isDurable(action);
      },
      (cause: unknown) => {
        if (page !== of) return;
        const code = cause instanceof FaultError ? cause.fault.code : 'engine-fault';
        if (code === 'engine-fault') flaws.push(say('I29', `a commit of the tab met a defect: ${cause}`));
        if (!UNDECIDED.has(code)) {
          if (unanswered.delete(action)) refused.add(action);
        } else {
          // Whether it was done, and when, nobody knows by now: later work may stand before it.
          device.waited.add(action);
          of.clock.timer(1_000, () => (page === of && unanswered.has(action) ? ask(of, action, asked) : undefined));
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
    get counts() {
      return { ...counts, ...person.counts };
    },
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
      const recorded = page === null || page.thread.isFrozen ? null : device.record(build);
      if (page === null || recorded === null) return null;
      const { actionId, changes, seen } = recorded;
      commits += 1;
      const asked = { log, label: `${device.name} tab ${commits}`, changes, seen };
      unanswered.set(actionId, asked);
      ask(page, actionId, asked);
      return actionId;
    },
    open: () => {
      if (page !== null) return;
      isReopening = false;
      pages += 1;
      const opened = openPage({ device, time, random: random.fork(`page-${pages}`), schema });
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
    freeze: () => {
      if (page === null) return;
      counts['tabs frozen'] += 1;
      page.thread.freeze();
    },
    thaw: () => {
      if (page === null) return;
      if (page.unheard > UNHEARD_MAX)
        flaws.push(say('I28', `a frozen tab was told ${page.unheard} things that it did not ask for`));
      page.thread.thaw();
    },
    get isFrozen() {
      return page?.thread.isFrozen === true;
    },
    act: () => (page === null || page.thread.isFrozen ? null : person.act(page)),
    look: () => page?.link.setVisible(true),
    check: () => {
      const { engine } = device;
      const found = flaws.splice(0);
      for (const action of unanswered.keys()) found.push(say('I25', `the tab still waits for its commit ${action}`));
      if (engine === null || page === null) return found;
      for (const what of page.waiting) found.push(say('I25', `the tab still waits for an answer: ${what}`));
      for (const action of refused)
        if (engine.state.outcome(action) !== undefined)
          found.push(say('I25', `the commit ${action} was refused to the tab, and was made`));
      for (const what of notAsTheHost(page, engine)) found.push(say('I18', what));
      return found;
    },
  };
  return self;
}
