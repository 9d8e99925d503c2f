import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contentsOf, type FailHow, openNodeDatabase } from '@holdfast/replica/testing/engine';
import { Bench } from './bench.ts';
import { brokenPromises, type EndState, endStateOf } from './end-state.ts';
import { offline, type Scenario } from './scenario.ts';

/** `storage-full` and `io-error`: the host lives on. The others are kills, before or after the statement took effect. */
export type How = 'io-error' | 'storage-full' | 'killed-before' | 'killed-after';
export const HOWS: readonly How[] = ['io-error', 'storage-full', 'killed-before', 'killed-after'];

export interface CrashReport {
  readonly scenario: string;
  readonly how: How;
  /** Of the undisturbed work. */
  readonly statements: number;
  /** How many of them were struck, one run each. */
  readonly struck: number;
  /** Places between two transactions that a kill was seen to leave, of `transactions` + 1. */
  readonly left: number;
  readonly transactions: number;
  readonly problems: readonly string[];
}

const FAILURES: Readonly<Record<How, FailHow>> = {
  'io-error': {
    cause: Object.assign(new Error('the disk went away'), { name: 'DatabaseFault', code: 'io-error', errcode: 10 }),
  },
  'storage-full': {
    cause: Object.assign(new Error('the disk is full'), { name: 'DatabaseFault', code: 'storage-full', errcode: 13 }),
  },
  'killed-before': { cause: new Error('killed'), isDeadAfter: true },
  'killed-after': { cause: new Error('killed'), isDeadAfter: true, isRunFirst: true },
};

/** Each start of a bench is later than all of the one before. */
const APART_MS = 60 * 60_000;

/** A scenario's files, prepared once, and what its undisturbed run did and came to. */
export interface Prepared {
  readonly scenario: Scenario;
  readonly folder: string;
  readonly statements: number;
  /** What Ana's file said between transactions, the beginning first. */
  readonly states: readonly string[];
  /** What is wrong with the file from the beginning, for a scenario that puts it right. */
  readonly ills: readonly string[];
  readonly end: EndState;
}

export async function prepare(scenario: Scenario): Promise<Prepared> {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-crash-'));
  const first = new Bench(join(folder, 'prepared'), { side: scenario.side, seed: 1 });
  await first.begin(0);
  await scenario.prepare(first);
  const ills = examined(first);
  first.kill();

  const bench = await benchOnCopy({ scenario, folder }, 'whole');
  const states = [contentsIn(bench)];
  const note = () => {
    const now = contentsIn(bench);
    if (now !== states.at(-1)) states.push(now);
  };
  const cause = await work(bench, scenario, { onCommitted: note });
  if (cause !== null) throw cause;
  const statements = bench.plan.ran;
  const problems = await finish(bench);
  if (problems.length > 0) throw new Error(`${scenario.name}, undisturbed: ${problems.join('; ')}`);
  const end = await endStateOf(bench);
  bench.dispose();
  return { scenario, folder, statements, states, ills, end };
}

export const discard = ({ folder }: Prepared): void => rmSync(folder, { recursive: true, force: true });

/** Strikes every statement of the work once, or every `every`-th, one run each: see `strike`. */
export async function crashEverywhere(
  prepared: Prepared,
  how: How,
  { every = 1, tell = (_nth: number): void => undefined } = {},
): Promise<CrashReport> {
  const { scenario, statements, states } = prepared;
  const left = new Set<number>();
  const problems: string[] = [];
  let struck = 0;
  for (let nth = 1; nth <= statements; nth += every) {
    const { place, problems: found } = await strike(prepared, nth, how);
    if (place !== null) left.add(place);
    problems.push(...found.map((what) => `statement ${nth}: ${what}`));
    struck += 1;
    tell(nth);
  }
  const transactions = states.length - 1;
  return { scenario: scenario.name, how, statements, struck, left: left.size, transactions, problems };
}

/**
 * The n-th statement fails. After a kill the files, as they were left, hold the state between two transactions and nothing
 * else. Opened again, or in the same process, every check is clean; the work is done again, and comes to the same end as
 * the undisturbed run: nothing lost, nothing doubled.
 */
export async function strike(
  prepared: Prepared,
  nth: number,
  how: How,
): Promise<{ readonly place: number | null; readonly problems: readonly string[] }> {
  const { scenario, states } = prepared;
  const problems: string[] = [];
  let place: number | null = null;
  let bench = await benchOnCopy(prepared, `run-${how}-${nth}`);
  const cause = await work(bench, scenario, { nth, how: FAILURES[how] });
  if (!bench.plan.hasStruck) problems.push('it was not reached');
  if (cause !== null && cause !== FAILURES[how].cause && !isOf(cause, FAILURES[how].cause))
    problems.push(`it ended with ${stackOf(cause)}`);
  if (bench.escaped !== null) problems.push(`thrown at the platform: ${stackOf(bench.escaped)}`);
  if (bench.plan.isDead) {
    bench.kill();
    if (scenario.side === 'replica') {
      place = states.indexOf(contentsIn(bench));
      if (place === -1) problems.push('a state that is between two');
    }
    bench = await benchIn(bench.folder, scenario, 2);
  }
  if (bench.ana.engine === null) bench.open();
  problems.push(...examined(bench).filter((ill) => !prepared.ills.includes(ill)));
  const again = await work(bench, scenario);
  if (again !== null) problems.push(`done again, it ended with ${String(again)}`);
  problems.push(...(await finish(bench)));
  problems.push(...differences(prepared.end, await endStateOf(bench)));
  bench.dispose();
  return { place, problems };
}

