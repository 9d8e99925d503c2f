import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { AskedWrongly, runCommand, type Values, wholeNumber } from '../asked-wrongly.ts';
import { endAll } from './child.ts';
import { type Copy, createCopy } from './copy.ts';
import { MUTATIONS } from './list.ts';
import type { Mutation } from './mutation.ts';
import { isGreen, nameOf, tableOf, totalsOf } from './report.ts';
import { type Trial, type TrialOptions, tryOut } from './trial.ts';

/**
 * Puts classic faults back into the production code, one at a time, in copies of the repository, and asks whether the tests
 * or the simulation notice. The working tree is never touched.
 *
 * Exit: 0 each was caught; 1 at least one survived, or does not load; 2 not even the unchanged code is green.
 */
const USAGE = `npm run mutate -- [--only NAME]… [--seeds N] [--from S] [--workers N] [--timeout SECONDS] [--no-tests]
                  [--list] [--json]
default: all ${MUTATIONS.length} mutations, 40 seeds from 1, a worker per core, 600 s for the tests and again for the seeds`;

const OPTIONS = {
  options: {
    only: { type: 'string', multiple: true },
    seeds: { type: 'string', default: '40' },
    from: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(availableParallelism()) },
    timeout: { type: 'string', default: '600' },
    'no-tests': { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
} as const;

const ROOT = resolve(import.meta.dirname, '../../..');

type Asked = Values<typeof OPTIONS>;
let say: (line: string) => void = console.log;

await runCommand(USAGE, OPTIONS, (values) => {
  // What machines read is alone on the standard output.
  if (values.json) say = console.error;
  if (!values.list) return main(values);
  console.log(MUTATIONS.map(({ name, fault }) => `${name}: ${fault}`).join('\n'));
  return 0;
});

async function main(values: Asked): Promise<number> {
  const chosen = choose(values);
  const options: TrialOptions = {
    seeds: wholeNumber('seeds', values.seeds),
    from: wholeNumber('from', values.from),
    timeoutMs: wholeNumber('timeout', values.timeout, 1) * 1_000,
  };
  const copies: Copy[] = [];
  const stop = () => {
    endAll();
    for (const copy of copies.splice(0)) copy.remove();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      stop();
      process.exit(130);
    });
  try {
    const lanes = Math.max(1, Math.min(wholeNumber('workers', values.workers, 1), chosen.length));
    for (let lane = 0; lane < lanes; lane += 1) copies.push(createCopy(ROOT));
    return await tryAll(copies, chosen, { ...options, values });
  } finally {
    stop();
  }
}

async function tryAll(
  copies: readonly Copy[],
  chosen: readonly Mutation[],
  { values, ...options }: TrialOptions & { readonly values: Asked },
): Promise<number> {
  const testsOf = (mutation: Mutation): readonly string[] => (values['no-tests'] ? [] : mutation.tests);
  const tests = [...new Set(chosen.flatMap(testsOf))].sort();
  const [first] = copies as [Copy];
  const unchanged = await tryOut(first, null, tests, options);
  tell(unchanged);
  if (!isGreen(unchanged)) {
    if (values.json) console.log(JSON.stringify({ unchanged }));
    say('Not even the unchanged code is green: nothing can be said about faults.');
    return 2;
  }
  const trials: Trial[] = [];
  const left = chosen.values();
  await Promise.all(
    copies.map(async (copy) => {
      for (const mutation of left) {
        const trial = await tryOut(copy, mutation, testsOf(mutation), options);
        trials.push(trial);
        tell(trial, `${trials.length}/${chosen.length} `);
      }
    }),
  );
  const totals = totalsOf(trials);
  if (values.json) console.log(JSON.stringify({ unchanged, trials, totals }));
  say(`\n${tableOf(trials)}\n`);
  say(`${totals.mutations} mutations: ${totals.byTests} caught by tests, ${totals.bySeeds} by seeds.`);
  for (const name of totals.survivors) say(`SURVIVED: ${name}`);
  for (const name of totals.unloadable) say(`DOES NOT LOAD: ${name}`);
  return totals.survivors.length + totals.unloadable.length === 0 ? 0 : 1;
}

function choose({ only }: Asked): readonly Mutation[] {
  if (only === undefined) return MUTATIONS;
  const unknown = only.find((name) => !MUTATIONS.some((mutation) => mutation.name === name));
  if (unknown !== undefined) throw new AskedWrongly(`There is no mutation "${unknown}".`);
  return MUTATIONS.filter(({ name }) => only.includes(name));
}

/** The progress line of one trial. */
function tell(trial: Trial, count = ''): void {
  const { tests, simulation } = trial;
  const seeds = simulation.caught === null ? simulation.outcome : `${simulation.caught} of ${simulation.seeds} seeds`;
  const seconds = ((tests.ms + simulation.ms) / 1_000).toFixed(0);
  say(`${count}${nameOf(trial)}: tests ${tests.outcome}, ${seeds} (${seconds} s)`);
  if (tests.first !== null) say(`   ${tests.first.file}: ${tests.first.test}\n   ${tests.first.message}`);
  if (simulation.message !== null) say(`   seed ${simulation.firstSeed}: ${simulation.message}`);
}
