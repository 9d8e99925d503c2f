import { expect } from 'vitest';
import { type Bench, type BenchDevice, isLive } from './bench.fixture.ts';

/** For tests of what is still on its way while a ledger loses its history. */
export const isTold = (device: BenchDevice): boolean => device.sync.status.phase === 'history-changed';
export const headOf = (device: BenchDevice): number => device.state.log('main')?.head ?? 0;

/** The answer to the next request of this kind comes when the function that it gives is called. */
export function hold(device: BenchDevice, part: string): { release(): void; readonly isHeld: boolean } {
  let release: (() => void) | null = null;
  const others = device.script;
  device.script = (url, request, forward) => {
    if (release !== null || !url.includes(part)) return others?.(url, request, forward);
    const answered = forward(url, request);
    answered.catch(() => {});
    return new Promise((resolve) => {
      release = () => resolve(answered);
    });
  };
  return {
    release: () => release?.(),
    get isHeld() {
      return release !== null;
    },
  };
}

/** No socket tells of anything. */
export const deafen = (device: BenchDevice): void => {
  device.onMessage = (text) => (text.includes('"events"') ? null : text);
};

/** Two notes of his, on whatever history the ledger has now. */
export async function goesOn(bench: Bench, ben: BenchDevice): Promise<void> {
  await bench.until('ben is told', () => isTold(ben), 25_000);
  ben.state.adopt('main');
  for (const title of ['of ben', 'of ben, too']) ben.create(title);
  await bench.until('ben went on', () => isLive(ben) && headOf(ben) === 2);
}

/** Both have two notes of Ben's, the one that was kept, and the one whose action this is, called `late`. */
export async function allInOnce(
  bench: Bench,
  [ana, ben]: readonly [BenchDevice, BenchDevice],
  action: string,
): Promise<void> {
  ana.onMessage = null;
  await bench.until('all in', () => ana.state.counts().unsent === 0 && isLive(ana) && headOf(ana) === 4, 300_000);
  expect([ana.titles(), ana.state.outcome(action)?.state, ana.owed(), ana.state.desk()]).toEqual([
    ['kept', 'late', 'of ben', 'of ben, too'],
    'ordered',
    [],
    [],
  ]);
  await bench.until('ben has all', () => headOf(ben) === 4);
  expect(ben.titles()).toEqual(ana.titles());
}
