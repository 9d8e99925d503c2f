/**
 * The project's test command: format and lint, types by layer, then every test. Each step runs even when an earlier one
 * failed, so that one run says everything; the last two lines tell the time that all of it took, and count
 * tests, with each failed step as one more failure.
 *
 *   npm test                    everything
 *   npm test -- packages/core   checks, and only the tests under these paths
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Step {
  readonly name: string;
  readonly command: readonly string[];
}

const STEPS: readonly Step[] = [
  { name: 'format and lint', command: ['biome', 'ci', '.'] },
  { name: 'types: core without a platform', command: ['tsc', '-p', 'tsconfig/core.json'] },
  { name: 'types: engines without a platform', command: ['tsc', '-p', 'tsconfig/engine.json'] },
  { name: 'types: everything', command: ['tsc', '-p', 'tsconfig/all.json'] },
  { name: 'types: tasks for React', command: ['tsc', '-p', 'tsconfig/react.json'] },
];

function run(step: Step): boolean {
  const started = performance.now();
  const [program, ...args] = step.command as [string, ...string[]];
  const { status } = spawnSync(program, args, { stdio: 'inherit' });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${step.name} (${seconds} s)`);
  return status === 0;
}

function runTests(paths: readonly string[]): { passed: number; failed: number; skipped: number } {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  const report = join(folder, 'report.json');
  try {
    const { status } = spawnSync(
      'vitest',
      ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...paths],
      { stdio: 'inherit' },
    );
    const counts = JSON.parse(readFileSync(report, 'utf8')) as {
      numPassedTests: number;
      numFailedTests: number;
      numPendingTests: number;
      numFailedTestSuites: number;
    };
    // A file that does not load fails without failing a test.
    const failed =
      status === 0 ? counts.numFailedTests : Math.max(1, counts.numFailedTests, counts.numFailedTestSuites);
    return { passed: counts.numPassedTests, failed, skipped: counts.numPendingTests };
  } catch (cause) {
    console.error('No test report:', cause instanceof Error ? cause.message : cause);
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What the whole command may take on two cores. */
const SECONDS_MAX = 480;

const started = performance.now();
const failedSteps = STEPS.filter((step) => !run(step)).length;
const tests = runTests(process.argv.slice(2));
const failed = tests.failed + failedSteps;
const seconds = Math.round((performance.now() - started) / 1000);
const isSlow = seconds > SECONDS_MAX ? `: more than the ${SECONDS_MAX} s that this may take on two cores` : '';
console.log(`${Math.floor(seconds / 60)} min ${seconds % 60} s in all${isSlow}`);
console.log(`${tests.passed} passed, ${failed} failed${tests.skipped > 0 ? `, ${tests.skipped} skipped` : ''}`);
process.exitCode = failed === 0 ? 0 : 1;
