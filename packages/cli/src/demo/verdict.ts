import type { VerifyReport } from '@holdfast/ledger';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import type { Audit, FileFacts } from './audit.ts';

/** What was counted at the end of a demonstration. */
export interface DemoFacts {
  readonly audit: Audit;
  readonly verified: VerifyReport;
  readonly ana: FileFacts;
  readonly ben: FileFacts;
  /** How many commits were looked for: all of them, the import's too. */
  readonly committed: number;
  /** Batches that a person decided. */
  readonly conflicts: number;
  /** Operations that the killed device had on their way, and no answer to. */
  readonly caught: number;
}

/** What is said of it, and what a script reads. */
export interface DemoResult {
  readonly events: number;
  readonly operations: number;
  readonly committed: number;
  readonly merges: number;
  readonly conflicts: number;
  readonly unansweredAtKill: number;
  readonly obligationsOpened: number;
  readonly obligationsOpen: number;
  readonly lost: number;
  readonly doubled: number;
  readonly chainsEqual: boolean;
  readonly signaturesEqual: boolean;
  readonly findings: number;
  readonly ok: boolean;
}

/**
 * Good is a run that shows what it claims: it merged, a person decided, a push was cut and its outcome found out, and
 * after all of it everything is there once, and alike.
 */
export function judgeDemo({ audit, verified, ana, ben, committed, conflicts, caught }: DemoFacts): {
  readonly result: DemoResult;
  readonly exit: ExitCode;
} {
  const facts = {
    events: audit.events,
    operations: audit.operations,
    committed,
    merges: audit.merged,
    conflicts,
    unansweredAtKill: caught,
    obligationsOpened: ana.obligationsOpened + ben.obligationsOpened,
    obligationsOpen: ana.obligationsOpen + ben.obligationsOpen,
    lost: audit.lost,
    doubled: audit.doubled,
    chainsEqual: new Set([ana.chain, ben.chain, verified.chain]).size === 1,
    signaturesEqual: new Set([ana.signature, ben.signature, verified.signature]).size === 1,
    findings: ana.findings + ben.findings + verified.problems.length,
  };
  const wasShown = facts.merges > 0 && conflicts > 0 && caught > 0 && facts.obligationsOpened > 0;
  const isWhole =
    facts.lost === 0 &&
    facts.doubled === 0 &&
    facts.chainsEqual &&
    facts.signaturesEqual &&
    facts.findings === 0 &&
    facts.obligationsOpen === 0 &&
    ana.unsent + ben.unsent === 0;
  const ok = wasShown && isWhole;
  return { result: { ...facts, ok }, exit: ok ? EXIT.done : EXIT.failed };
}
