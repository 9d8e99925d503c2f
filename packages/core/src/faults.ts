/**
 * Faults are plain data. Inside the engines an expected failure is a value of `Fault`; sentences for people are made at
 * the rim from code and facts. One table says what each code leads to, so a code without a recovery does not compile.
 */
export interface Fault<C extends FaultCode = FaultCode> {
  readonly code: C;
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** One operation's definite refusals. */
export type RefusalCode =
  | 'version-conflict'
  | 'prior-missing'
  | 'base-ahead'
  | 'entity-version-chain'
  | 'missing-reference'
  | 'idempotency-mismatch'
  | 'event-id-reused'
  | 'invalid-event'
  | 'too-large'
  | 'stale-restore-preview'
  | 'not-allowed'
  | 'not-admitted'
  | 'quota-exceeded'
  | 'sealed'
  | 'protocol-unsupported'
  /** The ledger stumbled over this operation alone; nothing of it was kept, and it waits. */
  | 'internal';

/** A refusal of a whole request, before any operation was judged. */
export type RequestRefusalCode =
  | 'unauthenticated'
  | 'not-allowed'
  | 'not-found'
  | 'method-not-allowed'
  | 'unsupported-media-type'
  | 'malformed'
  | 'too-large'
  | 'rate-limited'
  | 'history-changed'
  | 'stale-generation'
  | 'replica-cloned'
  | 'stale-permit'
  | 'other-account'
  | 'update-needed'
  | 'protocol-unsupported'
  | 'moved'
  | 'deleted'
  | 'below-floor'
  | 'quota-exceeded'
  | 'origin-not-allowed'
  | 'shutting-down'
  | 'internal';

/** Faults that arise on the device. */
export type LocalFaultCode =
  | 'ledger-unreachable'
  | 'token-failed'
  | 'network-untrusted'
  | 'answer-malformed'
  | 'request-timeout'
  | 'page-gap'
  | 'chain-mismatch'
  | 'ledger-history-damaged'
  | 'ledger-state-suspect'
  | 'state-signature-differs'
  | 'invalid-change'
  | 'changed-meanwhile'
  | 'rule-broken'
  | 'storage-full'
  | 'replica-in-use'
  | 'replica-damaged'
  | 'replica-gone'
  | 'replica-too-new'
  | 'contended'
  | 'closed'
  | 'conflict-changed'
  | 'not-found'
  | 'type-name-taken'
  | 'no-owner'
  | 'needs-attention'
  | 'refused'
  | 'async-callback'
  | 'query-refused'
  | 'query-failed'
  | 'aborted'
  | 'unsent-work'
  | 'not-following'
  | 'not-ready'
  | 'outranked'
  | 'batch-too-large'
  | 'bad-setting'
  // Coordinator (PM2), in the order in which they are checked.
  | 'local-commit-invariant'
  | 'permit-identity-conflict'
  | 'permit-expired'
  | 'inactive-log'
  | 'permits-disabled'
  | 'permit-not-found'
  | 'host-instance-mismatch'
  | 'permit-state-conflict'
  | 'apply-not-committed'
  | 'engine-fault';

export type FaultCode = LocalFaultCode | RefusalCode | RequestRefusalCode;

/**
 * What the replica does about it (the table of 6.4).
 *
 * - `retry`: nothing is known; wait and ask again with the same bytes.
 * - `shrink`: as retry, with half as many bytes.
 * - `judge`: pull to the named version through ingest, then merge and rebase, or park.
 * - `hold`: waits for another operation.
 * - `check-position`: the next handshake decides (4.5).
 * - `refuse`: to the desk, out of local state; other work flows.
 * - `park`: an engine fault with the answer, to the desk; sync goes on.
 * - `preview-again`: its effect is taken back; holds nothing back.
 * - `sign-in`: stop the loop until there are fresh credentials (AC1).
 * - `block`: the log waits with the reason; the app goes on.
 * - `wait`: the operation waits with the reason.
 * - `renew`: RP1: outranked, or a copy that needs a new replica id.
 * - `reissue`: take a new permit.
 * - `tell`: the caller's error; nothing was changed.
 * - `stop`: this host must not go on.
 */
export type Recovery =
  | 'retry'
  | 'shrink'
  | 'judge'
  | 'hold'
  | 'check-position'
  | 'refuse'
  | 'park'
  | 'preview-again'
  | 'sign-in'
  | 'block'
  | 'wait'
  | 'renew'
  | 'reissue'
  | 'tell'
  | 'stop';

export const RECOVERY: Readonly<Record<FaultCode, Recovery>> = {
  'ledger-unreachable': 'retry',
  'token-failed': 'retry',
  'network-untrusted': 'retry',
  'answer-malformed': 'retry',
  'request-timeout': 'retry',
  'page-gap': 'retry',
  'chain-mismatch': 'check-position',
  'ledger-history-damaged': 'block',
  'ledger-state-suspect': 'block',
  'state-signature-differs': 'block',
  'invalid-change': 'tell',
  'changed-meanwhile': 'tell',
  'rule-broken': 'tell',
  'batch-too-large': 'tell',
  'bad-setting': 'tell',
  'storage-full': 'tell',
  'replica-in-use': 'tell',
  'replica-damaged': 'stop',
  'replica-gone': 'stop',
  'replica-too-new': 'stop',
  contended: 'tell',
  closed: 'tell',
  'conflict-changed': 'tell',
  'not-found': 'tell',
  'type-name-taken': 'tell',
  'no-owner': 'tell',
  'needs-attention': 'tell',
  refused: 'tell',
  'async-callback': 'tell',
  'query-refused': 'tell',
  'query-failed': 'tell',
  aborted: 'tell',
  'unsent-work': 'tell',
  'not-following': 'tell',
  'not-ready': 'tell',
  outranked: 'stop',
  'local-commit-invariant': 'block',
  'permit-identity-conflict': 'park',
  'permit-expired': 'reissue',
  'inactive-log': 'tell',
  'permits-disabled': 'wait',
  'permit-not-found': 'tell',
  'host-instance-mismatch': 'stop',
  'permit-state-conflict': 'tell',
  'apply-not-committed': 'retry',
  'engine-fault': 'park',
  'version-conflict': 'judge',
  'prior-missing': 'hold',
  'base-ahead': 'check-position',
  'entity-version-chain': 'park',
  'missing-reference': 'refuse',
  'idempotency-mismatch': 'park',
  'event-id-reused': 'park',
  'invalid-event': 'refuse',
  'too-large': 'refuse',
  'stale-restore-preview': 'preview-again',
  'not-allowed': 'refuse',
  'not-admitted': 'refuse',
  'quota-exceeded': 'wait',
  sealed: 'block',
  'protocol-unsupported': 'wait',
  unauthenticated: 'sign-in',
  'method-not-allowed': 'park',
  'unsupported-media-type': 'park',
  malformed: 'park',
  'rate-limited': 'retry',
  'history-changed': 'check-position',
  'stale-generation': 'renew',
  'replica-cloned': 'renew',
  'stale-permit': 'reissue',
  'other-account': 'block',
  'update-needed': 'block',
  moved: 'block',
  deleted: 'block',
  'below-floor': 'block',
  'origin-not-allowed': 'block',
  'shutting-down': 'retry',
  internal: 'retry',
};

/** An expected failure, or a value. */
export type Outcome<T, C extends FaultCode = FaultCode> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: Fault<C> };

export const ok = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });
export const fail = <C extends FaultCode>(
  code: C,
  facts?: Readonly<Record<string, unknown>>,
): { readonly ok: false; readonly fault: Fault<C> } => ({ ok: false, fault: facts ? { code, facts } : { code } });

/** A broken invariant: a defect of the engine, never an expected failure. Stays on in production. */
export class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new BrokenInvariant(what);
}
