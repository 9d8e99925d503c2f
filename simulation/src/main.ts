import { runSeed, type SeedResult } from './run.ts';

/** `npm run simulate -- --seeds N --from S [--trace]` */
const argument = (name: string, fallback: number): number => {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? fallback : Number(process.argv[at + 1]);
};
const seeds = argument('seeds', 100);
const from = argument('from', 1);
const isTraced = process.argv.includes('--trace');
const totals: Record<string, number> = {};
const failed: SeedResult[] = [];
let simulatedMs = 0;
let steps = 0;
const started = performance.now();
for (let seed = from; seed < from + seeds; seed += 1) {
  const result = await runSeed(seed, isTraced ? { trace: (line) => console.log(line) } : {});
  for (const [what, n] of Object.entries(result.counts)) totals[what] = (totals[what] ?? 0) + n;
  simulatedMs += result.simulatedMs;
  steps += result.steps;
  if (result.violations.length > 0) {
    failed.push(result);
    console.log(
      `seed ${seed} FAILED  (${result.faults.join(', ')})  replay: npm run simulate -- --seeds 1 --from ${seed} --trace`,
    );
    for (const { invariant, device, what } of result.violations.slice(0, 4))
      console.log(`   ${invariant} ${device ?? ''} ${what}`);
  }
  if (process.stderr.isTTY && (seed - from) % 10 === 0) process.stderr.write(`\r${seed - from + 1}/${seeds}`);
}
const seconds = (performance.now() - started) / 1000;
console.log(
  `${seeds} seeds, ${failed.length} failed, ${(simulatedMs / 3_600_000).toFixed(1)} simulated hours, ${steps} steps in ${seconds.toFixed(1)} s (${Math.round(steps / seconds)} steps/s)`,
);
console.log(
  Object.entries(totals)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([what, n]) => `${what} ${n}`)
    .join(', '),
);
process.exitCode = failed.length === 0 ? 0 : 1;
