/** The checkers, by when they look: at any moment, and at rest. */
export { checkQuiet } from './check-quiet.ts';
export { checkStep } from './check-step.ts';
export type { Violation } from './violation.ts';
