import { type Clock, type Fault, type FaultCode, type Json, LIMITS } from '@holdfast/core';
import { FaultError } from '../engine/fault-error.ts';
import type {
  Ask,
  AskOf,
  Channel,
  ChannelEvents,
  OpenChannel,
  RequestName,
  Requests,
  RunTimeTypesByName,
  Tell,
  UndoState,
} from './messages.ts';
import type { Status } from './status.ts';

/**
 * The caller's side of a link, over any transport.
 *
 * Owns what was asked and not answered, and which live queries there are. When a host goes away, what can be repeated is
 * asked of the next one (CM5, LK2): a commit under its action id, queries, waits, live queries. What a person decided
 * (`resolve`, `undo`) is not: it fails with `no-owner`, since nobody can tell whether it was done. Everything is answered
 * or failed within a bound, except waits for the ledger: each host has `linkAnswerMs` to answer, hosts are tried as often
 * as there are delays, and where none is left the link ends with what the last one said.
 */
export interface LinkParts {
  readonly open: OpenChannel;
  readonly clock: Clock;
  /** How long to wait before each try to reach the next host, anew after one that lived; empty: there is no next one. */
  readonly reopenMs?: readonly number[];
}

export interface LiveSink {
  rows(tell: Extract<Tell, { tell: 'rows' }>): void;
  failing(fault: Fault): void;
}

export interface LinkListener {
  welcome?(tell: Extract<Tell, { tell: 'welcome' }>): void;
  status?(status: Status): void;
  undo?(undo: UndoState): void;
  types?(types: RunTimeTypesByName): void;
  desk?(): void;
  /** The host is gone; the next one is being looked for. `welcome` follows, or `ended`. */
  lost?(fault: Fault): void;
  /** For good. Nothing is told after it. */
  ended?(fault: Fault): void;
}

/** The part of `AbortSignal` that is needed. */
export interface WaitSignal {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', run: () => void, options?: { once: boolean }): void;
  removeEventListener(type: 'abort', run: () => void): void;
}

interface Pending {
  readonly ask: Ask & { readonly id: string };
  readonly resolve: (value: any) => void;
  readonly reject: (cause: FaultError) => void;
  /** How many hosts were asked. */
  hosts: number;
  /** Runs from when a host was asked until it answers or is gone. */
  stopTimer: (() => void) | null;
}

/** Not asked again of another host: nobody knows whether it was done. */
const ONCE: ReadonlySet<string> = new Set(['resolve', 'discard', 'undo', 'redo']);
/** Waits for the ledger or a person: no bound but the caller's own signal. */
const UNBOUNDED: ReadonlySet<string> = new Set(['ordered', 'settle', 'pause']);
/**
 * There is no next host to ask: it would take the replica back from whoever has it, could not open the file either, or
 * would begin a new one without a word.
 */
const FINAL: ReadonlySet<FaultCode> = new Set([
  'outranked',
  'replica-too-new',
  'replica-damaged',
  'replica-gone',
  'other-account',
]);
/** A host that was there for this long begins the delays anew; one that dies sooner is one more try of the same. */
const LIVED_MS = 10_000;

