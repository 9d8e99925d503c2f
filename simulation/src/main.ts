import { AskedWrongly, runCommand, type Values, wholeNumber } from './asked-wrongly.ts';
import { unreachableCells, writeCells, writeSample } from './coverage.ts';
import { FAULTS, type FaultClass } from './fault-classes.ts';
import { LASTING, type LastingKind } from './lasting.ts';
import { createPool } from './pool.ts';
import { createProgress } from './progress.ts';
import { runSeed, type SeedOptions, type SeedResult } from './run.ts';
import { replayCommand, shrink } from './shrink.ts';
import { summaryLines, summaryOf } from './summary.ts';

const USAGE = `npm run simulate -- [--seeds N | --hours H] [--from S] [--faults a,b | none] [--lasting a | none] [--steps N] [--devices N] [--logs 1|2]
                    [--workers N] [--once] [--all-plays] [--trace] [--no-shrink] [--json]
                    [--write-cells FILE] [--write-sample]
faults: ${FAULTS.join(', ')}
lasting: ${LASTING.join(', ')}; drawn for one seed in five`;

const OPTIONS = {
  options: {
    seeds: { type: 'string' },
    hours: { type: 'string' },
    from: { type: 'string', default: '1' },
    faults: { type: 'string' },
    lasting: { type: 'string' },
    steps: { type: 'string' },
    devices: { type: 'string' },
    logs: { type: 'string' },
    workers: { type: 'string' },
    once: { type: 'boolean', default: false },
    'all-plays': { type: 'boolean', default: false },
    'write-cells': { type: 'string' },
    'write-sample': { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    'no-shrink': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
} as const;

type Asked = Values<typeof OPTIONS>;

/** Asked to stop, a run begins no other seed, and says what it has seen. Asked twice, it ends. */
let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    isStopping = true;
  });

await runCommand(USAGE, OPTIONS, async (values) => ((await main(values)) ? 0 : 1));

/** True: every promise held. */
async function main(values: Asked): Promise<boolean> {
  const options = seedOptions(values);
  const say = values.json ? () => {} : (line: string) => console.log(line);
  const results: SeedResult[] = [];
  const started = performance.now();
  let steps = 0;
  let failures = 0;
  const progress = createProgress({
    stream: process.stderr,
    nowMs: () => performance.now(),
    total:
      values.hours === undefined || values.seeds !== undefined ? wholeNumber('seeds', values.seeds ?? '100', 1) : null,
  });
  const tell = (result: SeedResult): void => {
    results.push(result);
    steps += result.steps;
    if (result.violations.length > 0) {
      failures += 1;
      progress.clear();
      sayFailed(say, result, replayCommand(result.seed, options));
    }
    progress.tell({ done: results.length, failed: failures, steps });
  };
  const seeds = seedsToRun(values, started);
  if (values.trace) for (const seed of seeds) tell(await runSeed(seed, { ...options, trace: say }));
  else {
    const [size] = optionalNumber(values, 'workers');
    await createPool(size === undefined ? {} : { size }).run(seeds, options, tell);
  }
  progress.clear();

  const failed = results.filter(({ violations }) => violations.length > 0).sort((a, b) => a.seed - b.seed);
  const smallest: Record<number, string> = {};
  if (!values['no-shrink'] && !values.trace)
    // Of one that came to no end here would be none either.
    for (const result of failed.filter(({ steps }) => steps > 0).slice(0, 5)) {
      const shrunk = await shrink(result, options);
      smallest[result.seed] = replayCommand(result.seed, shrunk.options);
      say(`seed ${result.seed} still fails after ${shrunk.tries} tries as`);
      sayFailed(say, shrunk.result, smallest[result.seed] as string);
    }
  const seconds = (performance.now() - started) / 1000;
  const summary = summaryOf(results);
  for (const line of summaryLines(summary, seconds, unreachableCells())) say(line);
  if (values['write-sample']) writeSample(results, options.faults);
  if (values['write-cells'] !== undefined) writeCells(values['write-cells'], results);
  if (values.json)
    console.log(
      JSON.stringify({
        ...summary,
        from: wholeNumber('from', values.from),
        seconds,
        failed: failed.map(({ seed, faults, lasting, violations }) => ({
          seed,
          faults,
          lasting,
          violations,
          smallest: smallest[seed],
        })),
      }),
    );
  return failed.length === 0;
}

function sayFailed(say: (line: string) => void, result: SeedResult, command: string): void {
  say(
    `seed ${result.seed} FAILED  (${result.faults.join(', ')}${result.lasting === null ? '' : `; lasting ${result.lasting}`})  replay: ${command}`,
  );
  for (const { invariant, device, what } of result.violations.slice(0, 4))
    say(`   ${invariant} ${device ?? ''} ${what}`);
}

/** A number of seeds, or as many as begin within some hours of real time. */
function* seedsToRun(values: Asked, startedMs: number): Generator<number> {
  const from = wholeNumber('from', values.from);
  const untilMs = values.hours === undefined ? null : startedMs + Number(values.hours) * 3_600_000;
  const last =
    untilMs === null || values.seeds !== undefined
      ? from + wholeNumber('seeds', values.seeds ?? '100', 1)
      : Number.MAX_SAFE_INTEGER;
  for (let seed = from; seed < last && !isStopping && (untilMs === null || performance.now() < untilMs); seed += 1)
    yield seed;
}

function seedOptions(values: Asked): SeedOptions {
  const [steps] = optionalNumber(values, 'steps');
  const [devices] = optionalNumber(values, 'devices');
  const [logs] = optionalNumber(values, 'logs');
  return {
    twice: !values.once && !values.trace,
    allPlays: values['all-plays'] || values['write-sample'],
    ...(steps === undefined ? {} : { steps }),
    ...(devices === undefined ? {} : { devices }),
    ...(logs === undefined ? {} : { logs }),
    ...(values.faults === undefined ? {} : { faults: readFaults(values.faults) }),
    ...(values.lasting === undefined ? {} : { lasting: readLasting(values.lasting) }),
  };
}

function readFaults(text: string): readonly FaultClass[] {
  if (text === 'none') return [];
  return text.split(',').map((name) => {
    const fault = FAULTS.find((one) => one === name);
    if (fault === undefined) throw new AskedWrongly(`There is no class of faults "${name}".`);
    return fault;
  });
}

function readLasting(text: string): LastingKind | null {
  if (text === 'none') return null;
  const kind = LASTING.find((one) => one === text);
  if (kind === undefined) throw new AskedWrongly(`There is no lasting fault "${text}".`);
  return kind;
}

function optionalNumber(values: Asked, name: 'steps' | 'devices' | 'logs' | 'workers'): [] | [number] {
  const text = values[name];
  return text === undefined ? [] : [wholeNumber(name, text, 1)];
}
