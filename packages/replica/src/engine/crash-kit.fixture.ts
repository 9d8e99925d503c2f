import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SchemaData } from '@holdfast/core';
import { type FailHow, FailingDatabase } from '../testing/failing-database.ts';
import { contentsOf } from '../testing/file-contents.ts';
import { Device } from './device.fixture.ts';
import { examine } from './inspect.ts';

export { contentsOf, type FailHow, FailingDatabase };

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

function copy(from: string, folder: string, name: string): string {
  const to = join(folder, `${name}.db`);
  copyFileSync(from, to);
  if (existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${to}-wal`);
  return to;
}
