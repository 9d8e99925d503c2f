import type { RequestRefusal, RequestRefusalCode } from '@holdfast/core';

/** A value, or the promise of one: an embedded store answers at once, a store behind a network later. */
export type MaybePromise<T> = T | Promise<T>;

/** Goes on with a value, at once where it is there: a synchronous store never pays for a promise. */
export const andThen = <T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> =>
  value instanceof Promise ? value.then(next) : next(value);

declare const answerType: unique symbol;
/** An answer of type `T`, already written as JSON. Pages are spliced from stored text, never parsed and written again. */
export type JsonText<T> = string & { readonly [answerType]?: T };

/** What vouches for an answer besides the protocol number (LG10). Null where it is not known. */
export interface Vouch {
  readonly logIdentity: string | null;
  /** The permit number that the request's body carried. */
  readonly permit: number | null;
}

export type Answered<T> =
  | ({ readonly ok: true; readonly body: JsonText<T> } & Vouch)
  | ({ readonly ok: false; readonly refused: Refused } & Vouch);

/** A refusal of a whole request. Whoever sends it adds the name under which it stands in the ledger's own log. */
export interface Refused {
  readonly status: number;
  readonly refusal: Omit<RequestRefusal, 'requestId'>;
  /** For `Retry-After`. */
  readonly retryAfterMs?: number;
}

const STATUS: Readonly<Record<RequestRefusalCode, number>> = {
  unauthenticated: 401,
  'not-allowed': 403,
  'not-found': 404,
  'method-not-allowed': 405,
  'unsupported-media-type': 415,
  malformed: 400,
  'too-large': 413,
  'rate-limited': 429,
  'history-changed': 409,
  'stale-generation': 409,
  'replica-cloned': 409,
  'stale-permit': 409,
  'other-account': 409,
  'update-needed': 426,
  'protocol-unsupported': 426,
  moved: 410,
  deleted: 410,
  'below-floor': 410,
  'quota-exceeded': 429,
  'origin-not-allowed': 403,
  'shutting-down': 503,
  internal: 500,
};

const MESSAGE: Readonly<Record<RequestRefusalCode, string>> = {
  unauthenticated: 'This request needs a valid credential.',
  'not-allowed': 'Your role does not allow this.',
  'not-found': 'There is nothing here that you may see.',
  'method-not-allowed': 'This address does not take this method.',
  'unsupported-media-type': 'A body is application/json in UTF-8, uncompressed.',
  malformed: 'The request is not of the documented form.',
  'too-large': 'The request is over a published limit.',
  'rate-limited': 'Too many requests. Wait, then try again.',
  'history-changed': 'Your position is not in this log.',
  'stale-generation': 'A later host instance of this replica has taken over.',
  'replica-cloned': 'Another copy of this replica is in use.',
  'stale-permit': 'A later request of this replica was seen before this one.',
  'other-account': 'This replica belongs to another account.',
  'update-needed': 'No protocol version in common. Update the app.',
  'protocol-unsupported': 'This ledger does not know this part of the protocol.',
  moved: 'This log has moved.',
  deleted: 'This log was deleted.',
  'below-floor': 'Older history is not kept here.',
  'quota-exceeded': 'The quota of this account is used up.',
  'origin-not-allowed': 'Pages of this origin may not talk to this ledger.',
  'shutting-down': 'This ledger is going away. Try again soon.',
  internal: 'Something went wrong here. Trying again is safe.',
};

export interface RefusalMore {
  readonly message?: string;
  readonly details?: RequestRefusal['details'];
  readonly retryAfterMs?: number;
  /** Another status than the code's own: 507 for a full disk. */
  readonly status?: number;
}

/** One table says status and sentence of each code, so that every door answers alike. */
export const refusedBy = (code: RequestRefusalCode, more: RefusalMore = {}): Refused => ({
  status: more.status ?? STATUS[code],
  refusal: {
    code,
    message: more.message ?? MESSAGE[code],
    ...(more.details === undefined ? {} : { details: more.details }),
  },
  ...(more.retryAfterMs === undefined ? {} : { retryAfterMs: more.retryAfterMs }),
});
