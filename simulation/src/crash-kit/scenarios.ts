import { AskedWrongly } from '../asked-wrongly.ts';
import type { Scenario } from './scenario.ts';
import { ledgerScenarios } from './scenarios-ledger.ts';
import { localScenarios } from './scenarios-local.ts';
import { syncScenarios } from './scenarios-sync.ts';

export const SCENARIOS: readonly Scenario[] = [...localScenarios, ...syncScenarios, ...ledgerScenarios];

export function scenarioNamed(name: string): Scenario {
  const found = SCENARIOS.find((one) => one.name === name);
  if (found === undefined) throw new AskedWrongly(`There is no scenario "${name}".`);
  return found;
}
