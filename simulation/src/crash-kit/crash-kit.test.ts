import { afterAll, expect, test } from 'vitest';
import { crashEverywhere, discard, HOWS, type How, type Prepared, prepare } from './crash.ts';
import { SCENARIOS, scenarioNamed } from './scenarios.ts';

/**
 * Production engines on real files, on both sides. `npm run crash-kit` strikes every statement of every scenario in every
 * way; so does this with CRASH_KIT=all. Else the long ones are struck at every 40th.
 */
const isAll = process.env['CRASH_KIT'] === 'all';
const WHOLE = ['commit', 'undo', 'unpack', 'ledger-append', 'ledger-creation'];
/** What is left out here is nearly this: killed before a statement is killed after the one before it. */
const STRUCK: readonly How[] = isAll ? HOWS : ['io-error', 'killed-after'];

const prepared = new Map<string, Prepared>();
afterAll(() => {
  for (const one of prepared.values()) discard(one);
});
async function preparedFor(name: string): Promise<Prepared> {
  const known = prepared.get(name) ?? (await prepare(scenarioNamed(name)));
  prepared.set(name, known);
  return known;
}

const cases = (names: readonly string[]) => names.flatMap((name) => STRUCK.map((how) => [name, how] as const));

test.each(cases(WHOLE))(
  '[I01 I02 I03 I04] %s, %s at every statement: nothing is half done, lost or doubled',
  async (name, how) => {
    const of = await preparedFor(name);
    const report = await crashEverywhere(of, how);
    expect(report.problems).toEqual([]);
    expect(report.struck).toBe(report.statements);
    expect(report.statements).toBeGreaterThan(10);
    // A kill after its COMMIT is seen, too.
    if (how === 'killed-after' && of.scenario.side === 'replica') expect(report.left).toBe(report.transactions + 1);
  },
);

const LONG = SCENARIOS.map(({ name }) => name).filter((name) => !WHOLE.includes(name));

test.each(cases(LONG))(
  '[I01 I02 I03 I04 I21] %s, %s: nothing is half done, lost or doubled',
  async (name, how) => {
    const report = await crashEverywhere(await preparedFor(name), how, { every: isAll ? 1 : 40 });
    expect(report.problems).toEqual([]);
    expect(report.statements).toBeGreaterThan(30);
  },
  1_800_000,
);
