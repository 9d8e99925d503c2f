import { createHash } from 'node:crypto';
import { cellsTaken, watchCells } from './cells.ts';
import { checkQuiet, checkStep, type Violation } from './checkers.ts';
import { hasCoda, playCoda } from './coda.ts';
import type { FaultClass } from './fault-classes.ts';
import { actInTabs, heal } from './faults.ts';
import { beginLasting, drawLasting, isApart, type LastingKind } from './lasting.ts';
import { removeFolder } from './ledger.ts';
import { attend } from './people.ts';
import { isQuiet } from './quiet.ts';
import { step } from './step.ts';
import { createWorld, type World } from './world.ts';

export interface SeedResult {
  readonly seed: number;
  readonly faults: readonly FaultClass[];
  /** What was not healed. */
  readonly lasting: LastingKind | null;
  readonly violations: readonly Violation[];
  readonly steps: number;
  readonly simulatedMs: number;
  readonly counts: Readonly<Record<string, number>>;
  /** Cells of the machines that it took, and moves that no cell allows. */
  readonly cells: readonly string[];
  readonly unlisted: readonly string[];
  /** Plays were played after the storm. */
  readonly hasCoda: boolean;
  /** Equal for equal seeds: this tests the simulator itself. */
  readonly traceHash: string;
}

export interface SeedOptions {
  readonly steps?: number;
  readonly devices?: number;
  /** How many logs every device follows, 1 or 2. Drawn from the seed unless given. */
  readonly logs?: number;
  readonly faults?: readonly FaultClass[];
  /** Drawn from the seed unless given; null: none. */
  readonly lasting?: LastingKind | null;
  /** Plays after the storm; drawn from the seed unless given. */
  readonly coda?: boolean;
  /** Where plays were drawn: every one of them, which costs more than the storm; else three. */
  readonly allPlays?: boolean;
  /** The same world once more: it must be the same to the last line. */
  readonly twice?: boolean;
  readonly trace?: (line: string) => void;
}

const STEPS = 80;
/** Every file is examined from scratch this often; always at the end. */
const EXAMINE_EVERY = 10;
const QUIET_MS = 5 * 60_000;
/** So long a host may take to tell its tabs what they show. */
const TELLING_MS = 1_000;
const EVENING_ACTS = 6;
/** Work that goes on once a lasting fault stands. */
const AFTERMATH_STEPS = 12;
/** Longer than a proof of life is good for, and than any request may take: by then nobody may still claim to be well. */
const AFTERMATH_MS = 3 * 60_000;

/** One seed, and once more if it is asked for: a world that differs from itself proves nothing. */
export async function runSeed(seed: number, options: SeedOptions = {}): Promise<SeedResult> {
  const first = await runOnce(seed, options);
  if (options.twice !== true || first.violations.length > 0) return first;
  const { trace: _, ...silent } = options;
  const second = await runOnce(seed, silent);
  if (second.traceHash === first.traceHash) return first;
  const what = `two runs of one seed differ: ${first.traceHash} after ${first.simulatedMs} ms, ${second.traceHash} after ${second.simulatedMs} ms`;
  return { ...first, violations: [{ invariant: 'same-seed', what }] };
}

/** Storm, heal, quiesce; where something is not healed, the others work on, and come to rest without it. */
async function runOnce(seed: number, options: SeedOptions): Promise<SeedResult> {
  watchCells();
  cellsTaken();
  const world = createWorld(seed, options);
  const lasting = options.lasting === undefined ? drawLasting(world.random) : options.lasting;
  const violations: Violation[] = [];
  let steps = 0;
  let isCoda = false;
  try {
    for (; steps < (options.steps ?? STEPS) && violations.length === 0; steps += 1) {
      await step(world);
      world.trace.push(standing(world));
      violations.push(...world.flaws.splice(0));
      options.trace?.(`${world.time.elapsedMs} ms  ${world.trace.slice(-2).join('  |  ')}`);
      if (steps % EXAMINE_EVERY === EXAMINE_EVERY - 1) violations.push(...checkStep(world));
    }
    if (violations.length === 0) {
      heal(world);
      if (lasting !== null) await aftermath(world, lasting);
      await quiesce(world);
      if (lasting === null && world.faults.has('tab-people')) await evening(world);
      violations.push(...(await checkQuiet(world)), ...(await checkTabs(world)));
      isCoda = options.coda ?? hasCoda(world);
      if (violations.length === 0 && isCoda)
        violations.push(
          ...(await playCoda(world, options.coda === true || options.allPlays === true)),
          ...(await checkQuiet(world)),
        );
    }
  } catch (cause) {
    violations.push({
      invariant: 'I29',
      what: `the engine threw: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`,
    });
  }
  const { cells, unlisted, merged, parked } = cellsTaken();
  for (const move of unlisted) violations.push({ invariant: 'OB7', what: `a move that no cell allows: ${move}` });
  const result: SeedResult = {
    seed,
    faults: [...world.faults],
    lasting,
    violations,
    steps,
    simulatedMs: world.time.elapsedMs,
    counts: { ...world.counts, ...engineCounts(world), ...tabCounts(world), merged, parked },
    traceHash: hashOf(world),
    cells,
    unlisted,
    hasCoda: isCoda,
  };
  for (const device of world.devices) device.crash();
  world.ledger.kill();
  removeFolder(world.folder);
  return result;
}