const stackOf = (cause: unknown): string => (cause instanceof Error ? (cause.stack ?? cause.message) : String(cause));

const isOf = (cause: unknown, of: Error): boolean => cause instanceof Error && cause.cause === of;

/** The work once, from the opening of Ana's file if she does not run. Gives what it threw, or null. */
async function work(
  bench: Bench,
  scenario: Scenario,
  { nth = Number.POSITIVE_INFINITY, how = FAILURES['io-error'], onCommitted = null as (() => void) | null } = {},
): Promise<unknown> {
  const isOpening = bench.ana.engine === null;
  bench.ana.network.rules.offline = isOpening && scenario.isOpeningPartOfIt !== true;
  try {
    if (isOpening && scenario.isOpeningPartOfIt !== true) bench.open();
    bench.onCommitted = onCommitted;
    bench.plan.arm(nth, how);
    if (bench.ana.engine === null) bench.open();
    await scenario.work(bench);
    return null;
  } catch (cause) {
    return cause;
  } finally {
    if (!bench.plan.isDead) bench.plan.disarm();
    bench.onCommitted = null;
  }
}

/** Everybody runs, and comes to rest; then every promise is looked at. */
async function finish(bench: Bench): Promise<string[]> {
  if (bench.ana.engine === null) bench.open();
  offline(bench, false);
  const isOver = await bench.rest();
  const { phase, reason } = bench.ana.engine?.sync.status ?? {};
  return [
    ...(isOver ? [] : [`it does not come to rest: ${phase} ${JSON.stringify(reason)}`]),
    ...(await brokenPromises(bench)),
  ];
}

function differences(expected: EndState, found: EndState): string[] {
  return (Object.keys(expected) as (keyof EndState)[])
    .filter((part) => JSON.stringify(expected[part]) !== JSON.stringify(found[part]))
    .map((part) => `another ${part}: ${JSON.stringify(found[part])}, undisturbed ${JSON.stringify(expected[part])}`);
}

const examined = ({ ana }: Bench): string[] =>
  (ana.engine?.examine().findings ?? []).map(({ check, what }) => `${check}: ${what}`);

const contentsIn = ({ ana }: Bench): string => (existsSync(ana.file) ? contentsOf(ana.file) : '');

async function benchOnCopy(of: Pick<Prepared, 'scenario' | 'folder'>, name: string): Promise<Bench> {
  const here = join(of.folder, name);
  cpSync(join(of.folder, 'prepared'), here, { recursive: true });
  return benchIn(here, of.scenario, 1);
}

async function benchIn(folder: string, scenario: Scenario, start: number): Promise<Bench> {
  const schema = scenario.opensBy;
  const bench = new Bench(folder, {
    side: scenario.side,
    seed: 1 + start,
    ...(schema === undefined ? {} : { schema }),
  });
  await bench.begin(start * APART_MS);
  return bench;
}

const ROOM = 1_000_000;

/** The work on a file that can grow by so many pages only; then there is room, and it is done again. */
export async function fillUp(
  prepared: Prepared,
  pages: number,
): Promise<{ readonly wasFull: boolean; readonly problems: readonly string[] }> {
  const { scenario } = prepared;
  const bench = await benchOnCopy(prepared, `full-${pages}`);
  bench.ana.network.rules.offline = true;
  // What the file has to spare is no room on the disk.
  const spare = openNodeDatabase({ file: bench.ana.file });
  spare.exec('VACUUM');
  spare.close();
  bench.open();
  const database = bench.ana.engine?.database;
  const size = Number(Object.values(database?.prepare('PRAGMA page_count').get() ?? {})[0]);
  database?.exec(`PRAGMA max_page_count=${size + pages}`);
  const problems: string[] = [];
  let code: unknown = null;
  try {
    void Promise.resolve(scenario.work(bench)).catch(() => undefined);
    await bench.time.advance(20_000);
    const { reason = null, logs = [] } = bench.ana.engine?.sync.status ?? {};
    code = reason?.code ?? logs[0]?.reason?.code ?? null;
  } catch (cause) {
    code = (cause as { code?: unknown }).code ?? String(cause);
  }
  if (code !== null && code !== 'storage-full' && !isNetwork(code)) problems.push(`it said ${String(code)}`);
  problems.push(...examined(bench));
  database?.exec(`PRAGMA max_page_count=${ROOM}`);
  await bench.rest();
  const again = await work(bench, scenario);
  if (again !== null) problems.push(`with room again, it ended with ${String(again)}`);
  problems.push(...(await finish(bench)), ...differences(prepared.end, await endStateOf(bench)));
  bench.dispose();
  return { wasFull: code === 'storage-full', problems };
}

/** The bench is offline while a commit is tried. */
const isNetwork = (code: unknown): boolean => code === 'ledger-unreachable';
