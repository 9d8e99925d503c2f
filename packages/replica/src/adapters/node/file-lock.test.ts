import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { lockFile, lockWhenFree } from './file-lock.ts';

const folder = () => mkdtempSync(join(tmpdir(), 'holdfast-lock-'));
const me = { pid: process.pid, since: '2026-11-30T00:00:00.000Z', what: 'a test' };
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

async function otherProcess(file: string): Promise<ChildProcess> {
  const source = `import { lockFile } from ${JSON.stringify(resolve(import.meta.dirname, 'file-lock.ts'))};
    let got = lockFile(${JSON.stringify(file)}, { pid: process.pid, since: 'now' });
    // Nobody refers to the lock any more; it is held all the same.
    process.stdout.write((got.ok ? (got = null, gc(), gc(), 'held') : 'refused'));
    setInterval(() => void got, 1000);`;
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module-typescript', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [said] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  expect(said.toString()).toBe('held');
  return child;
}

test('[F169] a second host of the same process is refused, and told who holds the file', () => {
  const file = join(folder(), 'replica.db');
  const first = lockFile(file, me);
  expect(first.ok).toBe(true);
  expect(lockFile(file, me)).toEqual({ ok: false, holder: me });
  if (first.ok) first.lock.release();
  expect(existsSync(`${file}.holder`)).toBe(false);
  expect(lockFile(file, me).ok).toBe(true);
});

test('[F169] another process is refused with the pid of the holder, until the holder is gone', async () => {
  const file = join(folder(), 'replica.db');
  const child = await otherProcess(file);
  expect(lockFile(file, me)).toEqual({ ok: false, holder: { pid: child.pid, since: 'now' } });
  child.kill('SIGKILL');
  await once(child, 'exit');
  // Nothing of the killed process is in the way, and nobody had to decide that it is dead.
  expect(existsSync(`${file}.holder`)).toBe(true);
  expect(lockFile(file, me).ok).toBe(true);
});

test('[F169] release is idempotent and does not take a later lock away', () => {
  const file = join(folder(), 'replica.db');
  const first = lockFile(file, me);
  if (first.ok) first.lock.release();
  const second = lockFile(file, me);
  if (first.ok) first.lock.release();
  expect(second.ok).toBe(true);
  expect(lockFile(file, me).ok).toBe(false);
});

test('[F169] [OW2] whoever took a file over by force holds its lock once the other is gone, and a third is told so', () => {
  const file = join(folder(), 'replica.db');
  const other = lockFile(file, { pid: 1, since: 'before' });
  const due: (() => void)[] = [];
  const timer = (_ms: number, run: () => void) => {
    due.push(run);
    return () => void due.splice(due.indexOf(run), 1);
  };
  const taken = lockWhenFree(file, me, { timer });
  due.shift()?.();
  expect(lockFile(file, me)).toEqual({ ok: false, holder: { pid: 1, since: 'before' } });
  if (other.ok) other.lock.release();
  due.shift()?.();
  expect([lockFile(file, me), due]).toEqual([{ ok: false, holder: me }, []]);
  taken.release();
  expect(lockFile(file, me).ok).toBe(true);
});

test('[F169] a lock that is released before it was free is not taken later', () => {
  const file = join(folder(), 'replica.db');
  const other = lockFile(file, me);
  const due: (() => void)[] = [];
  const timer = (_ms: number, run: () => void) => {
    due.push(run);
    return () => void due.splice(0);
  };
  const taken = lockWhenFree(file, me, { timer });
  taken.release();
  expect(due).toEqual([]);
  if (other.ok) other.lock.release();
  expect(lockFile(file, me).ok).toBe(true);
});

test('[F169] a lock that cannot even be looked for is looked for again, and throws at nobody', () => {
  const due: (() => void)[] = [];
  const timer = (_ms: number, run: () => void) => {
    due.push(run);
    return () => void due.splice(0);
  };
  const taken = lockWhenFree(join(folder(), 'gone', 'replica.db'), me, { timer });
  due.shift()?.();
  expect(due).toHaveLength(1);
  taken.release();
  expect(due).toEqual([]);
});
