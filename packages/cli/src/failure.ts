import { EXIT, type ExitCode } from './exit-codes.ts';

/**
 * A failure as a person reads it: what happened, why, and what to do next. The code is the name of its section in
 * docs/ERRORS.md.
 */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: string;
  readonly why: string;
  readonly next: string;
  readonly exitCode: ExitCode;

  constructor(parts: {
    readonly code: string;
    readonly what: string;
    readonly why: string;
    readonly next: string;
    readonly exitCode?: ExitCode;
    readonly cause?: unknown;
  }) {
    super(parts.what, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.code = parts.code;
    this.why = parts.why;
    this.next = parts.next;
    this.exitCode = parts.exitCode ?? EXIT.failed;
  }
}

interface Explained {
  readonly why: string;
  readonly next: string;
  readonly exitCode: ExitCode;
}

/** Codes that a person meets on the command line. Everything else is told with its own message. */
const EXPLAINED: Readonly<Record<string, Explained>> = {
  'replica-in-use': {
    why: 'Another process holds this replica open, and only one may write.',
    next: 'Stop that process. Meanwhile status, query, watch, journal, desk, doctor and pack read beside it.',
    exitCode: EXIT.failed,
  },
  'replica-damaged': {
    why: 'SQLite or a check of the engine found the file inconsistent.',
    next: 'Run "holdfast replica doctor"; it says what is wrong and what is safe to do. Nothing was changed.',
    exitCode: EXIT.damageFound,
  },
  'replica-gone': {
    why: 'The file was removed, or another was put in its place, while this command had it open.',
    next: 'Put the file back if it was moved, and run the command again.',
    exitCode: EXIT.failed,
  },
  'replica-too-new': {
    why: 'A newer version of Holdfast wrote this file.',
    next: 'Update this command. Nothing was changed.',
    exitCode: EXIT.failed,
  },
  'ledger-unreachable': {
    why: 'No answer came from the ledger.',
    next: 'Check the address and that "holdfast serve" runs there. Local work is safe and waits.',
    exitCode: EXIT.notReachable,
  },
  unauthenticated: {
    why: 'The ledger does not know this token, or it has ended.',
    next: 'Sign in again and pass the new token with --token-file or HOLDFAST_TOKEN.',
    exitCode: EXIT.personNeeded,
  },
  'query-refused': {
    why: 'A query reads: one SELECT over entity tables, nothing else.',
    next: 'Write it as one SELECT over the entity types of the schema.',
    exitCode: EXIT.wrongUse,
  },
  'invalid-change': {
    why: 'The schema of this replica does not take these values.',
    next: 'Change what was given. "holdfast schema print FILE" shows the fields of an entity type and their kinds.',
    exitCode: EXIT.wrongUse,
  },
  'bad-setting': {
    why: 'What was given as the ledger or its folder cannot be used.',
    next: 'Change it. A ledger is named by its address, such as http://127.0.0.1:4800.',
    exitCode: EXIT.wrongUse,
  },
  'storage-full': {
    why: 'The disk or quota has no room.',
    next: 'Free space and try again. Nothing was lost; reading and sending go on.',
    exitCode: EXIT.failed,
  },
  'needs-attention': {
    why: 'Work waits for a decision.',
    next: 'List it with "holdfast replica desk".',
    exitCode: EXIT.personNeeded,
  },
};

/** Any error, told at the rim. Stacks only where somebody asked for them. */
export function toFailure(cause: unknown): Failure {
  if (cause instanceof Failure) return cause;
  const code = codeOf(cause);
  const what = cause instanceof Error ? cause.message : String(cause);
  const explained = EXPLAINED[code];
  if (explained !== undefined) return new Failure({ code, what, ...explained, cause });
  return new Failure({
    code,
    what,
    why: code === 'unexpected' ? 'This is a defect of Holdfast, not of your input.' : `The engine answered "${code}".`,
    next:
      code === 'unexpected'
        ? 'Run again with HOLDFAST_DEBUG=1 and report the stack. Nothing unsent was removed.'
        : `See "${code}" in docs/ERRORS.md.`,
    cause,
  });
}

function codeOf(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null || !('code' in cause)) return 'unexpected';
  const { code } = cause;
  return typeof code === 'string' && /^[a-z][a-z-]+$/.test(code) ? code : 'unexpected';
}
