/**
 * Scenarios of docs/SCENARIOS.md that wait for a part which does not exist yet. A scenario of which one half runs already
 * has a test as well; the table names both.
 */
export interface WaitingScenario {
  /** As in the table. */
  readonly scenario: string;
  readonly waitsFor: string;
  /** The half that a test runs already; null if none. */
  readonly runsAlready: string | null;
}

export const WAITING: readonly WaitingScenario[] = [];
