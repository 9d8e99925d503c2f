import { type Fault, type FaultCode, type Issue, RECOVERY } from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';

/** Every code is a line of docs/ERRORS.md. */
export type ErrorCode = FaultCode;

/**
 * What a repeat can do. `safe`: the same call may be repeated. `after-change`: change the input first. `after-sign-in`: with
 * fresh credentials. `never`: the same call fails again.
 */
export type Retry = 'never' | 'safe' | 'after-sign-in' | 'after-change';

/**
 * What every call of the public API throws or rejects with. Match `code`, never the text.
 *
 * `issues`: one per field that was refused (`invalid-change`). `details`: the numbers and values of the fault, such as
 * all three values of `changed-meanwhile`. `cause`: the fault as the engine gave it.
 */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError';
  readonly code: ErrorCode;
  readonly retry: Retry;
  readonly issues: readonly Issue[];
  readonly details: Readonly<Record<string, unknown>>;

  constructor(fault: Fault, cause?: unknown) {
    super(sentenceOf(fault), { cause: cause ?? fault });
    this.code = fault.code;
    this.retry = retryOf(fault.code);
    const { issues, ...details } = fault.facts ?? {};
    this.issues = Array.isArray(issues) ? (issues as readonly Issue[]) : [];
    this.details = details;
  }
}

export function isHoldfastError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: C,
): error is HoldfastError & { readonly code: C } {
  return error instanceof HoldfastError && (code === undefined || error.code === code);
}

/** A failure of the engine as the public API tells it; what is none is left as it is. */
export const publicError = (cause: unknown): unknown =>
  cause instanceof FaultError ? new HoldfastError(cause.fault, cause.cause) : cause;

/** Runs a call of the public API. */
export const told = <T>(promise: Promise<T>): Promise<T> =>
  promise.catch((cause: unknown) => {
    throw publicError(cause);
  });

const RETRY: Partial<Record<FaultCode, Retry>> = {
  'invalid-change': 'after-change',
  'bad-setting': 'after-change',
  'changed-meanwhile': 'after-change',
  'rule-broken': 'after-change',
  'batch-too-large': 'after-change',
  'too-large': 'after-change',
  'query-refused': 'after-change',
  'query-failed': 'after-change',
  'async-callback': 'after-change',
  'conflict-changed': 'after-change',
  'not-following': 'after-change',
  'not-found': 'after-change',
  'unsent-work': 'after-change',
  'needs-attention': 'after-change',
  'other-account': 'after-sign-in',
  contended: 'safe',
  'storage-full': 'safe',
  'replica-in-use': 'safe',
  'no-owner': 'safe',
  'not-ready': 'safe',
  aborted: 'safe',
};

export function retryOf(code: FaultCode): Retry {
  const known = RETRY[code];
  if (known !== undefined) return known;
  const recovery = RECOVERY[code];
  if (recovery === 'sign-in') return 'after-sign-in';
  return recovery === 'retry' || recovery === 'wait' || recovery === 'reissue' ? 'safe' : 'never';
}

type Facts = Readonly<Record<string, unknown>>;

/** What happened, what it means, what to do next. */
const SENTENCES: Partial<Record<FaultCode, (facts: Facts) => string>> = {
  'invalid-change': ({ issues, ...facts }) =>
    `Nothing was written: ${Array.isArray(issues) ? listed(issues) : factsIn(facts)}`,
  'changed-meanwhile': ({ fields }) =>
    `${listedFields(fields)} changed since it was read. Nothing was written. Show it to the person, or update by id to write on purpose.`,
  'rule-broken': ({ rules, entity }) => `It would break a rule of ${entity}: ${listed(rules)}. Nothing was written.`,
  'batch-too-large': ({ events, eventsMax, bytes, bytesMax }) =>
    bytes === undefined
      ? `One commit has at most ${eventsMax} events, this has ${events}. Use commitAll.`
      : `One commit has at most ${bytesMax} bytes, this has ${bytes}. Use commitAll.`,
  'too-large': ({ bytes, limit }) => `One event has at most ${limit} bytes, this has ${bytes}.`,
  'async-callback': () => 'The callback of commit returned a promise. Read before it, or use transact.',
  contended: () => 'What the transaction read changed each time it ran. Nothing was written; try again.',
  'idempotency-mismatch': () => 'This id was used before with other content. Nothing was written.',
  'storage-full': () => 'There is no room left on this device. Nothing of it was written; free some space.',
  'not-found': (facts) => `There is no ${named(facts)} here.`,
  'not-ready': () => 'This replica has no state yet, so it takes only what is new. Wait for settle().',
  'not-following': ({ log }) => `This replica does not follow the log "${log}". Call follow("${log}") first.`,
  'replica-in-use': ({ pid, since }) =>
    pid === undefined
      ? 'Another process has this replica open. Stop it, or open with { takeOver: true }.'
      : `Process ${pid} has this replica open since ${since}. Stop it (kill ${pid}), or open with { takeOver: true }.`,
  'replica-too-new': () => 'A newer version wrote this replica. Update; nothing of it was touched.',
  'replica-damaged': ({ reason }) => `This replica is damaged: ${reason}. Run: holdfast replica doctor`,
  'replica-gone': () =>
    'The file of this replica was removed or replaced while it was open. This write was not kept; open it again.',
  'other-account': ({ account }) => `This replica belongs to ${account ?? 'another account'}. Nothing was sent.`,
  outranked: () => 'Another host has taken over this replica. This one ends.',
  'bad-setting': ({ reason }) => `This client cannot be made: ${reason}.`,
  'token-failed': () => 'The token function of the app failed. Nothing was sent; it is asked again.',
  closed: () => 'It is closed. Open it again.',
  aborted: () => 'The wait was ended. What was asked for goes on.',
  'no-owner': () => 'No host has this replica open at the moment. What was committed is kept.',
  'query-refused': ({ reason }) => `This is no query that can be run here: ${reason}`,
  'query-failed': ({ reason }) => `The query failed: ${reason}`,
  'needs-attention': ({ unsent }) =>
    unsent === undefined
      ? 'A person must choose: it is on the desk, whole.'
      : `${unsent} changes are not sent yet. Say what becomes of them: keep or export.`,
  refused: ({ because }) => `It will not be in the log: ${(because as Fault | undefined)?.code ?? 'refused'}.`,
  'conflict-changed': () => 'The conflict changed after it was shown. Nothing was decided; show it again.',
};

const sentenceOf = ({ code, facts = {} }: Fault): string =>
  SENTENCES[code]?.(facts) ?? `${code}${typeof facts['reason'] === 'string' ? `: ${facts['reason']}` : ''}`;

const named = ({ entity, id, action, desk }: Facts): string =>
  entity !== undefined ? `${entity} ${id}` : action !== undefined ? `write ${action}` : `entry ${desk ?? ''}`.trim();

function listed(items: unknown): string {
  if (!Array.isArray(items)) return '';
  return items
    .slice(0, 5)
    .map((item: unknown) =>
      typeof item === 'string' ? item : `${(item as Issue).path.join('.')}: ${(item as Issue).message}`,
    )
    .join('; ');
}

/** Of a fault that has no issue per field, as the engine gives where it reads what was recorded. */
const factsIn = (facts: Facts): string =>
  Object.entries(facts)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');

const listedFields = (fields: unknown): string =>
  Array.isArray(fields)
    ? fields.map((one: { entity?: string; field?: string }) => `${one.entity}.${one.field}`).join(', ')
    : 'A field';
