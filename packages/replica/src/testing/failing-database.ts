import type { Database, Statement } from '@holdfast/core';

export interface FailHow {
  readonly cause: Error;
  /** The statement takes effect, and nobody is told. */
  readonly isRunFirst?: boolean;
  /** Nothing runs any more, as after a kill: not even ROLLBACK. */
  readonly isDeadAfter?: boolean;
  /** Called when it strikes: to stop what else such a process would do. */
  readonly struck?: () => void;
}

/** Counts what runs, and makes the n-th from `arm` on fail: instead of running it, or after it ran. */
export class FailPlan {
  #left = Number.POSITIVE_INFINITY;
  #how: FailHow = { cause: new Error('not armed') };
  #isDead = false;
  #ran = 0;
  #hasStruck = false;

  arm(nth: number, how: FailHow): void {
    this.#left = nth;
    this.#how = how;
    this.#ran = 0;
  }
  /** Nothing more is to fail; `ran` stays. */
  disarm(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }
  /** The process is gone; whoever tidies up may run statements again. */
  revive(): void {
    this.#isDead = false;
    this.disarm();
  }
  /** Statements since `arm`. */
  get ran(): number {
    return this.#ran;
  }
  get hasStruck(): boolean {
    return this.#hasStruck;
  }
  get isDead(): boolean {
    return this.#isDead;
  }
  guard<T>(run: () => T): T {
    if (this.#isDead) throw this.#how.cause;
    this.#ran += 1;
    this.#left -= 1;
    if (this.#left !== 0) return run();
    this.#hasStruck = true;
    this.#isDead = this.#how.isDeadAfter === true;
    if (this.#how.isRunFirst === true) run();
    this.#how.struck?.();
    throw this.#how.cause;
  }
}

/** A database whose n-th statement from `arm` on fails. Reads of an app (`prepareQuery`) do not count. */
export class FailingDatabase implements Database {
  readonly #inner: Database;
  readonly #plan: FailPlan;
  /** After each statement that left no transaction open: what it did is in the file. */
  onCommitted: (() => void) | null = null;

  constructor(inner: Database, plan = new FailPlan()) {
    this.#inner = inner;
    this.#plan = plan;
  }
  arm(nth: number, how: FailHow): void {
    this.#plan.arm(nth, how);
  }
  get ran(): number {
    return this.#plan.ran;
  }
  isInPlace(): boolean {
    return this.#inner.isInPlace();
  }

  get inTransaction(): boolean {
    return this.#inner.inTransaction;
  }
  exec(sql: string): void {
    this.#guard(() => this.#inner.exec(sql));
  }
  prepare(sql: string): Statement {
    const inner = this.#inner.prepare(sql);
    return new Proxy(inner, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== 'function') return member;
        return (...values: unknown[]) => this.#guard(() => Reflect.apply(member, target, values) as unknown);
      },
    });
  }
  prepareQuery(sql: string) {
    return this.#inner.prepareQuery(sql);
  }
  function(...parts: Parameters<Database['function']>): void {
    this.#inner.function(...parts);
  }
  close(): void {
    this.#inner.close();
  }

  #guard<T>(run: () => T): T {
    const result = this.#plan.guard(run);
    if (this.onCommitted !== null && !this.#inner.inTransaction) this.onCommitted();
    return result;
  }
}
