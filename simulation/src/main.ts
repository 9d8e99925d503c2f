import { parseArgs } from 'node:util';
import { LASTING, type LastingKind } from './lasting.ts';
import { createPool } from './pool.ts';
import { runSeed, type SeedOptions, type SeedResult } from './run.ts';
import { replayCommand, shrink } from './shrink.ts';
import { FAULTS, type FaultClass } from './world.ts';

const USAGE = `npm run simulate -- [--seeds N | --hours H] [--from S] [--faults a,b | none] [--lasting a | none] [--steps N] [--devices N]
                    [--workers N] [--trace] [--no-shrink] [--json]
faults: ${FAULTS.join(', ')}
lasting: ${LASTING.join(', ')}; drawn for one seed in five`;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    hours: { type: 'string' },
    from: { type: 'string', default: '1' },
    faults: { type: 'string' },
    lasting: { type: 'string' },
    steps: { type: 'string' },
    devices: { type: 'string' },
    workers: { type: 'string' },
    trace: { type: 'boolean', default: false },
    'no-shrink': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(USAGE);
else process.exitCode = (await main()) ? 0 : 1;

/** True: every promise held. */
async function main(): Promise<boolean> {
  const options = readOptions();
  const say = values.json ? () => {} : (line: string) => console.log(line);
  const results: SeedResult[] = [];
  const started = performance.now();
  const tell = (result: SeedResult): void => {
    results.push(result);
    if (result.violations.length > 0) sayFailed(say, result, replayCommand(result.seed, options));
    if (process.stderr.isTTY && results.length % 10 === 0) process.stderr.write(`\r${results.length} seeds`);
  };
  const seeds = seedsToRun(started);
  if (values.trace) for (const seed of seeds) tell(await runSeed(seed, { ...options, trace: say }));
  else await createPool(...optionalNumber('workers')).run(seeds, options, tell);

  const failed = results.filter(({ violations }) => violations.length > 0).sort((a, b) => a.seed - b.seed);
  const smallest: Record<number, string> = {};
  if (!values['no-shrink'] && !values.trace)
    for (const result of failed.slice(0, 5)) {
      const shrunk = await shrink(result, options);
      smallest[result.seed] = replayCommand(result.seed, shrunk.options);
      say(`seed ${result.seed} still fails after ${shrunk.tries} tries as`);
      sayFailed(say, shrunk.result, smallest[result.seed] as string);
    }
  summarise(say, { results, failed, smallest, seconds: (performance.now() - started) / 1000 });
  return failed.length === 0;
}

function sayFailed(say: (line: string) => void, result: SeedResult, command: string): void {
  say(
    `seed ${result.seed} FAILED  (${result.faults.join(', ')}${result.lasting === null ? '' : `; lasting ${result.lasting}`})  replay: ${command}`,
  );
  for (const { invariant, device, what } of result.violations.slice(0, 4))
    say(`   ${invariant} ${device ?? ''} ${what}`);
}

function summarise(
  say: (line: string) => void,
  of: {
    readonly results: readonly SeedResult[];
    readonly failed: readonly SeedResult[];
    readonly smallest: Readonly<Record<number, string>>;
    readonly seconds: number;
  },
): void {
  const { results, failed, seconds } = of;
  const counts: Record<string, number> = {};
  for (const result of results)
    for (const [what, n] of Object.entries(result.counts)) counts[what] = (counts[what] ?? 0) + n;
  const steps = results.reduce((sum, result) => sum + result.steps, 0);
  const simulatedHours = results.reduce((sum, result) => sum + result.simulatedMs, 0) / 3_600_000;
  say(
    `${results.length} seeds, ${failed.length} failed, ${simulatedHours.toFixed(1)} simulated hours, ${steps} steps in ${seconds.toFixed(1)} s (${Math.round(steps / seconds)} steps/s)`,
  );
  const sorted = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1));
  say(sorted.map(([what, n]) => `${what} ${n}`).join(', '));
  if (values.json)
    console.log(
      JSON.stringify({
        seeds: results.length,
        from: Number(values.from),
        failed: failed.map(({ seed, faults, violations }) => ({
          seed,
          faults,
          violations,
          smallest: of.smallest[seed],
        })),
        steps,
        simulatedHours,
        seconds,
        counts: Object.fromEntries(sorted),
      }),
    );
}

/** A number of seeds, or as many as begin within some hours of real time. */
function* seedsToRun(startedMs: number): Generator<number> {
  const from = Number(values.from);
  const untilMs = values.hours === undefined ? null : startedMs + Number(values.hours) * 3_600_000;
  const last =
    untilMs === null || values.seeds !== undefined ? from + Number(values.seeds ?? 100) : Number.MAX_SAFE_INTEGER;
  for (let seed = from; seed < last && (untilMs === null || performance.now() < untilMs); seed += 1) yield seed;
}

function readOptions(): SeedOptions {
  const [steps] = optionalNumber('steps');
  const [devices] = optionalNumber('devices');
  return {
    ...(steps === undefined ? {} : { steps }),
    ...(devices === undefined ? {} : { devices }),
    ...(values.faults === undefined ? {} : { faults: readFaults(values.faults) }),
    ...(values.lasting === undefined ? {} : { lasting: readLasting(values.lasting) }),
  };
}

function readFaults(text: string): readonly FaultClass[] {
  if (text === 'none') return [];
  return text.split(',').map((name) => {
    const fault = FAULTS.find((one) => one === name);
    if (fault === undefined) throw new Error(`no such class of faults: ${name}\n${USAGE}`);
    return fault;
  });
}

function readLasting(text: string): LastingKind | null {
  if (text === 'none') return null;
  const kind = LASTING.find((one) => one === text);
  if (kind === undefined) throw new Error(`no such lasting fault: ${text}\n${USAGE}`);
  return kind;
}

function optionalNumber(name: 'steps' | 'devices' | 'workers'): [] | [number] {
  const text = values[name];
  return text === undefined ? [] : [Number(text)];
}
