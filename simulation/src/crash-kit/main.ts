import { AskedWrongly, runCommand, type Values, wholeNumber } from '../asked-wrongly.ts';
import { createDrawnLine } from '../drawn-line.ts';
import { type CrashReport, crashEverywhere, discard, HOWS, type How, prepare } from './crash.ts';
import { SCENARIOS, scenarioNamed } from './scenarios.ts';

const USAGE = `npm run crash-kit -- [--scenario a,b] [--how x,y] [--every N] [--json]
scenarios: ${SCENARIOS.map(({ name }) => name).join(', ')}
how:       ${HOWS.join(', ')}`;

const OPTIONS = {
  options: {
    scenario: { type: 'string' },
    how: { type: 'string' },
    every: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
} as const;

type Asked = Values<typeof OPTIONS>;

await runCommand(USAGE, OPTIONS, async (values) => ((await main(values)) ? 0 : 1));

/** True: wherever it failed, nothing was lost and nothing doubled. */
async function main(values: Asked): Promise<boolean> {
  const scenarios = values.scenario?.split(',').map(scenarioNamed) ?? SCENARIOS;
  const hows = values.how?.split(',').map(howNamed) ?? HOWS;
  const started = performance.now();
  const reports: CrashReport[] = [];
  const drawn = createDrawnLine(process.stderr);
  for (const scenario of scenarios) {
    const prepared = await prepare(scenario);
    try {
      for (const how of hows) {
        const report = await crashEverywhere(prepared, how, {
          every: wholeNumber('every', values.every, 1),
          tell: (nth) => drawn.draw(`${scenario.name} ${how} ${nth}`),
        });
        drawn.clear();
        reports.push(report);
        if (!values.json) say(report);
      }
    } finally {
      discard(prepared);
    }
  }
  const seconds = (performance.now() - started) / 1000;
  const runs = reports.reduce((sum, { struck }) => sum + struck, 0);
  const failed = reports.filter(({ problems }) => problems.length > 0);
  if (values.json) console.log(JSON.stringify({ runs, failed: failed.length, seconds, reports }));
  else
    console.log(
      `${runs} failures in ${scenarios.length} scenarios, ${failed.length} not survived, ${seconds.toFixed(1)} s`,
    );
  return failed.length === 0;
}

function say({ scenario, how, struck, statements, left, transactions, problems }: CrashReport): void {
  const places = left > 0 ? `, left ${left} of ${transactions + 1} states` : '';
  console.log(
    `${problems.length === 0 ? 'ok    ' : 'FAILED'} ${scenario}, ${how}: ${struck} of ${statements} statements${places}`,
  );
  for (const problem of problems.slice(0, 5)) console.log(`       ${problem}`);
}

function howNamed(name: string): How {
  const found = HOWS.find((how) => how === name);
  if (found === undefined) throw new AskedWrongly(`There is no way to fail "${name}".`);
  return found;
}
