import { createHash } from 'node:crypto';
import { checkQuiet, checkStep, type Violation } from './checkers.ts';
import { beginLasting, drawLasting, isApart, type LastingKind } from './lasting.ts';
import { removeFolder } from './ledger.ts';
import { adoptWhereStopped, createWorld, type FaultClass, heal, step, type World } from './world.ts';

export interface SeedResult {
  readonly seed: number;
  readonly faults: readonly FaultClass[];
  /** What was not healed. */
  readonly lasting: LastingKind | null;
  readonly violations: readonly Violation[];
  readonly steps: number;
  readonly simulatedMs: number;
  readonly counts: Readonly<Record<string, number>>;
  /** Equal for equal seeds: this tests the simulator itself. */
  readonly traceHash: string;
}

export interface SeedOptions {
  readonly steps?: number;
  readonly devices?: number;
  readonly faults?: readonly FaultClass[];
  /** Drawn from the seed unless given; null: none. */
  readonly lasting?: LastingKind | null;
  readonly trace?: (line: string) => void;
}

const STEPS = 80;
/** Every file is examined from scratch this often; always at the end. */
const EXAMINE_EVERY = 10;
const QUIET_MS = 5 * 60_000;
/** Work that goes on once a lasting fault stands. */
const AFTERMATH_STEPS = 12;
/** Longer than a proof of life is good for, and than any request may take: by then nobody may still claim to be well. */
const AFTERMATH_MS = 3 * 60_000;

/** One seed: storm, heal, quiesce; where something is not healed, the others work on, and come to rest without it. */
export async function runSeed(seed: number, options: SeedOptions = {}): Promise<SeedResult> {
  const world = createWorld(seed, options);
  const lasting = options.lasting === undefined ? drawLasting(world.random) : options.lasting;
  const violations: Violation[] = [];
  let steps = 0;
  try {
    for (; steps < (options.steps ?? STEPS) && violations.length === 0; steps += 1) {
      await step(world);
      options.trace?.(`${world.time.elapsedMs} ${world.trace.at(-1) ?? ''}`);
      if (steps % EXAMINE_EVERY === EXAMINE_EVERY - 1) violations.push(...checkStep(world));
    }
    if (violations.length === 0) {
      heal(world);
      if (lasting !== null) await aftermath(world, lasting);
      await world.time.until(() => {
        adoptWhereStopped(world);
        return isQuiet(world);
      }, QUIET_MS);
      violations.push(...(await checkQuiet(world)));
    }
  } catch (cause) {
    violations.push({
      invariant: 'I29',
      what: `the engine threw: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`,
    });
  }
  const result: SeedResult = {
    seed,
    faults: [...world.faults],
    lasting,
    violations,
    steps,
    simulatedMs: world.time.elapsedMs,
    counts: { ...world.counts, ...engineCounts(world) },
    traceHash: hashOf(world),
  };
  for (const device of world.devices) device.crash();
  world.ledger.kill();
  removeFolder(world.folder);
  return result;
}

async function aftermath(world: World, kind: LastingKind): Promise<void> {
  world.lasting = beginLasting(world, kind);
  for (let done = 0; done < AFTERMATH_STEPS; done += 1) {
    adoptWhereStopped(world);
    await step(world, true);
  }
  for (let waited = 0; waited < AFTERMATH_MS; waited += 10_000) {
    adoptWhereStopped(world);
    await world.time.advance(10_000);
  }
}

/** Nothing flows, nothing is owed, and everybody is at one head; who stands apart is not waited for. */
function isQuiet(world: World): boolean {
  const heads = new Set<number>();
  for (const device of world.devices) {
    if (isApart(world, device)) continue;
    const { engine } = device;
    if (engine === null) return false;
    const log = engine.state.log('main');
    if (log === undefined || log.stage !== 'visible' || engine.sync.status.phase !== 'live') return false;
    if (engine.state.flowing('main') > 0 || engine.coordinator.obligations.open().length > 0) return false;
    heads.add(log.head);
  }
  return heads.size <= 1;
}

function engineCounts(world: World): Record<string, number> {
  const sum: Record<string, number> = {};
  const add = (what: string, n: number) => {
    sum[what] = (sum[what] ?? 0) + n;
  };
  for (const { engine, network } of world.devices) {
    add('requests', network.counts.requests);
    add('requests lost', network.counts.lost);
    add('requests doubled', network.counts.doubled);
    if (engine === null) continue;
    const one = (sql: string): number => (engine.database.prepare(sql).get()?.['n'] as number | null) ?? 0;
    add('obligations', one('SELECT count(*) AS n FROM main.hf_obligation'));
    add('permits', one('SELECT count(*) AS n FROM main.hf_permit'));
    add('parked', one("SELECT count(*) AS n FROM main.hf_desk WHERE needs = 'answer'"));
  }
  return sum;
}

const hashOf = (world: World): string => {
  const hash = createHash('sha256');
  for (const line of world.trace) hash.update(`${line}\n`);
  for (const { name, engine } of world.devices) {
    const log = engine?.state.log('main');
    hash.update(`${name} ${log?.head} ${log?.chain} ${log?.signature}\n`);
  }
  return hash.digest('hex');
};