const quiesce = (world: World): Promise<boolean> =>
  world.time.until(() => {
    attend(world);
    return isQuiet(world);
  }, QUIET_MS);

/** What the storm has left on a desk is decided in a tab, and everybody comes to rest once more. */
async function evening(world: World): Promise<void> {
  for (let done = 0; done < EVENING_ACTS; done += 1) {
    actInTabs(world);
    await world.time.advance(500);
  }
  for (const tab of world.tabs) tab.look();
  await quiesce(world);
}

async function checkTabs(world: World): Promise<readonly Violation[]> {
  const tabs = world.tabs.filter(({ device }) => !isApart(world, device));
  // What a host has told is still on its way.
  if (tabs.length > 0) await world.time.advance(TELLING_MS);
  return tabs.flatMap((tab) => tab.check());
}

async function aftermath(world: World, kind: LastingKind): Promise<void> {
  world.lasting = beginLasting(world, kind);
  for (let done = 0; done < AFTERMATH_STEPS; done += 1) {
    attend(world);
    await step(world, true);
  }
  for (let waited = 0; waited < AFTERMATH_MS; waited += 10_000) {
    attend(world);
    await world.time.advance(10_000);
  }
}

/** What the files tell at the end. A copied file tells of its original's life, too; a lost one tells nothing. */
const journal = (kind: string, n = 'count(*)', where = ''): string =>
  `SELECT ${n} AS n FROM main.hf_journal WHERE kind = '${kind}' ${where}`;
const COUNTED: readonly (readonly [what: string, sql: string])[] = [
  ['obligations opened', 'SELECT count(*) AS n FROM main.hf_obligation'],
  ['obligations settled', 'SELECT count(*) AS n FROM main.hf_obligation WHERE closed_at IS NOT NULL'],
  ['permits', 'SELECT count(*) AS n FROM main.hf_permit'],
  ['on the desk', "SELECT count(*) AS n FROM main.hf_desk WHERE needs = 'answer'"],
  ['bootstraps', journal('bootstrap', 'count(*)', "AND json_extract(facts, '$.from') IS NOT NULL")],
  ['repairs', journal('repair', 'count(*)', "AND json_extract(facts, '$.from') IS NOT NULL")],
  ['renewed ids', journal('renew')],
  ['expired sessions', journal('expired')],
  ['stalls', journal('watchdog', 'count(*)', "AND json_extract(facts, '$.did') = 'stalled'")],
  ['faults of a loop', journal('fault')],
];

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
    for (const [what, sql] of COUNTED) add(what, (engine.database.prepare(sql).get()?.['n'] as number | null) ?? 0);
  }
  return sum;
}

const tabCounts = ({ tabs }: World): Readonly<Record<string, number>> =>
  Object.assign({}, ...tabs.map(({ counts }) => counts));

/** Where everybody stands after a step: `name head/unsent phase`, `-` for a host that does not run. */
const standing = ({ devices, logs }: World): string =>
  devices
    .map(({ name, engine }) =>
      engine === null
        ? `${name} -`
        : `${name} ${logs.map((log) => engine.state.log(log)?.head).join('+')}/${engine.state.counts().unsent} ${engine.sync.status.phase}`,
    )
    .join(', ');

const hashOf = (world: World): string => {
  const hash = createHash('sha256');
  for (const line of world.trace) hash.update(`${line}\n`);
  hash.update(`${world.time.elapsedMs}\n`);
  for (const { name, engine, network } of world.devices) {
    const logs = world.logs.map((log) => engine?.state.log(log));
    const stands = logs.map((log) => `${log?.head} ${log?.chain} ${log?.signature}`).join(' ');
    hash.update(`${name} ${stands} ${JSON.stringify(network.counts)}\n`);
  }
  return hash.digest('hex');
};
