import type { Clock, Database, Fetch, Statement } from '@holdfast/core';
import type { LedgerEndpoint } from './network.ts';

/**
 * Where a device of a test world can die, by name. Each is recognised at a port that the engine has anyway: the transport,
 * the storage connection, the timers. The engine knows nothing of them.
 */
export const CRASH_POINTS = {
  'inside-commit':
    'A commit has written its batch to the file, and its transaction is not committed: nothing of it stays.',
  'after-commit': 'A commit is in the file, and nobody has been told: it stays, though `commit()` rejects.',
  'before-send': 'A push is about to leave: the ledger never hears of it.',
  'after-send': 'The ledger has taken a push and answers, and the answer never leaves: its outcome is unknown.',
  'before-apply': 'The answer to a push has arrived, and nothing of it is in the file.',
  'inside-page': 'Events from the ledger are half written, in a transaction that is not committed.',
  'after-page': 'Events from the ledger are in the file, and nobody has been told.',
  'inside-rebase': 'Work that met a conflict has new bytes, in a transaction that is not committed.',
  'on-timer': 'A timer of the engine is due: a retry, a heartbeat, upkeep. What it would have done is not done.',
} as const;

export type CrashPoint = keyof typeof CRASH_POINTS;

/** What one device waits to die at. `die` happens at once; what runs on after it finds its file closed. */
export class CrashPlan {
  readonly #die: (at: CrashPoint) => void;
  #at: CrashPoint | null = null;
  #passes = 0;

  constructor(die: (at: CrashPoint) => void) {
    this.#die = die;
  }

  /** At most one is armed: a new one replaces it. `after`: how often it is passed unharmed first. */
  arm(at: CrashPoint | null, after = 0): void {
    this.#at = at;
    this.#passes = after;
  }

  /** True if the device has just died here. */
  reached(at: CrashPoint): boolean {
    if (this.#at !== at) return false;
    this.#passes -= 1;
    if (this.#passes >= 0) return false;
    this.#at = null;
    this.#die(at);
    return true;
  }
}

/** What is thrown where a dead device would have gone on. */
export class DeviceDied extends Error {
  override readonly name = 'DeviceDied';
}

const isPush = (url: string): boolean => new URL(url).pathname.endsWith('/push');
const NO_ANSWER = 'The device died.';

// ── transport ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** The device's end: `before-send` and `before-apply`. */
export function crashingFetch(fetch: Fetch, plan: CrashPlan): Fetch {
  return async (url, request) => {
    if (!isPush(url)) return fetch(url, request);
    if (plan.reached('before-send')) throw new DeviceDied(NO_ANSWER);
    const response = await fetch(url, request);
    if (plan.reached('before-apply')) throw new DeviceDied(NO_ANSWER);
    return response;
  };
}

/** The ledger's end: `after-send`. */
export function crashingEndpoint(endpoint: LedgerEndpoint, plan: CrashPlan): LedgerEndpoint {
  return {
    get up() {
      return endpoint.up;
    },
    accept: (url, peer) => endpoint.accept(url, peer),
    fetch: async (url, request) => {
      const response = await endpoint.fetch(url, request);
      if (isPush(url) && plan.reached('after-send')) throw new DeviceDied(NO_ANSWER);
      return response;
    },
  };
}

// ── timers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const crashingClock = (clock: Clock, plan: CrashPlan): Clock => ({
  now: () => clock.now(),
  monotonic: () => clock.monotonic(),
  soon: (run) => clock.soon(run),
  timer: (ms, run) => clock.timer(ms, () => (plan.reached('on-timer') ? undefined : run())),
});

// ── storage ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a transaction has written so far says what it is. */
const WRITES: readonly (readonly [RegExp, Written])[] = [
  [/^\s*INSERT (OR \w+ )?INTO main\.hf_outbox\b/, 'batch'],
  [/^\s*INSERT (OR \w+ )?INTO main\.hf_event\b/, 'event'],
  [/^\s*UPDATE main\.hf_outbox SET request_id\b/, 'rebase'],
];
type Written = 'batch' | 'event' | 'rebase';
const INSIDE: Readonly<Record<Written, CrashPoint>> = {
  batch: 'inside-commit',
  event: 'inside-page',
  rebase: 'inside-rebase',
};
const AFTER: readonly (readonly [Written, CrashPoint])[] = [
  ['event', 'after-page'],
  ['batch', 'after-commit'],
];

/** The connection of a device: what it is asked to write tells at which point it stands. */
export function crashingDatabase(inner: Database, plan: CrashPlan): Database {
  const written = new Set<Written>();
  const ends = (sql: string): void => {
    const word = /^\s*(BEGIN|COMMIT|ROLLBACK)\b/i.exec(sql)?.[1]?.toUpperCase();
    if (word === undefined) return;
    const what = new Set(written);
    written.clear();
    if (word === 'COMMIT')
      for (const [one, point] of AFTER) if (what.has(one) && plan.reached(point)) throw new DeviceDied(point);
  };
  const wrote = (what: Written): void => {
    written.add(what);
    if (plan.reached(INSIDE[what])) throw new DeviceDied(INSIDE[what]);
  };
  const prepare = (sql: string): Statement => {
    const statement = inner.prepare(sql);
    const what = WRITES.find(([pattern]) => pattern.test(sql))?.[1];
    if (what !== undefined) return runningThen(statement, () => wrote(what));
    return /^\s*(BEGIN|COMMIT|ROLLBACK)\b/i.test(sql) ? runningThen(statement, () => ends(sql)) : statement;
  };
  return {
    exec: (sql) => {
      inner.exec(sql);
      ends(sql);
    },
    prepare,
    prepareQuery: (sql) => inner.prepareQuery(sql),
    isInPlace: () => inner.isInPlace(),
    function: (name, run) => inner.function(name, run),
    get inTransaction() {
      return inner.inTransaction;
    },
    close: () => inner.close(),
  };
}

function runningThen(statement: Statement, then: () => void): Statement {
  return {
    run: (...parameters) => {
      const report = statement.run(...parameters);
      then();
      return report;
    },
    get: (...parameters) => statement.get(...parameters),
    all: (...parameters) => statement.all(...parameters),
    arrays: (...parameters) => statement.arrays(...parameters),
    columns: () => statement.columns(),
  };
}
