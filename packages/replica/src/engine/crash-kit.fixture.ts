import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Database, SchemaData, SqlRow, Statement } from '@holdfast/core';
import { openNodeDatabase } from '../adapters/node/database.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';

/** A database whose n-th statement from `arm` on fails: instead of running it, or after it ran. */
export class FailingDatabase implements Database {
  readonly #inner: Database;
  #left = Number.POSITIVE_INFINITY;
  #how: FailHow = { cause: new Error('not armed') };
  #isDead = false;
  ran = 0;

  constructor(inner: Database) {
    this.#inner = inner;
  }
  arm(nth: number, how: FailHow): void {
    this.#left = nth;
    this.#how = how;
    this.ran = 0;
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
    if (this.#isDead) throw this.#how.cause;
    this.ran += 1;
    this.#left -= 1;
    if (this.#left !== 0) return run();
    this.#isDead = this.#how.isDeadAfter === true;
    if (this.#how.isRunFirst === true) run();
    this.#how.struck?.();
    throw this.#how.cause;
  }
}

export interface FailHow {
  readonly cause: Error;
  /** The statement takes effect, and nobody is told. */
  readonly isRunFirst?: boolean;
  /** Nothing runs any more, as after a kill: not even ROLLBACK. */
  readonly isDeadAfter?: boolean;
  /** Called when it strikes: to stop what else such a process would do. */
  readonly struck?: () => void;
}

export interface CrashScene {
  readonly schema: SchemaData;
  /** Before: what the file holds when the work begins. */
  readonly prepare: (device: Device) => void;
  /** The work, one step per transaction. A step sees what the steps before it left. */
  readonly steps: readonly ((device: Device) => void)[];
  /** Opens the file by this schema, under which the work runs; opening is then the first step. */
  readonly opensBy?: SchemaData;
  /** What the next run does with the file that a crash left, after it was examined; and what is wrong then. */
  readonly next?: (device: Device) => readonly string[];
}

export interface CrashReport {
  readonly statements: number;
  /** States between transactions that a crash was seen to leave, by their place: 0 is before everything. */
  readonly left: readonly number[];
  readonly problems: readonly string[];
}

/**
 * Fails every statement of a scene's work, one run per statement, each on a copy of one prepared file. After each failure
 * the file is closed, opened again and examined: it holds the state between two transactions, and nothing else.
 */
export function crashEverywhere(scene: CrashScene, how: FailHow): CrashReport {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-crash-'));
  try {
    return crashIn(folder, scene, how);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function crashIn(folder: string, scene: CrashScene, how: FailHow): CrashReport {
  const prepared = join(folder, 'prepared.db');
  const first = new Device({ schema: scene.schema, file: prepared });
  scene.prepare(first);
  first.remove();

  const schema = scene.opensBy ?? scene.schema;
  const run = (name: string, nth: number, steps: number) =>
    runOnce({ ...scene, schema }, copy(prepared, folder, name), { nth, how, steps });
  const isOpening = scene.opensBy !== undefined;
  const whole = run('whole', Number.POSITIVE_INFINITY, scene.steps.length);
  if (whole.error !== null) throw whole.error;
  const states = [
    ...(isOpening ? [contentsOf(prepared)] : []),
    ...Array.from(
      { length: scene.steps.length + 1 },
      (_, count) => run(`state-${count}`, Number.POSITIVE_INFINITY, count).contents,
    ),
  ];
  const left = new Set<number>();
  const problems: string[] = [];
  for (let nth = 1; nth <= whole.statements; nth += 1) {
    const { error, contents, file } = run(`run-${nth}`, nth, scene.steps.length);
    if (error !== how.cause) problems.push(`statement ${nth}: ended with ${String(error)}`);
    const place = states.indexOf(contents);
    if (place === -1) problems.push(`statement ${nth}: a state that is between two`);
    else left.add(place);
    problems.push(...examined(file, { ...scene, schema }).map((what) => `statement ${nth}: ${what}`));
  }
  return { statements: whole.statements, left: [...left].sort(), problems };
}

function runOnce(
  scene: CrashScene,
  file: string,
  { nth, how, steps }: { readonly nth: number; readonly how: FailHow; readonly steps: number },
) {
  let failing: FailingDatabase | null = null;
  let error: unknown = null;
  try {
    const device = new Device({
      schema: scene.schema,
      file,
      seed: 2,
      through: (inner) => {
        failing = new FailingDatabase(inner);
        if (scene.opensBy !== undefined) failing.arm(nth, how);
        return failing;
      },
    });
    if (scene.opensBy === undefined) (failing as FailingDatabase | null)?.arm(nth, how);
    for (const step of scene.steps.slice(0, steps)) step(device);
  } catch (cause) {
    error = cause;
  }
  const database = failing as FailingDatabase | null;
  database?.close();
  return { file, error, statements: database?.ran ?? 0, contents: contentsOf(file) };
}

/** Opens the file as the next run of the host would, and says what is wrong. */
function examined(file: string, { schema, next }: CrashScene): string[] {
  const device = new Device({ schema, file, seed: 3 });
  try {
    const found = examine(device.state.store)
      .findings.filter(({ check }) => check !== 'permits')
      .map(({ check, what }) => `${check}: ${what}`);
    return [...found, ...(next?.(device) ?? [])];
  } finally {
    device.remove();
  }
}

/** Everything that the file says, but who holds it. */
export function contentsOf(file: string): string {
  const database = openNodeDatabase({ file });
  try {
    const tables = database
      .prepare(
        "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND name <> 'hf_coordinator' ORDER BY name",
      )
      .all();
    const rows = (name: string): SqlRow[] =>
      database
        .prepare(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => ({ ...row }));
    return JSON.stringify(
      tables.map((table) => [
        table,
        String(table['sql']).startsWith('CREATE TABLE') ? rows(table['name'] as string) : [],
      ]),
      (_key, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value),
    );
  } finally {
    database.close();
  }
}

function copy(from: string, folder: string, name: string): string {
  const to = join(folder, `${name}.db`);
  copyFileSync(from, to);
  if (existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${to}-wal`);
  return to;
}
