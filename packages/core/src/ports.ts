/**
 * What the engines need from outside. Types only: adapters implement them at the edge, tests and simulation implement
 * them with virtual time. Nothing here is asynchronous where the engine runs inside a transaction.
 */

/** What SQLite stores and gives back. Booleans are bound as 0 and 1 by the caller; `undefined` is never bound. */
export type SqlValue = null | number | string | Uint8Array;
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** Where a result column comes from, from the statement's metadata; null where it is an expression. */
export interface ColumnOrigin {
  readonly name: string;
  readonly table: string | null;
  readonly column: string | null;
}

export interface Statement {
  run(...parameters: readonly SqlValue[]): { readonly changes: number; readonly lastInsertRowid: number };
  get(...parameters: readonly SqlValue[]): SqlRow | undefined;
  all(...parameters: readonly SqlValue[]): readonly SqlRow[];
  /** Rows as arrays in column order. */
  arrays(...parameters: readonly SqlValue[]): readonly (readonly SqlValue[])[];
  columns(): readonly ColumnOrigin[];
}

/** One column that a statement reads: `column` is '' where only the table's rows are counted. */
export interface ColumnRead {
  readonly table: string;
  readonly column: string;
}

/** A synchronous SQLite connection. The engine is the only user of its connection. */
export interface Database {
  exec(sql: string): void;
  /** Prepares; the adapter caches by text, within a bound. */
  prepare(sql: string): Statement;
  /**
   * Prepares a statement of an app under an authorizer: one statement, read-only, no engine table (`hf_`), no pragma,
   * no attach. Throws a `DatabaseFault` with code `query-refused` otherwise. `reads` is what it looks at (LQ6).
   */
  prepareQuery(sql: string): { readonly statement: Statement; readonly reads: readonly ColumnRead[] };
  /** Registers a deterministic scalar function. */
  function(name: string, run: (...values: readonly SqlValue[]) => SqlValue): void;
  readonly inTransaction: boolean;
  /**
   * F23: whether the file that is open still stands under its name. One that was removed or replaced takes writes without
   * complaint, and keeps none. The adapter may look only every so often.
   */
  isInPlace(): boolean;
  close(): void;
}

/** Translated once by the adapter; the engine never reads a driver's error text. */
export type DatabaseFaultCode =
  | 'storage-full'
  | 'busy'
  | 'damaged'
  | 'query-refused'
  | 'sql-error'
  | 'closed'
  | 'io-error';

export interface Clock {
  /** Wall time in milliseconds since 1970. For people and stored instants. */
  now(): number;
  /** Monotonic milliseconds. For durations and deadlines. */
  monotonic(): number;
  /** Runs once after `ms`. The returned function cancels. */
  timer(ms: number, run: () => void): () => void;
  /** Runs soon, after what is already waiting for the processor: where groups gather. */
  soon(run: () => void): void;
}

export interface Random {
  bytes(length: number): Uint8Array;
  /** Uniform in [0, 1): jitter only. */
  unit(): number;
}

export interface Digest {
  /** SHA-256 of the concatenated parts; strings are UTF-8. Synchronous, since transactions are. 32 bytes. */
  sha256(...parts: readonly (string | Uint8Array)[]): Uint8Array;
  hmacSha256(key: Uint8Array, ...parts: readonly (string | Uint8Array)[]): Uint8Array;
}

/** The part of a response that the engine looks at: a platform `Response` has this shape. */
export interface WireResponse {
  readonly status: number;
  readonly redirected?: boolean;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** The part of `AbortSignal` that the engine uses; the platform's own is one. */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', run: () => void): void;
  removeEventListener(type: 'abort', run: () => void): void;
}

export interface WireRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: CancelSignal;
  /** Called as bytes of the answer arrive: time-outs are on progress, never on the whole (PM12). Optional to call. */
  readonly progress?: (bytes: number) => void;
}

/** `fetch`, as the engine uses it. Never follows a redirect; a rejection means: outcome unknown. */
export type Fetch = (url: string, request: WireRequest) => Promise<WireResponse>;

/** A rejection of `Fetch` that carries `noByteLeft: true` proves that the request never left this device. */
export interface NeverSent {
  readonly noByteLeft: true;
}

export interface Socket {
  send(text: string): void;
  close(): void;
  /** Bytes accepted by `send` and not yet handed to the network. */
  readonly bufferedBytes: number;
}

export interface SocketEvents {
  open(): void;
  message(text: string): void;
  /** After it nothing else is called. */
  closed(reason: string): void;
}

/** Opens a WebSocket. Events of one socket are delivered in order, never during the call itself. */
export type OpenSocket = (url: string, events: SocketEvents) => Socket;

export type Logger = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  facts?: Readonly<Record<string, unknown>>,
) => void;

export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly digest: Digest;
}