export class Link {
  readonly #parts: LinkParts;
  readonly #pending = new Map<string, Pending>();
  readonly #lives = new Map<string, { readonly ask: Ask; readonly sink: LiveSink }>();
  readonly #listeners = new Set<LinkListener>();
  #channel: Channel | null = null;
  #number = 0;
  /** Counts channels: what an older one still delivers is ignored. */
  #generation = 0;
  #tries = 0;
  /** Told by this host, and not yet said to be heard. */
  #heard = 0;
  /** When the host that is there, or was there last, said welcome. */
  #welcomedAtMs: number | null = null;
  #stopReopening: (() => void) | null = null;
  #end: Fault | null = null;
  #isVisible = true;

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  /** Opens the channel. Until then, and between two hosts, what is asked waits. */
  start(): void {
    if (this.#channel === null && this.#end === null) this.#open();
  }

  /** Null while the link may be used. */
  get end(): Fault | null {
    return this.#end;
  }

  listen(listener: LinkListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Rejects with `FaultError`: what the host refused, `no-owner`, `closed`, `aborted`. */
  request<N extends RequestName>(
    name: N,
    send: Requests[N]['send'],
    options: { readonly id?: string; readonly signal?: WaitSignal } = {},
  ): Promise<Requests[N]['answer']> {
    const { promise, resolve, reject } = Promise.withResolvers<Requests[N]['answer']>();
    if (this.#end !== null) {
      reject(new FaultError(this.#end));
      return promise;
    }
    if (this.#pending.size >= LIMITS.linkRequestsMax) {
      reject(new FaultError({ code: 'aborted', facts: { reason: 'too many requests wait for an answer' } }));
      return promise;
    }
    this.#number += 1;
    const id = options.id ?? `r${this.#number}`;
    const ask = { ask: name, id, ...send } as unknown as AskOf<N>;
    const pending: Pending = { ask: ask as Ask & { id: string }, resolve, reject, hosts: 0, stopTimer: null };
    this.#pending.set(id, pending);
    if (options.signal !== undefined && !this.#watch(pending, options.signal, promise)) return promise;
    this.#askHost(pending);
    return promise;
  }

  live(key: string, sql: string, parameters: readonly Json[], sink: LiveSink): void {
    if (this.#end !== null) return sink.failing(this.#end);
    const ask: Ask = { ask: 'live', key, sql, parameters };
    this.#lives.set(key, { ask, sink });
    this.#channel?.send(ask);
  }

  drop(key: string): void {
    if (this.#lives.delete(key)) this.#channel?.send({ ask: 'drop', key });
  }

  setVisible(isVisible: boolean): void {
    this.#isVisible = isVisible;
    this.#channel?.send({ ask: 'visible', isVisible });
  }

  close(): void {
    this.#finish({ code: 'closed' });
  }

  // ── the channel ───────────────────────────────────────────────────────────────────────────────────────────────────

  #open(): void {
    this.#generation += 1;
    const generation = this.#generation;
    const isCurrent = () => generation === this.#generation && this.#end === null;
    const events: ChannelEvents = {
      tell: (tell) => {
        if (!isCurrent()) return;
        this.#hear();
        this.#told(tell);
      },
      closed: () => {
        if (isCurrent()) this.#lost({ code: 'no-owner' });
      },
    };
    this.#heard = 0;
    this.#channel = this.#parts.open(events);
    if (!this.#isVisible) this.#channel.send({ ask: 'visible', isVisible: false });
    for (const { ask } of [...this.#lives.values()]) this.#channel?.send(ask);
    for (const pending of [...this.#pending.values()]) this.#askHost(pending);
  }

  /** Between two hosts it waits: the next one is asked when it is there. */
  #askHost(pending: Pending): void {
    if (this.#channel === null) return;
    const { ask } = pending;
    pending.hosts += 1;
    this.#channel.send(ask);
    // A function call has answered by now, and needs no timer.
    if (this.#pending.get(ask.id) === pending && !UNBOUNDED.has(ask.ask))
      pending.stopTimer = this.#parts.clock.timer(LIMITS.linkAnswerMs, () =>
        this.#settle(ask.id, { code: 'no-owner', facts: { asked: ask.ask } }),
      );
  }

  #lost(fault: Fault): void {
    this.#channel?.close();
    this.#channel = null;
    this.#generation += 1;
    const { clock, reopenMs: delays = [] } = this.#parts;
    if (this.#welcomedAtMs !== null && clock.monotonic() - this.#welcomedAtMs >= LIVED_MS) this.#tries = 0;
    this.#welcomedAtMs = null;
    const delay = delays[this.#tries];
    if (delay === undefined || FINAL.has(fault.code)) return this.#finish(fault);
    this.#tries += 1;
    for (const pending of [...this.#pending.values()]) {
      pending.stopTimer?.();
      pending.stopTimer = null;
      const { ask, hosts } = pending;
      if (ONCE.has(ask.ask) || hosts > delays.length) this.#settle(ask.id, { ...fault, code: 'no-owner' });
    }
    this.#stopReopening = clock.timer(delay, () => this.start());
    for (const listener of this.#listeners) listener.lost?.(fault);
  }

  #finish(fault: Fault): void {
    if (this.#end !== null) return;
    this.#end = fault;
    this.#generation += 1;
    this.#stopReopening?.();
    this.#channel?.close();
    this.#channel = null;
    for (const id of [...this.#pending.keys()]) this.#settle(id, fault);
    for (const { sink } of this.#lives.values()) sink.failing(fault);
    this.#lives.clear();
    for (const listener of this.#listeners) listener.ended?.(fault);
    this.#listeners.clear();
  }

  /** LK3: a host that hears nothing of it tells less. */
  #hear(): void {
    this.#heard += 1;
    if (this.#heard < LIMITS.linkHeardEvery) return;
    this.#channel?.send({ ask: 'heard', tells: this.#heard });
    this.#heard = 0;
  }

  #told(tell: Tell): void {
    switch (tell.tell) {
      case 'answer': {
        const pending = this.#pending.get(tell.id);
        if (pending === undefined) return;
        this.#pending.delete(tell.id);
        pending.stopTimer?.();
        return pending.resolve(tell.value);
      }
      case 'no':
        return this.#settle(tell.id, tell.fault);
      case 'rows':
        return this.#lives.get(tell.key)?.sink.rows(tell);
      case 'failing':
        return this.#lives.get(tell.key)?.sink.failing(tell.fault);
      case 'welcome':
        this.#welcomedAtMs = this.#parts.clock.monotonic();
        for (const listener of this.#listeners) listener.welcome?.(tell);
        return;
      case 'status':
        for (const listener of this.#listeners) listener.status?.(tell.status);
        return;
      case 'undo':
        for (const listener of this.#listeners) listener.undo?.(tell.undo);
        return;
      case 'types':
        for (const listener of this.#listeners) listener.types?.(tell.types);
        return;
      case 'desk':
        for (const listener of this.#listeners) listener.desk?.();
        return;
      case 'end':
        return this.#lost(tell.fault);
    }
  }

  #settle(id: string, fault: Fault): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    pending.stopTimer?.();
    pending.reject(new FaultError(fault));
  }

  /** Ends a wait when its caller gives up. False: he has already. */
  #watch(pending: Pending, signal: WaitSignal, promise: Promise<unknown>): boolean {
    const { id } = pending.ask;
    // Whoever settles is told what stood in the way; other waits just end.
    const isReported = pending.ask.ask === 'settle';
    const giveUp = () => {
      if (this.#pending.get(id) !== pending) return;
      if (!isReported) this.#settle(id, { code: 'aborted' });
      this.#channel?.send({ ask: 'cancel', id });
    };
    if (signal.aborted && !isReported) {
      this.#settle(id, { code: 'aborted' });
      return false;
    }
    if (signal.aborted) this.#parts.clock.soon(giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    const over = () => signal.removeEventListener('abort', giveUp);
    promise.then(over, over);
    return true;
  }
}
